// Depthwise convolution of x whose channels are neighbours in memory, for few results.
//
// A launch that is short waits mostly for memory, so all loads of a thread are in flight before the
// first wait: DEPTH - 1 lines, and the weights. Elements beyond x are zeros.
//
// A block has blockDim.x x VECTOR channels (the last one maybe fewer) of a tile of results; .y and
// .z count its threads along the width and the height, so that the first cache holds most of what
// they share. The weights of these channels, which lie one channel after the other, come to shared
// memory whole while x is in flight: read by each thread for itself they would take more turns of
// that cache than x does.
//
// Defined before this text: ELEMENT and ARITHMETIC; ACTIVATION, an expression of `a`; VECTOR,
// PIXELS, ROWS, DEPTH; BIAS and ADDEND, whether they are given; HEIGHT and WIDTH of the kernel,
// STRIDE_Y, STRIDE_X, DILATION_Y, DILATION_X; MOST_LANES, the largest blockDim.x; MOST_THREADS of a
// block. In the parameters, `channels` counts VECTORs, `chunks` are the parts of the channels that
// blocks have, and `tiles` are those along the width.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/depthwise/depthwise_sums.cuh"
#include "gputensor/_kernels/cuda/divide.cuh"

// Rounds the results of a pixel.
__device__ __forceinline__ Elements finished(const C (&sum)[VECTOR], const C (&addend)[VECTOR]) {
    C value[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        const C a = ADDEND ? sum[v] + addend[v] : sum[v];
        value[v] = ACTIVATION;
    }
    Elements result;
    narrow_all(result, value);
    return result;
}

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

__device__ __forceinline__ void load_addend(const Parameters& p, C (&addend)[VECTOR], int channel,
                                            int y, int x) {
    const E* from = reinterpret_cast<const E*>(p.addend.ptr) + blockIdx.y * p.addend.batch
        + channel * p.addend.channel + y * p.addend.axes[1] + x * p.addend.axes[2];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) addend[v] = wide(from[v * p.addend.channel]);
}

// Begins the copy of the weights of a block to shared memory.
__device__ __forceinline__ void begin_weights(Elements* to, const Elements* from, uint32 thread,
                                              uint32 count) {
    const uint32 threads = blockDim.x * blockDim.y * blockDim.z;
#pragma unroll 1
    for (uint32 i = thread; i < count; i += threads) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                     :: "r"((uint32)__cvta_generic_to_shared(to + i)), "l"(from + i),
                        "n"(sizeof(Elements)) : "memory");
#else
        to[i] = from[i];
#endif
    }
}

__device__ __forceinline__ void end_weights() {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
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
    const uint32 count = (others < blockDim.x ? others : blockDim.x) * TAPS;
    const Elements* from = reinterpret_cast<const Elements*>(p.weight.ptr) + (uint64)first * TAPS;

    begin_weights(shared, from, thread, count);
    Piece columns[DEPTH][COLUMNS];
#pragma unroll
    for (int i = 0; i < DEPTH - 1 && i < LINES; ++i, x += p.x.axes[1])
        load_line(x, (uint32)(top + i) < height, step, has_column, columns[i]);
    C bias[VECTOR] = {};
#if BIAS
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
        if (is_inside)
            bias[v] = wide(reinterpret_cast<const E*>(p.bias)[(channel + v) * p.bias_stride]);
#endif
    __syncwarp();       // without it, the compiler moves loads of x behind the wait for the weights
    end_weights();
    if (!is_inside) return;

    C factors[TAPS][VECTOR];
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
        C some[VECTOR];
        widen_all(some, shared[threadIdx.x * TAPS + i]);
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            factors[(i * VECTOR + v) % TAPS][(i * VECTOR + v) / TAPS] = some[v];
    }
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
#pragma unroll
        for (int j = 0; j < PIXELS; ++j) {
            const bool is_result = down + row < p.axes[1].out && right + j < p.axes[2].out;
            C addend[VECTOR] = {};
#if ADDEND
            if (is_result) load_addend(p, addend, channel, down + row, right + j);
#endif
            const Elements result = finished(sums[row][j], addend);
            if (is_result) *reinterpret_cast<Elements*>(out + j * out_step) = result;
        }
        out += p.out.axes[1];
    }
}
