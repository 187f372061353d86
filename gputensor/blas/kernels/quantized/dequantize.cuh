// Turns quantized weights back into floats, for products of many rows.
//
// A thread makes eight neighbouring weights of one feature, from one word of the int4 layout or
// eight bytes; `out` is row-major [n, k].
//
// Defined before this text: KIND, 0 for float16, 1 for bfloat16, 2 for float32; BITS, 4 or 8.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/quantized/dequantize.h"

typedef DequantizeParameters Parameters;

#if KIND == 2
typedef float element;
__device__ __forceinline__ float wide(element x) { return x; }
__device__ __forceinline__ element narrow(float x) { return x; }
#else
typedef uint16 element;
__device__ __forceinline__ float wide(element x) {
#if KIND == 1
    return __uint_as_float((uint32)x << 16);
#else
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
#endif
}
__device__ __forceinline__ element narrow(float x) {
    element y;
#if KIND == 1
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
#endif
    return y;
}
#endif
struct alignas(8 * sizeof(element)) Eight { element item[8]; };
struct alignas(8) Bytes { signed char item[8]; };

// In 32 bits where both fit them, which takes a fraction of the time.
__device__ __forceinline__ int64 quotient(int64 a, int64 b) {
    return (a | b) >> 32 ? a / b : (int64)((uint32)a / (uint32)b);
}

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    const int64 in_row = (p.k + 7) / 8, count = in_row * p.n;
    for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64)gridDim.x * blockDim.x) {
        const int64 row = quotient(i, in_row), k = (i - row * in_row) * 8;
        const int left = p.k - k < 8 ? (int)(p.k - k) : 8;
        // Groups are multiples of eight, or all of K.
        const float scale = wide(
            reinterpret_cast<const element*>(p.scales)[quotient(k, p.group) * p.n + row]);
        Eight made;
#if BITS == 4
        const int64 tile = row / 16 * p.tiles + k / 64;
        const int g = row % 16 / 2, t = k % 32 / 8, word_of_lane = (int)(k % 64 / 32 * 2 + row % 2);
        const uint32 word = reinterpret_cast<const uint32*>(p.w)[
            tile * 128 + (4 * g + t) * 4 + word_of_lane];
#else
        const signed char* w = reinterpret_cast<const signed char*>(p.w) + row * p.k + k;
        Bytes bytes;
        if (((uint64)p.w | (uint64)p.k) % 8 == 0)
            bytes = *reinterpret_cast<const Bytes*>(w);
        else
#pragma unroll
            for (int e = 0; e < 8; ++e) bytes.item[e] = e < left ? w[e] : 0;
#endif
#pragma unroll
        for (int e = 0; e < 8; ++e) {
#if BITS == 4
            const int value = (int)(word >> (4 * (e / 2 + 4 * (e % 2))) & 15) - 8;
#else
            const int value = bytes.item[e];
#endif
            made.item[e] = narrow((float)value * scale);
        }
        element* out = reinterpret_cast<element*>(p.out) + row * p.k + k;
        if (p.k % 8 == 0)
            *reinterpret_cast<Eight*>(out) = made;
        else
#pragma unroll
            for (int e = 0; e < 8; ++e)
                if (e < left) out[e] = made.item[e];
    }
}
