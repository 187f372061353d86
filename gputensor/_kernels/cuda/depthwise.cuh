// Convolution where each channel is by itself and channels are neighbours in memory.
//
// A thread has VECTOR neighbouring channels, 16 bytes, of PIXELS neighbouring results. It
// reads each element of x that their windows share once, and the weights of its channels, which lie
// one channel after the other, as whole pieces of 16 bytes. Beyond x there are zeros.
//
// Defined before this text: ELEMENT and ARITHMETIC; ACTIVATION, an expression of `a`; VECTOR and
// PIXELS; HEIGHT and WIDTH of the kernel, STRIDE_Y, STRIDE_X, DILATION_Y, DILATION_X; INDEX, an
// unsigned type. Of the parameters, `blocks` are those along the width, and `multiplier` is 1.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/math.cuh"
#include "gputensor/_kernels/cuda/vector.cuh"
#include "gputensor/_kernels/cuda/window.h"

typedef WindowParameters Parameters;
typedef ELEMENT E;
typedef ARITHMETIC C;
typedef Vector<E, VECTOR> Elements;
const int TAPS = HEIGHT * WIDTH;
const int COLUMNS = (PIXELS - 1) * STRIDE_X + (WIDTH - 1) * DILATION_X + 1;

__device__ __forceinline__ void finish(const Parameters& p, C* sum, int64 batch, int channel, int y,
                                       int x) {
    const int64 added = batch * p.addend.batch + channel * p.addend.channel
        + y * p.addend.axes[1] + x * p.addend.axes[2];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        C a = sum[v];
        if (p.bias) a += wide(reinterpret_cast<const E*>(p.bias)[(channel + v) * p.bias_stride]);
        if (p.addend.ptr)
            a += wide(reinterpret_cast<const E*>(p.addend.ptr)[added + v * p.addend.channel]);
        sum[v] = ACTIVATION;
    }
    Elements result;
    C (&values)[VECTOR] = *reinterpret_cast<C (*)[VECTOR]>(sum);
    narrow_all(result, values);
    *reinterpret_cast<Elements*>(reinterpret_cast<E*>(p.out.ptr) + batch * p.out.batch + channel
                                 + y * p.out.axes[1] + x * p.out.axes[2]) = result;
}

extern "C" __global__ void __launch_bounds__(128) kernel(const Parameters p) {
    INDEX rest = (INDEX)blockIdx.x * 128 + threadIdx.x;
    if (rest >= p.units) return;
    const int channel = (int)(rest % p.channels) * VECTOR;
    rest /= p.channels;
    const int right = (int)(rest % p.blocks) * PIXELS;
    rest /= p.blocks;
    const int down = (int)(rest % p.axes[1].out);
    const int64 batch = rest / p.axes[1].out;

    Elements weights[TAPS];         // of the channels, one after the other
    const Elements* from = reinterpret_cast<const Elements*>(
        reinterpret_cast<const E*>(p.weight.ptr) + channel * TAPS);
#pragma unroll
    for (int i = 0; i < TAPS; ++i) weights[i] = from[i];

    C sums[PIXELS][VECTOR];
#pragma unroll
    for (int j = 0; j < PIXELS; ++j)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sums[j][v] = 0;
    const int top = down * STRIDE_Y - p.axes[1].padding;
    const int left = right * STRIDE_X - p.axes[2].padding;
    const E* x = reinterpret_cast<const E*>(p.x.ptr) + batch * p.x.batch + channel
        + top * p.x.axes[1] + left * p.x.axes[2];
#pragma unroll
    for (int k1 = 0; k1 < HEIGHT; ++k1) {
        const int line = k1 * DILATION_Y;
        const bool has_line = (uint32)(top + line) < (uint32)p.axes[1].x;
        Elements columns[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) columns[c].item[v] = E();
            if (has_line && (uint32)(left + c) < (uint32)p.axes[2].x)
                columns[c] = *reinterpret_cast<const Elements*>(
                    x + line * p.x.axes[1] + c * p.x.axes[2]);
        }
        C factors[WIDTH][VECTOR];
#pragma unroll
        for (int k2 = 0; k2 < WIDTH; ++k2)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) {
                const int at = v * TAPS + k1 * WIDTH + k2;
                factors[k2][v] = wide(weights[at / VECTOR].item[at % VECTOR]);
            }
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) {
                const C value = wide(columns[c].item[v]);
#pragma unroll
                for (int j = 0; j < PIXELS; ++j)
#pragma unroll
                    for (int k2 = 0; k2 < WIDTH; ++k2)
                        if (j * STRIDE_X + k2 * DILATION_X == c)
                            sums[j][v] += value * factors[k2][v];
            }
    }
#pragma unroll
    for (int j = 0; j < PIXELS; ++j)
        if (right + j < p.axes[2].out) finish(p, sums[j], batch, channel, down, right + j);
}
