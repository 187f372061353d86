// The parameters of products of few rows (axpy.cuh, dots.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct FewRowsParameters {
    GPUTENSOR_POINTER(const char) x;
    GPUTENSOR_POINTER(const char) w;
    GPUTENSOR_POINTER(const char) bias;     // null: none
    GPUTENSOR_POINTER(const char) addend;   // read when beta is not 0
    GPUTENSOR_POINTER(char) y;
    int64 n, k;
    int64 w_pitch;                      // bytes
    int64 x_row, x_term;                // elements
    int64 y_row, y_column;
    int64 addend_row, addend_column;
    int64 bias_row, bias_column;        // one of them is 0
    int64 slice;                        // k of one split
    int m;
    float alpha, beta;
    int unused;
};
static_assert(sizeof(FewRowsParameters) == 152,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
