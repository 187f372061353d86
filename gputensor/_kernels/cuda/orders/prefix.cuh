// Prefix sums: the fold of all elements before each thread of a block, and before each tile of a
// row, in a fixed order.
//
// Tiles take their numbers from a counter, so all tiles before a tile have begun. Each publishes
// its total. THREADS tiles are a group: the prefix of a tile is the prefix of its group, folded
// with a tree over the totals of the group's tiles before it; the last tile of a group publishes
// the prefix of the next group. So bits depend on the tile's number alone; a tile that looked back
// until it found any finished prefix would add in an order that differs from run to run.
//
// A 64-bit word carries 32 bits with a mark beside them, so no fence is needed. The words are zero
// before the launch.
//
// Defined before this text: THREADS, the threads of a block, a multiple of 32.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"

#define WORDS(X) ((int)(sizeof(X) + 3) / 4)

template <class X> union Words { X value; uint32 words[WORDS(X)]; };

template <class X> __device__ __forceinline__ X from_below(X x, int distance) {
    Words<X> u;
    u.words[0] = 0;
    u.value = x;
#pragma unroll
    for (int i = 0; i < WORDS(X); ++i)
        u.words[i] = __shfl_up_sync(0xffffffffu, u.words[i], distance);
    return u.value;
}

// The fold of the values of all threads before this one, and the total of the block. F has `join`
// and `identity`; `sums` has THREADS / 32 elements of shared memory.
template <class F, class X>
__device__ __forceinline__ X before_thread(X own, X* sums, X& total) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    X so_far = own;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const X below = from_below(so_far, distance);
        if (lane >= distance) so_far = F::join(below, so_far);
    }
    if (lane == 31) sums[warp] = so_far;
    __syncthreads();
    X before = F::identity();
    total = F::identity();
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) {
        if (w == warp) before = total;
        total = F::join(total, sums[w]);
    }
    const X below = from_below(so_far, 1);
    __syncthreads();
    return lane ? F::join(before, below) : before;
}

template <class X> __device__ __forceinline__ void publish(volatile uint64* words, X x) {
    Words<X> u;
    u.words[0] = 0;
    u.value = x;
#pragma unroll
    for (int i = 0; i < WORDS(X); ++i) words[i] = (uint64)u.words[i] << 1 | 1;
}

template <class X> __device__ __forceinline__ X await(const volatile uint64* words) {
    Words<X> u;
#pragma unroll
    for (int i = 0; i < WORDS(X); ++i) {
        uint64 found;
        do found = words[i];
        while (!found);
        u.words[i] = (uint32)(found >> 1);
    }
    return u.value;
}

// The number of this block of threads among all; `shared` is one word of shared memory.
__device__ __forceinline__ uint32 take_number(uint32* counter, uint32* shared) {
    if (threadIdx.x == 0) *shared = atomicAdd(counter, 1u);
    __syncthreads();
    return *shared;
}

// The prefix of a tile of a row; `totals` has a place for each tile, `groups` for each group.
template <class F, class X>
__device__ __forceinline__ X before_tile(X total, int64 tile, int64 tiles, uint64* totals,
                                         uint64* groups, X* sums) {
    const int64 group = tile / THREADS, other = group * THREADS + threadIdx.x;
    if (threadIdx.x == 0) publish(totals + tile * WORDS(X), total);
    X sum, own = F::identity();
    if (other < tile) own = await<X>(totals + other * WORDS(X));
    before_thread<F>(own, sums, sum);
    // One thread waits: polling by all threads of so many blocks would slow down the word's writer.
    if (threadIdx.x == 0) sums[0] = group ? await<X>(groups + group * WORDS(X)) : F::identity();
    __syncthreads();
    const X before = F::join(sums[0], sum);
    __syncthreads();
    if (threadIdx.x == 0 && tile % THREADS == THREADS - 1 && tile + 1 < tiles)
        publish(groups + (group + 1) * WORDS(X), F::join(before, total));
    return before;
}
