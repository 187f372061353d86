// Products with few rows, or few results: y[m, n] = sum over k of x[m, k] * w(k, n), any strides.
//
// A block has a tile of ROWS x FEATURES results, and its warps take turns with steps of 128 bytes of
// terms. Each warp copies its own steps into a ring of its own, so no barrier stands between a copy
// and its use, and memory is busy while warps multiply. Lines start anywhere: those of 4 bytes are
// copied word by word, and 16-bit lines that start in the middle of a word are moved by half a word in
// shared memory (operand.cuh). Sums are added in a fixed order: in a warp, in the block, among the
// blocks of a cluster, so the bits are equal from run to run.
//
// Defined before this text: X_KIND and Y_KIND, 0 for float16, 1 for bfloat16, 2 for float32; ROWS,
// 16, 32, 48 or 64; FEATURES, 32, 64 or 128; WARPS; SPLITS, blocks of a cluster that have a part of
// K each; STAGES, steps of a ring; W_ALONG and X_ALONG, whether the lines of an operand lie along
// the terms; W_PIECE and X_PIECE, bytes that divide all addresses of lines: 16, 4, or 2;
// INSTRUCTION, the name of the mma, undefined for float32 in plain arithmetic.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/few_rows/few_rows.h"
#include "gputensor/blas/kernels/shared/mma.cuh"

typedef FewRowsParameters Parameters;

#define THREADS (32 * WARPS)

const int TOTALS_PITCH = FEATURES + 4;      // floats of a row of sums

#include "gputensor/blas/kernels/narrow/operand.cuh"
#ifdef INSTRUCTION
#include "gputensor/blas/kernels/shared/fragments.cuh"
#include "gputensor/blas/kernels/narrow/fragments.cuh"
#else
#include "gputensor/blas/kernels/narrow/plain.cuh"
#endif

typedef Operand<W_ALONG, FEATURES, W_PIECE> Weights;
// 48 rows that lie side by side are copied as 64, a power of two.
typedef Operand<X_ALONG, X_ALONG || ROWS != 48 ? ROWS : 64, X_PIECE> Left;

const int STAGE = Weights::NBYTES + Left::NBYTES;
const int RING = STAGES * STAGE;
const int ALL = ROWS * FEATURES;
const int APART = SPLITS * THREADS;         // results from one of a thread to its next
const int WANTED = SPLITS < 4 ? 4 / SPLITS : 1;
const int AT_ONCE = ALL / APART < WANTED ? (ALL / APART ? ALL / APART : 1) : WANTED;

// Writes the block's share of the results. Rows of a column of y are neighbours in memory, or features
// of a row; so are those of the addend, and the bias has an element for each. Neighbouring threads
// write neighbours, and the sums of several results are under way at once.
__device__ __forceinline__ void write(const Parameters& p, uint32 shared, int split, int row,
                                      int64 feature, int rows, int features) {
    const bool is_along_rows = p.y_row == 1, is_plain = p.beta == 0 && !p.bias;
    const int64 inner_at = is_along_rows ? row : feature, outer_at = is_along_rows ? feature : row;
    const int64 y_line = is_along_rows ? p.y_column : p.y_row;
    const int64 addend_line = is_along_rows ? p.addend_column : p.addend_row;
    char* y = p.y + (outer_at * y_line + inner_at) * (Y_KIND == 2 ? 4 : 2);
    const int64 addend = outer_at * addend_line + inner_at;
    const int end = is_along_rows ? features * ROWS : rows * FEATURES;
#pragma unroll 1
    for (int first = threadIdx.x + split * THREADS; first < end; first += AT_ONCE * APART) {
        float sum[AT_ONCE];
        int own_row[AT_ONCE], own_feature[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int index = first + i * APART < ALL ? first + i * APART : ALL - 1;
            own_row[i] = is_along_rows ? index % ROWS : index / FEATURES;
            own_feature[i] = is_along_rows ? index / ROWS : index % FEATURES;
            sum[i] = 0;
#pragma unroll
            for (int s = 0; s < SPLITS; ++s)
                sum[i] += load_total(shared + (own_row[i] * TOTALS_PITCH + own_feature[i]) * 4, s);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            if (own_row[i] >= rows || own_feature[i] >= features || first + i * APART >= ALL)
                continue;
            const int inner = is_along_rows ? own_row[i] : own_feature[i];
            const int64 outer = is_along_rows ? own_feature[i] : own_row[i];
            const float result = is_plain ? sum[i] * p.alpha
                : ended(p, sum[i], addend + outer * addend_line + inner, inner_at + inner);
            store_y(y, outer * y_line + inner, result);
        }
    }
}

extern "C" __global__ void BY_CLUSTER __launch_bounds__(THREADS)
kernel(const Parameters p) {
    start_early();
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int warp = threadIdx.x / 32, split = blockIdx.x % SPLITS;
    const int64 feature = (int64)(blockIdx.x / SPLITS) * FEATURES;
    const int row = blockIdx.y * ROWS;
    const int features = (int)(p.n - feature < FEATURES ? p.n - feature : FEATURES);
    const int rows = p.m - row < ROWS ? p.m - row : ROWS;
    const int64 begin = split * p.slice;
    const int64 end = begin + p.slice < p.k ? begin + p.slice : p.k;
    const int steps = end > begin ? (int)((end - begin + TERMS - 1) / TERMS) : 0;
    const int own = steps > warp ? (steps - warp + WARPS - 1) / WARPS : 0;

    // A warp's step, and what leads to its next one.
    const uint32 ring = shared + warp * RING;
    const int64 x_pitch = (X_ALONG ? p.x_row : p.x_term) * ITEM;
    const int64 k = begin + warp * TERMS;
    Weights weights(p.w + (W_ALONG ? feature * p.w_pitch + k * ITEM
                                   : k * p.w_pitch + feature * ITEM), p.w_pitch, features);
    Left left(p.x + (X_ALONG ? row * x_pitch + k * ITEM : k * x_pitch + row * (int64)ITEM), x_pitch,
              rows);
    int64 ahead = end - k;          // terms from the next step to copy on, and from this one on
    int64 here = ahead;
    Weights behind_weights = weights;
    Left behind_left = left;

    // One loop, so that the code of the copies, which takes a while to come, is there once.
    Sums sums;
    int to = 0, from = 0;           // places of the ring
#pragma unroll 1
    for (int i = 1 - STAGES; i < own; ++i) {
        if (i >= 0) {
            copies_wait<STAGES - 2>();
            __syncwarp();           // others' copies have come, and the place `to` is free
        }
        if (i + STAGES - 1 < own) {
            weights.load(ring + to * STAGE, ahead);
            left.load(ring + to * STAGE + Weights::NBYTES, ahead);
            weights.next();
            left.next();
            ahead -= WARPS * TERMS;
        }
        copies_commit();
        to = to + 1 == STAGES ? 0 : to + 1;
        if (i < 0) continue;
        const uint32 w_at = ring + from * STAGE, x_at = w_at + Weights::NBYTES;
        behind_weights.straighten(w_at);
        behind_left.straighten(x_at);
        sums.add<Weights, Left>(w_at, x_at, here < TERMS ? (int)here : TERMS);
        here -= WARPS * TERMS;
        behind_weights.next();
        behind_left.next();
        from = from + 1 == STAGES ? 0 : from + 1;
    }
    copies_wait<0>();
    __syncwarp();

    // The sums of each warp lie in its ring, row by row; the first warp's become those of the block.
    sums.store<Weights, Left>(ring);
    __syncthreads();
    if (WARPS > 1)
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * (FEATURES / 4); i += THREADS) {
            const uint32 at = shared + (i / (FEATURES / 4) * TOTALS_PITCH
                                        + i % (FEATURES / 4) * 4) * 4;
            Words total = shared_16(at);
#pragma unroll
            for (int w = 1; w < WARPS; ++w) {
                const Words more = shared_16(at + w * RING);
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    total.item[e] = __float_as_uint(__uint_as_float(total.item[e])
                                                    + __uint_as_float(more.item[e]));
            }
            store_16(at, total);
        }
    meet();
    write(p, shared, split, row, feature, rows, features);
#if SPLITS > 1
    meet();     // no block of the cluster leaves while another still reads its sums
#endif
}
