// The first k elements of each row in sorted order, without a sort of the row: one block of threads
// for each row.
//
// The digits (of DIGIT bits) of the k-th key are found from the highest to the lowest, by counting
// the elements whose higher digits are equal to those found. If more elements than needed have that
// key, the same search continues with their places. The selected elements are then sorted.
//
// Defined before this text: SLOTS, a power of two that is k or more; KEY_BITS; ELEMENT and KEY
// (keys.cuh).
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/orders/keys.cuh"

#define DIGIT 11
#define THREADS 512

typedef SortParameters Parameters;

struct Search {
    Key key;                // the digits found so far
    uint32 place;
    uint32 wanted, found;   // elements to select among those with these digits; their number
    uint32 used;
};

// Finds the digit at which the sum of the counts reaches the wanted number.
__device__ __forceinline__ void find_digit(const uint32* bins, uint32* sums, Search& search,
                                           uint32& digit) {
    const int each = (1 << DIGIT) / THREADS, first = threadIdx.x * each;
    uint32 own = 0;
    for (int k = 0; k < each; ++k) own += bins[first + k];
    sums[threadIdx.x] = own;
    for (int distance = 1; distance < THREADS; distance *= 2) {
        __syncthreads();
        const uint32 before = (int)threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
    }
    uint32 below = sums[threadIdx.x] - own;
    const uint32 wanted = search.wanted;
    __syncthreads();
    if (below < wanted && wanted <= below + own) {
        for (int k = 0; k < each; ++k) {
            if (wanted <= below + bins[first + k]) {
                digit = first + k;
                search.wanted = wanted - below;
                search.found = bins[first + k];
                break;
            }
            below += bins[first + k];
        }
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    __shared__ uint32 bins[1 << DIGIT];
    __shared__ uint32 sums[THREADS];
    __shared__ Search search;
    __shared__ uint32 digit;
    __shared__ Key keys[SLOTS];
    __shared__ uint32 places[SLOTS];
    const int64 row = blockIdx.x;
    const T* input = reinterpret_cast<const T*>(p.input) + row * p.columns;
    const bool is_descending = p.is_descending;
    if (threadIdx.x == 0) {
        search.key = 0;
        search.place = 0;
        search.wanted = (uint32)p.width;
        search.found = (uint32)p.columns;
        search.used = 0;
    }
    int shift = KEY_BITS, place_shift = 32;
    __syncthreads();
    while (search.found != search.wanted && place_shift > 0) {
        const bool is_key = shift > 0;
        const int from = is_key ? shift : place_shift, bits = from < DIGIT ? from : DIGIT;
        const int to = from - bits;
        for (int k = threadIdx.x; k < 1 << DIGIT; k += THREADS) bins[k] = 0;
        const Key known = search.key;
        const uint32 known_place = search.place;
        __syncthreads();
        for (int64 i = threadIdx.x; i < p.columns; i += THREADS) {
            const Key key = key_of(input[i], is_descending);
            if (is_key) {
                if (from == KEY_BITS || key >> from == known)
                    atomicAdd(&bins[(uint32)(key >> to) & ((1u << bits) - 1)], 1u);
            } else if (key == known && (from == 32 || (uint32)i >> from == known_place)) {
                atomicAdd(&bins[(uint32)i >> to & ((1u << bits) - 1)], 1u);
            }
        }
        __syncthreads();
        find_digit(bins, sums, search, digit);
        if (threadIdx.x == 0) {
            if (is_key) search.key = (Key)(known << (bits % KEY_BITS)) | digit;
            else search.place = (uint32)(known_place << bits) | digit;
        }
        if (is_key) shift = to;
        else place_shift = to;
        __syncthreads();
    }
    for (int k = threadIdx.x; k < SLOTS; k += THREADS) {
        keys[k] = (Key)~(Key)0;
        places[k] = ~0u;
    }
    const Key last = search.key;
    const uint32 last_place = search.place;
    __syncthreads();
    for (int64 i = threadIdx.x; i < p.columns; i += THREADS) {
        const Key key = key_of(input[i], is_descending);
        const Key high = shift == KEY_BITS ? 0 : key >> shift;
        const uint32 place = place_shift == 32 ? 0 : (uint32)i >> place_shift;
        if (high < last || (high == last && place <= last_place)) {
            const uint32 slot = atomicAdd(&search.used, 1u);
            keys[slot] = key;
            places[slot] = (uint32)i;
        }
    }
    sort_shared(keys, places, SLOTS);
    for (int64 k = threadIdx.x; k < p.width; k += THREADS) {
        if (p.values) reinterpret_cast<T*>(p.values)[row * p.width + k] = input[places[k]];
        p.order[row * p.width + k] = places[k];
    }
}
