// Panel products: y[m, n] = activation(sum over k of x[m, k] * w[n, k] + bias + addend), in 16-bit
// floats, where latency decides: there are few tiles, and few terms.
//
// A block has one tile of y, and its *panels*, all of its rows of x and of w, are in shared memory
// at the same time. So all copies are under way at once, there is one wait, and no ring of stages.
// Because the block has whole rows of x, it can normalize them before it multiplies. K is cut among
// K_WARPS warps, whose sums are added in a fixed order in shared memory.
//
// Defined before this text: X_KIND, 0 for float16, 1 for bfloat16; INSTRUCTION, the mma; PACK, the
// type of a pair of elements; ROWS and COLUMNS of a tile, multiples of 16; ROW_WARPS, COLUMN_WARPS,
// K_WARPS; ALONG_TERMS, whether rows of w are along k (else along n); NORM, 0 for none, 1 for a root
// mean square, 2 with the mean subtracted first; CHUNKS, pieces of 8 elements of a row for each
// lane that normalizes it; GATE, the activation; STEADY, whether w, gain and shift may be read
// before earlier work has ended.
#pragma once

#define Y_KIND X_KIND
#define SPLITS 1

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/shared/fragments.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/panel/panel.h"

typedef PanelParameters Parameters;

#define WARPS (ROW_WARPS * COLUMN_WARPS * K_WARPS)
#define THREADS (32 * WARPS)
#define WARP_ROWS (ROWS / ROW_WARPS)
#define WARP_COLUMNS (COLUMNS / COLUMN_WARPS)
// Floats from row to row of the sums: pairs of a quarter of a warp go to different banks.
#define SUM_PITCH (COLUMNS + 8)
// Results that a thread finishes: quads of neighbours.
#define QUADS (ROWS * COLUMNS / 4)
#define OWN_QUADS ((QUADS + THREADS - 1) / THREADS)

struct alignas(8) Quad { uint16 item[4]; };

// Copies `rows` rows of `chunks` pieces of 16 bytes; those from `valid_rows` or `valid_chunks` on
// are zeros. A warp copies whole rows, or several short ones.
template <int WIDTH>
__device__ __forceinline__ void copy_panel(uint32 to, int row_nbytes, const char* from, int64 pitch,
                                           int rows, int valid_rows, int chunks, int valid_chunks) {
    const int lane = threadIdx.x % 32;
    for (int row = threadIdx.x / 32 * (32 / WIDTH) + lane / WIDTH; row < rows;
         row += WARPS * (32 / WIDTH)) {
        const char* source = from + row * pitch;
#pragma unroll 4
        for (int chunk = lane % WIDTH; chunk < chunks; chunk += WIDTH) {
            const bool is_valid = row < valid_rows && chunk < valid_chunks;
            copy_16(to + row * row_nbytes + chunk * 16, is_valid ? source + chunk * 16 : from,
                    is_valid);
        }
    }
}

#if NORM
#define WARP_NORMS (ROWS / WARPS)       // rows that a warp normalizes
#define TOGETHER (WARP_NORMS < 4 ? WARP_NORMS : 4)

// Adds each of the numbers over the lanes. The rows take turns, since a shuffle waits for the last.
__device__ __forceinline__ void of_warp(float* x) {
#pragma unroll
    for (int step = 16; step; step /= 2)
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) x[i] += __shfl_xor_sync(0xffffffffu, x[i], step);
}
__device__ __forceinline__ void spread(const Words& x, float* elements) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
        elements[e] = wide((uint16)(x.item[e / 2] >> e % 2 * 16), X_KIND);
}

// Normalizes rows `first` to `first` + TOGETHER of the tile, which stay in registers meanwhile.
__device__ __forceinline__ void normalize(const Parameters& p, uint32 x_at, uint32 vectors,
                                          int first, int64 row, bool stores) {
    const int lane = threadIdx.x % 32, chunks = p.k / 8;
    const float share = 1 / (float)p.k;
    float x[TOGETHER][CHUNKS][8], means[TOGETHER] = {}, factors[TOGETHER] = {};
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) {
            Words words = {};
            const int chunk = lane + 32 * c;
            if (chunk < chunks) words = shared_16(x_at + (first + i) * p.x_row + chunk * 16);
            spread(words, x[i][c]);
        }
#if NORM == 2
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
#pragma unroll
        for (int e = 0; e < 8; ++e)
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) means[i] += x[i][c][e];
    of_warp(means);
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) means[i] *= share;
#endif
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        if (lane + 32 * c >= chunks) break;
#pragma unroll
        for (int e = 0; e < 8; ++e)
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                x[i][c][e] -= means[i];
                factors[i] = fmaf(x[i][c][e], x[i][c][e], factors[i]);
            }
    }
    of_warp(factors);
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) factors[i] = rsqrtf(factors[i] * share + p.epsilon);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const int chunk = lane + 32 * c;
        if (chunk >= chunks) break;
        float gain[8], shift[8] = {};
        spread(shared_16(vectors + chunk * 16), gain);
        if (p.shift) spread(shared_16(vectors + p.slice * 2 + chunk * 16), shift);
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) {
            float y[8];
#pragma unroll
            for (int e = 0; e < 8; ++e) y[e] = fmaf(x[i][c][e] * factors[i], gain[e], shift[e]);
            Words words;
#pragma unroll
            for (int j = 0; j < 4; ++j) words.item[j] = pack(y[2 * j], y[2 * j + 1]);
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                         :: "r"(x_at + (first + i) * p.x_row + chunk * 16), "r"(words.item[0]),
                            "r"(words.item[1]), "r"(words.item[2]), "r"(words.item[3]) : "memory");
            if (stores && row + first + i < p.m)
                reinterpret_cast<Words*>(p.normed + (row + first + i) * p.k * 2)[chunk] = words;
        }
    }
}
#endif

// The sums of the warp's part of K for its part of the tile.
__device__ __forceinline__ void multiply_panels(
        const Parameters& p, uint32 x_at, uint32 w_at, int row, int column, int k_warp,
        float sums[WARP_ROWS / 16][WARP_COLUMNS / 8][4]) {
    const int lane = threadIdx.x % 32, steps = p.slice / (16 * K_WARPS), first = k_warp * steps * 16;
    uint32 x = x_at + (row + lane % 16) * p.x_row + first * 2 + lane / 16 * 16;
#if ALONG_TERMS
    uint32 w = w_at + (column + lane % 8 + lane / 16 * 8) * p.w_row + first * 2 + lane / 8 % 2 * 16;
#else
    uint32 w = w_at + (first + lane % 16) * p.w_row + column * 2 + lane / 16 * 16;
#endif
#pragma unroll 2
    for (int step = 0; step < steps; ++step) {
        uint32 a[WARP_ROWS / 16][4], b[WARP_COLUMNS / 16][4];
#pragma unroll
        for (int i = 0; i < WARP_ROWS / 16; ++i) matrices(a[i], x + 16 * i * p.x_row);
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / 16; ++j) {
#if ALONG_TERMS
            matrices(b[j], w + 16 * j * p.w_row);
#else
            matrices_turned(b[j], w + 32 * j);
#endif
        }
#pragma unroll
        for (int i = 0; i < WARP_ROWS / 16; ++i)
#pragma unroll
            for (int j = 0; j < WARP_COLUMNS / 8; ++j)
                multiply(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        x += 32;
        w += ALONG_TERMS ? 32 : 16 * p.w_row;
    }
}

// Stores the warp's sums in the place of the panels.
__device__ __forceinline__ void store_sums(uint32 shared, int row, int column, int k_warp,
                                           float sums[WARP_ROWS / 16][WARP_COLUMNS / 8][4]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; ++i)
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / 8; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int at = k_warp * ROWS + row + 16 * i + 8 * half + lane / 4;
                const int to = at * SUM_PITCH + column + 8 * j + lane % 4 * 2;
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};"
                             :: "r"(shared + to * 4), "f"(sums[i][j][2 * half]),
                                "f"(sums[i][j][2 * half + 1]) : "memory");
            }
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
#if !STEADY
    start_early();
#endif
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int warp = threadIdx.x / 32, k_warp = warp / (ROW_WARPS * COLUMN_WARPS);
    const int first_column = blockIdx.x % p.columns * COLUMNS;
    const int64 first_row = (int64)(blockIdx.x / p.columns) * ROWS;
    const uint32 w_at = shared + p.w_offset, vectors = shared + p.vectors_offset;
#if ALONG_TERMS
    copy_panel<32>(w_at, p.w_row, p.w + first_column * p.w_pitch, p.w_pitch, COLUMNS,
                   p.n - first_column, p.slice / 8, p.k / 8);
#else
    copy_panel<COLUMNS / 8>(w_at, p.w_row, p.w + first_column * 2, p.w_pitch, p.slice, p.k,
                            COLUMNS / 8, (p.n - first_column) / 8);
#endif
#if NORM
    for (int chunk = threadIdx.x; chunk < p.k / 8; chunk += THREADS) {
        copy_16(vectors + chunk * 16, p.gain + chunk * 16, true);
        if (p.shift) copy_16(vectors + p.slice * 2 + chunk * 16, p.shift + chunk * 16, true);
    }
#endif
#if STEADY
    start_early();
#endif
    copy_panel<32>(shared, p.x_row, p.x + first_row * p.x_pitch, p.x_pitch, ROWS,
                   (int)min(p.m - first_row, (int64)ROWS), p.slice / 8, p.k / 8);
    copies_commit();
    // What is added to the sums arrives with x.
    Quad bias[OWN_QUADS], addend[OWN_QUADS];
#pragma unroll
    for (int i = 0; i < OWN_QUADS; ++i) {
        const int quad = threadIdx.x + i * THREADS, column = first_column + quad % (COLUMNS / 4) * 4;
        const int64 row = first_row + quad / (COLUMNS / 4);
        const bool is_valid = quad < QUADS && row < p.m && column < p.n;
        bias[i] = addend[i] = {};
        if (p.bias && is_valid) bias[i] = reinterpret_cast<const Quad*>(p.bias)[column / 4];
        if (p.addend && is_valid)
            addend[i] = reinterpret_cast<const Quad*>(p.addend)[(row * p.addend_pitch + column) / 4];
    }
    copies_wait<0>();
    __syncthreads();
#if NORM
#pragma unroll 1
    for (int i = warp * WARP_NORMS; i < (warp + 1) * WARP_NORMS; i += TOGETHER)
        normalize(p, shared, vectors, i, first_row, p.normed && first_column == 0);
    __syncthreads();
#endif
    const int warp_row = warp % ROW_WARPS * WARP_ROWS;
    const int warp_column = warp / ROW_WARPS % COLUMN_WARPS * WARP_COLUMNS;
    float sums[WARP_ROWS / 16][WARP_COLUMNS / 8][4] = {};
    multiply_panels(p, shared, w_at, warp_row, warp_column, k_warp, sums);
    __syncthreads();
    store_sums(shared, warp_row, warp_column, k_warp, sums);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < OWN_QUADS; ++i) {
        const int quad = threadIdx.x + i * THREADS, own = quad / (COLUMNS / 4);
        const int column = first_column + quad % (COLUMNS / 4) * 4;
        if (quad >= QUADS || first_row + own >= p.m || column >= p.n) continue;
        float total[4] = {};
#pragma unroll
        for (int part = 0; part < K_WARPS; ++part) {
            const int at = (part * ROWS + own) * SUM_PITCH + quad % (COLUMNS / 4) * 4;
            const Words x = shared_16(shared + at * 4);
#pragma unroll
            for (int e = 0; e < 4; ++e) total[e] += __uint_as_float(x.item[e]);
        }
        Quad y;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            float value = total[e];
            if (p.addend) value += wide(addend[i].item[e], X_KIND);
            if (p.bias) value += wide(bias[i].item[e], X_KIND);
            y.item[e] = narrow(activated(value), X_KIND);
        }
        reinterpret_cast<Quad*>(p.y)[((first_row + own) * p.y_pitch + column) / 4] = y;
    }
}
