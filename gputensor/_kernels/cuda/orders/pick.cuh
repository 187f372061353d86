// The elements that mark.cuh chose, one after the other, or their places by axes.
//
// A block of threads has a tile; a warp reads 32 elements for each word of bits.
//
// Defined before this text: FORM, one of the two; ELEMENT, a type of an element's size; INDEX, an
// unsigned type that holds every place; RANK, the number of axes.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define PICK 0
#define PLACES 1
#define THREADS 256
#define WORDS_EACH 4
#define TILE (THREADS * 32 * WORDS_EACH)
#define UNROLL 8

#include "gputensor/_kernels/cuda/orders/prefix.cuh"

typedef PickParameters Parameters;
typedef ELEMENT T;

struct Sum {
    static __device__ __forceinline__ uint32 join(uint32 a, uint32 b) { return a + b; }
    static __device__ __forceinline__ uint32 identity() { return 0; }
};

__device__ __forceinline__ void write_places(const Parameters& p, int64 at, int64 place) {
    int64* out = reinterpret_cast<int64*>(p.out) + at;
    INDEX rest = (INDEX)place;
#pragma unroll
    for (int axis = RANK - 1; axis > 0; --axis) {
        const INDEX extent = (INDEX)p.extents[axis], next = rest / extent;
        out[axis * p.total] = (int64)(rest - next * extent);
        rest = next;
    }
    out[0] = (int64)rest;
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    __shared__ uint32 words[THREADS * WORDS_EACH];
    __shared__ uint32 leading[THREADS * WORDS_EACH];
    __shared__ uint32 sums[THREADS / 32];
    const int64 tile = blockIdx.x, first = tile * TILE, start = p.starts[tile];
    if (p.starts[tile + 1] == start) return;
    const uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int part = 0; part < WORDS_EACH; ++part) {
        const int at = part * THREADS + threadIdx.x;
        const int64 word = tile * THREADS * WORDS_EACH + at;
        words[at] = 32 * word < p.count ? p.bits[word] : 0;
    }
    __syncthreads();
    uint32 own = 0, total;
#pragma unroll
    for (int k = 0; k < WORDS_EACH; ++k) {
        leading[threadIdx.x * WORDS_EACH + k] = own;
        own += __popc(words[threadIdx.x * WORDS_EACH + k]);
    }
    own = before_thread<Sum>(own, sums, total);
#pragma unroll
    for (int k = 0; k < WORDS_EACH; ++k) leading[threadIdx.x * WORDS_EACH + k] += own;
    __syncthreads();
    const T* input = reinterpret_cast<const T*>(p.input);
    T* out = reinterpret_cast<T*>(p.out);
    for (uint32 k = warp * 32 * WORDS_EACH; k < (warp + 1) * 32 * WORDS_EACH; k += UNROLL) {
#if FORM == PICK
        T values[UNROLL];
#endif
        uint32 found[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            const uint32 word = k + j;
            found[j] = words[word];
#if FORM == PICK
            if (found[j] >> lane & 1) values[j] = input[first + word * 32 + lane];
#endif
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            const uint32 word = k + j;
            if (!(found[j] >> lane & 1)) continue;
            const int64 at = start + leading[word] + __popc(found[j] & ((1u << lane) - 1));
            if (at < 0 || at >= p.total) continue;  // the starts do not belong to the bits
#if FORM == PICK
            out[at] = values[j];
#else
            write_places(p, at, first + word * 32 + lane);
#endif
        }
    }
}
