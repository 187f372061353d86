// Convolution in plain arithmetic, for any strides: a product of patches and weights, tile by tile.
//
// A block has 64 pixels (results of one output) and 16 * TN outputs of a group; its 256 threads
// have 4 x TN sums each. Terms are numbered tap by tap, the channels of a tap one after the other.
//
// Defined before this text: the names that pixel.cuh needs; TN; ALONG_PIXELS, whether pixels, not
// channels, are neighbours in memory, which affects only the speed.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/convolution/pixel.cuh"

const int BM = 64, BN = 16 * TN, BK = 16;

// The offsets of a term's tap and channel in x and in the weights, and the steps of the tap.
struct Term {
    int64 x, weight;
    int step[3];
};
__device__ __forceinline__ Term term_of(const Parameters& p, int number) {
    Term term;
    int tap = number / p.channels;
    const int channel = number - tap * p.channels;
    term.x = channel * p.x.channel;
    term.weight = channel * p.weight.channel;
#pragma unroll
    for (int d = 2; d >= 0; --d) {
        const int rest = tap / p.axes[d].kernel, k = tap - rest * p.axes[d].kernel;
        term.weight += k * p.weight.axes[d];
        term.step[d] = k * p.axes[d].dilation;
        tap = rest;
    }
    return term;
}

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    __shared__ C patches[BK][BM + 1];
    __shared__ C weights[BK][BN + 1];
    const uint32 tile = blockIdx.x / p.column_tiles;
    const int column = (int)(blockIdx.x - tile * p.column_tiles) * BN;
    const int group = (int)(tile % p.groups);
    const uint32 first = tile / p.groups * BM;
    const int terms = p.channels * p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel;
    const int thread = threadIdx.x;
    const E* x = reinterpret_cast<const E*>(p.x.ptr) + (int64)group * p.channels * p.x.channel;
    const E* weight = reinterpret_cast<const E*>(p.weight.ptr)
        + (int64)group * p.outputs * p.weight.batch;

    // The pixels that this thread loads.
    const int ROWS = ALONG_PIXELS ? 1 : 4;
    const E* image[ROWS];
    int corner[ROWS][3];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const uint32 number = first + (ALONG_PIXELS ? thread % BM : thread / 16 + 16 * i);
        const Pixel pixel = pixel_of(p, number < p.pixels ? number : 0);
        image[i] = x + pixel.batch * p.x.batch;
#pragma unroll
        for (int d = 0; d < 3; ++d)
            corner[i][d] = pixel.place[d] * p.axes[d].stride - p.axes[d].padding;
    }
    C sums[4][TN];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) sums[i][j] = 0;
    const int down = ALONG_PIXELS ? thread % 16 : thread / 16;
    const int across = ALONG_PIXELS ? thread / 16 : thread % 16;

    for (int from = 0; from < terms; from += BK) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int k = ALONG_PIXELS ? thread / BM + 4 * i : thread % 16;
            const int row = ALONG_PIXELS ? thread % BM : thread / 16 + 16 * i;
            const int r = ALONG_PIXELS ? 0 : i;
            C value = 0;
            if (from + k < terms) {
                const Term term = term_of(p, from + k);
                bool is_inside = true;
                int64 at = term.x;
#pragma unroll
                for (int d = 0; d < 3; ++d) {
                    const int place = corner[r][d] + term.step[d];
                    is_inside = is_inside && place >= 0 && place < p.axes[d].x;
                    at += place * p.x.axes[d];
                }
                if (is_inside) value = wide(image[r][at]);
            }
            patches[k][row] = value;
        }
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int k = thread % 16, output = column + thread / 16 + 16 * j;
            C value = 0;
            if (from + k < terms && output < p.outputs)
                value = wide(weight[term_of(p, from + k).weight + output * p.weight.batch]);
            weights[k][thread / 16 + 16 * j] = value;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            C row[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) row[i] = patches[k][down + 16 * i];
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                const C factor = weights[k][across + 16 * j];
#pragma unroll
                for (int i = 0; i < 4; ++i) sums[i][j] += row[i] * factor;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const uint32 number = first + down + 16 * i;
        if (number >= p.pixels) continue;
        const Pixel pixel = pixel_of(p, number);
        const int64 to = offset_of(p.out, pixel), added = offset_of(p.addend, pixel);
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int inside = column + across + 16 * j;
            if (inside >= p.outputs) continue;
            const int64 output = (int64)group * p.outputs + inside;
            reinterpret_cast<E*>(p.out.ptr)[to + output * p.out.channel] =
                narrow<E>(finished(p, sums[i][j], output, added));
        }
    }
}
