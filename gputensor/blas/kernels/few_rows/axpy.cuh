// Products of few rows by weights whose rows lie along the outputs, in the axpy form:
// y[m, n] = sum over k of x[m, k] * w[k, n].
//
// m is at most 8. A thread has a piece of neighbouring outputs, of every GROUPS-th row of w, and
// loads of ROWS of these rows in flight, a batch. x lies in shared memory in float32, term by
// term, SPAN terms at a time. Threads with the same outputs add their sums in a fixed order: in a
// warp, in the block, and among the blocks of a cluster. So the bits are equal from run to run.
//
// Defined before this text: what few_rows.cuh needs; LANES, threads of a block with different
// outputs.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/few_rows/few_rows.cuh"

#define COLUMNS (LANES * EACH)      // of a block
#define GROUPS (THREADS / LANES)
// Whether a thread has registers for more loads.
#define IS_DEEP (AHEAD && PIECE_NBYTES == 16 && TOKENS * EACH <= 8)
#define IS_SHALLOW (!IS_DEEP && (PIECE_NBYTES > 4 || TOKENS > 4))
#define ROWS (TOKENS * EACH > 32 ? 4 - 2 * AHEAD : IS_SHALLOW ? 8 : 16)
#define BLOCKS (TOKENS * EACH >= 32 || IS_DEEP ? 2 : 3)     // of a multiprocessor
#define BATCH (GROUPS * ROWS)
// Shared memory, 32 KiB, has SPAN terms of x; after the last, the sums of warps, of some rows at a
// time, and from TOTALS on those of the block.
#define SPAN (8192 / TOKENS)        // a multiple of BATCH
#define FETCHES (TOKENS > 4 ? 2 : 8 / TOKENS)
#define TOGETHER (WARPS * COLUMNS * TOKENS <= 4096 ? TOKENS : 4096 / (WARPS * COLUMNS))
#define TOTALS 16384

// Brings the `count` terms of x from `k` on, and zeros up to a whole batch. Loads of several terms
// are in flight before the first is stored.
__device__ __forceinline__ void load_x(const Parameters& p, uint32 shared, int64 k, int count) {
    const int padded = (count + BATCH - 1) / BATCH * BATCH;
    for (int first = threadIdx.x; first < padded; first += THREADS * FETCHES) {
        float x[FETCHES][TOKENS];
#pragma unroll
        for (int f = 0; f < FETCHES; ++f)
#pragma unroll
            for (int token = 0; token < TOKENS; ++token) {
                const int i = first + f * THREADS;
                x[f][token] = i < count && token < p.m
                    ? load_of<X_KIND>(p.x, token * p.x_row + (k + i) * p.x_term) : 0.0f;
            }
#pragma unroll
        for (int f = 0; f < FETCHES; ++f)
#pragma unroll
            for (int token = 0; token < TOKENS; ++token) {
                const int i = first + f * THREADS;
                if (i < padded) store_4(shared + (i * TOKENS + token) * 4, x[f][token]);
            }
    }
}

// Loads a row of weights, and moves on to the next.
__device__ __forceinline__ void load_row(Piece& row, const char*& from, int64 step, bool is_valid) {
    row = {};
    if (is_valid) row = piece_at(from);
    from += step;
}
// Loads a batch of rows of weights, of which `left` terms are valid.
__device__ __forceinline__ void load_rows(Piece (&rows)[ROWS], const char*& from, int64 step,
                                          int64 left) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) load_row(rows[r], from, step, r * GROUPS < left);
}

// Adds a row of weights, times the term of x at `from`.
__device__ __forceinline__ void add_row(float (&sums)[TOKENS][EACH], const Piece& w, uint32 from) {
    float x[TOKENS];
#if TOKENS < 4
#pragma unroll
    for (int token = 0; token < TOKENS; ++token)
        x[token] = __uint_as_float(shared_4(from + token * 4));
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
    for (int first = 0; first < TOKENS; first += TOGETHER) {
        __syncthreads();
#pragma unroll
        for (int token = 0; token < TOGETHER; ++token)
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                float sum = sums[first + token][e];
#pragma unroll
                for (int mask = LANES; mask < 32; mask *= 2)
                    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
                const int place = (token * WARPS + warp) * COLUMNS + lane * EACH + e;
                if (lane < LANES) store_4(shared + place * 4, sum);
            }
        __syncthreads();
        for (int i = threadIdx.x; i < TOGETHER * COLUMNS; i += THREADS) {
            const int token = i / COLUMNS, column = i % COLUMNS;
            float total = 0;
#pragma unroll
            for (int w = 0; w < WARPS; ++w) {
                const int place = (token * WARPS + w) * COLUMNS + column;
                total += __uint_as_float(shared_4(shared + place * 4));
            }
            store_4(shared + TOTALS + (first * COLUMNS + i) * 4, total);
        }
    }
}

extern "C" __global__ void BY_CLUSTER __launch_bounds__(THREADS, BLOCKS)
kernel(const Parameters p) {
    start_early();
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int split = blockIdx.x % SPLITS, group = threadIdx.x / LANES;
    const int64 block_column = (int64)(blockIdx.x / SPLITS) * COLUMNS;
    const int64 column = block_column + threadIdx.x % LANES * EACH;
    const int64 k_begin = split * p.slice;
    const int64 k_end = k_begin + p.slice < p.k ? k_begin + p.slice : p.k;
    const char* w = p.w + column * ITEM_NBYTES + (k_begin + group) * p.w_pitch;
    const int64 step = GROUPS * p.w_pitch;
    float sums[TOKENS][EACH] = {};
    Piece rows[ROWS];
    if (AHEAD) load_rows(rows, w, step, column < p.n ? k_end - k_begin - group : 0);
    for (int64 k = k_begin; k < k_end; k += BATCH) {
        if (!AHEAD) load_rows(rows, w, step, column < p.n ? k_end - k - group : 0);
        const int in_span = (int)((k - k_begin) % SPAN);
        if (in_span == 0) {
            __syncthreads();
            load_x(p, shared, k, (int)(k_end - k < SPAN ? k_end - k : SPAN));
            __syncthreads();
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const Piece row = rows[r];
            if (AHEAD)
                load_row(rows[r], w, step,
                         column < p.n && k + BATCH + group + r * GROUPS < k_end);
            add_row(sums, row, shared + (in_span + group + r * GROUPS) * (TOKENS * 4));
        }
    }
    add_groups(shared, sums);
    write_results<COLUMNS>(p, shared + TOTALS, split, block_column);
}
