// The parameters of products of unaligned matrices in one launch (unaligned.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct UnalignedParameters {
    GPUTENSOR_POINTER(const char) a;
    GPUTENSOR_POINTER(const char) b;
    GPUTENSOR_POINTER(const output_t) c;
    GPUTENSOR_POINTER(output_t) d;
    GPUTENSOR_POINTER(const output_t) bias;     // one for each row of D, or null
    int64 stride_a, stride_b, stride_c, stride_d;
    int64 lda, ldb, ldc, ldd;
    int m, n, k;
    int activation;                             // 1: relu, 2: gelu in the tanh form
    float alpha, beta;
};
static_assert(sizeof(UnalignedParameters) == 128,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
