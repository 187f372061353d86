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
// Defined before this text: FORM, one of the names below; RANK; ELEMENT, a type of an element's
// size; INDEX, the type of the index array.
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
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    const uint32 position = blockIdx.x * 256 + threadIdx.x;
    if (position >= p.count) return;
    uint32 rest = position;
    int32 small_offset = 0, whole_offset = 0, index_offset = 0;
#pragma unroll
    for (int d = 0; d < RANK; ++d) {
        const uint32 next = d + 1 < RANK ? divide(rest, p.axes[d]) : 0;
        const int32 here = d + 1 < RANK ? (int32)(rest - next * p.axes[d].size) : (int32)rest;
        rest = next;
        small_offset += here * p.axes[d].strides[3];
        whole_offset += here * p.axes[d].strides[0];
        index_offset += here * p.axes[d].strides[1];
    }
    const long long index = (long long)reinterpret_cast<const TI*>(p.index)[index_offset];
#if FORM == GATHER
    reinterpret_cast<T*>(p.small)[small_offset] = reinterpret_cast<const T*>(p.whole)[
        whole_offset + place(index, p.axis_size, p.axis_stride, false)];
#elif FORM == SCATTER
    const long long offset = place(index, p.axis_size, p.axis_stride, true);
    if (offset != NOWHERE)
        reinterpret_cast<T*>(p.whole)[whole_offset + offset] =
            reinterpret_cast<const T*>(p.small)[small_offset];
#elif FORM == FOLD
    long long* folded = reinterpret_cast<long long*>(p.small) + small_offset;
    const long long offset = place(index, p.axis_size, p.axis_stride, p.is_strict);
    const long long before = p.is_first ? 0 : *folded;
    *folded = offset == NOWHERE || before == NOWHERE ? NOWHERE : before + offset;
#elif FORM == FOLDED_GATHER
    reinterpret_cast<T*>(p.small)[small_offset] =
        reinterpret_cast<const T*>(p.whole)[whole_offset + index];
#elif FORM == FOLDED_SCATTER
    if (index != NOWHERE)
        reinterpret_cast<T*>(p.whole)[whole_offset + index] =
            reinterpret_cast<const T*>(p.small)[small_offset];
#endif
}
