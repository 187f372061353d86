// Grouped products whose row offsets are on the device.
//
// Rows offsets[g - 1] to offsets[g] of A are multiplied by matrix g of B. The host does not know
// the sizes of the groups, so the grid does not depend on them: each block reads the offsets,
// counts the tiles of all groups and takes every gridDim.x-th of them. Rows after the last offset
// are one more group, whose result is zero.
//
// Elements are read one by one, so any strides and alignment are allowed. A thread computes 4 x 4
// or 8 x 8 results in float32 and adds the terms of each in their order.
//
// Defined before this text: INPUT and OUTPUT, element types; QUAD, 4 or 8, results of a thread in
// each direction; MAX_GROUPS.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/grouped/tiles.cuh"

typedef INPUT input_t;
typedef OUTPUT output_t;

#include "gputensor/blas/kernels/grouped/grouped.h"

typedef GroupedParameters Parameters;

// Terms in shared memory at once; more for small tiles, which do little while the next terms load.
const int DEPTH = QUAD == 4 ? 32 : 16;
const int TILE = 16 * QUAD;             // rows and columns; 16 x 16 threads
const int PITCH = TILE + 4;
const int LOADS = TILE * DEPTH / 256;

// The place where a thread reads an operand, along its unit stride.
struct Place { int line, term, line_step, term_step; };

__device__ __forceinline__ Place place_of(int64 term_stride) {
    const int t = threadIdx.x;
    Place place;
    if (term_stride == 1) {
        place.line = t / DEPTH, place.term = t % DEPTH;
        place.line_step = 256 / DEPTH, place.term_step = 0;
    } else {
        place.line = t % TILE, place.term = t / TILE;
        place.line_step = 0, place.term_step = 256 / TILE;
    }
    return place;
}

__device__ __forceinline__ void fetch(float* kept, const input_t* from, Place place, int lines,
                                      int terms, int64 line_stride, int64 term_stride) {
    const input_t* at = from + place.line * line_stride + place.term * term_stride;
    const int64 step = place.line_step * line_stride + place.term_step * term_stride;
    int line = place.line, term = place.term;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        kept[i] = line < lines && term < terms ? wide(*at) : 0.0f;
        at += step, line += place.line_step, term += place.term_step;
    }
}

__device__ __forceinline__ void keep(float* shared, const float* kept, Place place) {
    float* at = shared + place.term * PITCH + place.line;
    const int step = place.term_step * PITCH + place.line_step;
#pragma unroll
    for (int i = 0; i < LOADS; ++i, at += step) *at = kept[i];
}

extern "C" __global__ void __launch_bounds__(256, QUAD == 4 ? 3 : 2) kernel(const Parameters p) {
    start_early();
    __shared__ Tiles all;
    __shared__ float left[DEPTH * PITCH], right[DEPTH * PITCH];
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    const Place place_a = place_of(p.term_a), place_b = place_of(p.term_b);
    tiles_read(all, p.offsets, p.first, p.count, p.is_last, (int)p.tokens, TILE);
    const int64 total = tiles_total(all, p.columns);
    for (int64 index = blockIdx.x; index < total; index += gridDim.x) {
        const Tile tile = tile_at(all, index, p.columns, TILE, TILE);
        const int k = tile.group < p.count ? (int)p.k : 0;
        const int rows = tile.end - tile.row, columns = (int)p.n - tile.column;
        const input_t* a = p.a + tile.row * p.row_a;
        const input_t* b = p.b + (int64)(p.first + tile.group) * p.group_b
            + tile.column * p.column_b;
        float kept_a[LOADS], kept_b[LOADS], sums[QUAD][QUAD];
#pragma unroll
        for (int i = 0; i < QUAD; ++i)
#pragma unroll
            for (int j = 0; j < QUAD; ++j) sums[i][j] = 0.0f;
        fetch(kept_a, a, place_a, rows, k, p.row_a, p.term_a);
        fetch(kept_b, b, place_b, columns, k, p.column_b, p.term_b);
        for (int rest = k; rest > 0; rest -= DEPTH) {
            keep(left, kept_a, place_a);
            keep(right, kept_b, place_b);
            __syncthreads();
            a += DEPTH * p.term_a;
            b += DEPTH * p.term_b;
            if (rest > DEPTH) {
                fetch(kept_a, a, place_a, rows, rest - DEPTH, p.row_a, p.term_a);
                fetch(kept_b, b, place_b, columns, rest - DEPTH, p.column_b, p.term_b);
            }
#pragma unroll 8
            for (int i = 0; i < DEPTH; ++i) {
                float own_a[QUAD], own_b[QUAD];
#pragma unroll
                for (int j = 0; j < QUAD; ++j) {
                    own_a[j] = left[i * PITCH + y + 16 * j];
                    own_b[j] = right[i * PITCH + x + 16 * j];
                }
#pragma unroll
                for (int r = 0; r < QUAD; ++r) {
                    // Small groups leave most of a small tile empty.
                    if (QUAD == 4 && 16 * r >= rows) break;
#pragma unroll
                    for (int c = 0; c < QUAD; ++c)
                        sums[r][c] = fmaf(own_a[r], own_b[c], sums[r][c]);
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int r = 0; r < QUAD; ++r)
#pragma unroll
            for (int c = 0; c < QUAD; ++c)
                if (y + 16 * r < rows && x + 16 * c < columns)
                    p.d[(int64)(tile.row + y + 16 * r) * p.row_d
                        + (int64)(tile.column + x + 16 * c) * p.column_d]
                        = narrow<output_t>(sums[r][c]);
    }
}
