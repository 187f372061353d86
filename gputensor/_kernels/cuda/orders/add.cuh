// Adds rows of `source` to the rows of `target` that an index names, along the middle of three
// axes.
//
// Elements that are named several times receive every addend, by atomics: the order of additions is
// not fixed. Indices out of range are skipped.
//
// Defined before this text: ELEMENT; INDEX, the type of an index; IS_GRID, whether there is an
// index for each element of source and not only for its middle axis; VECTOR, the number of
// neighbouring elements that a thread adds; WIDE, an unsigned type for the number of vectors.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/vector.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define THREADS 256

typedef AddParameters Parameters;
typedef ELEMENT T;
typedef INDEX TI;

__device__ __forceinline__ void add(int32* place, int32 x) { atomicAdd(place, x); }
__device__ __forceinline__ void add(uint32* place, uint32 x) { atomicAdd(place, x); }
__device__ __forceinline__ void add(int64* place, int64 x) {
    atomicAdd(reinterpret_cast<uint64*>(place), (uint64)x);
}
__device__ __forceinline__ void add(uint64* place, uint64 x) { atomicAdd(place, x); }
__device__ __forceinline__ void add(float* place, float x) { atomicAdd(place, x); }
__device__ __forceinline__ void add(double* place, double x) { atomicAdd(place, x); }
template <class X> __device__ __forceinline__ void add(complex_t<X>* place, complex_t<X> x) {
    atomicAdd(&place->re, x.re);
    atomicAdd(&place->im, x.im);
}

template <class X, int N>
__device__ __forceinline__ void add_all(X* place, const Vector<X, N>& x) {
#pragma unroll
    for (int v = 0; v < N; ++v) add(place + v, x.item[v]);
}
#if __CUDA_ARCH__ >= 900 && !defined(GPUTENSOR_ON_CPU)
__device__ __forceinline__ void add_all(float* place, const Vector<float, 4>& x) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(place), "f"(x.item[0]),
                 "f"(x.item[1]), "f"(x.item[2]), "f"(x.item[3])
                 : "memory");
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    const WIDE i = (WIDE)blockIdx.x * THREADS + threadIdx.x;
    const WIDE inner = (WIDE)(p.inner / VECTOR), count = (WIDE)p.count;
    if (i >= (WIDE)p.outer * count * inner) return;
    const WIDE line = i / inner, column = i - line * inner;
    const WIDE outer = line / count, row = line - outer * count;
    int64 place = (int64)reinterpret_cast<const TI*>(p.index)[IS_GRID ? i : row];
    if (place < 0) place += p.length;
    if (place < 0 || place >= p.length) return;
    const Vector<T, VECTOR> x = reinterpret_cast<const Vector<T, VECTOR>*>(p.source)[i];
    add_all(reinterpret_cast<T*>(p.target) + ((int64)outer * p.length + place) * p.inner
                + (int64)column * VECTOR,
            x);
}
