// Stable sort of long rows: passes over digits of 8 bits, from the lowest to the highest.
//
// COUNTS counts the digits of all passes, STARTS turns the counts into the start of each digit.
// PASS reads the keys once and writes them once: a block of threads takes a tile, ranks its keys,
// gets the counts of each digit in all tiles before it, and writes the tile digit by digit. The
// counts are integers, so a tile may add the counts that it finds until it meets a sum of all tiles
// before. Where all keys of a row have the same digit, as for numbers of a small range, a pass only
// copies them; if that holds for all further passes too, there is nothing left to do, since the
// last pass before them has written the result.
//
// Keys of ELEMENT begin at bit LOW. With IS_ORDER, keys travel with their columns, which are the
// result; without it the elements are made again from the keys.
//
// Defined before this text: FORM, one of the three; THREADS of a block, at least 256, and EACH, the
// keys of a thread; PASSES; LOW; IS_ORDER; IS_FIRST, whether input is elements; STATE, an unsigned
// type for four times the columns; ELEMENT and KEY (keys.cuh).
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/orders/keys.cuh"

#define COUNTS 0
#define STARTS 1
#define PASS 2
#define DIGITS 256
#define WARPS (THREADS / 32)
#define TILE (THREADS * EACH)
#define COUNTED 64                          // tiles of a block of COUNTS, as in sorting.pxi
#define PARTS 4                             // copies of counts, so that fewer lanes collide
#define AHEAD 8                             // tiles whose states are read together
#define BLOCKS 4                            // of a multiprocessor; limits the registers of a thread
#define OWN 1                               // a state: the count of the tile itself
#define SO_FAR 2                            // a state: the count of all tiles up to it

#include "gputensor/_kernels/cuda/orders/prefix.cuh"

typedef RadixParameters Parameters;

struct Sum {
    template <class X> static __device__ __forceinline__ X join(X a, X b) { return a + b; }
    static __device__ __forceinline__ uint32 identity() { return 0; }
};

__device__ __forceinline__ Key made_key(T x, bool is_descending) {
    return IS_ORDER ? key_of(x, is_descending) : own_key_of(x, is_descending);
}
__device__ __forceinline__ uint32 digit_of(Key key, int64 pass) {
    return (uint32)(key >> (LOW + 8 * pass)) & (DIGITS - 1);
}

#if FORM == COUNTS
extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    __shared__ uint32 bins[PASSES * DIGITS * PARTS];
    const int64 parts = (p.tiles + COUNTED - 1) / COUNTED;
    const int64 row = blockIdx.x / parts, first = blockIdx.x % parts * COUNTED * TILE;
    const int64 end = first + COUNTED * TILE < p.columns ? first + COUNTED * TILE : p.columns;
    const T* input = reinterpret_cast<const T*>(p.input) + row * p.columns;
    for (int k = threadIdx.x; k < PASSES * DIGITS * PARTS; k += THREADS) bins[k] = 0;
    __syncthreads();
#pragma unroll 8
    for (int64 i = first + threadIdx.x; i < end; i += THREADS) {
        const Key key = made_key(input[i], p.is_descending);
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass)
            atomicAdd(&bins[(pass * DIGITS + digit_of(key, pass)) * PARTS + threadIdx.x % PARTS],
                      1u);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < PASSES * DIGITS; k += THREADS) {
        uint64 sum = 0;
        for (int part = 0; part < PARTS; ++part) sum += bins[k * PARTS + part];
        if (sum) atomicAdd(&p.counts[row * PASSES * DIGITS + k], sum);
    }
}
#elif FORM == STARTS
struct WideSum : Sum {
    static __device__ __forceinline__ uint64 identity() { return 0; }
};
extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    __shared__ uint64 sums[WARPS];
    uint64* counts = p.counts + (int64)blockIdx.x * DIGITS;
    __shared__ uint32 is_same;
    const bool has_digit = threadIdx.x < DIGITS;
    const uint64 count = has_digit ? counts[threadIdx.x] : 0ull;
    uint64 total;
    if (threadIdx.x == 0) is_same = 0;
    __syncthreads();
    if (count == (uint64)p.columns) is_same = 1;
    const uint64 start = before_thread<WideSum>(count, sums, total);
    // The start of the lowest digit is always 0, so its word says whether all keys have one digit.
    if (has_digit) counts[threadIdx.x] = threadIdx.x ? start : is_same;
}
#else
// The number of keys with this thread's digit in the tiles before this one. The tile has already
// published its own count.
__device__ __forceinline__ uint64 look_back(volatile STATE* states, int64 tile, uint32 own) {
    uint64 before = 0;
    if (tile == 0) return 0;
    // Several states at once, since one read takes as long as several.
    for (int64 other = tile - 1, is_done = 0; !is_done;) {
        STATE found[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) found[k] = other < k ? 0 : states[(other - k) * DIGITS];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            if (!found[k]) break;
            before += found[k] >> 2;
            --other;
            is_done = (found[k] & SO_FAR) != 0;
            if (is_done) break;
        }
    }
    states[tile * DIGITS] = (STATE)(before + own) << 2 | SO_FAR;
    return before;
}

// Whether all keys of a row have the same digit in each pass from one on.
__device__ __forceinline__ bool are_same(const Parameters& p, int64 row, int64 pass) {
    bool found = true;
    if (p.tiles == 1) return pass >= PASSES;        // nothing was counted
#pragma unroll
    for (int k = 0; k < PASSES; ++k)
        if (k >= pass) found &= p.counts[(row * PASSES + k) * DIGITS] != 0;
    return found;
}

__device__ __forceinline__ void write_key(const Parameters& p, int64 to, Key key, bool is_last) {
    if (!is_last)
        reinterpret_cast<Key*>(p.out)[to] = key;
#if !IS_ORDER
    else
        reinterpret_cast<T*>(p.result)[to] = element_of(key, p.is_descending);
#endif
}
__device__ __forceinline__ void write_place(const Parameters& p, int64 to, uint32 place,
                                            bool is_last) {
    if (is_last)
        reinterpret_cast<int64*>(p.result)[to] = place;
    else
        p.next_places[to] = place;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) kernel(const Parameters p) {
    start_early();
    // First the counters of warps; after they have been read, the tile in its new order.
    __shared__ union { uint32 counters[WARPS][DIGITS]; Key keys[TILE]; uint32 places[TILE]; } shared;
    __shared__ uint32 lanes[WARPS][DIGITS];    // lanes of each warp that have a digit
    __shared__ int64 bases[DIGITS];    // column of each digit's first key, less its place here
    __shared__ uint32 sums[WARPS];
    __shared__ uint32 taken;
    const uint32 number = take_number(p.counter, &taken);
    const int64 row = number / p.tiles, tile = number % p.tiles, first = tile * TILE;
    const int count = (int)(p.columns - first < TILE ? p.columns - first : TILE);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int own = warp * 32 * EACH + lane;
    const bool has_digit = threadIdx.x < DIGITS;
    uint32* counters = shared.counters[warp];
    uint32* lanes_of = lanes[warp];
    Key keys[EACH];
    uint32 ranks[EACH];
    const int64 here = row * p.columns + first;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int at = own + 32 * e;
        keys[e] = (Key)~(Key)0;
        if (at < count) {
#if IS_FIRST
            keys[e] = made_key(reinterpret_cast<const T*>(p.input)[here + at], p.is_descending);
#else
            keys[e] = reinterpret_cast<const Key*>(p.input)[here + at];
#endif
        }
    }
    const uint64* starts = p.counts + (row * PASSES + p.pass) * DIGITS;
    const bool is_copy = p.tiles > 1 && starts[0], is_last = are_same(p, row, p.pass + 1);
    if (!IS_FIRST && is_copy && is_last) return;
    if (is_copy) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const int at = own + 32 * e;
            if (at >= count) continue;
            write_key(p, here + at, keys[e], is_last);
#if IS_ORDER
            write_place(p, here + at, IS_FIRST ? (uint32)(first + at) : p.places[here + at],
                        is_last);
#endif
        }
        return;
    }
    for (int k = lane; k < DIGITS; k += 32) counters[k] = lanes_of[k] = 0;
    __syncwarp();
    // Counts come first, since the tiles after this one wait for them alone.
#pragma unroll
    for (int e = 0; e < EACH; ++e) atomicAdd(&counters[digit_of(keys[e], p.pass)], 1u);
    __syncthreads();
    volatile STATE* states = reinterpret_cast<STATE*>(p.words) + row * p.tiles * DIGITS + threadIdx.x;
    uint32 of_digit = 0, total;
    if (has_digit) {
        for (int w = 0; w < WARPS; ++w) {
            const uint32 one = shared.counters[w][threadIdx.x];
            shared.counters[w][threadIdx.x] = of_digit;
            of_digit += one;
        }
        if (p.tiles > 1) states[tile * DIGITS] = (STATE)of_digit << 2 | (tile ? OWN : SO_FAR);
    }
    const uint32 start = before_thread<Sum>(of_digit, sums, total);
    if (has_digit)
        for (int w = 0; w < WARPS; ++w) shared.counters[w][threadIdx.x] += start;
    __syncthreads();
    // Then the rank of each key in the tile: after earlier keys of its digit, and those in lower
    // lanes.
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const uint32 digit = digit_of(keys[e], p.pass);
        atomicOr(&lanes_of[digit], 1u << lane);
        __syncwarp();
        const uint32 peers = lanes_of[digit];
        const uint32 before = __popc(peers & ((1u << lane) - 1)), old = counters[digit];
        __syncwarp();
        if (before == 0) {
            counters[digit] = old + __popc(peers);
            lanes_of[digit] = 0;
        }
        __syncwarp();
        ranks[e] = old + before;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; ++e) shared.keys[ranks[e]] = keys[e];
    if (has_digit) {
        int64 base = 0;
        if (p.tiles > 1) {
            const uint64 before = look_back(states, tile, of_digit);
            base = (int64)((threadIdx.x ? starts[threadIdx.x] : 0) + before) - start;
        }
        bases[threadIdx.x] = base;
    }
    __syncthreads();
#if IS_ORDER
    uint32 to[EACH];    // columns, which fit 32 bits as places do
#endif
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int at = e * THREADS + threadIdx.x;
        const Key key = shared.keys[at];
        const int64 there = bases[digit_of(key, p.pass)] + at;
#if IS_ORDER
        to[e] = (uint32)there;
#endif
        if (at >= count) continue;
        write_key(p, row * p.columns + there, key, is_last);
    }
#if IS_ORDER
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int at = own + 32 * e;
        uint32 place = (uint32)(first + at);
#if !IS_FIRST
        if (at < count) place = p.places[here + at];
#endif
        shared.places[ranks[e]] = place;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int at = e * THREADS + threadIdx.x;
        if (at >= count) continue;
        write_place(p, row * p.columns + to[e], shared.places[at], is_last);
    }
#endif
}
#endif
