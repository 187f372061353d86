// The parameters of gather, scatter and fold (index.cuh), and of progressions (arange.cuh).
#pragma once

#include "gputensor/_kernels/cuda/axis.h"

namespace gputensor {

// Elements of a block of index.cuh, and those of a thread that gathers.
enum : uint32 { INDEX_ELEMENTS = 256, GATHER_UNITS = 2 };

struct IndexParameters {
    GPUTENSOR_POINTER(char) small;
    GPUTENSOR_POINTER(char) whole;          // not used by fold, whose offsets are the small side
    GPUTENSOR_POINTER(const char) index;
    uint32 count, is_first, is_strict;      // fold: is the first array; marks indices out of range
    uint32 padding;
    int64 axis_size, axis_stride;
    LaunchAxis axes[16];
};
static_assert(sizeof(IndexParameters) == 56 + 16 * 28,
              "both sides of a launch lay the parameters out alike");

struct ArangeParameters {
    GPUTENSOR_POINTER(char) out;
    int64 size, stride;
    double start, step;
    int64 integer_start, integer_step;
};
static_assert(sizeof(ArangeParameters) == 56,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
