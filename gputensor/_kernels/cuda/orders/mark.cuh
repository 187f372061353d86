// Which elements are chosen: a bit for each, and how many are chosen before each tile of them.
//
// A block of threads has a tile, a thread a word of 32 bits. One pass (prefix.cuh); the last start
// is the number of all.
//
// Defined before this text: RULE, one of the three; ELEMENT, the type of an element; IS_BYTES, whether
// TRUE reads bytes of which any bit counts.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define TRUE 0       // not zero
#define FIRST 1      // another than the element before
#define FIRST_NAN 2  // the same, with all NaN alike
#define THREADS 256
#define TILE (THREADS * 32)

#include "gputensor/_kernels/cuda/orders/prefix.cuh"

typedef MarkParameters Parameters;
typedef ELEMENT T;

struct Sum {
    static __device__ __forceinline__ int64 join(int64 a, int64 b) { return a + b; }
    static __device__ __forceinline__ int64 identity() { return 0; }
};

template <class X> __device__ __forceinline__ bool differs(X a, X b) {
    return a != b && !(RULE == FIRST_NAN && a != a && b != b);
}
template <class X> __device__ __forceinline__ bool differs(complex_t<X> a, complex_t<X> b) {
    const bool nan_a = a.re != a.re || a.im != a.im, nan_b = b.re != b.re || b.im != b.im;
    return (a.re != b.re || a.im != b.im) && !(RULE == FIRST_NAN && nan_a && nan_b);
}

__device__ __forceinline__ bool is_chosen(const T* input, int64 i) {
#if RULE == TRUE
    return convert<bool>(input[i]);
#else
    return i == 0 || differs(wide(input[i]), wide(input[i - 1]));
#endif
}

// The low bits of four bytes, each whether the byte is not zero.
__device__ __forceinline__ uint32 four_bits(uint32 bytes) {
    bytes |= bytes >> 4 & 0x0f0f0f0fu;
    bytes |= bytes >> 2 & 0x03030303u;
    bytes |= bytes >> 1;
    return (bytes & 0x01010101u) * 0x01020408u >> 24 & 15;
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    __shared__ int64 sums[THREADS / 32];
    __shared__ uint32 shared;
    const T* input = reinterpret_cast<const T*>(p.input);
    const int64 tile = take_number(p.counter, &shared), first = tile * TILE;
    const int lane = threadIdx.x % 32;
    uint32 word = 0;
#if IS_BYTES
    if (first + TILE <= p.count && (uint64)(input + first) % 16 == 0) {
        const uint4* bytes = reinterpret_cast<const uint4*>(input + first) + 2 * threadIdx.x;
        const uint4 low = bytes[0], high = bytes[1];
        word = four_bits(low.x) | four_bits(low.y) << 4 | four_bits(low.z) << 8
             | four_bits(low.w) << 12 | four_bits(high.x) << 16 | four_bits(high.y) << 20
             | four_bits(high.z) << 24 | four_bits(high.w) << 28;
    } else
#endif
    {
        const int64 start = first + (threadIdx.x - lane) * 32 + lane;
        for (int k = 0; k < 32; k += 8) {
            bool chosen[8];
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const int64 i = start + (k + j) * 32;
                chosen[j] = i < p.count && is_chosen(input, i);
            }
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const uint32 found = __ballot_sync(0xffffffffu, chosen[j]);
                if (lane == k + j) word = found;
            }
        }
    }
    if (first + 32 * (int64)threadIdx.x < p.count) p.bits[tile * THREADS + threadIdx.x] = word;
    int64 total;
    before_thread<Sum>((int64)__popc(word), sums, total);
    const int64 before =
        before_tile<Sum>(total, tile, p.tiles, p.words, p.words + p.tiles * WORDS(int64), sums);
    if (threadIdx.x == 0) {
        p.starts[tile] = before;
        if (tile + 1 == p.tiles) p.starts[p.tiles] = before + total;
    }
}
