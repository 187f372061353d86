// The parameters of products with narrow results (narrow.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct NarrowParameters {
    GPUTENSOR_POINTER(const float) x;       // [k, n], along n
    GPUTENSOR_POINTER(const float) w;
    GPUTENSOR_POINTER(float) y;             // [n, COLUMNS]; read when beta is not 0
    GPUTENSOR_POINTER(float) parts;         // [splits, n, COLUMNS], or null with a single split
    int64 n, k;
    int64 x_pitch;                          // elements from term to term
    int64 w_term, w_column;                 // elements of w from term to term, column to column
    int64 y_pitch;                          // elements from row to row
    int64 slice;                            // terms of a split
    float alpha, beta;
    int splits, unused;
};
static_assert(sizeof(NarrowParameters) == 104,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
