// The parameters of an element-wise kernel. A kernel of RANK axes reads a prefix of the host's
// struct.
#pragma once

#include "gputensor/_kernels/cuda/axis.h"

namespace gputensor {

#ifdef GPUTENSOR_KERNEL
enum { ELEMENTWISE_AXES = RANK ? RANK : 1 };
#else
enum { ELEMENTWISE_AXES = 16 };
#endif

struct alignas(16) ElementwiseScalar {
    double parts[2];        // a value of the arithmetic type, from the first byte on
};

struct ElementwiseParameters {
    GPUTENSOR_POINTER(char) out;
    GPUTENSOR_POINTER(const char) inputs[3];
    uint32 units, tail;
    ElementwiseScalar scalars[3];
    LaunchAxis axes[ELEMENTWISE_AXES];      // innermost first
};

static_assert(sizeof(ElementwiseParameters) == (96 + 28 * ELEMENTWISE_AXES + 15) / 16 * 16,
              "both sides of a launch lay the parameters out alike");

#ifndef GPUTENSOR_KERNEL
// The length of the prefix that a kernel of `rank` axes reads.
inline unsigned elementwise_nbytes(int rank) {
    return (96 + 28 * (rank ? rank : 1) + 15) / 16 * 16;
}
#endif

}  // namespace gputensor
