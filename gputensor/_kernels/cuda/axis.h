// One axis of the index space that the operands of a kernel share; `divide` is in divide.cuh.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct LaunchAxis {
    uint32 size, magic, shift;
    int32 strides[4];       // of three inputs and the output, in elements
};
static_assert(sizeof(LaunchAxis) == 28, "both sides of a launch lay an axis out alike");

}  // namespace gputensor
