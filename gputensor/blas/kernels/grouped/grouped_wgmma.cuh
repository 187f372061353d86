// Grouped products with offsets on the device, on the tensor cores of Hopper (sm_90a).
//
// 16-byte asynchronous copies bring tokens and weights of float16 or bfloat16 to shared memory, in
// rows of 128 bytes in the order that wgmma reads without bank conflicts, two steps ahead of the
// products. A copy of fewer bytes fills with zeros, so rows after the end of a group, and columns
// and terms after the last, are zeros there. Four warps together multiply 64 rows by all columns of
// a tile. A step is queued while the one before it is still multiplied; its buffer is filled again
// two steps later, when every warp has passed a barrier that it reaches only after its own products
// of that buffer.
//
// Defined before this text: INPUT and OUTPUT, element types; QUARTETS of warps, with 64 rows each;
// COLUMNS of a tile; STAGES; MAX_GROUPS; IS_ALONG_TERMS, whether weights are contiguous along their
// terms (otherwise along their columns); MULTIPLY, the instruction that multiplies 16 terms from
// the descriptors a and b and adds them to the sums d of a quartet.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/grouped/tiles.cuh"

typedef INPUT input_t;
typedef OUTPUT output_t;

#include "gputensor/blas/kernels/grouped/grouped.h"

typedef GroupedParameters Parameters;

const int DEPTH = 64;                   // terms of a step: rows of 128 bytes
const int ROWS = 64 * QUARTETS;         // of a tile; a quartet is four warps
const int THREADS = 128 * QUARTETS;
const int STAGE = (ROWS + COLUMNS) * 128;
const int SUMS = COLUMNS / 2;           // of a thread

struct alignas(2 * sizeof(output_t)) Pair { output_t x, y; };

__device__ __forceinline__ uint32 shared_address(const void* at) {
    return (uint32)__cvta_generic_to_shared(at);
}
// Copies `nbytes` and fills the rest of 16 bytes with zeros.
__device__ __forceinline__ void copy_16(uint32 to, const char* from, int nbytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(nbytes) : "memory");
}
__device__ __forceinline__ int some_of_16(int64 elements) {
    return elements >= 8 ? 16 : elements > 0 ? 2 * (int)elements : 0;
}
// Rows of 128 bytes, swizzled; `leading` and `stride` in bytes.
__device__ __forceinline__ uint64 descriptor(uint32 at, int leading, int stride) {
    return (uint64)((at & 0x3ffff) >> 4) | (uint64)(leading >> 4) << 16
        | (uint64)(stride >> 4) << 32 | 1ull << 62;
}
__device__ __forceinline__ void multiply(float* d, uint64 a, uint64 b) {
    MULTIPLY;
}

// Copies a thread's part of the tokens: 4 pieces of 16 bytes, 16 * QUARTETS rows apart.
__device__ __forceinline__ void copy_tokens(uint32 to, const Parameters& p, Tile tile, int64 term) {
    const int row = threadIdx.x / 8, piece = threadIdx.x % 8;
    const int nbytes = some_of_16(p.k - term - 8 * piece);
    const char* from = (const char*)(p.a + (tile.row + row) * p.row_a + term + 8 * piece);
    to += row * 128 + ((piece ^ (row & 7)) << 4);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const bool is_inside = tile.row + row + i * (THREADS / 8) < tile.end;
        copy_16(to + i * (THREADS / 8) * 128,
                is_inside && nbytes ? from + i * (THREADS / 8) * p.row_a * 2 : (const char*)p.a,
                is_inside ? nbytes : 0);
    }
}

// Copies weights that are contiguous along the terms: one row of 128 bytes for each column.
__device__ __forceinline__ void copy_along_terms(uint32 to, const Parameters& p,
                                                 const input_t* matrix, int column, int64 term) {
    const int row = threadIdx.x / 8, piece = threadIdx.x % 8;
    const int nbytes = some_of_16(p.k - term - 8 * piece);
    const input_t* line = matrix + (int64)(column + row) * p.column_b;
    const char* from = (const char*)(line + term + 8 * piece);
    to += row * 128 + ((piece ^ (row & 7)) << 4);
#pragma unroll
    for (int i = 0; i < (COLUMNS * 8 + THREADS - 1) / THREADS; ++i) {
        if (COLUMNS * 8 % THREADS && row + i * (THREADS / 8) >= COLUMNS) break;
        const bool is_inside = column + row + i * (THREADS / 8) < p.n;
        copy_16(to + i * (THREADS / 8) * 128,
                is_inside && nbytes ? from + i * (THREADS / 8) * p.column_b * 2 : (const char*)p.b,
                is_inside ? nbytes : 0);
    }
}

// Copies weights that are contiguous along the columns: 128 bytes for each term and 64 columns.
__device__ __forceinline__ void copy_along_columns(uint32 to, const Parameters& p,
                                                   const input_t* matrix, int column, int64 term) {
    const int ACROSS = COLUMNS / 8, STEP = THREADS / ACROSS;
    const int row = threadIdx.x / ACROSS, piece = threadIdx.x % ACROSS;
    const int nbytes = some_of_16(p.n - column - 8 * piece);
    const char* from = (const char*)(matrix + (term + row) * p.term_b + column + 8 * piece);
    to += piece / 8 * (DEPTH * 128) + row * 128;
#pragma unroll
    for (int i = 0; i < (DEPTH + STEP - 1) / STEP; ++i) {
        if (DEPTH % STEP && row + i * STEP >= DEPTH) break;
        const bool is_inside = term + row + i * STEP < p.k;
        copy_16(to + i * STEP * 128 + (((piece ^ (row + i * STEP)) & 7) << 4),
                is_inside && nbytes ? from + i * STEP * p.term_b * 2 : (const char*)p.b,
                is_inside ? nbytes : 0);
    }
}

__device__ __forceinline__ void copy_step(uint32 memory, const Parameters& p, Tile tile, int step) {
    const uint32 to = memory + step % STAGES * STAGE;
    const int64 term = (int64)step * DEPTH;
    const input_t* matrix = p.b + (int64)(p.first + tile.group) * p.group_b;
    copy_tokens(to, p, tile, term);
    if (IS_ALONG_TERMS) copy_along_terms(to + ROWS * 128, p, matrix, tile.column, term);
    else copy_along_columns(to + ROWS * 128, p, matrix, tile.column, term);
}

__device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

__device__ __forceinline__ void write_row(const Parameters& p, Tile tile, const float* sums,
                                          int row, int half) {
    if (row >= tile.end) return;
    const int first = tile.column + threadIdx.x % 4 * 2;
    output_t* to = p.d + row * p.row_d + first * p.column_d;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; ++j) {
        const output_t x = narrow<output_t>(sums[4 * j + 2 * half]);
        const output_t y = narrow<output_t>(sums[4 * j + 2 * half + 1]);
        if (p.has_pairs && first + 8 * j + 1 < p.n) {
            *(Pair*)(to + 8 * j) = Pair{x, y};
        } else {
            if (first + 8 * j < p.n) to[8 * j * p.column_d] = x;
            if (first + 8 * j + 1 < p.n) to[(8 * j + 1) * p.column_d] = y;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    extern __shared__ char raw[];
    __shared__ Tiles all;
    const uint32 memory = (shared_address(raw) + 1023) & ~1023u;
    const int quartet = threadIdx.x / 128;
    float sums[SUMS];
    tiles_read(all, p.offsets, p.first, p.count, p.is_last, (int)p.tokens, ROWS);
    const int64 total = tiles_total(all, p.columns);
    for (int64 index = blockIdx.x; index < total; index += gridDim.x) {
        const Tile tile = tile_at(all, index, p.columns, ROWS, COLUMNS);
        const int steps = tile.group < p.count ? (int)((p.k + DEPTH - 1) / DEPTH) : 0;
#pragma unroll
        for (int i = 0; i < SUMS; ++i) sums[i] = 0.0f;
#pragma unroll
        for (int step = 0; step < STAGES - 2; ++step) {
            if (step < steps) copy_step(memory, p, tile, step);
            commit_copies();
        }
        for (int step = 0; step < steps; ++step) {
            asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 3) : "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            const uint32 from = memory + step % STAGES * STAGE;
            const uint64 a = descriptor(from + quartet * 8192, 16, 1024);
            const uint64 b = descriptor(from + ROWS * 128, IS_ALONG_TERMS ? 16 : DEPTH * 128, 1024);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int i = 0; i < DEPTH / 16; ++i)
                multiply(sums, a + 2 * i, b + (IS_ALONG_TERMS ? 2 : 128) * i);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            if (step + STAGES - 2 < steps) copy_step(memory, p, tile, step + STAGES - 2);
            commit_copies();
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
        const int row = tile.row + quartet * 64 + warp * 16 + lane / 4;
        write_row(p, tile, sums, row, 0);
        write_row(p, tile, sums, row + 8, 1);
    }
}
