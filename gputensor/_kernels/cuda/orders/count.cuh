// Adds the number of elements of each kind to `counts`.
//
// VALUES: the elements are the numbers of the kinds, 0 to length - 1. EDGES and EVEN_EDGES: a kind
// is the range from one of length + 1 ascending edges to the next, with the last edge in the last
// range; even edges give a first guess, which the neighbouring edges correct. Other elements are
// not counted.
//
// Few counts are collected in shared memory, in COPIES for the warps, so that fewer threads
// collide. Integers are added, so the order does not matter.
//
// Defined before this text: FORM, one of the three; ELEMENT; EDGE, the type of an edge, to which
// elements are cast; SLOTS, at least length, or 0 if the counts are not in shared memory.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/vector.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define VALUES 0
#define EDGES 1
#define EVEN_EDGES 2
#define THREADS 256
#define COPIES (SLOTS > 1024 ? 1 : SLOTS > 256 ? 2 : 8)
#define VECTOR (sizeof(T) == 8 ? 2 : 4)
#define UNROLL 4

typedef CountParameters Parameters;
typedef ELEMENT T;
typedef EDGE E;
#if SLOTS
typedef int32 Kind;
#else
typedef int64 Kind;
#endif

struct Counts {
    uint64* counts;
    uint32* bins;       // of this thread's copy
    const E* edges;
    int64 length;
    E low, high, scale;

    // The number of an element's kind; negative if it has none.
    __device__ __forceinline__ Kind kind_of(T x) const {
#if FORM == VALUES
        const int64 value = (int64)x;
        return (Kind)(value < length ? value : -1);
#else
        const E value = convert<E>(x);
        if (!(value >= low && value <= high)) return -1;
#if FORM == EVEN_EDGES
        const Kind last = (Kind)length - 1;
        Kind k = (Kind)((value - low) * scale);
        k = k < 0 ? 0 : k < last ? k : last;
        while (k > 0 && value < edges[k]) --k;
        while (k < last && value >= edges[k + 1]) ++k;
        return k;
#else
        Kind begin = 0, end = (Kind)length;  // edges around the value
        while (begin + 1 < end) {
            const Kind half = (begin + end) / 2;
            if (edges[half] <= value) begin = half;
            else end = half;
        }
        return begin;
#endif
#endif
    }
    __device__ __forceinline__ void add(T x) const {
        const Kind kind = kind_of(x);
        if (kind < 0) return;
#if SLOTS
        atomicAdd(&bins[kind], 1u);
#else
        atomicAdd(&counts[kind], 1ull);
#endif
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    Counts all;
    all.counts = p.counts;
    all.length = p.length;
#if SLOTS
    __shared__ uint32 bins[COPIES * SLOTS];
    for (int k = threadIdx.x; k < COPIES * SLOTS; k += THREADS) bins[k] = 0;
    all.bins = bins + threadIdx.x / 32 % COPIES * SLOTS;
#endif
#if FORM != VALUES
    all.edges = reinterpret_cast<const E*>(p.edges);
#if SLOTS
    __shared__ E edges[SLOTS + 1];
    for (int k = threadIdx.x; k <= p.length; k += THREADS) edges[k] = all.edges[k];
    all.edges = edges;
#endif
#endif
    __syncthreads();
#if FORM != VALUES
    all.low = all.edges[0];
    all.high = all.edges[p.length];
    all.scale = (E)p.length / (all.high - all.low);
#endif
    const T* input = reinterpret_cast<const T*>(p.input);
    const int64 step = (int64)gridDim.x * THREADS;
    const int64 own = (int64)blockIdx.x * THREADS + threadIdx.x;
    int64 done = 0;
    if ((uint64)input % (sizeof(T) * VECTOR) == 0) {
        const Vector<T, VECTOR>* units = reinterpret_cast<const Vector<T, VECTOR>*>(input);
        const int64 count = p.count / VECTOR;
        int64 i = own;
        for (; i + (UNROLL - 1) * step < count; i += UNROLL * step) {
            Vector<T, VECTOR> loaded[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) loaded[u] = units[i + u * step];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u)
#pragma unroll
                for (int v = 0; v < VECTOR; ++v) all.add(loaded[u].item[v]);
        }
        for (; i < count; i += step) {
            const Vector<T, VECTOR> loaded = units[i];
            for (int v = 0; v < VECTOR; ++v) all.add(loaded.item[v]);
        }
        done = count * VECTOR;
    }
    for (int64 i = done + own; i < p.count; i += step) all.add(input[i]);
#if SLOTS
    __syncthreads();
    for (int k = threadIdx.x; k < p.length; k += THREADS) {
        uint64 sum = 0;
        for (int copy = 0; copy < COPIES; ++copy) sum += bins[copy * SLOTS + k];
        if (sum) atomicAdd(&p.counts[k], sum);
    }
#endif
}
