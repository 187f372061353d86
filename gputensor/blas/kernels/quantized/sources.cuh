// Where a lane reads weights and scales: for tile.cuh and wgmma.cuh.
//
// Defined before this text: FORM, TILES and GROUP as there.
#pragma once

#include "gputensor/blas/kernels/quantized/tile.h"

#define COPIES (FORM == 2 ? 1 : FORM == 1 ? 2 : 4)          // of 16 bytes, of a lane for a tile
#define COLUMN_NBYTES (FORM == 2 ? 512 : FORM == 1 ? 64 : 128)
#define SCALES (GROUP == 0 ? 0 : GROUP == 32 ? 2 : 1)       // of a feature in a column
#define WARP_NBYTES (TILES * (COPIES * 512 + SCALES * 128))

// Finds the weights of a column of 64 k and the scales for tiles of features that begin at `row` and
// are `apart` features apart. Weights are in units of 16 bytes, scales in words.
__device__ __forceinline__ void find_weights(const QuantizedTileParameters& p, int row, int apart,
                                             int column, uint32 (&w)[TILES * COPIES],
                                             uint32 (&scales)[TILES]) {
    const int lane = threadIdx.x % 32, g = lane / 4, last = (int)p.n - 1;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile, row += apart) {
        // Features beyond the last are read from it, and their sums are not stored.
#if FORM == 2
        w[tile] = (uint32)((row < last ? row : last) / 16 * (p.w_pitch / 16)) + lane;
#else
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int feature = row + 2 * g + r < last ? row + 2 * g + r : last;
#pragma unroll
            for (int i = 0; i < COPIES / 2; ++i)
                w[COPIES * tile + COPIES / 2 * r + i] =
                    (uint32)(feature * (p.w_pitch / 16)) + 4 * i + lane % 4;
        }
#endif
        scales[tile] = (row + 2 * g < last ? row + 2 * g : last - 1) / 2;
    }
#pragma unroll
    for (int i = 0; i < TILES * COPIES; ++i) w[i] += column * (COLUMN_NBYTES / 16);
}

// Whether copy i of a lane is inside K, in a column that begins at k `first`.
__device__ __forceinline__ bool is_in_row(int64 first, int i, int64 k) {
    if (FORM == 2) return true;
    const int place = threadIdx.x % 4 + (FORM == 0 ? i % 2 * 4 : 0);
    return first + place * (FORM == 0 ? 8 : 16) < k;
}

// The words of a tile as pairs of k: of feature 2 g, and of feature 2 g + 1, for half of a column.
__device__ __forceinline__ void expand_half(const Words (&words)[COPIES], int half, uint32* a,
                                            uint32* b) {
#if FORM == 2
    expand_int4(words[0].item[2 * half], a);
    expand_int4(words[0].item[2 * half + 1], b);
#elif FORM == 1
    expand_int8(words[0].item[2 * half], a);
    expand_int8(words[0].item[2 * half + 1], a + 2);
    expand_int8(words[1].item[2 * half], b);
    expand_int8(words[1].item[2 * half + 1], b + 2);
#else
#pragma unroll
    for (int j = 0; j < 4; ++j) a[j] = words[half].item[j], b[j] = words[2 + half].item[j];
#endif
}
