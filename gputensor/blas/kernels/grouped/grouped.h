// The parameters of both grouped kernels with offsets on the device (grouped.cuh,
// grouped_wgmma.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct GroupedParameters {
    GPUTENSOR_POINTER(const input_t) a;
    GPUTENSOR_POINTER(const input_t) b;
    GPUTENSOR_POINTER(output_t) d;
    GPUTENSOR_POINTER(const int) offsets;
    int64 tokens, n, k;
    int64 row_a, term_a;                // strides in elements; for tensor cores, term_a is 1,
    int64 group_b, term_b, column_b;    // and so is either term_b or column_b
    int64 row_d, column_d;
    int first, count;                   // the groups of this launch
    int is_last;
    int columns;                        // tiles across
    int has_pairs;                      // two neighbours of a row of D may be written at once
};
static_assert(sizeof(GroupedParameters) == 136,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
