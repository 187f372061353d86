// Depthwise convolution of x whose channels are neighbours in memory.
//
// For many results: DEPTH lines are in flight at a time, and each thread reads the weights of its
// channels, which lie one channel after the other, as whole pieces. Elements beyond x are zeros.
//
// Defined before this text: ELEMENT and ARITHMETIC; ACTIVATION, an expression of `a`; VECTOR, PIXELS,
// ROWS, DEPTH; ADDEND, whether there is one; HEIGHT and WIDTH of the kernel, STRIDE_Y, STRIDE_X,
// DILATION_Y, DILATION_X; INDEX, an unsigned type. In the parameters, `blocks` is the number of
// PIXELS along the width, and `lanes` divide the channels, in VECTORs, into chunks whose threads
// are neighbours.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/depthwise/depthwise_sums.cuh"

// Rounds and writes the results of a pixel.
__device__ __forceinline__ void finish(const Parameters& p, const C* sum, E* out, int64 batch,
                                       int channel, int y, int x) {
    C value[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        C a = sum[v];
#if ADDEND
        a += wide(reinterpret_cast<const E*>(p.addend.ptr)[
            batch * p.addend.batch + (channel + v) * p.addend.channel + y * p.addend.axes[1]
            + x * p.addend.axes[2]]);
#endif
        value[v] = ACTIVATION;
    }
    Elements result;
    narrow_all(result, value);
    *reinterpret_cast<Elements*>(out) = result;
}

// Loads the part of a line that a thread's windows use: `x` is its first pixel, and the next pixel
// is `step` elements further.
__device__ __forceinline__ void load_line(const E* x, int step, uint32 left, uint32 width,
                                          Piece* columns) {
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) columns[c].word[i] = 0;
        if (left + c < width) columns[c] = *reinterpret_cast<const Piece*>(x + c * step);
    }
}

extern "C" __global__ void __launch_bounds__(128) kernel(const Parameters p) {
    start_early();
    INDEX rest = (INDEX)blockIdx.x * 128 + threadIdx.x;
    if (rest >= p.units) return;
    const uint32 lane = (uint32)(rest % p.lanes);
    rest /= p.lanes;
    const int right = (int)(rest % p.blocks) * PIXELS;
    rest /= p.blocks;
    const uint32 strips = (p.axes[1].out + ROWS - 1) / ROWS, chunks = p.channels / p.lanes;
    const int down = (int)(rest % strips) * ROWS;
    rest /= strips;
    const int channel = (int)(rest % chunks * p.lanes + lane) * VECTOR;
    const int64 batch = rest / chunks;

    const int top = down * STRIDE_Y - p.axes[1].padding;
    const int left = right * STRIDE_X - p.axes[2].padding;
    const int step = (int)p.x.axes[2], out_step = (int)p.out.axes[2];
    const uint32 height = p.axes[1].x, width = p.axes[2].x;
    const E* x = reinterpret_cast<const E*>(p.x.ptr) + batch * p.x.batch + channel
        + top * p.x.axes[1] + left * p.x.axes[2];
    E* out = reinterpret_cast<E*>(p.out.ptr) + batch * p.out.batch + channel
        + down * p.out.axes[1] + right * p.out.axes[2];
    Piece columns[DEPTH][COLUMNS];
#pragma unroll
    for (int line = 0; line < DEPTH - 1 && line < LINES; ++line, x += p.x.axes[1])
        load_line(x, step, left, (uint32)(top + line) < height ? width : 0, columns[line]);

    C factors[TAPS][VECTOR], bias[VECTOR];
    Elements weights[TAPS];         // of the channels, one after the other
    const Elements* from = reinterpret_cast<const Elements*>(
        reinterpret_cast<const E*>(p.weight.ptr) + channel * TAPS);
#pragma unroll
    for (int i = 0; i < TAPS; ++i) weights[i] = from[i];
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
        C some[VECTOR];
        widen_all(some, weights[i]);
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            factors[(i * VECTOR + v) % TAPS][(i * VECTOR + v) / TAPS] = some[v];
    }
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        bias[v] = 0;
        if (p.bias)
            bias[v] = wide(reinterpret_cast<const E*>(p.bias)[(channel + v) * p.bias_stride]);
    }

    C sums[ROWS][PIXELS][VECTOR];
#pragma unroll
    for (int line = 0; line < LINES; ++line) {
        const int next = line + DEPTH - 1;
        if (next < LINES) {
            load_line(x, step, left, (uint32)(top + next) < height ? width : 0,
                      columns[next % DEPTH]);
            x += p.x.axes[1];
        }
        add_line(sums, columns[line % DEPTH], factors, bias, line);
        const int whole = line - (HEIGHT - 1) * DILATION_Y, row = whole / STRIDE_Y;
        if (whole < 0 || whole % STRIDE_Y) continue;
        if (down + row < p.axes[1].out) {
#pragma unroll
            for (int j = 0; j < PIXELS; ++j)
                if (right + j < p.axes[2].out)
                    finish(p, sums[row][j], out + j * out_step, batch, channel, down + row,
                           right + j);
        }
        out += p.out.axes[1];
    }
}
