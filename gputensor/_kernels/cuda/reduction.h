// The parameters of a reduction (reduction.cuh). Axes come innermost first.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct KeptAxis {
    int64 size, in_stride, out_stride;
};
struct ReducedAxis {
    int64 size, stride;
};
struct ReductionParameters {
    GPUTENSOR_POINTER(char) out;
    GPUTENSOR_POINTER(const char) input;
    GPUTENSOR_POINTER(char) partial;
    int64 kept;         // outputs, or vectors of them in the column layout
    int64 units;        // reduced positions, or vectors of them in the row layout
    int64 reduced;      // reduced elements
    int64 chunk;        // units of one part
    int64 parts;
    KeptAxis kept_axes[16];
    ReducedAxis reduced_axes[16];
};
static_assert(sizeof(ReductionParameters) == 64 + 16 * 24 + 16 * 16,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
