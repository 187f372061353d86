// The parameters of tiny products (tiny.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct TinyParameters {
    GPUTENSOR_POINTER(const input_t) a;
    GPUTENSOR_POINTER(const input_t) b;
    GPUTENSOR_POINTER(const output_t) c;
    GPUTENSOR_POINTER(output_t) d;
    GPUTENSOR_POINTER(const output_t) bias;     // one for each row of D, or null
    int64 stride_a, stride_b, stride_c, stride_d;
    int64 ldc, ldd;
    int m, n, k;
    int line_a, term_a;                 // strides in elements along m and k
    int line_b, term_b;                 // along n and k
    int across;                         // tiles along n
    int activation;                     // 1: relu, 2: gelu in the tanh form
    float alpha, beta;
};
static_assert(sizeof(TinyParameters) == 136,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
