// Which of the integers from the least one on are among the elements: a bit for each of them.
//
// With IS_SHARED, each block of threads sets bits in its shared memory and joins them to the others
// at the end, from another place on in each block; otherwise in memory at once. A bit that is already
// set is only read, because an atomic operation takes longer. Elements beyond the bits are skipped.
//
// Defined before this text: ELEMENT, an integer type; IS_SHARED.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/vector.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define THREADS 1024        // as in choosing.pxi
#define LOADS 4

typedef SeenParameters Parameters;
typedef ELEMENT T;
typedef UnitOf<T, 16 / sizeof(T)> Units;

template <int B> struct Distance { typedef uint32 type; };
template <> struct Distance<8> { typedef uint64 type; };
typedef Distance<sizeof(T)>::type D;        // modulo 2^32 or 2^64, so above all bits if negative

// The first cache may hold a word in memory from before its bits were set.
__device__ __forceinline__ uint32 word_of(const uint32* word) {
    return *(const volatile uint32*)word;
}
__device__ __forceinline__ void see(uint32* bits, T x, D least, uint64 count) {
    const D place = (D)x - least;
    if ((uint64)place >= count) return;
    const uint32 bit = 1u << (uint32)(place % 32);
    if (!(word_of(bits + place / 32) & bit)) atomicOr(bits + place / 32, bit);
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
#if IS_SHARED
    extern __shared__ uint32 seen[];
    for (int64 k = threadIdx.x; k < p.words; k += THREADS) seen[k] = 0;
    __syncthreads();
#else
    uint32* seen = p.bits;
#endif
    const T* input = reinterpret_cast<const T*>(p.input);
    const D least = (D)*reinterpret_cast<const T*>(p.least);
    const uint64 count = (uint64)p.words * 32;
    const int each = 16 / sizeof(T);
    const int64 step = (int64)gridDim.x * THREADS, first = (int64)blockIdx.x * THREADS + threadIdx.x;
    const int64 units = (uint64)input % 16 == 0 ? p.count / each : 0;
    for (int64 unit = first; unit < units; unit += LOADS * step) {
        Units::Type x[LOADS];
#pragma unroll
        for (int u = 0; u < LOADS; ++u)
            if (unit + u * step < units)
                x[u] = reinterpret_cast<const Units::Type*>(input)[unit + u * step];
#pragma unroll
        for (int u = 0; u < LOADS; ++u) {
            if (unit + u * step >= units) break;
#pragma unroll
            for (int v = 0; v < each; ++v) see(seen, Units::item(x[u], v), least, count);
        }
    }
    for (int64 i = units * each + first; i < p.count; i += step) see(seen, input[i], least, count);
#if IS_SHARED
    __syncthreads();
    const int64 begin = (int64)blockIdx.x * p.words / gridDim.x;
    for (int64 k = threadIdx.x; k < p.words; k += THREADS) {
        const int64 at = begin + k < p.words ? begin + k : begin + k - p.words;
        if (seen[at] & ~word_of(p.bits + at)) atomicOr(p.bits + at, seen[at]);
    }
#endif
}
