// Words of shared memory: reading them, choosing bytes of two, rounding to TF32.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

__device__ __forceinline__ uint32 load_word(uint32 from) {
    uint32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from));
    return x;
}
__device__ __forceinline__ uint32 pick(uint32 x, uint32 y, uint32 which) {
    uint32 z;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(z) : "r"(x), "r"(y), "r"(which));
    return z;
}
// Rounds to TF32; infinities and NaNs stay.
__device__ __forceinline__ uint32 tf32_of(uint32 x) {
    uint32 y;
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}
