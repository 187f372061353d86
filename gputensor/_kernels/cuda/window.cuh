// Folds over windows: pooling, and depthwise convolution.
//
// A thread has VECTOR neighbouring channels (CHANNELS_LAST) or one, and PIXELS neighbours along the
// width. With PIXELS above 1 it reads each column of x that its windows share once, so the width's
// kernel, stride and dilation are constants.
//
// Defined before this text: ELEMENT and ARITHMETIC, the type of elements and that of the
// computation; POOLING: 0 the largest, 1 the sum, 2 the mean, 3 the mean with padding, 4 the
// weighted sum with ACTIVATION, an expression of `a`; LOWEST; CHANNELS_LAST, VECTOR, PIXELS;
// KERNEL, STRIDE and DILATION along the width; INDEX, an unsigned type.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/math.cuh"
#include "gputensor/_kernels/cuda/vector.cuh"
#include "gputensor/_kernels/cuda/window.h"

typedef WindowParameters Parameters;
typedef ELEMENT E;
typedef ARITHMETIC C;
typedef Vector<E, VECTOR> Elements;
const bool IS_WEIGHTED = POOLING == 4;
const int COLUMNS = (PIXELS - 1) * STRIDE + (KERNEL - 1) * DILATION + 1;

__device__ __forceinline__ void fold(C& sum, C x) {
#if POOLING == 0
    sum = larger<C>(sum, x);
#else
    sum = sum + x;
#endif
}
// The first element of a window, and the number of its elements, including those outside x.
__device__ __forceinline__ int first_of(const WindowAxis& axis, int place) {
    return axis.kernel ? place * axis.stride - axis.padding
                       : (int)((int64)place * axis.x / axis.out);
}
__device__ __forceinline__ int taps_of(const WindowAxis& axis, int place, int first) {
    return axis.kernel ? axis.kernel
                       : (int)(((int64)(place + 1) * axis.x + axis.out - 1) / axis.out) - first;
}
// The number of a window's elements that count for a mean.
__device__ __forceinline__ int counted(const WindowAxis& axis, int first, int taps) {
    const int end = axis.x + (POOLING == 3 ? axis.ends : 0);
    int found = 0;
    for (int k = 0; k < taps; ++k) {
        const int at = first + k * axis.dilation;
        found += at < end && (POOLING == 3 || at >= 0);
    }
    return found;
}
__device__ __forceinline__ void finish(const Parameters& p, C* sum, int64 batch, int channel,
                                       const int* place, C count) {
    int64 to = batch * p.out.batch + channel * p.out.channel, added = 0;
    if (IS_WEIGHTED) added = batch * p.addend.batch + channel * p.addend.channel;
#pragma unroll
    for (int d = 0; d < 3; ++d) {
        to += place[d] * p.out.axes[d];
        if (IS_WEIGHTED) added += place[d] * p.addend.axes[d];
    }
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        C a = sum[v];
#if POOLING == 2 || POOLING == 3
        a = a / count;
#elif POOLING == 4
        if (p.bias) a += wide(reinterpret_cast<const E*>(p.bias)[(channel + v) * p.bias_stride]);
        if (p.addend.ptr)
            a += wide(reinterpret_cast<const E*>(p.addend.ptr)[added + v * p.addend.channel]);
        a = ACTIVATION;
#endif
        sum[v] = a;
    }
    Elements result;
    C (&values)[VECTOR] = *reinterpret_cast<C (*)[VECTOR]>(sum);
    narrow_all(result, values);
    *reinterpret_cast<Elements*>(reinterpret_cast<E*>(p.out.ptr) + to) = result;
}

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    INDEX rest = (INDEX)blockIdx.x * 256 + threadIdx.x;
    if (rest >= p.units) return;
    int channel, place[3];
#if CHANNELS_LAST
    channel = (int)(rest % p.channels) * VECTOR;
    rest /= p.channels;
#endif
    place[2] = (int)(rest % p.blocks) * PIXELS;
    rest /= p.blocks;
    place[1] = (int)(rest % p.axes[1].out);
    rest /= p.axes[1].out;
    place[0] = (int)(rest % p.axes[0].out);
    rest /= p.axes[0].out;
#if !CHANNELS_LAST
    channel = (int)(rest % p.channels);
    rest /= p.channels;
#endif
    const int64 batch = rest;
    const int source = IS_WEIGHTED && VECTOR == 1 ? channel / p.multiplier : channel;
    const E* x = reinterpret_cast<const E*>(p.x.ptr) + batch * p.x.batch + source * p.x.channel;
    const E* weight = reinterpret_cast<const E*>(p.weight.ptr) + channel * p.weight.channel;
    C sums[PIXELS][VECTOR];
#pragma unroll
    for (int i = 0; i < PIXELS; ++i)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sums[i][v] = POOLING == 0 ? (C)LOWEST : (C)0;

    int first[3], taps[3];
#pragma unroll
    for (int d = 0; d < 3; ++d) {
        first[d] = first_of(p.axes[d], place[d]);
        taps[d] = taps_of(p.axes[d], place[d], first[d]);
    }
    for (int k0 = 0; k0 < taps[0]; ++k0) {
        const int at0 = first[0] + k0 * p.axes[0].dilation;
        if (at0 < 0 || at0 >= p.axes[0].x) continue;
        for (int k1 = 0; k1 < taps[1]; ++k1) {
            const int at1 = first[1] + k1 * p.axes[1].dilation;
            if (at1 < 0 || at1 >= p.axes[1].x) continue;
            const E* row = x + at0 * p.x.axes[0] + at1 * p.x.axes[1];
            const E* factors = weight + k0 * p.weight.axes[0] + k1 * p.weight.axes[1];
#if PIXELS > 1
            Elements columns[COLUMNS];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                const int at2 = first[2] + c;
                if (at2 >= 0 && at2 < p.axes[2].x)
                    columns[c] = *reinterpret_cast<const Elements*>(row + at2 * p.x.axes[2]);
            }
            C factor[KERNEL][VECTOR];
            if (IS_WEIGHTED) {
#pragma unroll
                for (int k = 0; k < KERNEL; ++k)
#pragma unroll
                    for (int v = 0; v < VECTOR; ++v)
                        factor[k][v] = wide(factors[k * p.weight.axes[2]
                                                    + v * p.weight.channel]);
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                const int at2 = first[2] + c;
                if (at2 < 0 || at2 >= p.axes[2].x) continue;
#pragma unroll
                for (int i = 0; i < PIXELS; ++i)
#pragma unroll
                    for (int k = 0; k < KERNEL; ++k)
                        if (i * STRIDE + k * DILATION == c)
#pragma unroll
                            for (int v = 0; v < VECTOR; ++v) {
                                const C value = wide(columns[c].item[v]);
                                fold(sums[i][v], IS_WEIGHTED ? value * factor[k][v] : value);
                            }
            }
#else
            for (int k2 = 0; k2 < taps[2]; ++k2) {
                const int at2 = first[2] + k2 * p.axes[2].dilation;
                if (at2 < 0 || at2 >= p.axes[2].x) continue;
                const Elements found =
                    *reinterpret_cast<const Elements*>(row + at2 * p.x.axes[2]);
#pragma unroll
                for (int v = 0; v < VECTOR; ++v) {
                    C value = wide(found.item[v]);
                    if (IS_WEIGHTED)
                        value = value * wide(factors[k2 * p.weight.axes[2]
                                                     + v * p.weight.channel]);
                    fold(sums[0][v], value);
                }
            }
#endif
        }
    }
    C whole = 1;
#if POOLING == 2 || POOLING == 3
    whole = (C)((int64)counted(p.axes[0], first[0], taps[0])
                * counted(p.axes[1], first[1], taps[1]));
#endif
#pragma unroll
    for (int i = 0; i < PIXELS; ++i) {
        if (PIXELS > 1 && place[2] >= p.axes[2].out) break;
        C count = whole;
#if POOLING == 2 || POOLING == 3
        count = whole * (C)counted(p.axes[2], first[2], taps[2]);
        first[2] += p.axes[2].stride;
#endif
        finish(p, sums[i], batch, channel, place, count);
        ++place[2];
    }
}
