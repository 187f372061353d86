// The search for tiles that both programs of grouped products share.
//
// Offsets that decrease or exceed the tokens are clamped, so no offset can cause an access outside
// of the operands. Defined before this text: MAX_GROUPS, groups that one launch takes.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

struct Tiles {
    int ends[MAX_GROUPS + 1];           // the row after each group
    int tiles[MAX_GROUPS + 1];          // tiles of rows up to and with each group
    int start;                          // the first row of the first group
    int groups;                         // including that of the rows of zeros
};

// One tile of the result: rows [row, end) of group `group`, from column `column`.
struct Tile { int group, row, end, column; };

__device__ __forceinline__ int clamped(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

// Called once by all threads of the block. `first` and `count` are the groups of this launch; with
// `is_last`, the rows after them are one more group.
__device__ __forceinline__ void tiles_read(Tiles& all, const int* offsets, int first, int count,
                                           int is_last, int tokens, int tile_rows) {
    for (int g = threadIdx.x; g < count; g += blockDim.x) all.ends[g] = offsets[first + g];
    __syncthreads();
    if (threadIdx.x == 0) {
        int end = 0, tiles = 0;
        for (int g = 0; g < first; ++g) end = clamped(offsets[g], end, tokens);
        all.start = end;
        all.groups = count + is_last;
        for (int g = 0; g < all.groups; ++g) {
            const int next = g < count ? clamped(all.ends[g], end, tokens) : tokens;
            tiles += (next - end + tile_rows - 1) / tile_rows;
            all.ends[g] = end = next;
            all.tiles[g] = tiles;
        }
    }
    __syncthreads();
}

__device__ __forceinline__ int64 tiles_total(const Tiles& all, int columns) {
    return (int64)all.tiles[all.groups - 1] * columns;
}

// Tiles of one group go down the rows first, so that neighbours share the matrix of B.
__device__ __forceinline__ Tile tile_at(const Tiles& all, int64 index, int columns, int tile_rows,
                                        int tile_columns) {
    int low = 0, high = all.groups - 1;     // the first group with tiles[group] * columns > index
    while (low < high) {
        const int middle = (low + high) / 2;
        if ((int64)all.tiles[middle] * columns > index) high = middle; else low = middle + 1;
    }
    const int before = low ? all.tiles[low - 1] : 0, rows = all.tiles[low] - before;
    const int local = (int)(index - (int64)before * columns);
    Tile tile;
    tile.group = low;
    tile.row = (low ? all.ends[low - 1] : all.start) + local % rows * tile_rows;
    tile.end = all.ends[low];
    tile.column = local / rows * tile_columns;
    return tile;
}
