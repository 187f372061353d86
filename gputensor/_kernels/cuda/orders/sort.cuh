// Sorting rows, stable: tiles in shared memory, then merges of neighbouring runs.
//
// TILES sorts tiles of TILE elements, one a block of threads; where a row is one tile, that is the
// result. MERGE finds the place of each element in the merged run by a search in the other run.
// FINISH writes the elements. Between the launches a row is its keys and places.
//
// Defined before this text: FORM, one of the three; TILE; ELEMENT and KEY (keys.cuh).
#pragma once

#include "gputensor/_kernels/cuda/orders/keys.cuh"

#define TILES 0
#define MERGE 1
#define FINISH 2

typedef SortParameters Parameters;

__device__ __forceinline__ void write(const Parameters& p, int64 row, int64 at, uint32 place) {
    const int64 first = row * p.columns;
    if (p.values)
        reinterpret_cast<T*>(p.values)[first + at] =
            reinterpret_cast<const T*>(p.input)[first + place];
    if (p.order) p.order[first + at] = place;
}

#if FORM == TILES
extern "C" __global__ void __launch_bounds__(TILE / 2) kernel(const Parameters p) {
    __shared__ Key keys[TILE];
    __shared__ uint32 places[TILE];
    const int64 tiles = (p.columns + TILE - 1) / TILE;
    const int64 row = blockIdx.x / tiles, first = blockIdx.x % tiles * TILE;
    const T* input = reinterpret_cast<const T*>(p.input) + row * p.columns;
    for (int i = threadIdx.x; i < TILE; i += TILE / 2) {
        const bool is_inside = first + i < p.columns;
        keys[i] = is_inside ? key_of(input[first + i], p.is_descending) : (Key)~(Key)0;
        places[i] = is_inside ? (uint32)(first + i) : ~0u;
    }
    sort_shared(keys, places, TILE);
    for (int i = threadIdx.x; i < TILE && first + i < p.columns; i += TILE / 2) {
        if (tiles == 1) {
            write(p, row, i, places[i]);
        } else {
            reinterpret_cast<Key*>(p.keys)[row * p.columns + first + i] = keys[i];
            p.places[row * p.columns + first + i] = places[i];
        }
    }
}
#else
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    const int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
    if (i >= p.rows * p.columns) return;
    const int64 row = i / p.columns, at = i % p.columns;
#if FORM == FINISH
    write(p, row, at, p.places[i]);
#else
    const Key* keys = reinterpret_cast<const Key*>(p.keys) + row * p.columns;
    const Key own = keys[at];
    const int64 start = at / (2 * p.width) * (2 * p.width);
    const int64 middle = start + p.width < p.columns ? start + p.width : p.columns;
    const int64 end = middle + p.width < p.columns ? middle + p.width : p.columns;
    // Equal elements of the left run come first.
    const bool is_left = at < middle;
    int64 low = is_left ? middle : start, high = is_left ? end : middle;
    while (low < high) {
        const int64 half = low + (high - low) / 2;
        const bool is_before = is_left ? keys[half] < own : keys[half] <= own;
        if (is_before) low = half + 1;
        else high = half;
    }
    const int64 place = row * p.columns + (is_left ? at + low - middle : at - middle + low);
    reinterpret_cast<Key*>(p.next_keys)[place] = own;
    p.next_places[place] = p.places[i];
#endif
}
#endif
