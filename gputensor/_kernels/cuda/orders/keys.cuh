// Unsigned integers in the order of the elements: NaN after all others, -0 equal to 0.
//
// Defined before this text: ELEMENT, the type of an element; KEY, uint32 or uint64.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

typedef ELEMENT T;
typedef KEY Key;

// `in_order` keeps neither the bits of a NaN nor the sign of -0.
__device__ __forceinline__ uint32 bits_in_order(uint32 bits) {
    return bits >> 31 ? ~bits : bits | 1u << 31;
}
__device__ __forceinline__ uint64 bits_in_order(uint64 bits) {
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ __forceinline__ uint32 in_order(float x) {
    return x != x ? ~0u : bits_in_order(x == 0.0f ? 0u : __float_as_uint(x));
}
__device__ __forceinline__ uint64 in_order(double x) {
    return x != x ? ~0ull : bits_in_order(x == 0.0 ? 0ull : (uint64)__double_as_longlong(x));
}
__device__ __forceinline__ uint32 in_order(bool x) { return x; }
__device__ __forceinline__ uint32 in_order(uint8 x) { return x; }
__device__ __forceinline__ uint32 in_order(uint16 x) { return x; }
__device__ __forceinline__ uint32 in_order(uint32 x) { return x; }
__device__ __forceinline__ uint64 in_order(uint64 x) { return x; }
__device__ __forceinline__ uint32 in_order(int8 x) { return (uint32)(x + 128); }
__device__ __forceinline__ uint32 in_order(int16 x) { return (uint32)(x + 32768); }
__device__ __forceinline__ uint32 in_order(int32 x) { return (uint32)x ^ 1u << 31; }
__device__ __forceinline__ uint64 in_order(int64 x) { return (uint64)x ^ 1ull << 63; }

__device__ __forceinline__ Key key_of(T x, bool is_descending) {
    const Key key = (Key)in_order(wide(x));
    return is_descending ? (Key)~key : key;
}

// Keys from which the elements can be made again: -0 comes before 0, and all NaN have one key.
__device__ __forceinline__ uint32 own_key(float x) {
    return x != x ? ~0u : bits_in_order(__float_as_uint(x));
}
__device__ __forceinline__ uint64 own_key(double x) {
    return x != x ? ~0ull : bits_in_order((uint64)__double_as_longlong(x));
}
template <class X> __device__ __forceinline__ Key own_key(X x) { return (Key)in_order(x); }
template <class X> struct FromKey {
    static __device__ __forceinline__ X of(Key key) { return (X)key; }
};
template <> struct FromKey<float> {
    static __device__ __forceinline__ float of(uint32 key) {
        return __uint_as_float(key == ~0u ? 0x7fc00000u : key >> 31 ? key & ~(1u << 31) : ~key);
    }
};
template <> struct FromKey<double> {
    static __device__ __forceinline__ double of(uint64 key) {
        const uint64 bits = key >> 63 ? key & ~(1ull << 63) : ~key;
        return __longlong_as_double((long long)(key == ~0ull ? 0x7ff8ull << 48 : bits));
    }
};
template <> struct FromKey<int8> {
    static __device__ __forceinline__ int8 of(Key key) { return (int8)((int32)key - 128); }
};
template <> struct FromKey<int16> {
    static __device__ __forceinline__ int16 of(Key key) { return (int16)((int32)key - 32768); }
};
template <> struct FromKey<int32> {
    static __device__ __forceinline__ int32 of(Key key) { return (int32)(key ^ (Key)1 << 31); }
};
template <> struct FromKey<int64> {
    static __device__ __forceinline__ int64 of(uint64 key) { return (int64)(key ^ 1ull << 63); }
};
template <> struct FromKey<half_t> {
    static __device__ __forceinline__ half_t of(uint32 key) {
        return narrow<half_t>(FromKey<float>::of(key));
    }
};
template <> struct FromKey<bfloat_t> {
    static __device__ __forceinline__ bfloat_t of(uint32 key) {
        return narrow<bfloat_t>(FromKey<float>::of(key));
    }
};

__device__ __forceinline__ Key own_key_of(T x, bool is_descending) {
    const Key key = (Key)own_key(wide(x));
    return is_descending ? (Key)~key : key;
}
__device__ __forceinline__ T element_of(Key key, bool is_descending) {
    return FromKey<T>::of(is_descending ? (Key)~key : key);
}

// Sorts `count` keys and places (a power of two) in shared memory, by key and then place.
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
