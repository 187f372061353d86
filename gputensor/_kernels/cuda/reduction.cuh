// The reductions: one choice of operation, types, layout and vector width each.
//
// Two layouts exist:
//
// row      the input's unit stride is on a reduced axis: threads along x share one output, and a
//              block has blockDim.y outputs
//     column   the unit stride is on a kept axis: threads along x have neighbouring outputs, and
//              threads along y share each of them
//
// A thread accumulates a strided share (shares.cuh), with four loads in flight; a fixed tree of
// shuffles and shared memory combines the shares, so a result never depends on timing. When outputs
// are few, blockIdx.y cuts the reduced range and each part writes its accumulator to a workspace
// (PARTIAL); a second row kernel (FROM_PARTIAL) reduces the parts.
//
// Defined before this text: VECTOR; KEPT and REDUCED, numbers of axes; INDEX, an unsigned type;
// PARTIAL, FROM_PARTIAL, COLUMN; OUTPUT, INPUT and STORED, the types of the result, of an element
// and of its values; ARITHMETIC; the definitions for accumulator.cuh; and PACKED with DESCENDS for
// the arguments of extremes of elements of at most 16 bits.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/math.cuh"
#include "gputensor/_kernels/cuda/reduction.h"
#include "gputensor/_kernels/cuda/vector.cuh"

typedef ReductionParameters Parameters;
typedef OUTPUT TO;
typedef ARITHMETIC C;

#include "gputensor/_kernels/cuda/reduction/accumulator.cuh"
#if PACKED
#include "gputensor/_kernels/cuda/reduction/ordered.cuh"
#endif
#include "gputensor/_kernels/cuda/reduction/shares.cuh"

__device__ __forceinline__ void locate_kept(const Parameters& p, INDEX index,
                                            long long& in, long long& out) {
    in = out = 0;
#pragma unroll
    for (int d = 0; d < KEPT; ++d) {
        const INDEX next = d + 1 < KEPT ? index / (INDEX)p.kept_axes[d].size : 0;
        const long long here = d + 1 < KEPT ? index - next * (INDEX)p.kept_axes[d].size : index;
        in += here * p.kept_axes[d].in_stride;
        out += here * p.kept_axes[d].out_stride;
        index = next;
    }
}
__device__ __forceinline__ long long locate_reduced(const Parameters& p, INDEX index) {
    long long offset = 0;
#pragma unroll
    for (int d = 0; d < REDUCED; ++d) {
        const INDEX next = d + 1 < REDUCED ? index / (INDEX)p.reduced_axes[d].size : 0;
        const long long here =
            d + 1 < REDUCED ? index - next * (INDEX)p.reduced_axes[d].size : index;
        offset += here * p.reduced_axes[d].stride;
        index = next;
    }
    return offset;
}
// Accumulators are whole 32-bit words.
__device__ __forceinline__ A from_lane_below(A x, int distance, int width) {
    union { A value; uint32 words[sizeof(A) / 4]; } u = {x};
#pragma unroll
    for (int i = 0; i < sizeof(A) / 4; ++i)
        u.words[i] = __shfl_down_sync(0xffffffffu, u.words[i], distance, width);
    return u.value;
}
__device__ __forceinline__ void write(const Parameters& p, long long kept, long long offset, A x) {
#if PARTIAL
    reinterpret_cast<A*>(p.partial)[kept * p.parts + blockIdx.y] = x;
#else
    reinterpret_cast<TO*>(p.out)[offset] = finish(x, (double)p.reduced);
#endif
}

#if COLUMN
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    __shared__ A shared[256 * VECTOR];
    const INDEX column = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX step = blockDim.y;
    const int slot = threadIdx.y * blockDim.x + threadIdx.x;
    long long in_offset = 0, out_offset = 0;
    const INDEX begin = (INDEX)blockIdx.y * (INDEX)p.chunk;
    const INDEX limit = begin + (INDEX)p.chunk;
    const INDEX end = limit < (INDEX)p.units ? limit : (INDEX)p.units;
    INDEX unit = begin + threadIdx.y;
    const bool has_any = column < (INDEX)p.kept && unit < end;
    Shares shares;
    shares.begin(unit);
    if (column < (INDEX)p.kept) {
        locate_kept(p, column * VECTOR, in_offset, out_offset);
        const T* in = reinterpret_cast<const T*>(p.input) + in_offset;
        for (; unit < end && end - unit > 3 * step; unit += 4 * step) {
            Unit x[4];
#pragma unroll
            for (int u = 0; u < 4; ++u)
                x[u] = *reinterpret_cast<const Unit*>(
                    in + locate_reduced(p, unit + u * step));
            shares.add(x, unit, step);
        }
        for (; unit < end; unit += step) {
            const Unit x[1] = {*reinterpret_cast<const Unit*>(
                in + locate_reduced(p, unit))};
            shares.add(x, unit, step);
        }
    }
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
        shared[v * 256 + slot] = Shares::IS_WHOLE || has_any ? shares.of(v, step) : identity();
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                shared[v * 256 + slot] =
                    combine(shared[v * 256 + slot], shared[v * 256 + slot + half * blockDim.x]);
    }
    if (threadIdx.y == 0 && column < (INDEX)p.kept)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            write(p, (long long)column * VECTOR + v, out_offset + v * p.kept_axes[0].out_stride,
                  shared[v * 256 + slot]);
}
#else
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    __shared__ A shared[256 / 32];
    const INDEX row = (INDEX)blockIdx.x * blockDim.y + threadIdx.y;
    const INDEX step = blockDim.x;
    long long in_offset = 0, out_offset = 0;
    const INDEX begin = (INDEX)blockIdx.y * (INDEX)p.chunk;
    const INDEX limit = begin + (INDEX)p.chunk;
    const INDEX end = limit < (INDEX)p.units ? limit : (INDEX)p.units;
    INDEX unit = begin + threadIdx.x;
    const bool is_kept = row < (INDEX)p.kept, has_any = is_kept && unit < end;
    if (is_kept) locate_kept(p, row, in_offset, out_offset);
    const T* in = reinterpret_cast<const T*>(p.input) + in_offset;
    Shares shares;
    shares.begin(unit);
    if (is_kept) {
        for (; unit < end && end - unit > 3 * step; unit += 4 * step) {
            Unit x[4];
#pragma unroll
            for (int u = 0; u < 4; ++u)
                x[u] = *reinterpret_cast<const Unit*>(
                    in + locate_reduced(p, (unit + u * step) * VECTOR));
            shares.add(x, unit, step);
        }
        for (; unit < end; unit += step) {
            const Unit x[1] = {*reinterpret_cast<const Unit*>(
                in + locate_reduced(p, unit * VECTOR))};
            shares.add(x, unit, step);
        }
    }
    A total = Shares::IS_WHOLE || has_any ? shares.total(step) : identity();
    // The elements after the last whole vector.
    if (VECTOR > 1 && is_kept && blockIdx.y == gridDim.y - 1)
        for (INDEX e = (INDEX)p.units * VECTOR + threadIdx.x; e < (INDEX)p.reduced; e += step)
            total = with(total, in[locate_reduced(p, e)], e);
    const int width = blockDim.x < 32 ? blockDim.x : 32;
    for (int distance = width / 2; distance > 0; distance /= 2)
        total = combine(total, from_lane_below(total, distance, width));
    if (blockDim.x > 32) {
        // Lane 0 of every warp holds the warp's share; the first thread of a row combines them.
        const int warp = (threadIdx.y * blockDim.x + threadIdx.x) / 32;
        if (threadIdx.x % 32 == 0) shared[warp] = total;
        __syncthreads();
        if (threadIdx.x == 0)
            for (int w = 1; w < blockDim.x / 32; ++w) total = combine(total, shared[warp + w]);
    }
    if (threadIdx.x == 0 && row < (INDEX)p.kept) write(p, row, out_offset, total);
}
#endif
