// Depthwise convolution of x whose channels are neighbours in memory, for few results.
//
// A launch that is short waits mostly for memory, so all loads of a thread are in flight before the
// first wait: DEPTH - 1 lines, and the weights. Elements beyond x are zeros.
//
// A block has blockDim.x x VECTOR channels (the last one maybe fewer) of a tile of results; .y and
// .z count its threads along the width and the height, so that the first cache holds most of what
// they share.
//
// Defined before this text: what depthwise_block.cuh needs; DEPTH; BIAS, whether it is given;
// MOST_LANES, the largest blockDim.x; MOST_THREADS of a block. In the parameters, `chunks` are the
// parts of the channels that blocks have, and `tiles` are those along the width.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/depthwise/depthwise_block.cuh"
#include "gputensor/_kernels/cuda/divide.cuh"

typedef WindowParameters Parameters;

// Loads the part of a line that a thread's windows use: columns are `step` apart.
__device__ __forceinline__ void load_line(const E* line, bool has_line, int step,
                                          const bool (&has_column)[COLUMNS], Piece* columns) {
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) columns[c].word[i] = 0;
        if (has_line && has_column[c])
            columns[c] = *reinterpret_cast<const Piece*>(line + c * step);
    }
}

// Writes a row of a thread's results at `out`, of which the first `count` are results.
__device__ __forceinline__ void write_row(const Parameters& p, const C (&sums)[PIXELS][VECTOR],
                                          E* out, int count, int64 batch, int channel, int y,
                                          int x) {
    const int step = (int)p.out.axes[2];
#pragma unroll
    for (int j = 0; j < PIXELS; ++j) {
        C addend[VECTOR] = {};
#if ADDEND
        if (j < count) load_addend(p, addend, batch, channel, y, x + j);
#endif
        const Elements result = finished(sums[j], addend);
        if (j < count) *reinterpret_cast<Elements*>(out + j * step) = result;
    }
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) kernel(const Parameters p) {
    start_early();
    __shared__ Elements shared[MOST_LANES * TAPS];
    const uint32 tile = divide(blockIdx.x, p.chunks), chunk = blockIdx.x - tile * p.chunks.size;
    const uint32 tile_y = divide(tile, p.tiles), tile_x = tile - tile_y * p.tiles.size;
    const uint32 first = chunk * blockDim.x, others = p.channels - first;
    const int right = (tile_x * blockDim.y + threadIdx.y) * PIXELS;
    const int down = (tile_y * blockDim.z + threadIdx.z) * ROWS;
    const int channel = (first + threadIdx.x) * VECTOR;
    const int top = down * STRIDE_Y - p.axes[1].padding;
    const int left = right * STRIDE_X - p.axes[2].padding;
    const bool is_inside = right < p.axes[2].out && down < p.axes[1].out && threadIdx.x < others;
    const uint32 height = is_inside ? p.axes[1].x : 0, width = p.axes[2].x;

    const int step = (int)p.x.axes[2], out_step = (int)p.out.axes[2];
    const E* x = reinterpret_cast<const E*>(p.x.ptr) + blockIdx.y * p.x.batch
        + top * p.x.axes[1] + (left * (int64)step + channel);
    E* out = reinterpret_cast<E*>(p.out.ptr) + blockIdx.y * p.out.batch
        + down * p.out.axes[1] + (right * (int64)out_step + channel);
    bool has_column[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) has_column[c] = (uint32)(left + c) < width;
    const uint32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;

    begin_weights(shared, p, first, thread);
    Piece columns[DEPTH][COLUMNS];
#pragma unroll
    for (int i = 0; i < DEPTH - 1 && i < LINES; ++i, x += p.x.axes[1])
        load_line(x, (uint32)(top + i) < height, step, has_column, columns[i]);
    C bias[VECTOR] = {};
#if BIAS
    if (is_inside) load_bias(bias, p, channel);
#endif
    __syncwarp();       // without it, the compiler moves loads of x behind the wait for the weights
    end_weights();
    if (!is_inside) return;

    C factors[TAPS][VECTOR];
    widen_weights(factors, shared + threadIdx.x * TAPS);
    C sums[ROWS][PIXELS][VECTOR];
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
        const int next = i + DEPTH - 1;
        if (next < LINES) {
            load_line(x, (uint32)(top + next) < height, step, has_column, columns[next % DEPTH]);
            x += p.x.axes[1];
        }
        add_line(sums, columns[i % DEPTH], factors, bias, i);
        const int whole = i - (HEIGHT - 1) * DILATION_Y, row = whole / STRIDE_Y;
        if (whole < 0 || whole % STRIDE_Y) continue;
        write_row(p, sums[row], out, down + row < p.axes[1].out ? p.axes[2].out - right : 0,
                  blockIdx.y, channel, down + row, right);
        out += p.out.axes[1];
    }
}
