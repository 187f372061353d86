// Products of some rows with weights of any form: y[m, n] = sum over k of x[m, k] * w[n, k].
//
// A block computes TOKENS rows of y for BLOCK_ROWS features, from a part of K. Its warps share the
// features and, K_WARPS ways, the columns of 64 k: a step is one column for each of them. Copies
// run STAGES - 1 steps ahead. A lane copies the weights that it multiplies itself; x is read by all
// warps, so a barrier stands between two steps. Weights become 16-bit floats in registers and, where
// K has several groups, are multiplied by the group's scale there.
//
// The places of features and k in an instruction are those of skinny_mma.cuh: lane 4 g + t has
// features 2 g and 2 g + 1 of a tile of 16 x 64, at the 8 k from 8 t and from 8 t + 32 on (int8: at
// the 16 k from 16 t on). So a lane reads its k of a token from shared memory in one piece.
//
// If K is cut among blocks, each writes its sums, which join.cuh adds in their order. A formula is
// computed from the sums in registers. If it takes pairs of features (PAIRED), n / 2 apart, a warp's
// second tile has the second ones.
//
// Defined before this text: FORM, 0 for plain weights, 1 for int8, 2 for int4; X_KIND, X_TYPE and
// Y_KIND; TOKENS, TILES of a warp, ROW_WARPS, K_WARPS, STAGES; GROUP, the number of k that share a
// scale, 0 for all; PAIRED and FORMULA (finish.cuh).
#pragma once

#define SPLITS 1                // blocks of a cluster
#define THREADS (32 * ROW_WARPS * K_WARPS)

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/shared/mma.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/skinny/expand.cuh"
#include "gputensor/blas/kernels/quantized/finish.cuh"
#include "gputensor/blas/kernels/quantized/sources.cuh"

#define WARP_ROWS (16 * TILES)
#define BLOCK_ROWS (WARP_ROWS * ROW_WARPS)
#define TOKEN_TILES (TOKENS / 8)
#define X_NBYTES (TOKENS * 128)                             // of a column
#define X_COPIES (K_WARPS * TOKENS * 8 / THREADS)
#define X_STEP (THREADS / (8 * K_WARPS))                    // tokens between a thread's copies
#define WEIGHTS_AT (K_WARPS * X_NBYTES)
#define STAGE_NBYTES (WEIGHTS_AT + ROW_WARPS * K_WARPS * WARP_NBYTES)

struct Place {
    int ahead, end;             // columns: the next that is copied, and the end of the block's part
    int token;                  // first row of x that the thread copies
    uint32 x_to, w_to;          // offsets in a stage
    const char* x;
    uint32 w[TILES * COPIES];   // the next copies of the lane, in units of 16 bytes
    uint32 scales[TILES];       // the lane's features, in words
};

// The place of a chunk of 8 k in a token's 128 bytes: eight lanes read different banks.
__device__ __forceinline__ int x_place(int token, int chunk) {
    return token * 128 + (chunk ^ (FORM == 1 ? token & 1 : (token & 1) * 4)) * 16;
}

__device__ __forceinline__ void find_sources(const Parameters& p, Place& at, int row, int token,
                                             int k_warp) {
    const int lane = threadIdx.x % 32;
    const int column = threadIdx.x / 8 % K_WARPS, chunk = threadIdx.x % 8;
    const int own = threadIdx.x / (8 * K_WARPS);
    at.token = token + own;
    at.x_to = column * X_NBYTES + x_place(own, chunk);
    at.x = p.x + at.token * p.x_pitch + ((int64)(at.ahead + column) * 8 + chunk) * 16;
    at.w_to = WEIGHTS_AT + threadIdx.x / 32 * WARP_NBYTES + lane * 16;
    find_weights(p, row, PAIRED ? (int)p.n / 2 : 16, at.ahead + k_warp, at.w, at.scales);
}

// Queues the copies of the next step, if there is one, and closes their group.
__device__ __forceinline__ void copy_step(const Parameters& p, Place& at, uint32 stage,
                                          int k_warp) {
    const int lane = threadIdx.x % 32;
    if (at.ahead < at.end) {
        const int64 k = (int64)(at.ahead + threadIdx.x / 8 % K_WARPS) * 64 + threadIdx.x % 8 * 8;
#pragma unroll
        for (int i = 0; i < X_COPIES; ++i) {
            const bool is_valid = k < p.k && at.token + i * X_STEP < p.m
                                && at.ahead + (int)(threadIdx.x / 8 % K_WARPS) < at.end;
            copy_x_16(stage + at.x_to + i * X_STEP * 128,
                      is_valid ? at.x + i * X_STEP * p.x_pitch : p.x, is_valid);
        }
        const int column = at.ahead + k_warp;
        const int64 first = (int64)column * 64;
        const bool is_inside = column < at.end;
#pragma unroll
        for (int i = 0; i < TILES * COPIES; ++i) {
            const uint32 to = stage + at.w_to + i * 512;
            const bool is_valid = is_inside && is_in_row(first, i, p.k);
            copy_16(to, is_valid ? p.w + (uint64)at.w[i] * 16 : p.w, is_valid);
        }
#if GROUP
#pragma unroll
        for (int s = 0; s < SCALES; ++s) {
            const bool is_valid = is_inside && first + s * 32 < p.k;
            const int64 group = (first + s * 32) / GROUP;
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile)
                copy_4(stage + at.w_to - lane * 12 + TILES * COPIES * 512 + (s * TILES + tile) * 128,
                       is_valid ? p.scales + (group * (p.n / 2) + at.scales[tile]) * 4 : p.scales,
                       is_valid);
        }
#endif
    }
    copies_commit();
    at.x += K_WARPS * 128;
#pragma unroll
    for (int i = 0; i < TILES * COPIES; ++i) at.w[i] += K_WARPS * (COLUMN_NBYTES / 16);
    at.ahead += K_WARPS;
}

// Multiplies one column: `w` is the lane's place in the weights, `x` that of its first token.
__device__ __forceinline__ void multiply_column(uint32 w, uint32 x,
                                                float sums[TILES][TOKEN_TILES][4]) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    Words words[TILES][COPIES];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int i = 0; i < COPIES; ++i)
            words[tile][i] = shared_16(w + (tile * COPIES + i) * 512);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        uint32 a[TILES][4], b[TILES][4];    // feature 2 g, feature 2 g + 1
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
            expand_half(words[tile], half, a[tile], b[tile]);
#if GROUP
            const int group = SCALES == 1 ? 0 : FORM == 2 ? half : t / 2;
            const uint32 pair = shared_4(
                w - lane * 12 + TILES * COPIES * 512 + (group * TILES + tile) * 128);
            scale_pairs(a[tile], __byte_perm(pair, 0, 0x1010));
            scale_pairs(b[tile], __byte_perm(pair, 0, 0x3232));
#endif
        }
        const uint32 from = x + x_place(g, FORM == 1 ? 2 * t + half : 4 * half + t);
#pragma unroll
        for (int i = 0; i < TOKEN_TILES; ++i) {
            const Words v = shared_16(from + i * 1024);
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                multiply(sums[tile][i], a[tile][0], b[tile][0], a[tile][1], b[tile][1], v.item[0],
                         v.item[1]);
                multiply(sums[tile][i], a[tile][2], b[tile][2], a[tile][3], b[tile][3], v.item[2],
                         v.item[3]);
            }
        }
    }
}

#if K_WARPS > 1
// The first warp of each set of features adds the sums of the others, in the stages' place.
__device__ __forceinline__ void unite(uint32 shared, int row_warp, int k_warp,
                                      float sums[TILES][TOKEN_TILES][4]) {
    const uint32 own = shared + row_warp * (TILES * TOKEN_TILES * 512) + threadIdx.x % 32 * 16;
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int i = 0; i < TOKEN_TILES; ++i) {
            const float* d = sums[tile][i];
            const Words x = {{__float_as_uint(d[0]), __float_as_uint(d[1]),
                              __float_as_uint(d[2]), __float_as_uint(d[3])}};
            const int place = (k_warp - 1) * ROW_WARPS * TILES * TOKEN_TILES
                            + tile * TOKEN_TILES + i;
            if (k_warp) store_16(own + place * 512, x);
        }
    __syncthreads();
    if (k_warp) return;
#pragma unroll
    for (int other = 0; other < K_WARPS - 1; ++other)
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (int i = 0; i < TOKEN_TILES; ++i) {
                const Words x = shared_16(own + ((other * ROW_WARPS * TILES + tile) * TOKEN_TILES
                                                 + i) * 512);
#pragma unroll
                for (int e = 0; e < 4; ++e) sums[tile][i][e] += __uint_as_float(x.item[e]);
            }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) kernel(const Parameters p) {
    start_early();
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row_warp = warp % ROW_WARPS, k_warp = warp / ROW_WARPS;
    int place = blockIdx.x;
    const int token = place % p.token_tiles * TOKENS;
    place /= p.token_tiles;
    const int row = (place % p.row_tiles * BLOCK_ROWS + row_warp * WARP_ROWS) >> PAIRED;
    const int split = place / p.row_tiles;
    const int columns = (int)((p.k + 63) / 64), steps = (columns + K_WARPS - 1) / K_WARPS;
    const int first = (int)((int64)steps * split / p.splits);
    const int count = (int)((int64)steps * (split + 1) / p.splits) - first;
    Place at;
    at.ahead = first * K_WARPS;
    at.end = at.ahead + count * K_WARPS < columns ? at.ahead + count * K_WARPS : columns;
    find_sources(p, at, row, token, k_warp);
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) copy_step(p, at, shared + s * STAGE_NBYTES, k_warp);
    float sums[TILES][TOKEN_TILES][4] = {};
    uint32 stage = shared, free = shared + (STAGES - 1) * STAGE_NBYTES;
#pragma unroll 1
    for (int step = 0; step < count; ++step) {
        copies_wait<STAGES - 2>();
        __syncthreads();
        copy_step(p, at, free, k_warp);
        multiply_column(stage + WEIGHTS_AT + warp * WARP_NBYTES + lane * 16,
                        stage + k_warp * X_NBYTES, sums);
        free = stage;
        stage += STAGE_NBYTES;
        if (stage == shared + STAGES * STAGE_NBYTES) stage = shared;
    }
    copies_wait<0>();
#if K_WARPS > 1
    unite(shared, row_warp, k_warp, sums);
    if (k_warp) return;
#endif
#pragma unroll
    for (int tile = 0; tile < TILES; tile += 1 + PAIRED)
        write_features<TOKEN_TILES>(p, split, token + lane % 4 * 2, row + 16 * tile + lane / 4 * 2,
                                    sums[tile], sums[tile + PAIRED]);
}
