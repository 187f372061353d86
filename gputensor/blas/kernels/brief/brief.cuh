// Brief products: y = a formula of x @ w.T + bias for few rows and small weights, where latency decides.
//
// A warp takes TOGETHER features, and its lanes share the terms: each reads PIECES pieces of 16
// bytes straight to registers, so all bytes of a small product are under way at once. There is no ring of
// stages, no cluster, and one barrier at most. Sums have a fixed order, so bits are equal from run to
// run.
//
// The formula is a map, of the sum and an addend, or, if WHOLE, it folds the rows: then a block has all
// features of its one row, and the first warp computes the formula of that row.
//
// Defined before this text: INPUT, the type of x, w, bias and addend; ROWS of a block, at most; WARPS;
// TOGETHER; PIECES; STEADY, whether w and bias may be read before earlier work has ended; WHOLE, and for
// it UNITS and the parts of a row formula (row_program.py), else FINISH, the text of the type R0 of
// results and of the function `finished`.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/math.cuh"
#include "gputensor/_kernels/cuda/vector.cuh"
#include "gputensor/blas/kernels/brief/brief.h"

typedef BriefParameters Parameters;
typedef float C;
typedef float A;
#define LOWEST (-__int_as_float(0x7f800000))
#define HIGHEST __int_as_float(0x7f800000)
#define THREADS (32 * WARPS)
#define VECTOR 1        // columns that a step of the formula takes

#define TERMS (16 / (int)sizeof(INPUT))         // of a piece

typedef Vector<INPUT, TERMS> Piece;

__device__ __forceinline__ const char* row_of(const char* matrix, int64 row, int terms) {
    return matrix + row * terms * (int64)sizeof(INPUT);
}

// The lane's pieces of a row of x or w from term `from` on; terms that do not exist are zeros.
__device__ __forceinline__ void load(Piece (&held)[PIECES], const char* row, int terms, int from) {
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        const int term = from + (threadIdx.x % 32 + 32 * i) * TERMS;
        held[i] = {};
        if (term < terms) held[i] = *reinterpret_cast<const Piece*>(row + (int64)term * sizeof(INPUT));
    }
}

struct Features {
    Piece w[TOGETHER][PIECES];
    float bias[TOGETHER];

    // Features that do not exist are read as the last one, and their sums are not used.
    __device__ __forceinline__ void read(const Parameters& p, int first) {
#pragma unroll
        for (int f = 0; f < TOGETHER; ++f) {
            const int feature = first + f < p.columns ? first + f : p.columns - 1;
            load(w[f], row_of(p.w, feature, p.k), p.k, 0);
        }
#pragma unroll
        for (int f = 0; f < TOGETHER; ++f) {
            const int feature = first + f < p.columns ? first + f : p.columns - 1;
            bias[f] = p.bias ? wide(reinterpret_cast<const INPUT*>(p.bias)[feature]) : 0;
        }
    }
};

__device__ __forceinline__ float from_lane(float x, int mask) {
    return __uint_as_float(__shfl_xor_sync(0xffffffffu, __float_as_uint(x), mask));
}
__device__ __forceinline__ float dot(const Piece& a, const Piece& b, float sum) {
    float x[TERMS], y[TERMS];
    widen_all(x, a);
    widen_all(y, b);
#pragma unroll
    for (int e = 0; e < TERMS; ++e) sum = fmaf(x[e], y[e], sum);
    return sum;
}

// The sums of features from `first` on with their biases; all lanes get them.
__device__ __forceinline__ void products(const Parameters& p, Features& held, int first, int64 first_row,
                                         float (&sums)[TOGETHER][ROWS]) {
    Piece x[ROWS][PIECES];
    for (int from = 0; from < p.k; from += 32 * TERMS * PIECES) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int64 row = first_row + r < p.rows ? first_row + r : p.rows - 1;
            load(x[r], row_of(p.x, row, p.k), p.k, from);
        }
#pragma unroll
        for (int f = 0; f < TOGETHER; ++f) {
            const int feature = first + f < p.columns ? first + f : p.columns - 1;
            if (from) load(held.w[f], row_of(p.w, feature, p.k), p.k, from);
        }
#pragma unroll
        for (int i = 0; i < PIECES; ++i)
#pragma unroll
            for (int f = 0; f < TOGETHER; ++f)
#pragma unroll
                for (int r = 0; r < ROWS; ++r) sums[f][r] = dot(held.w[f][i], x[r][i], sums[f][r]);
    }
    // The sums take turns, since a shuffle waits for the one before.
#pragma unroll
    for (int mask = 16; mask; mask /= 2)
#pragma unroll
        for (int f = 0; f < TOGETHER; ++f)
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sums[f][r] += from_lane(sums[f][r], mask);
#pragma unroll
    for (int f = 0; f < TOGETHER; ++f)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sums[f][r] += held.bias[f];
}

#if WHOLE
FUNCTIONS
TYPES

template <class F> __device__ __forceinline__ C in_warp(C x) {
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) x = F::combine(x, from_lane(x, mask));
    return x;
}
#define FOLDED(F, number, x) F::finish(in_warp<F>(x), (double)p.columns)
#define EACH(...)                                                                     \
    _Pragma("unroll") for (int k = 0; k < UNITS; ++k) {                               \
        const int column = lane + 32 * k;                                             \
        if (column < p.columns) {                                                     \
            _Pragma("unroll") for (int v = 0; v < 1; ++v) { __VA_ARGS__ }             \
        }                                                                             \
    }

// Computes the formula of a row whose columns the lanes of a warp share.
__device__ __forceinline__ void finish_row(const Parameters& p, const float* products, int64 row) {
    const int lane = threadIdx.x % 32;
    R0* const out0 = reinterpret_cast<R0*>(p.y) + row * p.columns;
    DECLARE
    EACH(x0[k].item[v] = products[column];)
    BODY
#pragma unroll
    for (int k = 0; k < UNITS; ++k) {
        const int column = lane + 32 * k;
        if (column >= p.columns) continue;
        RESULT_DECLARE
#pragma unroll
        for (int v = 0; v < 1; ++v) { RESULT_STEPS }
        RESULT_STORE
    }
}
#else
FINISH
#endif

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
#if !STEADY
    start_early();
#endif
    const int warp = threadIdx.x / 32;
    const int first = ((int)blockIdx.x % p.parts * WARPS + warp) * TOGETHER;
    const int64 first_row = (int64)blockIdx.x / p.parts * ROWS;
    Features held;
    held.read(p, first);
#if STEADY
    start_early();
#endif
#if WHOLE
    __shared__ float row[32 * UNITS];
    for (int from = 0; from < p.columns; from += WARPS * TOGETHER) {
        if (from) held.read(p, first + from);
        float sums[TOGETHER][ROWS] = {};
        products(p, held, first + from, first_row, sums);
#pragma unroll
        for (int f = 0; f < TOGETHER; ++f)
            if (threadIdx.x % 32 == 0 && first + from + f < p.columns)
                row[first + from + f] = sums[f][0];
    }
    __syncthreads();
    if (warp == 0) finish_row(p, row, first_row);
#else
    const int lane = threadIdx.x % 32, own = lane / ROWS, own_row = lane % ROWS;
    const int64 place = (first_row + own_row) * p.columns + first + own;
    const bool is_valid = own < TOGETHER && first + own < p.columns && first_row + own_row < p.rows;
    const float added = HAS_ADDEND && is_valid
                      ? wide(reinterpret_cast<const INPUT*>(p.addend)[place]) : 0;
    float sums[TOGETHER][ROWS] = {}, sum = 0;
    products(p, held, first, first_row, sums);
#pragma unroll
    for (int f = 0; f < TOGETHER; ++f)
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (f == own && r == own_row) sum = sums[f][r];
    if (is_valid) reinterpret_cast<R0*>(p.y)[place] = narrow<R0>(finished(sum, added));
#endif
}
