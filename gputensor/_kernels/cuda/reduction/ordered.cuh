// Elements of at most 16 bits as integers of their order, for the arguments of extremes: the
// greatest integer is that of the extreme, a NaN is above all others, and both zeros are equal.
//
// Defined before this text: DESCENDS, 1 if the least element is the extreme.
#pragma once

#include "gputensor/_kernels/cuda/vector.cuh"

// Signed integers in the order of those in the parts of a word, two or four.
template <class T> struct Ordered {
    static __device__ __forceinline__ uint32 of(uint32 word) {
        const uint32 signs = sizeof(T) == 1 ? 0x80808080u : 0x80008000u;
        return word ^ (((T)-1 < (T)0 ? 0u : signs) ^ (DESCENDS ? 0xffffffffu : 0u));
    }
};
// The bits of a negative float, but for its sign, are in the opposite order. Adding 0 makes a zero
// positive; a NaN becomes the one with the greatest bits.
__device__ __forceinline__ uint32 ordered_floats(uint32 word) {
    uint32 negative;        // all bits of those halves
    asm("prmt.b32 %0, %1, %1, 0xbb99;" : "=r"(negative) : "r"(word));
    return word ^ (negative & 0x7fff7fffu);
}
template <> struct Ordered<half_t> {
    static __device__ __forceinline__ uint32 of(uint32 word) {
        const uint32 factor = DESCENDS ? 0xbc00bc00u : 0x3c003c00u;
        uint32 y;
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(word), "r"(factor), "r"(0));
        return ordered_floats(y);
    }
};
template <> struct Ordered<bfloat_t> {
    static __device__ __forceinline__ uint32 of(uint32 word) {
        const uint32 factor = DESCENDS ? 0xbf80bf80u : 0x3f803f80u;
        uint32 y;
#if __CUDA_ARCH__ >= 800
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(word), "r"(factor), "r"(0));
#else
        y = 0;
#pragma unroll
        for (int i = 0; i < 32; i += 16) {
            const uint32 bits = word >> i & 0xffff, size = bits & 0x7fff;
            const uint32 sign = (bits ^ factor) & 0x8000;
            y |= (size > 0x7f80 ? 0x7fff : size ? size | sign : 0) << i;
        }
#endif
        return ordered_floats(y);
    }
};

// Part i of a word as the highest bits of a key, above 16 bits of `below`.
template <class T> __device__ __forceinline__ int32 key_of(uint32 word, int i, uint32 below) {
    const uint32 bytes = sizeof(T) == 1 ? i << 12 | 0x654 : (2 * i + 1) << 12 | 2 * i << 8 | 0x54;
    return (int32)__byte_perm(word, below, bytes);
}
