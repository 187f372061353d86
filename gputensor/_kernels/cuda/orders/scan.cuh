// Scans: cumulative sums, products, extremes or logarithms of sums of exponentials, along the
// middle one of three axes.
//
// If the last axis has length 1, a block of threads has a row (ROW), or a tile of it (ONE_PASS, for
// few rows; prefix.cuh). Otherwise a thread has a column, or a chunk of it, and neighbours have
// neighbouring columns; chunks take three launches: TOTALS of each chunk, PREFIXES (which replace
// the totals) and COLUMN. All combine in a fixed order.
//
// Defined before this text: FORM, one of the five; INPUT and OUTPUT, types of elements;
// ARITHMETIC, the type of the computation; OP, the number of the operation; IDENTITY, its value for
// no elements.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define TOTALS 0
#define PREFIXES 1
#define COLUMN 2
#define ROW 3
#define ONE_PASS 4
#define THREADS 256
#define SUM 0
#define PROD 1
#define MAX 2
#define MIN 3
#define LOGADDEXP 4
#define IS_ROW (FORM == ROW || FORM == ONE_PASS)

#include "gputensor/_kernels/cuda/orders/prefix.cuh"

typedef ScanParameters Parameters;
typedef INPUT TI;
typedef OUTPUT TO;
typedef ARITHMETIC A;
// Elements of a thread, as in scan.pxi. A tile of ONE_PASS has 32 KiB, for few long rows.
#define EACH (sizeof(A) == 16 ? 8 : sizeof(A) == 8 || FORM == ROW ? 16 : 32)

struct Fold {
    template <class X> static __device__ __forceinline__ X join(X a, X b) {
#if OP == MAX
        return a > b || a != a ? a : b;     // NaN stays
#elif OP == MIN
        return a < b || a != a ? a : b;
#elif OP == LOGADDEXP
        const X large = a > b || a != a ? a : b, small = a > b || a != a ? b : a;
        return large + log1p(exp(large == small ? (X)0 : small - large));
#else
        return OP == PROD ? a * b : a + b;
#endif
    }
    template <class X> static __device__ __forceinline__ complex_t<X> join(complex_t<X> a,
                                                                           complex_t<X> b) {
        complex_t<X> c;
        c.re = OP == PROD ? a.re * b.re - a.im * b.im : a.re + b.re;
        c.im = OP == PROD ? a.re * b.im + a.im * b.re : a.im + b.im;
        return c;
    }
    static __device__ __forceinline__ A identity() { return convert<A>(IDENTITY); }
};

#if IS_ROW
extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    // One unused element after every EACH, so that the threads of a warp access different banks.
    __shared__ A stage[THREADS * (EACH + 1)];
    __shared__ A sums[THREADS / 32];
    const int tile = THREADS * EACH;
#if FORM == ONE_PASS
    __shared__ uint32 shared;
    const uint32 number = take_number(p.counter, &shared);
    const int64 row = number / p.chunks, chunk = number % p.chunks;
    const int64 first = chunk * tile;
    const int64 end = first + tile < p.length ? first + tile : p.length;
    const int64 groups = (p.chunks + THREADS - 1) / THREADS;
#else
    const int64 row = blockIdx.x, first = 0, end = p.length;
    A carry = Fold::identity();
#endif
    const TI* input = reinterpret_cast<const TI*>(p.input) + row * p.length;
    TO* out = reinterpret_cast<TO*>(p.out) + row * p.length;
    for (int64 start = first; start < end; start += tile) {
        const bool is_full = start + tile <= end;
        if (is_full) {
            TI values[EACH];
#pragma unroll
            for (int k = 0; k < EACH; ++k)
                values[k] = input[start + k * THREADS + threadIdx.x];
#pragma unroll
            for (int k = 0; k < EACH; ++k) {
                const int at = k * THREADS + threadIdx.x;
                stage[at + at / EACH] = convert<A>(values[k]);
            }
        } else {
            for (int k = threadIdx.x; k < tile; k += THREADS)
                stage[k + k / EACH] =
                    start + k < end ? convert<A>(input[start + k]) : Fold::identity();
        }
        __syncthreads();
        A* mine = stage + threadIdx.x * (EACH + 1);
        A own = mine[0], total;
#pragma unroll
        for (int k = 1; k < EACH; ++k) own = Fold::join(own, mine[k]);
        A running = before_thread<Fold>(own, sums, total);
#if FORM == ONE_PASS
        uint64* totals = p.words + row * (p.chunks + groups) * WORDS(A);
        const A carry = before_tile<Fold>(total, chunk, p.chunks, totals,
                                          totals + p.chunks * WORDS(A), sums);
#endif
        running = Fold::join(carry, running);
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            running = Fold::join(running, mine[k]);
            mine[k] = running;
        }
#if FORM == ROW
        carry = Fold::join(carry, total);
#endif
        __syncthreads();
        if (is_full) {
#pragma unroll
            for (int k = 0; k < EACH; ++k) {
                const int at = k * THREADS + threadIdx.x;
                out[start + at] = convert<TO>(stage[at + at / EACH]);
            }
        } else {
            for (int k = threadIdx.x; start + k < end; k += THREADS)
                out[start + k] = convert<TO>(stage[k + k / EACH]);
        }
        __syncthreads();
    }
}
#else
extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    const int64 i = (int64)blockIdx.x * THREADS + threadIdx.x;
    const int64 chunks = FORM == PREFIXES ? 1 : p.chunks;
    if (i >= p.outer * chunks * p.inner) return;
    const int64 inner = i % p.inner, chunk = i / p.inner % chunks, outer = i / p.inner / chunks;
    A* totals = reinterpret_cast<A*>(p.totals) + outer * p.chunks * p.inner + inner;
    A before = Fold::identity();
#if FORM == PREFIXES
    for (int64 c = 0; c < p.chunks; ++c) {
        const A own = totals[c * p.inner];
        totals[c * p.inner] = before;
        before = Fold::join(before, own);
    }
#else
    const int64 first = chunk * p.chunk;
    const int64 end = first + p.chunk < p.length ? first + p.chunk : p.length;
    const TI* input = reinterpret_cast<const TI*>(p.input) + outer * p.length * p.inner + inner;
    TO* out = reinterpret_cast<TO*>(p.out) + outer * p.length * p.inner + inner;
    if (FORM == COLUMN && p.totals) before = totals[chunk * p.inner];
    for (int64 k = first; k < end; ++k) {
        before = Fold::join(before, convert<A>(input[k * p.inner]));
        if (FORM == COLUMN) out[k * p.inner] = convert<TO>(before);
    }
    if (FORM == TOTALS) totals[chunk * p.inner] = before;
#endif
}
#endif
