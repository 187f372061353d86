// Tiny products: one block for each tile of the result, one wave of blocks.
//
// A block reads its rows of A and columns of B, up to 128 terms at once, into shared memory as
// float32, while the next 128 are already on their way to registers. Its 256 threads form groups; a
// group covers the whole tile with 4 x 4 results a thread and takes every GROUPS-th term. So the
// arithmetic is spread over the block even for one small tile. The groups' sums are added in a
// fixed tree, so the same operands give the same bits.
//
// Elements are read one by one, so any strides and alignment are allowed. Eight threads follow the
// unit stride of an operand that is contiguous along k, which fills a sector and stores without
// bank conflicts.
//
// Defined before this text: INPUT and OUTPUT, element types; TILE, 16 or 32, rows and columns of
// the result that a block of 256 threads computes.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/shared/activation.cuh"

typedef INPUT input_t;
typedef OUTPUT output_t;

#include "gputensor/blas/kernels/tiny/result.cuh"

const int DEPTH = 128;                  // terms in shared memory at once
const int QUADS = TILE / 4;
const int GROUP = QUADS * QUADS;        // threads that share a term
const int GROUPS = 256 / GROUP;
const int PITCH = TILE + 4;             // floats from term to term
const int STEP = 256 / TILE;            // terms that the block reads at once
const int LOADS = DEPTH / STEP;
const int AREA = TILE * TILE;

struct alignas(16) Four { float x, y, z, w; };

// The place where a thread reads an operand: a line of its tile and the first of its terms.
struct Place { int line, term; };

__device__ __forceinline__ Place place_of(int term_stride) {
    const int t = threadIdx.x;
    Place place;
    if (term_stride == 1) {
        place.line = (t >> 3) % TILE;
        place.term = (t >> 3) / TILE * 8 + (t & 7);
    } else {
        place.line = t % TILE;
        place.term = t / TILE;
    }
    return place;
}

__device__ __forceinline__ void fetch(float* kept, const input_t* from, Place place, int lines,
                                      int terms, int line_stride, int term_stride) {
    const bool is_inside = place.line < lines;
    const int first = place.line * line_stride + place.term * term_stride;
#pragma unroll
    for (int i = 0; i < LOADS; ++i)
        kept[i] = is_inside && place.term + i * STEP < terms
            ? wide(from[first + i * STEP * term_stride]) : 0.0f;
}

__device__ __forceinline__ void keep(float* shared, const float* kept, Place place, int terms) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i)
        if (i * STEP < terms) shared[(place.term + i * STEP) * PITCH + place.line] = kept[i];
}

__device__ __forceinline__ void add_terms(float* sums, Four a, Four b) {
    const float left[4] = {a.x, a.y, a.z, a.w}, right[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[4 * j + i] = fmaf(left[i], right[j], sums[4 * j + i]);
}

template <int HALF> __device__ __forceinline__ void fold(float* parts) {
#pragma unroll
    for (int g = 0; g < HALF; ++g) parts[g] += parts[g + HALF];
}

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    // The operands lie side by side; after the last term, the sums of the groups overwrite them.
    const int SIDE = DEPTH * PITCH / 4, SUMS = GROUPS * AREA / 4;
    __shared__ Four memory[2 * SIDE > SUMS ? 2 * SIDE : SUMS];
    float* const floats = &memory[0].x;
    const int t = threadIdx.x;
    const int64 item = blockIdx.y / p.across;
    const int row = blockIdx.x * TILE, column = (blockIdx.y - (int)item * p.across) * TILE;
    const input_t* a = p.a + item * p.stride_a + (int64)row * p.line_a;
    const input_t* b = p.b + item * p.stride_b + (int64)column * p.line_b;
    const Place place_a = place_of(p.term_a), place_b = place_of(p.term_b);
    const int group = t / GROUP, quad_row = t % QUADS, quad_column = t % GROUP / QUADS;
    float kept_a[LOADS], kept_b[LOADS], sums[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) sums[i] = 0.0f;

    fetch(kept_a, a, place_a, p.m - row, p.k, p.line_a, p.term_a);
    fetch(kept_b, b, place_b, p.n - column, p.k, p.line_b, p.term_b);
    for (int left = p.k; left > 0; left -= DEPTH) {
        const int terms = left < DEPTH ? left : DEPTH;
        keep(floats, kept_a, place_a, terms);
        keep(floats + 4 * SIDE, kept_b, place_b, terms);
        __syncthreads();
        if (left > DEPTH) {
            a += (int64)DEPTH * p.term_a;
            b += (int64)DEPTH * p.term_b;
            fetch(kept_a, a, place_a, p.m - row, left - DEPTH, p.line_a, p.term_a);
            fetch(kept_b, b, place_b, p.n - column, left - DEPTH, p.line_b, p.term_b);
        }
        // Rows are filled with zeros up to a multiple of STEP, which GROUPS divides.
        const Four* from_a = memory + group * (PITCH / 4) + quad_row;
        const Four* from_b = memory + SIDE + group * (PITCH / 4) + quad_column;
#pragma unroll 4
        for (int term = 0; term < terms; term += GROUPS) {
            add_terms(sums, *from_a, *from_b);
            from_a += GROUPS * (PITCH / 4);
            from_b += GROUPS * (PITCH / 4);
        }
        __syncthreads();
    }

#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const Four four = {sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]};
        memory[group * (AREA / 4) + (4 * quad_column + j) * QUADS + quad_row] = four;
    }
    __syncthreads();
#pragma unroll
    for (int place = t; place < AREA; place += 256) {
        const int i = row + place % TILE, j = column + place / TILE;
        float parts[GROUPS];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) parts[g] = floats[g * AREA + place];
        if constexpr (GROUPS == 16) fold<8>(parts), fold<4>(parts);
        fold<2>(parts), fold<1>(parts);
        if (i < p.m && j < p.n)
            p.d[item * p.stride_d + j * p.ldd + i] = result_of(p, item, i, j, parts[0]);
    }
}
