// Packs the operands of a product into the tiles of packed.cuh.
//
// A tile is 128 rows of 128 bytes of K, 16 KiB, contiguous; tiles follow each other along K, then
// along the rows. Within a tile the eight 16-byte pieces of row r are permuted by r mod 8, which is
// the 128-byte swizzle that wgmma reads. Rows and K beyond the matrix are zeros. One launch packs
// both operands, a block of eight warps for each tile.
//
// The source may have any pitch and any address that its elements allow, and may run along K or
// along the rows. It is read in words of 4 bytes; where 16-bit elements begin in the middle of a
// word, neighbouring lanes shift their words into each other, and the lines' last words are read by
// other lanes at the same time. All loads of a thread are in flight before the first is used.
// float32 is rounded to the nearest TF32, which the tensor cores would not do.
//
// Defined before this text: NBYTES of an element, 2 or 4.
#pragma once

#include "gputensor/blas/kernels/packed/packing.h"
#include "gputensor/blas/kernels/packed/short.cuh"

typedef PackingParameters Parameters;

#define TILE_K (128 / NBYTES)
#define PITCH 129           // words of a line in shared memory

DEVICE u32 load_word(u64 at) { return __ldg((const u32*)at); }
DEVICE u32 rounded(u32 x) {
#if NBYTES == 4
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
    return y;
#else
    return x;
#endif
}

#if NBYTES == 4
// word[i] becomes word `lane` of row 16 * warp + i.
DEVICE void load_along_k(u32* word, u64 at, i64 pitch, int rows, int terms, int lane) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        word[i] = 0;
        if (i < rows && lane < terms) word[i] = load_word(at + i * pitch + lane * 4);
    }
}
DEVICE void load_along_rows(u32* word, u32* shared, u64 at, i64 pitch, int rows, int terms,
                            int warp, int lane) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const int line = warp * 4 + (i >> 2), row = (i & 3) * 32 + lane;
        word[i] = 0;
        if (line < terms && row < rows) word[i] = load_word(at + line * pitch + row * 4);
    }
#pragma unroll
    for (int i = 0; i < 16; ++i)
        shared[(warp * 4 + (i >> 2)) * PITCH + (i & 3) * 32 + lane] = word[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) word[i] = shared[lane * PITCH + warp * 16 + i];
}
#else
DEVICE void load_along_k(u32* word, u64 at, i64 pitch, int rows, int terms, int lane) {
    u32 last = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const u64 line = at + i * pitch;
        word[i] = 0;
        if (i < rows && 2 * lane - (int)((line >> 1) & 1) < terms)
            word[i] = load_word((line & ~3ull) + 4 * lane);
    }
    if (lane < 16 && lane < rows && terms == TILE_K) {
        const u64 line = at + lane * pitch;
        if (line & 2) last = load_word((line & ~3ull) + 128);
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const u32 shift = (u32)((at + i * pitch) & 2) << 3;
        u32 next = __shfl_down_sync(0xffffffffu, word[i], 1);
        const u32 end = __shfl_sync(0xffffffffu, last, i);
        if (lane == 31) next = end;
        const u32 value = __funnelshift_r(word[i], next, shift);
        word[i] = 2 * lane + 1 < terms ? value : 2 * lane < terms ? value & 0xffffu : 0;
    }
}
// A warp takes 8 lines of 128 rows, in halves of 64 rows; two lines make words of K. In shared
// memory the even rows take the first 64 places of a line, the odd rows the next 64.
DEVICE void load_along_rows(u32* word, u32* shared, u64 at, i64 pitch, int rows, int terms,
                            int warp, int lane) {
    const int lines = terms - warp * 8;
    u32 last = 0;
    at += warp * 8 * pitch;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const u64 line = at + (i >> 1) * pitch;
        const int row = (i & 1) * 64 + 2 * lane - (int)((line >> 1) & 1);
        word[i] = 0;
        if ((i >> 1) < lines && row < rows)
            word[i] = load_word((line & ~3ull) + (i & 1) * 128 + 4 * lane);
    }
    if (lane < 8 && lane < lines && rows == 128) {
        const u64 line = at + lane * pitch;
        if (line & 2) last = load_word((line & ~3ull) + 256);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const u32 shift = (u32)((at + i * pitch) & 2) << 3;
        u32 next = __shfl_down_sync(0xffffffffu, word[2 * i], 1);
        u32 after = __shfl_down_sync(0xffffffffu, word[2 * i + 1], 1);
        const u32 middle = __shfl_sync(0xffffffffu, word[2 * i + 1], 0);
        const u32 end = __shfl_sync(0xffffffffu, last, i);
        if (lane == 31) { next = middle; after = end; }
        word[2 * i] = __funnelshift_r(word[2 * i], next, shift);
        word[2 * i + 1] = __funnelshift_r(word[2 * i + 1], after, shift);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const u32 x = word[4 * i + half], y = word[4 * i + 2 + half];
            u32* line = shared + (warp * 4 + i) * PITCH + half * 32 + lane;
            line[0] = __byte_perm(x, y, 0x5410);
            line[64] = __byte_perm(x, y, 0x7632);
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const int row = warp * 16 + i;
        const u32 value = shared[lane * PITCH + (row >> 1) + (row & 1) * 64];
        word[i] = row < rows ? value : 0;
    }
}
#endif

DEVICE void pack_tile(const PackedMatrix& m, i64 tile, u32* shared) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const i64 above = tile / m.steps;
    const i64 row0 = above * 128;
    const i64 k0 = (tile - above * m.steps) * TILE_K;
    const int rows = (int)min((i64)128, m.rows - row0);
    const int terms = (int)min((i64)TILE_K, m.k - k0);
    const i64 pitch = m.pitch * NBYTES;
    u32 word[16];
    if (m.along_rows) {
        load_along_rows(word, shared, m.source + k0 * pitch + row0 * NBYTES, pitch, rows, terms,
                        warp, lane);
    } else {
        const i64 first = row0 + warp * 16;
        load_along_k(word, m.source + first * pitch + k0 * NBYTES, pitch, rows - warp * 16, terms,
                     lane);
    }
    u32* to = (u32*)(m.target + tile * 16384) + warp * 16 * 32 + (lane & 3);
#pragma unroll
    for (int i = 0; i < 16; ++i)
        to[i * 32 + (((lane >> 2) ^ (i & 7)) << 2)] = rounded(word[i]);
}

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    __shared__ u32 shared[32 * PITCH];
    const i64 tile = blockIdx.x;
    if (tile == 0)
        for (int i = threadIdx.x; i < p.flag_count; i += 256) ((u32*)p.flags)[i] = 0;
    if (tile < p.a.tiles) pack_tile(p.a, tile, shared);
    else pack_tile(p.b, tile - p.a.tiles, shared);
}
