// Where a lane reads quantized weights and scales: for tile.cuh and wgmma.cuh.
//
// Defined before this text: FORM, TILES and GROUP as there.
#pragma once

#include "gputensor/blas/kernels/quantized/tile.h"

#define COPIES (FORM == 2 ? 1 : 2)                          // of 16 bytes, of a lane for a tile
#define COLUMN_NBYTES (FORM == 2 ? 512 : 64)
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
            w[2 * tile + r] = (uint32)(feature * (p.w_pitch / 16)) + lane % 4;
        }
#endif
        scales[tile] = (row + 2 * g < last ? row + 2 * g : last - 1) / 2;
    }
#pragma unroll
    for (int i = 0; i < TILES * COPIES; ++i) w[i] += column * (COLUMN_NBYTES / 16);
}
