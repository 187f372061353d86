// Sums or products of all elements up to each, along the middle one of three axes.
//
// A length of several chunks takes three launches: TOTALS of each chunk, PREFIXES (what comes before
// each chunk, in the place of its total) and APPLY. All combine in the same fixed order: the
// elements of a thread, a tree over the threads, the chunks one after the other. Where the last
// axis is 1, a block of threads has a chunk; otherwise a thread has a chunk of a column, and
// neighbours have neighbouring columns.
//
// Defined before this text: FORM, one of the three; INPUT and OUTPUT, types of elements;
// ARITHMETIC, what OUTPUT is computed in; IS_PRODUCT; IS_COLUMN.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define TOTALS 0
#define PREFIXES 1
#define APPLY 2
#define THREADS 256
#define EACH (sizeof(A) == 16 ? 8 : 16)

typedef ScanParameters Parameters;
typedef INPUT TI;
typedef OUTPUT TO;
typedef ARITHMETIC A;

template <class X> __device__ __forceinline__ X join(X a, X b) { return IS_PRODUCT ? a * b : a + b; }
template <class X> __device__ __forceinline__ complex_t<X> join(complex_t<X> a, complex_t<X> b) {
    complex_t<X> c;
    c.re = IS_PRODUCT ? a.re * b.re - a.im * b.im : a.re + b.re;
    c.im = IS_PRODUCT ? a.re * b.im + a.im * b.re : a.im + b.im;
    return c;
}
__device__ __forceinline__ A identity() { return convert<A>((int32)IS_PRODUCT); }

#if IS_COLUMN
extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    const int64 i = (int64)blockIdx.x * THREADS + threadIdx.x;
    const int64 chunks = FORM == PREFIXES ? 1 : p.chunks;
    if (i >= p.outer * chunks * p.inner) return;
    const int64 inner = i % p.inner, chunk = i / p.inner % chunks, outer = i / p.inner / chunks;
    A* totals = reinterpret_cast<A*>(p.totals) + outer * p.chunks * p.inner + inner;
    A before = identity();
#if FORM == PREFIXES
    for (int64 c = 0; c < p.chunks; ++c) {
        const A own = totals[c * p.inner];
        totals[c * p.inner] = before;
        before = join(before, own);
    }
#else
    const int64 first = chunk * p.chunk;
    const int64 end = first + p.chunk < p.length ? first + p.chunk : p.length;
    const TI* input = reinterpret_cast<const TI*>(p.input) + outer * p.length * p.inner + inner;
    TO* out = reinterpret_cast<TO*>(p.out) + outer * p.length * p.inner + inner;
    if (FORM == APPLY && p.totals) before = totals[chunk * p.inner];
    for (int64 k = first; k < end; ++k) {
        before = join(before, convert<A>(input[k * p.inner]));
        if (FORM == APPLY) out[k * p.inner] = convert<TO>(before);
    }
    if (FORM == TOTALS) totals[chunk * p.inner] = before;
#endif
}
#else
// What comes before each thread's own, and the total of the block.
__device__ __forceinline__ A before_thread(A own, A* sums, A& total) {
    sums[threadIdx.x] = own;
    for (int distance = 1; distance < THREADS; distance *= 2) {
        __syncthreads();
        A mine = sums[threadIdx.x];
        if ((int)threadIdx.x >= distance) mine = join(sums[threadIdx.x - distance], mine);
        __syncthreads();
        sums[threadIdx.x] = mine;
    }
    __syncthreads();
    const A before = threadIdx.x ? sums[threadIdx.x - 1] : identity();
    total = sums[THREADS - 1];
    __syncthreads();
    return before;
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    // One more word after EACH, so that the threads of a warp meet different banks.
    __shared__ A stage[THREADS * (EACH + 1)];
    __shared__ A sums[THREADS];
    const int tile = THREADS * EACH;  // as in orders.pxi
    const int64 row = FORM == PREFIXES ? blockIdx.x : blockIdx.x / p.chunks;
    const int64 chunk = FORM == PREFIXES ? 0 : blockIdx.x % p.chunks;
    A* totals = reinterpret_cast<A*>(p.totals) + row * p.chunks;
    const int64 length = FORM == PREFIXES ? p.chunks : p.length;
    const int64 first = chunk * p.chunk;
    const int64 end = FORM == PREFIXES ? length : first + p.chunk < length ? first + p.chunk : length;
    const TI* input = reinterpret_cast<const TI*>(p.input) + row * p.length;
    TO* out = reinterpret_cast<TO*>(p.out) + row * p.length;
    A carry = FORM == APPLY && p.totals ? totals[chunk] : identity();
    for (int64 start = first; start < end; start += tile) {
        for (int k = threadIdx.x; k < tile; k += THREADS) {
            A value = identity();
            if (start + k < end) {
#if FORM == PREFIXES
                value = totals[start + k];
#else
                value = convert<A>(input[start + k]);
#endif
            }
            stage[k + k / EACH] = value;
        }
        __syncthreads();
        A* mine = stage + threadIdx.x * (EACH + 1);
        A own = mine[0], total;
        for (int k = 1; k < EACH; ++k) own = join(own, mine[k]);
        A running = join(carry, before_thread(own, sums, total));
        if (FORM != TOTALS) {
            for (int k = 0; k < EACH; ++k) {
                const A value = mine[k];
                if (FORM == PREFIXES) mine[k] = running;
                running = join(running, value);
                if (FORM == APPLY) mine[k] = running;
            }
        }
        carry = join(carry, total);
        __syncthreads();
        if (FORM != TOTALS) {
            for (int k = threadIdx.x; k < tile && start + k < end; k += THREADS) {
#if FORM == PREFIXES
                totals[start + k] = stage[k + k / EACH];
#else
                out[start + k] = convert<TO>(stage[k + k / EACH]);
#endif
            }
            __syncthreads();
        }
    }
    if (FORM == TOTALS && threadIdx.x == 0) totals[chunk] = carry;
}
#endif
