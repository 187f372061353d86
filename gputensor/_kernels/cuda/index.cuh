// Gather and scatter, and the fold of several index arrays into one.
//
// Gather and scatter share one index space: that of the `small` side, which is walked element by
// element (gather's output, scatter's values). `whole` has stride 0 along the index axes; the
// index, times `axis_stride`, replaces them. Several index arrays are first folded into one array
// of element offsets (FOLD), which then is the index with an axis stride of 1.
//
// A CUDA kernel cannot raise: gather clamps an index into its axis, scatter skips it. NOWHERE marks
// a skipped element in a folded array.
//
// A thread of a gather has UNITS elements, THREADS apart, whose loads are under way at once.
//
// Defined before this text: FORM, one of the names below; RANK; ELEMENT, a type of an element's
// size; INDEX, the type of the index array; UNITS, 1 for all forms but the gathers.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/divide.cuh"
#include "gputensor/_kernels/cuda/index.h"

#define GATHER 0
#define SCATTER 1
#define FOLD 2
#define FOLDED_GATHER 3
#define FOLDED_SCATTER 4

typedef IndexParameters Parameters;
typedef ELEMENT T;
typedef INDEX TI;

#define NOWHERE (-0x7fffffffffffffffll - 1)
// The element offset of an index along its axis.
__device__ __forceinline__ long long place(long long i, long long size, long long stride,
                                           bool is_strict) {
    if (i < 0) i += size;
    if (i < 0 || i >= size) {
        if (is_strict) return NOWHERE;
        i = i < 0 ? 0 : size - 1;
    }
    return i * stride;
}

const uint32 THREADS = INDEX_ELEMENTS / UNITS;

struct Offsets { int32 small, whole, index; };
__device__ __forceinline__ Offsets offsets_of(const Parameters& p, uint32 position) {
    uint32 rest = position;
    Offsets at = {0, 0, 0};
#pragma unroll
    for (int d = 0; d < RANK; ++d) {
        const uint32 next = d + 1 < RANK ? divide(rest, p.axes[d]) : 0;
        const int32 here = d + 1 < RANK ? (int32)(rest - next * p.axes[d].size) : (int32)rest;
        rest = next;
        at.small += here * p.axes[d].strides[3];
        at.whole += here * p.axes[d].strides[0];
        at.index += here * p.axes[d].strides[1];
    }
    return at;
}
__device__ __forceinline__ long long index_at(const Parameters& p, const Offsets& at) {
    return (long long)reinterpret_cast<const TI*>(p.index)[at.index];
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    const uint32 position = blockIdx.x * INDEX_ELEMENTS + threadIdx.x;
#if FORM == GATHER || FORM == FOLDED_GATHER
    Offsets at[UNITS];
    long long index[UNITS];
    T moved[UNITS];
#pragma unroll
    for (int u = 0; u < UNITS; ++u)
        if (position + u * THREADS < p.count) {
            at[u] = offsets_of(p, position + u * THREADS);
            index[u] = index_at(p, at[u]);
        }
#pragma unroll
    for (int u = 0; u < UNITS; ++u)
        if (position + u * THREADS < p.count) {
#if FORM == GATHER
            index[u] = place(index[u], p.axis_size, p.axis_stride, false);
#endif
            moved[u] = reinterpret_cast<const T*>(p.whole)[at[u].whole + index[u]];
        }
#pragma unroll
    for (int u = 0; u < UNITS; ++u)
        if (position + u * THREADS < p.count)
            reinterpret_cast<T*>(p.small)[at[u].small] = moved[u];
#else
    if (position >= p.count) return;
    const Offsets at = offsets_of(p, position);
    const long long index = index_at(p, at);
#if FORM == SCATTER
    const long long offset = place(index, p.axis_size, p.axis_stride, true);
    if (offset != NOWHERE)
        reinterpret_cast<T*>(p.whole)[at.whole + offset] =
            reinterpret_cast<const T*>(p.small)[at.small];
#elif FORM == FOLD
    long long* folded = reinterpret_cast<long long*>(p.small) + at.small;
    const long long offset = place(index, p.axis_size, p.axis_stride, p.is_strict);
    const long long before = p.is_first ? 0 : *folded;
    *folded = offset == NOWHERE || before == NOWHERE ? NOWHERE : before + offset;
#elif FORM == FOLDED_SCATTER
    if (index != NOWHERE)
        reinterpret_cast<T*>(p.whole)[at.whole + index] =
            reinterpret_cast<const T*>(p.small)[at.small];
#endif
#endif
}
