// Marks chosen elements: a bit for each element, and the number of chosen elements before each
// tile.
//
// A block of threads has a tile of WORDS_EACH parts, and a thread has a word of 32 bits in each
// part. The kernel makes one pass (prefix.cuh); the last start is the total number of chosen
// elements.
//
// Defined before this text: RULE, one of the four; ELEMENT, the type of an element; IS_BYTES, whether
// TRUE reads single bytes, which are true if any bit is set.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define TRUE 0       // not zero
#define FIRST 1      // different from the element before
#define FIRST_NAN 2  // the same, with all NaN equal
#define BITS 3       // by the words of the input, which are the words of bits
#define THREADS 256
#define WORDS_EACH 4
#define PART (THREADS * 32)
#define TILE (PART * WORDS_EACH)    // as in order_rules.py

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

// Four bits, each of which says whether one of four bytes is not zero.
__device__ __forceinline__ uint32 four_bits(uint32 bytes) {
    bytes |= bytes >> 4 & 0x0f0f0f0fu;
    bytes |= bytes >> 2 & 0x03030303u;
    bytes |= bytes >> 1;
    return (bytes & 0x01010101u) * 0x01020408u >> 24 & 15;
}

__device__ __forceinline__ uint32 sixteen_bits(uint4 x) {
    return four_bits(x.x) | four_bits(x.y) << 4 | four_bits(x.z) << 8 | four_bits(x.w) << 12;
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    __shared__ int64 sums[THREADS / 32];
    __shared__ uint32 shared;
    const T* input = reinterpret_cast<const T*>(p.input);
    const int64 tile = take_number(p.counter, &shared), first = tile * TILE;
    const int lane = threadIdx.x % 32;
    uint32 words[WORDS_EACH] = {};
#if IS_BYTES
    if (first + TILE <= p.count && (uint64)(input + first) % 16 == 0) {
        uint4 bytes[WORDS_EACH][2];
#pragma unroll
        for (int part = 0; part < WORDS_EACH; ++part)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                bytes[part][half] = reinterpret_cast<const uint4*>(input + first + part * PART)[
                    2 * threadIdx.x + half];
#pragma unroll
        for (int part = 0; part < WORDS_EACH; ++part)
            words[part] = sixteen_bits(bytes[part][0]) | sixteen_bits(bytes[part][1]) << 16;
    } else
#endif
#if RULE == BITS
#pragma unroll
    for (int part = 0; part < WORDS_EACH; ++part) {
        const int64 word = (tile * WORDS_EACH + part) * THREADS + threadIdx.x;
        words[part] = 32 * word < p.count ? input[word] : 0;
    }
#else
    {
#pragma unroll
        for (int part = 0; part < WORDS_EACH; ++part) {
            const int64 start = first + part * PART + (threadIdx.x - lane) * 32 + lane;
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
                    if (lane == k + j) words[part] = found;
                }
            }
        }
    }
#endif
    int own = 0;
#pragma unroll
    for (int part = 0; part < WORDS_EACH; ++part) {
        const int64 word = (tile * WORDS_EACH + part) * THREADS + threadIdx.x;
        if (32 * word < p.count) p.bits[word] = words[part];
        own += __popc(words[part]);
    }
    int64 total;
    before_thread<Sum>((int64)own, sums, total);
    const int64 before =
        before_tile<Sum>(total, tile, p.tiles, p.words, p.words + p.tiles * WORDS(int64), sums);
    if (threadIdx.x == 0) {
        p.starts[tile] = before;
        if (tile + 1 == p.tiles) p.starts[p.tiles] = before + total;
    }
}
