// Products of a few more terms, with so large a result that time goes into writing it.
//
// A block has TILE x TILE elements of D. A lane holds the terms of four rows in registers and takes
// column after column, whose terms are in shared memory and are read by the whole warp at once. With
// ALIGNED its rows are neighbours, and it writes them in one piece; otherwise they are 32 apart, so a
// warp writes neighbours wherever a column begins. Terms are added in their order; those from p.k on
// are zeros. Elements of the operands may have any strides.
//
// Defined before this text: INPUT and OUTPUT, element types; TERMS, a multiple of 4; ALIGNED.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/shared/activation.cuh"

typedef INPUT input_t;
typedef OUTPUT output_t;

#include "gputensor/blas/kernels/tiny/result.cuh"

const int TILE = 128, ROWS = TILE / 32, THREADS = 256;

struct alignas(16) Four { float item[4]; };

__device__ __forceinline__ int row_of(int lane, int r) {
    return ALIGNED ? lane * ROWS + r : lane + 32 * r;
}

// Reads the terms of TILE lines of an operand; neighbouring threads read neighbours.
template <class Place>
__device__ __forceinline__ void read_lines(const input_t* from, int line, int term, int lines,
                                           int terms, Place place) {
#pragma unroll
    for (int i = threadIdx.x; i < TILE * TERMS; i += THREADS) {
        const int j = line == 1 ? i % TILE : i / TERMS, t = line == 1 ? i / TILE : i % TERMS;
        const bool is_inside = j < lines && t < terms;
        *place(j, t) = is_inside ? wide(from[(int64)j * line + (int64)t * term]) : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    __shared__ Four columns[TILE][TERMS / 4], lines[TERMS][TILE / 4 + 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_row = blockIdx.x * TILE, first_column = blockIdx.y * TILE;
    const int64 item = blockIdx.z;
    const bool is_plain = p.alpha == 1.0f && p.beta == 0.0f && !p.bias && p.activation == 0;
    read_lines(p.a + item * p.stride_a + (int64)first_row * p.line_a, p.line_a, p.term_a,
               p.m - first_row, p.k, [&](int j, int t) { return &lines[t][j / 4].item[j % 4]; });
    read_lines(p.b + item * p.stride_b + (int64)first_column * p.line_b, p.line_b, p.term_b,
               p.n - first_column, p.k, [&](int j, int t) { return &columns[j][t / 4].item[t % 4]; });
    __syncthreads();
    float rows[ROWS][TERMS];
#pragma unroll
    for (int term = 0; term < TERMS; ++term)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = row_of(lane, r);
            rows[r][term] = lines[term][row / 4].item[row % 4];
        }

    for (int j = warp; j < TILE && first_column + j < p.n; j += THREADS / 32) {
        float sums[ROWS] = {};
#pragma unroll
        for (int i = 0; i < TERMS / 4; ++i) {
            const Four b4 = columns[j][i];
#pragma unroll
            for (int e = 0; e < 4; ++e)
#pragma unroll
                for (int r = 0; r < ROWS; ++r) sums[r] = fmaf(rows[r][4 * i + e], b4.item[e], sums[r]);
        }
        const int column = first_column + j;
        output_t* const d = p.d + item * p.stride_d + (int64)column * p.ldd + first_row;
        struct alignas(sizeof(output_t) * ROWS) { output_t item[ROWS]; } made;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first_row + row_of(lane, r);
            made.item[r] = is_plain || row >= p.m ? narrow<output_t>(sums[r])
                                                  : result_of(p, item, row, column, sums[r]);
            if (!ALIGNED && row < p.m) d[row_of(lane, r)] = made.item[r];
        }
        if (ALIGNED && first_row + lane * ROWS < p.m)
            *reinterpret_cast<decltype(made)*>(d + lane * ROWS) = made;
    }
}
