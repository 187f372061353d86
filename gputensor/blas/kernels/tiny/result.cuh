// The end of a tiny product: one sum becomes an element of the result.
#pragma once

#include "gputensor/blas/kernels/tiny/tiny.h"

typedef TinyParameters Parameters;

__device__ __forceinline__ output_t result_of(const Parameters& p, int64 item, int i, int j,
                                              float sum) {
    float x = p.alpha * sum;
    if (p.beta != 0.0f) x = fmaf(p.beta, wide(p.c[item * p.stride_c + j * p.ldc + i]), x);
    if (p.bias) x += wide(p.bias[i]);
    return narrow<output_t>(activate(x, p.activation));
}
