// Functions of the attention kernels, mostly for the scores of a row, which four lanes share.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"

#define DEVICE __device__ __forceinline__

DEVICE float power_of_two(float x) {
    float y;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE float of_quad(float x, bool is_sum) {
#pragma unroll
    for (int mask = 1; mask < 4; mask *= 2) {
        const float y = __shfl_xor_sync(0xffffffffu, x, mask);
        x = is_sum ? x + y : fmaxf(x, y);
    }
    return x;
}
