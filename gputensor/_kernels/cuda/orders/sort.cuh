// Stable sort of rows of up to TILE elements: a bitonic network in registers.
//
// A thread holds EACH neighbouring positions. Partners are in the same thread, in the same warp, or
// in another warp, through shared memory. With IS_ORDER, keys travel with their columns, which are
// the result; without it the elements are made again from the keys.
//
// Defined before this text: TILE, a power of two; IS_ORDER; ELEMENT and KEY (keys.cuh).
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/orders/keys.cuh"

#define EACH (TILE >= 256 ? 8 : TILE / 32)
#define THREADS (TILE / EACH)               // of a row
#define ROWS (THREADS == 32 ? 4 : 1)        // of a block, as in sorting.pxi
#define IN_STAGE(position) ((position) + (position) / 32)

typedef SortParameters Parameters;

#if IS_ORDER
struct alignas(16) Pair { uint64 key; uint32 place; };
template <class K> struct ItemOf { typedef Pair type; };
template <> struct ItemOf<uint32> { typedef uint64 type; };
__device__ __forceinline__ bool is_less(uint64 a, uint64 b) { return a < b; }
__device__ __forceinline__ bool is_less(const Pair& a, const Pair& b) {
    return a.key < b.key || (a.key == b.key && a.place < b.place);
}
__device__ __forceinline__ void fill(uint64& item, uint32 key, uint32 place) {
    item = (uint64)key << 32 | place;
}
__device__ __forceinline__ void fill(Pair& item, uint64 key, uint32 place) {
    item.key = key;
    item.place = place;
}
__device__ __forceinline__ uint32 place_of(uint64 item) { return (uint32)item; }
__device__ __forceinline__ uint32 place_of(const Pair& item) { return item.place; }
#else
template <class K> struct ItemOf { typedef K type; };
__device__ __forceinline__ bool is_less(Key a, Key b) { return a < b; }
#endif
typedef ItemOf<Key>::type Item;

__device__ __forceinline__ Item from_lane(const Item& x, int mask) {
    union { Item item; uint32 words[sizeof(Item) / 4]; } u;
    u.item = x;
#pragma unroll
    for (int i = 0; i < (int)sizeof(Item) / 4; ++i)
        u.words[i] = __shfl_xor_sync(0xffffffffu, u.words[i], mask);
    return u.item;
}

// Strides from FROM down, among the elements of one thread. `size` is the length of the runs.
template <int FROM>
__device__ __forceinline__ void merge_inside(Item (&items)[EACH], int size) {
#pragma unroll
    for (int stride = FROM; stride > 0; stride /= 2) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (e & stride) continue;
            const bool is_up = ((threadIdx.x * EACH + e) & size) == 0;
            const Item low = items[e], high = items[e + stride];
            if (is_less(high, low) == is_up) {
                items[e] = high;
                items[e + stride] = low;
            }
        }
    }
}

__device__ __forceinline__ void exchange(Item (&items)[EACH], Item* stage, int size, int mask) {
    const bool is_low = (threadIdx.x & mask) == 0;
    const bool keeps_less = is_low == ((threadIdx.x * EACH & size) == 0);
    if (mask >= 32) {
        __syncthreads();
#pragma unroll
        for (int e = 0; e < EACH; ++e) stage[e * THREADS + threadIdx.x] = items[e];
        __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const Item other = mask >= 32 ? stage[e * THREADS + (threadIdx.x ^ mask)]
                                      : from_lane(items[e], mask);
        if (is_less(other, items[e]) == keeps_less) items[e] = other;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS) kernel(const Parameters p) {
    start_early();
    __shared__ Item stages[ROWS][IN_STAGE(TILE)];
    Item* stage = stages[threadIdx.y];
    const int64 row = (int64)blockIdx.x * ROWS + threadIdx.y;
    const int64 columns = row < p.rows ? p.columns : 0;
    const T* input = reinterpret_cast<const T*>(p.input) + row * p.columns;
    Item items[EACH];
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int column = e * THREADS + threadIdx.x;
        const bool is_inside = column < columns;
#if IS_ORDER
        fill(items[e], is_inside ? key_of(input[column], p.is_descending) : (Key)~(Key)0,
             is_inside ? column : ~0u);
#else
        items[e] = is_inside ? own_key_of(input[column], p.is_descending) : (Key)~(Key)0;
#endif
    }
#pragma unroll
    for (int size = 2; size < EACH; size *= 2) {
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2) {
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                if (e & stride) continue;
                const Item low = items[e], high = items[e + stride];
                if (is_less(high, low) == ((e & size) == 0)) {
                    items[e] = high;
                    items[e + stride] = low;
                }
            }
        }
    }
    merge_inside<EACH / 2>(items, EACH);
    for (int size = 2 * EACH; size <= TILE; size *= 2) {
        for (int mask = size / 2 / EACH; mask > 0; mask /= 2) exchange(items, stage, size, mask);
        merge_inside<EACH / 2>(items, size);
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; ++e) stage[IN_STAGE(threadIdx.x * EACH + e)] = items[e];
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int column = e * THREADS + threadIdx.x;
        if (column >= columns) continue;
        const Item item = stage[IN_STAGE(column)];
#if IS_ORDER
        p.order[row * p.columns + column] = place_of(item);
#else
        reinterpret_cast<T*>(p.values)[row * p.columns + column] =
            element_of(item, p.is_descending);
#endif
    }
}
