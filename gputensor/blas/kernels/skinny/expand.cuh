// One tensor core instruction of skinny products, and the conversion of int4 and int8 operands.
//
// An int4 or int8 weight becomes a 16-bit float exactly: one `lop3` for two weights puts the
// integer into the mantissa of a power of two whose last place is 1, and an addition subtracts that
// number.
//
// Defined before this text: X_TYPE, the name of x's type in PTX; X_KIND, 0 for float16, 1 for
// bfloat16.
#pragma once

#include "gputensor/blas/kernels/shared/mma.cuh"

// d[16 features][8 tokens] += a[16 features][16 k] * b[16 k][8 tokens].
__device__ __forceinline__ void multiply(float* d, uint32 a0, uint32 a1, uint32 a2, uint32 a3,
                                         uint32 b0, uint32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." X_TYPE "." X_TYPE ".f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32 add_pair(uint32 a, uint32 b) {
    uint32 y;
#if X_KIND == 1
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(0x3f803f80u), "r"(b));
#else
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
#endif
    return y;
}

// Eight int4 weights of one feature as pairs 0 1, 2 3, 4 5, 6 7 (int4_layout.py).
__device__ __forceinline__ void expand_int4(uint32 word, uint32* pairs) {
#if X_KIND == 1
#pragma unroll
    for (int j = 0; j < 4; ++j)         // 128 + u, minus 136
        pairs[j] = add_pair(masked_or(word >> 4 * j, 0x000f000fu, 0x43004300u), 0xc308c308u);
#else
#pragma unroll
    for (int j = 0; j < 4; j += 2) {    // 1024 + u, minus 1032; (1024 + 16 u) / 16, minus 72
        const uint32 shifted = word >> 4 * j;
        const uint32 high = masked_or(shifted, 0x00f000f0u, 0x64006400u);
        pairs[j] = add_pair(masked_or(shifted, 0x000f000fu, 0x64006400u), 0xe408e408u);
        asm("fma.rn.f16x2 %0, %1, %2, %3;"
            : "=r"(pairs[j + 1]) : "r"(high), "r"(0x2c002c00u), "r"(0xd480d480u));
    }
#endif
}

// Four int8 weights of one feature as pairs 0 1, 2 3.
__device__ __forceinline__ void expand_int8(uint32 word, uint32* pairs) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
#if X_KIND == 1
        // bfloat16 has seven bits of mantissa: 128 + these, minus 128, or minus 256 below zero.
        const uint32 bytes = __byte_perm(word, 0, 0x4140 + 0x0202 * j);
        pairs[j] = add_pair(masked_or(bytes, 0x007f007fu, 0x43004300u),
                            masked_or(bytes, 0x00800080u, 0xc300c300u));
#else
        // 1024 + u, minus 1152
        const uint32 bytes = __byte_perm(word ^ 0x80808080u, 0x64646464u, 0x4140 + 0x0202 * j);
        pairs[j] = add_pair(bytes, 0xe480e480u);
#endif
    }
}
