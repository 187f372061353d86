// Unsigned integers in the order of the elements: NaN behind all others, -0 beside 0.
//
// Defined before this text: ELEMENT, the type of an element; KEY, uint32 or uint64.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

typedef ELEMENT T;
typedef KEY Key;

__device__ __forceinline__ uint32 in_order(float x) {
    const uint32 bits = x == 0.0f ? 0 : __float_as_uint(x);
    return x != x ? ~0u : bits >> 31 ? ~bits : bits | 1u << 31;
}
__device__ __forceinline__ uint64 in_order(double x) {
    const uint64 bits = x == 0.0 ? 0 : (uint64)__double_as_longlong(x);
    return x != x ? ~0ull : bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ __forceinline__ uint32 in_order(bool x) { return x; }
__device__ __forceinline__ uint32 in_order(uint8 x) { return x; }
__device__ __forceinline__ uint32 in_order(uint16 x) { return x; }
__device__ __forceinline__ uint32 in_order(uint32 x) { return x; }
__device__ __forceinline__ uint64 in_order(uint64 x) { return x; }
__device__ __forceinline__ uint32 in_order(int8 x) { return (uint32)(int32)x ^ 1u << 31; }
__device__ __forceinline__ uint32 in_order(int16 x) { return (uint32)(int32)x ^ 1u << 31; }
__device__ __forceinline__ uint32 in_order(int32 x) { return (uint32)x ^ 1u << 31; }
__device__ __forceinline__ uint64 in_order(int64 x) { return (uint64)x ^ 1ull << 63; }

__device__ __forceinline__ Key key_of(T x, bool is_descending) {
    const Key key = (Key)in_order(wide(x));
    return is_descending ? (Key)~key : key;
}

// Sorts `count` keys and places in shared memory, a power of two, by key and then place.
__device__ __forceinline__ void sort_shared(Key* keys, uint32* places, int count) {
    for (int size = 2; size <= count; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int t = threadIdx.x; t < count / 2; t += blockDim.x) {
                const int i = 2 * t - (t & (stride - 1)), j = i + stride;
                const bool is_after =
                    keys[i] > keys[j] || (keys[i] == keys[j] && places[i] > places[j]);
                if (is_after == ((i & size) == 0)) {
                    const Key key = keys[i];
                    keys[i] = keys[j];
                    keys[j] = key;
                    const uint32 place = places[i];
                    places[i] = places[j];
                    places[j] = place;
                }
            }
        }
    }
    __syncthreads();
}
