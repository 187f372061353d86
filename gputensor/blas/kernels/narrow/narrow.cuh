// Products with narrow results in float32, whose long operand is stored term by term: y[n, COLUMNS]
// = alpha * sum over k of x[k, n] * w[k, COLUMNS] + beta * y.
//
// A thread has VECTOR neighbours of x, of which it reads STEP terms at once; w goes through shared
// memory. The terms are cut among blocks, whose sums are parts in memory; a second launch (JOIN)
// adds the parts of each result in their order.
//
// Defined before this text: COLUMNS; VECTOR, 4 where all terms begin at multiples of 16 bytes, else
// 1; JOIN, whether this is the second launch.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/words.h"
#include "gputensor/blas/kernels/narrow/narrow.h"

typedef NarrowParameters Parameters;

const int THREADS = 128;
const int STEP = 8;
const int CHUNK = 128;              // terms of w in shared memory

struct alignas(4 * VECTOR) Several { float item[VECTOR]; };

__device__ __forceinline__ void finish(const Parameters& p, int64 row, int column, float sum) {
    float* const y = p.y + row * p.y_pitch + column;
    sum *= p.alpha;
    *y = p.beta != 0 ? fmaf(p.beta, *y, sum) : sum;
}

#if JOIN
extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    const int64 at = (int64)blockIdx.x * THREADS + threadIdx.x, count = p.n * COLUMNS;
    if (at >= count) return;
    float sum = 0;
#pragma unroll 8
    for (int split = 0; split < p.splits; ++split) sum += p.parts[split * count + at];
    finish(p, at / COLUMNS, (int)(at % COLUMNS), sum);
}
#else
extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    __shared__ float w[CHUNK][COLUMNS];
    const int64 row = ((int64)blockIdx.x * THREADS + threadIdx.x) * VECTOR;
    const int64 begin = blockIdx.y * p.slice;
    const int64 end = begin + p.slice < p.k ? begin + p.slice : p.k;
    float sums[VECTOR][COLUMNS];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) sums[v][c] = 0;
    for (int64 chunk = begin; chunk < end; chunk += CHUNK) {
        __syncthreads();
        for (int i = threadIdx.x; i < CHUNK * COLUMNS; i += THREADS) {
            const int64 term = chunk + i / COLUMNS;
            w[i / COLUMNS][i % COLUMNS] =
                term < end ? p.w[term * p.w_term + i % COLUMNS * p.w_column] : 0;
        }
        __syncthreads();
        if (row >= p.n) continue;
        const int terms = end - chunk < CHUNK ? (int)(end - chunk) : CHUNK;
        for (int first = 0; first < terms; first += STEP) {
            Several x[STEP];
#pragma unroll
            for (int t = 0; t < STEP; ++t) {
                // The last term is read again in place of terms behind it, and left out below.
                const int64 term = chunk + (first + t < terms ? first + t : terms - 1);
                x[t] = *reinterpret_cast<const Several*>(p.x + term * p.x_pitch + row);
            }
#pragma unroll
            for (int t = 0; t < STEP; ++t) {
                if (first + t >= terms) break;
#pragma unroll
                for (int v = 0; v < VECTOR; ++v)
#pragma unroll
                    for (int c = 0; c < COLUMNS; ++c)
                        sums[v][c] = fmaf(x[t].item[v], w[first + t][c], sums[v][c]);
            }
        }
    }
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        if (row + v >= p.n) break;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            if (p.parts) p.parts[(blockIdx.y * p.n + row + v) * COLUMNS + c] = sums[v][c];
            else finish(p, row + v, c, sums[v][c]);
        }
    }
}
#endif
