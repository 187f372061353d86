// Products of few rows by weights that lie along the terms, as dot products:
// y[m, n] = sum over k of x[m, k] * w[n, k].
//
// m is at most 16. A warp has FEATURES outputs and a part of the terms: K_WARPS warps of a block
// take every K_WARPS-th step of 32 pieces. A thread has loads of DEPTH steps in flight, a batch. x
// lies in shared memory in its own type, row by row, SPAN terms at a time. Sums are added in a fixed
// order, in a warp, in the block, and among the blocks of a cluster, so the bits are equal from run
// to run.
//
// Defined before this text: what few_rows.cuh needs; FEATURES; K_WARPS, 1 to 8.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/few_rows/few_rows.cuh"

#define ROW_WARPS (WARPS / K_WARPS)
#define COLUMNS (FEATURES * ROW_WARPS)      // outputs of a block
#define STEP (32 * K_WARPS * EACH)          // terms
#define SPAN (32768 / ITEM_NBYTES / TOKENS) // a multiple of BATCH, in 32 KiB of shared memory
// Whether a thread has registers for more loads.
#define IS_DEEP (AHEAD && PIECE_NBYTES == 16 && VALUES * EACH <= 16)
#define IS_CROWDED (VALUES > 16 || VALUES * EACH > 64 || IS_DEEP \
                    || (AHEAD && PIECE_NBYTES == 16 && FEATURES == 4))
#define WANTED ((PIECE_NBYTES > 4 && !IS_DEEP ? 8 : 16) / FEATURES)
#define DEPTH (WANTED * STEP <= SPAN ? WANTED : SPAN / STEP)
#define BATCH (DEPTH * STEP)
#define VALUES (FEATURES * TOKENS)          // sums of a thread
#define ROUND (VALUES < 32 ? VALUES : 32)   // of these, which the warp adds at a time
#define TOTALS (K_WARPS * VALUES * ROW_WARPS * 4)
#define FETCHES 8
#define MATES (THREADS / TOKENS)           // threads that load a row of x

// Brings the `count` terms of each row of x from `k` on, and zeros up to a whole batch. MATES
// threads have each row, and several loads in flight before the first is stored.
__device__ __forceinline__ void load_x(const Parameters& p, uint32 shared, int64 k, int count) {
    const int padded = (count + BATCH - 1) / BATCH * BATCH;
    const int token = threadIdx.x / MATES, mate = threadIdx.x % MATES;
    const int64 row = token * p.x_row;
    if (token >= p.m) return;
    for (int first = mate; first < padded; first += MATES * FETCHES) {
        uint32 x[FETCHES];
#pragma unroll
        for (int f = 0; f < FETCHES; ++f) {
            const int term = first + f * MATES;
            const int64 index = row + (k + term) * p.x_term;
            x[f] = 0;
            if (term < count)
#if X_KIND == 2
                x[f] = reinterpret_cast<const uint32*>(p.x)[index];
#else
                x[f] = reinterpret_cast<const uint16*>(p.x)[index];
#endif
        }
#pragma unroll
        for (int f = 0; f < FETCHES; ++f) {
            const int term = first + f * MATES;
            const uint32 to = shared + (token * SPAN + term) * ITEM_NBYTES;
            if (term < padded) {
#if X_KIND == 2
                store_4(to, __uint_as_float(x[f]));
#else
                const uint16 bits = (uint16)x[f];
                asm volatile("st.shared.u16 [%0], %1;" :: "r"(to), "h"(bits) : "memory");
#endif
            }
        }
    }
}

__device__ __forceinline__ Piece shared_piece(uint32 from) {
    Piece x;
#if PIECE_NBYTES == 16
    const Words all = shared_16(from);
#pragma unroll
    for (int i = 0; i < 4; ++i) x.item[i] = all.item[i];
#elif PIECE_NBYTES == 8
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.item[0]), "=r"(x.item[1]) : "r"(from));
#elif PIECE_NBYTES == 4
    x.item[0] = shared_4(from);
#else
    uint16 bits;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(from));
    x.item[0] = bits;
#endif
    return x;
}

// Adds one step: the pieces of FEATURES outputs, times those of each row of x at `from`.
__device__ __forceinline__ void add_step(const Parameters& p, float (&sums)[VALUES],
                                         const Piece (&w)[FEATURES], uint32 from) {
    float factors[FEATURES][EACH];
#pragma unroll
    for (int f = 0; f < FEATURES; ++f)
#pragma unroll
        for (int e = 0; e < EACH; ++e) factors[f][e] = element(w[f], e);
#pragma unroll
    for (int token = 0; token < TOKENS; ++token) {
        // Rows that x lacks are read from its last one, and their sums are not stored.
        const int row = token < p.m ? token : p.m - 1;
        const Piece x = shared_piece(from + row * (SPAN * ITEM_NBYTES));
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const float term = element(x, e);
#pragma unroll
            for (int f = 0; f < FEATURES; ++f)
                sums[token * FEATURES + f] = fmaf(term, factors[f][e], sums[token * FEATURES + f]);
        }
    }
}

// Halves the sums of a lane: it keeps those of one half, to which another lane adds its own. Chosen
// in bits, since the compiler would choose between addresses, in local memory.
template <int HALF, int MASK> __device__ __forceinline__ void halve(float (&sums)[ROUND]) {
    const uint32 chosen = threadIdx.x & MASK ? 0xffffffffu : 0;
#pragma unroll
    for (int i = 0; i < HALF; ++i) {
        const uint32 low = __float_as_uint(sums[i]), high = __float_as_uint(sums[HALF + i]);
        const float kept = __uint_as_float((high & chosen) | (low & ~chosen));
        const float sent = __uint_as_float((low & chosen) | (high & ~chosen));
        sums[i] = kept + __shfl_xor_sync(0xffffffffu, sent, MASK);
    }
    if (HALF == 0) sums[0] += __shfl_xor_sync(0xffffffffu, sums[0], MASK);
}

// Adds each of ROUND sums among the lanes of the warp; lane i has that of value i * ROUND / 32.
__device__ __forceinline__ float add_lanes(float (&sums)[ROUND]) {
    halve<ROUND / 2, 16>(sums);
    halve<ROUND / 4, 8>(sums);
    halve<ROUND / 8, 4>(sums);
    halve<ROUND / 16, 2>(sums);
    halve<ROUND / 32, 1>(sums);
    return sums[0];
}

// Adds the sums of all threads of the block, for each output and row of x, to TOTALS.
__device__ __forceinline__ void add_warps(uint32 shared, float (&sums)[VALUES]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __syncthreads();        // nobody still reads x
#pragma unroll
    for (int round = 0; round < VALUES / ROUND; ++round) {
        float some[ROUND];
#pragma unroll
        for (int i = 0; i < ROUND; ++i) some[i] = sums[round * ROUND + i];
        const float sum = add_lanes(some);
        const int value = round * ROUND + lane / (32 / ROUND);
        const int token = value / FEATURES, feature = value % FEATURES;
        if (lane % (32 / ROUND) == 0)
            store_4(shared + ((warp % K_WARPS * TOKENS + token) * COLUMNS
                              + warp / K_WARPS * FEATURES + feature) * 4, sum);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TOKENS * COLUMNS; i += THREADS) {
        float total = 0;
#pragma unroll
        for (int w = 0; w < K_WARPS; ++w)
            total += __uint_as_float(shared_4(shared + (w * TOKENS * COLUMNS + i) * 4));
        store_4(shared + TOTALS + i * 4, total);
    }
}

// Loads a step of the first `count` outputs.
__device__ __forceinline__ void load_step(Piece (&w)[FEATURES], const char* from, int64 pitch,
                                          int count) {
#pragma unroll
    for (int f = 0; f < FEATURES; ++f) {
        w[f] = {};
        if (f < count) w[f] = piece_at(from + f * pitch);
    }
}

// Loads a batch of the first `count` outputs, of which `left` terms are valid.
__device__ __forceinline__ void load_batch(Piece (&w)[DEPTH][FEATURES], const Parameters& p,
                                           const char* from, int count, int64 left) {
#pragma unroll
    for (int d = 0; d < DEPTH; ++d)
        load_step(w[d], from + d * (STEP * ITEM_NBYTES), p.w_pitch, d * STEP < left ? count : 0);
}

extern "C" __global__ void BY_CLUSTER __launch_bounds__(THREADS, IS_CROWDED ? 2 : 3)
kernel(const Parameters p) {
    start_early();
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, split = blockIdx.x % SPLITS;
    const int64 first = (int64)(blockIdx.x / SPLITS) * COLUMNS;
    const int64 k_begin = split * p.slice;
    const int64 k_end = k_begin + p.slice < p.k ? k_begin + p.slice : p.k;
    const int place = (warp % K_WARPS * 32 + lane) * EACH;      // in a step
    const int64 feature = first + warp / K_WARPS * FEATURES;
    const int features = feature < p.n
        ? (int)(p.n - feature < FEATURES ? p.n - feature : FEATURES) : 0;
    const char* source = p.w + feature * p.w_pitch + (k_begin + place) * ITEM_NBYTES;
    float sums[VALUES] = {};
    Piece w[DEPTH][FEATURES];
    if (AHEAD) load_batch(w, p, source, features, k_end - k_begin - place);
    for (int64 k = k_begin; k < k_end; k += BATCH) {
        if (!AHEAD) load_batch(w, p, source, features, k_end - k - place);
        const int in_span = (int)((k - k_begin) % SPAN);
        if (in_span == 0) {
            __syncthreads();
            load_x(p, shared, k, (int)(k_end - k < SPAN ? k_end - k : SPAN));
            __syncthreads();
        }
        source += BATCH * ITEM_NBYTES;
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) {
            Piece step[FEATURES];
#pragma unroll
            for (int f = 0; f < FEATURES; ++f) step[f] = w[d][f];
            if (AHEAD)
                load_step(w[d], source + d * (STEP * ITEM_NBYTES), p.w_pitch,
                          k + BATCH + d * STEP + place < k_end ? features : 0);
            add_step(p, sums, step, shared + (in_span + d * STEP + place) * ITEM_NBYTES);
        }
    }
    add_warps(shared, sums);
    write_results<COLUMNS>(p, shared + TOTALS, split, first);
}
