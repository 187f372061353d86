// The elements that mark.cuh chose, one after the other, or their places by axes.
//
// A block of threads has a tile; a warp reads 32 elements for each word of bits.
//
// Defined before this text: FORM, one of the two; ELEMENT, a type of an element's size; INDEX, an
// unsigned type that holds every place; RANK, the number of axes.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define PICK 0
#define PLACES 1
#define THREADS 256
#define TILE (THREADS * 32)
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
    __shared__ uint32 words[THREADS];
    __shared__ uint32 leading[THREADS];
    __shared__ uint32 sums[THREADS / 32];
    const int64 tile = blockIdx.x, first = tile * TILE, start = p.starts[tile];
    if (p.starts[tile + 1] == start) return;
    const uint32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool is_inside = first + 32 * (int64)threadIdx.x < p.count;
    const uint32 own = is_inside ? p.bits[tile * THREADS + threadIdx.x] : 0;
    uint32 total;
    leading[threadIdx.x] = before_thread<Sum>((uint32)__popc(own), sums, total);
    words[threadIdx.x] = own;
    __syncthreads();
    const T* input = reinterpret_cast<const T*>(p.input);
    T* out = reinterpret_cast<T*>(p.out);
    for (int k = 0; k < 32; k += UNROLL) {
#if FORM == PICK
        T values[UNROLL];
#endif
        uint32 found[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            const uint32 word = warp * 32 + k + j;
            found[j] = words[word];
#if FORM == PICK
            if (found[j] >> lane & 1) values[j] = input[first + word * 32 + lane];
#endif
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            const uint32 word = warp * 32 + k + j;
            if (!(found[j] >> lane & 1)) continue;
            const int64 at = start + leading[word] + __popc(found[j] & ((1u << lane) - 1));
            if (at < 0 || at >= p.total) continue;  // starts that are not those of the bits
#if FORM == PICK
            out[at] = values[j];
#else
            write_places(p, at, first + word * 32 + lane);
#endif
        }
    }
}
