// Panel products: y[m, n] = activation(sum over k of x[m, k] * w[n, k] + bias + addend), in 16-bit
// floats, where latency decides: there are few tiles, and few terms.
//
// A block has one tile of y, and its *panels*, all of its rows of x and of w, are in shared memory
// at the same time. So all copies are under way at once, there is one wait, and no ring of stages.
// Because the block has whole rows of x, it can normalize them before it multiplies. K is cut among
// K_WARPS warps of a block, and among the SPLITS blocks of a cluster; sums are added in a fixed
// order in shared memory, each row by the block of the cluster that owns it.
//
// Defined before this text: X_KIND, 0 for float16, 1 for bfloat16; INSTRUCTION, the mma; ROWS and
// COLUMNS of a tile, multiples of 16; ROW_WARPS, COLUMN_WARPS, K_WARPS; SPLITS; ALONG_TERMS, whether
// rows of w are along k (else along n); NORM, 0 for none, 1 for a root mean square, 2 with the mean
// subtracted first; GATE, the activation; STEADY, whether w, gain and shift may be read before
// earlier work has ended.
#pragma once

#define Y_KIND X_KIND

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/shared/fragments.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/panel/panel.h"

typedef PanelParameters Parameters;

#define WARPS (ROW_WARPS * COLUMN_WARPS * K_WARPS)
#define THREADS (32 * WARPS)
#define WARP_ROWS (ROWS / ROW_WARPS)
#define WARP_COLUMNS (COLUMNS / COLUMN_WARPS)
#define OWN_ROWS (ROWS / SPLITS)
#define OWN_NORMS ((ROWS + WARPS - 1) / WARPS)
// Floats from row to row of the sums.
#define SUM_PITCH (COLUMNS + 4)
#define PIECES (COLUMNS / 4)        // of four columns, which a thread finishes together

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
__device__ __forceinline__ float of_warp(float x) {
#pragma unroll
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
__device__ __forceinline__ float element(const Words& x, int e) {
    return wide((uint16)(x.item[e / 2] >> e % 2 * 16), X_KIND);
}

// Normalizes the rows of x in shared memory, a warp each row; the first tile of a row of tiles also
// stores them.
__device__ __forceinline__ void normalize(const Parameters& p, uint32 x_at, uint32 vectors,
                                          int first_row, bool stores) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, chunks = p.k / 8;
    float means[OWN_NORMS], factors[OWN_NORMS];
#pragma unroll
    for (int i = 0; i < OWN_NORMS; ++i) {
        const uint32 row = x_at + min(warp + i * WARPS, ROWS - 1) * p.x_row;
        float mean = 0, squares = 0;
#if NORM == 2
#pragma unroll 1
        for (int chunk = lane; chunk < chunks; chunk += 32) {
            const Words x = shared_16(row + chunk * 16);
#pragma unroll
            for (int e = 0; e < 8; ++e) mean += element(x, e);
        }
        mean = of_warp(mean) / (float)p.k;
#endif
#pragma unroll 1
        for (int chunk = lane; chunk < chunks; chunk += 32) {
            const Words x = shared_16(row + chunk * 16);
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                const float away = element(x, e) - mean;
                squares = fmaf(away, away, squares);
            }
        }
        means[i] = mean;
        factors[i] = rsqrtf(of_warp(squares) / (float)p.k + p.epsilon);
    }
#pragma unroll 1
    for (int chunk = lane; chunk < chunks; chunk += 32) {
        const Words gain = shared_16(vectors + chunk * 16);
        Words shift = {};
        if (p.shift) shift = shared_16(vectors + p.slice * 2 + chunk * 16);
#pragma unroll
        for (int i = 0; i < OWN_NORMS; ++i) {
            const int own = warp + i * WARPS;
            if (own >= ROWS) break;
            const uint32 place = x_at + own * p.x_row + chunk * 16;
            const Words x = shared_16(place);
            Words y;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                uint32 pair = 0;
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const float away = element(x, 2 * j + e) - means[i];
                    const float value = away * factors[i] * element(gain, 2 * j + e)
                                      + element(shift, 2 * j + e);
                    pair |= (uint32)narrow(value, X_KIND) << 16 * e;
                }
                y.item[j] = pair;
            }
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                         :: "r"(place), "r"(y.item[0]), "r"(y.item[1]), "r"(y.item[2]),
                            "r"(y.item[3]) : "memory");
            if (stores && first_row + own < p.m)
                reinterpret_cast<Words*>(p.normed + (int64)(first_row + own) * p.k * 2)[chunk] = y;
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

// Four sums of the block's warps for a row of the tile.
__device__ __forceinline__ void add_warps(uint32 sums_at, int row, int piece, float* total) {
#pragma unroll
    for (int e = 0; e < 4; ++e) total[e] = 0;
#pragma unroll
    for (int warp = 0; warp < K_WARPS; ++warp) {
        const Words x = shared_16(sums_at + ((warp * ROWS + row) * SUM_PITCH + piece * 4) * 4);
#pragma unroll
        for (int e = 0; e < 4; ++e) total[e] += __uint_as_float(x.item[e]);
    }
}

#if SPLITS > 1
__device__ __forceinline__ uint32 received_at(const Parameters& p, uint32 shared, int split, int own,
                                              int piece) {
    return shared + p.received_offset + ((split * OWN_ROWS + own) * COLUMNS + piece * 4) * 4;
}

// Sends the sums for rows of other blocks to these blocks.
__device__ __forceinline__ void send_sums(const Parameters& p, uint32 shared, int split) {
    for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS) {
        const int row = i / PIECES, owner = row / OWN_ROWS;
        if (owner == split) continue;
        float total[4];
        add_warps(shared, row, i % PIECES, total);
        uint32 there;
        asm("mapa.shared::cluster.u32 %0, %1, %2;"
            : "=r"(there) : "r"(received_at(p, shared, split, row % OWN_ROWS, i % PIECES)),
              "r"(owner));
#pragma unroll
        for (int e = 0; e < 4; ++e)
            asm volatile("st.shared::cluster.f32 [%0], %1;"
                         :: "r"(there + 4 * e), "f"(total[e]) : "memory");
    }
    meet();
}
#endif

// Adds, finishes and stores four results.
__device__ __forceinline__ void finish(const Parameters& p, uint32 shared, int split, int own,
                                       int piece, int64 row, int column) {
    float total[4];
    add_warps(shared, split * OWN_ROWS + own, piece, total);
#if SPLITS > 1
    float whole[4] = {};
#pragma unroll
    for (int s = 0; s < SPLITS; ++s) {
        Words x = {};
        if (s != split) x = shared_16(received_at(p, shared, s, own, piece));
#pragma unroll
        for (int e = 0; e < 4; ++e) whole[e] += s == split ? total[e] : __uint_as_float(x.item[e]);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) total[e] = whole[e];
#endif
    struct alignas(8) Quad { uint16 item[4]; };
    Quad bias = {}, addend = {}, y;
    if (p.bias) bias = reinterpret_cast<const Quad*>(p.bias)[column / 4];
    if (p.addend)
        addend = reinterpret_cast<const Quad*>(p.addend)[(row * p.addend_pitch + column) / 4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        float value = total[e];
        if (p.addend) value += wide(addend.item[e], X_KIND);
        if (p.bias) value += wide(bias.item[e], X_KIND);
        y.item[e] = narrow(activated(value), X_KIND);
    }
    reinterpret_cast<Quad*>(p.y)[(row * p.y_pitch + column) / 4] = y;
}

extern "C" __global__ void __launch_bounds__(THREADS)
#if SPLITS > 1
__cluster_dims__(SPLITS, 1, 1)
#endif
kernel(const Parameters p) {
#if !STEADY
    start_early();
#endif
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int split = blockIdx.x % SPLITS, tile = blockIdx.x / SPLITS;
    const int column = tile % p.columns * COLUMNS;
    const int64 row = (int64)(tile / p.columns) * ROWS;
    const int first = split * p.slice, terms = max(min(p.k - first, p.slice), 0);
    const uint32 w_at = shared + p.w_offset, vectors = shared + p.vectors_offset;
#if ALONG_TERMS
    copy_panel<32>(w_at, p.w_row, p.w + column * p.w_pitch + (int64)first * 2, p.w_pitch, COLUMNS,
                   p.n - column, p.slice / 8, terms / 8);
#else
    copy_panel<COLUMNS / 8>(w_at, p.w_row, p.w + first * p.w_pitch + column * 2, p.w_pitch, p.slice,
                            terms, COLUMNS / 8, (p.n - column) / 8);
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
    copy_panel<32>(shared, p.x_row, p.x + row * p.x_pitch + (int64)first * 2, p.x_pitch, ROWS,
                   (int)min(p.m - row, (int64)ROWS), p.slice / 8, terms / 8);
    copies_commit();
    copies_wait<0>();
    __syncthreads();
#if NORM
    normalize(p, shared, vectors, (int)row, p.normed && column == 0);
    __syncthreads();
#endif
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int k_warp = warp / (ROW_WARPS * COLUMN_WARPS);
    const int warp_row = warp % ROW_WARPS * WARP_ROWS;
    const int warp_column = warp / ROW_WARPS % COLUMN_WARPS * WARP_COLUMNS;
    float sums[WARP_ROWS / 16][WARP_COLUMNS / 8][4] = {};
    multiply_panels(p, shared, w_at, warp_row, warp_column, k_warp, sums);

    // The sums overwrite the panels.
    meet();
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; ++i)
#pragma unroll
        for (int j = 0; j < WARP_COLUMNS / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int at = k_warp * ROWS + warp_row + 16 * i + e / 2 * 8 + lane / 4;
                const int to = at * SUM_PITCH + warp_column + 8 * j + lane % 4 * 2 + e % 2;
                store_4(shared + to * 4, sums[i][j][e]);
            }
    __syncthreads();
#if SPLITS > 1
    send_sums(p, shared, split);
#endif
#pragma unroll 1
    for (int i = threadIdx.x; i < OWN_ROWS * PIECES; i += THREADS) {
        const int own = i / PIECES, piece = i % PIECES;
        const int64 at = row + split * OWN_ROWS + own;
        if (at < p.m && column + piece * 4 < p.n)
            finish(p, shared, split, own, piece, at, column + piece * 4);
    }
}
