// Products of few rows by weights whose rows lie along the outputs, in the axpy form:
// y[m, n] = sum over k of x[m, k] * w[k, n].
//
// m is at most 8. The weights are read once, straight to registers: a thread has 16 bytes of
// neighbouring outputs, of every GROUPS-th row of w, and loads ROWS of these rows before it uses
// the first. x lies in shared memory in float32, term by term, SPAN terms at a time. Threads with
// the same outputs add their sums in a fixed order: in a warp, in the block, and among the SPLITS
// blocks of a cluster, which have a part of K each. So the bits are equal from run to run.
//
// Defined before this text: X_KIND and Y_KIND, 0 for float16, 1 for bfloat16, 2 for float32;
// TOKENS, the most rows of x; LANES, threads of a block with different outputs; SPLITS.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/shared/mma.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/axpy/axpy.h"

typedef AxpyParameters Parameters;

#define THREADS 256
#define WARPS (THREADS / 32)
#define EACH (X_KIND == 2 ? 4 : 8)  // outputs of a thread
#define COLUMNS (LANES * EACH)      // of a block
#define GROUPS (THREADS / LANES)
#define ROWS 8
#define BATCH (GROUPS * ROWS)
// Shared memory, 32 KiB, has SPAN terms of x; after the last, the sums of warps and, from TOTALS on,
// those of the block.
#define SPAN (8192 / TOKENS)        // a multiple of BATCH
#define TOTALS (WARPS * COLUMNS * 4)

__device__ __forceinline__ Words weights_16(const char* from) {
    Words x;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.item[0]), "=r"(x.item[1]), "=r"(x.item[2]), "=r"(x.item[3])
                 : "l"(from));
    return x;
}
__device__ __forceinline__ float element(const Words& w, int e) {
#if X_KIND == 2
    return __uint_as_float(w.item[e]);
#else
    return wide((uint16)(w.item[e / 2] >> 16 * (e % 2)), X_KIND);
#endif
}

// Brings the `count` terms of x from `k` on, and zeros up to a whole batch.
__device__ __forceinline__ void load_x(const Parameters& p, uint32 shared, int64 k, int count) {
    const int padded = (count + BATCH - 1) / BATCH * BATCH;
#pragma unroll
    for (int token = 0; token < TOKENS; ++token)
        for (int i = threadIdx.x; i < padded; i += THREADS) {
            float x = 0;
            if (i < count && token < p.m) x = load_of<X_KIND>(p.x, token * p.x_row + (k + i) * p.x_term);
            store_4(shared + (i * TOKENS + token) * 4, x);
        }
}

// Adds a row of weights, times the term of x at `from`.
__device__ __forceinline__ void add_row(float (&sums)[TOKENS][EACH], const Words& w, uint32 from) {
    float x[TOKENS];
#if TOKENS == 1
    x[0] = __uint_as_float(shared_4(from));
#else
#pragma unroll
    for (int token = 0; token < TOKENS; token += 4) {
        const Words some = shared_16(from + token * 4);
#pragma unroll
        for (int t = 0; t < 4; ++t) x[token + t] = __uint_as_float(some.item[t]);
    }
#endif
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const float factor = element(w, e);
#pragma unroll
        for (int token = 0; token < TOKENS; ++token)
            sums[token][e] = fmaf(x[token], factor, sums[token][e]);
    }
}

// Adds the sums of all threads of the block, for each output and row of x, to TOTALS.
__device__ __forceinline__ void add_groups(uint32 shared, float (&sums)[TOKENS][EACH]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int token = 0; token < TOKENS; ++token) {
        __syncthreads();
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            float sum = sums[token][e];
#pragma unroll
            for (int mask = LANES; mask < 32; mask *= 2)
                sum += __shfl_xor_sync(0xffffffffu, sum, mask);
            if (lane < LANES) store_4(shared + (warp * COLUMNS + lane * EACH + e) * 4, sum);
        }
        __syncthreads();
        const int column = threadIdx.x;
        if (column < COLUMNS) {
            float total = 0;
#pragma unroll
            for (int w = 0; w < WARPS; ++w)
                total += __uint_as_float(shared_4(shared + (w * COLUMNS + column) * 4));
            store_4(shared + TOTALS + (token * COLUMNS + column) * 4, total);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, TOKENS * EACH > 32 ? 2 : 3)
#if SPLITS > 1
__cluster_dims__(SPLITS, 1, 1)
#endif
kernel(const Parameters p) {
    start_early();
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int split = blockIdx.x % SPLITS, group = threadIdx.x / LANES;
    const int64 block_column = (int64)(blockIdx.x / SPLITS) * COLUMNS;
    const int64 column = block_column + threadIdx.x % LANES * EACH;
    const int64 k_begin = split * p.slice;
    const int64 k_end = k_begin + p.slice < p.k ? k_begin + p.slice : p.k;
    const char* w = p.w + column * (16 / EACH) + (k_begin + group) * p.w_pitch;
    float sums[TOKENS][EACH] = {};
    for (int64 k = k_begin; k < k_end; k += BATCH) {
        Words rows[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            rows[r] = {};
            if (column < p.n && k + group + r * GROUPS < k_end) rows[r] = weights_16(w);
            w += GROUPS * p.w_pitch;
        }
        const int in_span = (int)((k - k_begin) % SPAN);
        if (in_span == 0) {
            __syncthreads();
            load_x(p, shared, k, (int)(k_end - k < SPAN ? k_end - k : SPAN));
            __syncthreads();
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            add_row(sums, rows[r], shared + (in_span + group + r * GROUPS) * (TOKENS * 4));
    }
    add_groups(shared, sums);
    meet();
    for (int i = threadIdx.x + split * THREADS; i < p.m * COLUMNS; i += SPLITS * THREADS) {
        const int64 token = i / COLUMNS, place = block_column + i % COLUMNS;
        float sum = 0;
#pragma unroll
        for (int s = 0; s < SPLITS; ++s) sum += load_total(shared + TOTALS + i * 4, s);
        if (place < p.n) {
            sum = ended(p, sum, token * p.addend_row + place * p.addend_column,
                        token * p.bias_row + place * p.bias_column);
            store_y(p.y, token * p.y_row + place * p.y_column, sum);
        }
    }
#if SPLITS > 1
    meet();     // no block of the cluster leaves while another still reads its sums
#endif
}
