// The parameters of integer products (integer.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct IntegerParameters {
    GPUTENSOR_POINTER(const input_t) a;
    GPUTENSOR_POINTER(const input_t) b;
    GPUTENSOR_POINTER(const output_t) c;
    GPUTENSOR_POINTER(output_t) d;
    int64 m, n, k, batch;
    int64 row_a, column_a, row_b, column_b;     // strides in elements
    int64 ldc, ldd;
    int64 stride_a, stride_b, stride_c, stride_d;
    int64 alpha, beta;
};
static_assert(sizeof(IntegerParameters) == 160,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
