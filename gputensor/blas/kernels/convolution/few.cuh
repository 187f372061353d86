// Convolution of few channels on tensor cores, such as the first one of an image network.
//
// A block has all weights of BN outputs in shared memory and takes tile after tile: some rows of
// results, cut in fragments of 16 neighbours. A tile needs a few whole rows of x, which it copies
// once, with zeros around them and PIXEL channels for each pixel. A row of taps is then one run of
// shared memory, and since neighbouring results begin a multiple of 16 bytes apart, ldmatrix reads
// the patches in place. Each row of taps is filled up to a multiple of 16 terms. The added weights
// are zero, so the elements that they multiply are set to zero too, lest an infinity becomes NaN.
//
// Outputs are distributed to the columns of a product so that a thread's sums are 8 neighbours.
//
// Defined before this text: the names that pixel.cuh and fragments.cuh need; CHANNELS, and PIXEL, a
// power of two not below it; HEIGHT and WIDTH of the kernel; STRIDE along the width, where
// PIXEL * STRIDE is a multiple of 8; BN, 32 or 64; WARPS; ADDEND, whether there is one; VECTORED,
// whether 8 outputs are 16 bytes that one instruction may write; DENSE, whether pixels of x lie one
// after the other, an even number in a row, each pair at a multiple of 4 bytes.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/vector.cuh"
#include "gputensor/blas/kernels/convolution/few.h"
#include "gputensor/blas/kernels/convolution/pixel.cuh"
#include "gputensor/blas/kernels/shared/fragments.cuh"

#define DEVICE __device__ __forceinline__

const int THREADS = 32 * WARPS;
const int ROW_TERMS = (WIDTH * PIXEL + 15) / 16 * 16, TERMS = HEIGHT * ROW_TERMS;
const int PITCH = TERMS + 8;            // of the weights: an odd multiple of 16 bytes
const int TOGETHER = 2;                 // fragments that a warp multiplies by the same weights
const int AHEAD = 8, WEIGHTS_AHEAD = 16;        // pixels and weights in flight, of a thread

typedef Vector<uint16, PIXEL> Piece;

DEVICE void load_weights(const ConvolutionParameters& p, int column, uint16* to) {
    const int32 of_output = (int32)p.weight.batch, of_channel = (int32)p.weight.channel;
    const int32 of_line = (int32)p.weight.axes[1], of_column = (int32)p.weight.axes[2];
    const uint16* from = reinterpret_cast<const uint16*>(p.weight.ptr) + column * p.weight.batch;
    for (int first = threadIdx.x; first < BN * TERMS; first += THREADS * WEIGHTS_AHEAD) {
        uint16 value[WEIGHTS_AHEAD];
        int at[WEIGHTS_AHEAD];
#pragma unroll
        for (int j = 0; j < WEIGHTS_AHEAD; ++j) {
            const int i = first + j * THREADS, row = i / TERMS, term = i % TERMS;
            const int y = term / ROW_TERMS, x = term % ROW_TERMS / PIXEL, channel = term % PIXEL;
            const int output = row / 32 * 32 + row % 8 / 2 * 8 + row / 8 % 4 * 2 + row % 2;
            at[j] = row * PITCH + term;
            value[j] = 0;
            if (row < BN && x < WIDTH && channel < CHANNELS && column + output < p.outputs)
                value[j] = from[output * of_output + channel * of_channel + y * of_line
                                + x * of_column];
        }
#pragma unroll
        for (int j = 0; j < WEIGHTS_AHEAD; ++j)
            if (first + j * THREADS < BN * TERMS) to[at[j]] = value[j];
    }
}

#if DENSE
// The same where pixels lie one after the other: two at a time, as CHANNELS words of 32 bits.
DEVICE void load_dense_lines(const FewParameters& p, const uint16* x, int top, int left,
                             Piece* to) {
    const ConvolutionParameters& c = p.common;
    const int lane = threadIdx.x % 32, start = left - (left & 1), PAIRS = 4;
    for (int line = threadIdx.x / 32; line < p.lines; line += WARPS) {
        const uint32 width = (uint32)(top + line) < (uint32)c.axes[1].x ? c.axes[2].x : 0;
        const uint32* const from = reinterpret_cast<const uint32*>(x + (top + line) * c.x.axes[1]);
        Piece* const at = to + line * p.pitch - left;
        for (int first = lane; first * 2 + start < left + p.pitch; first += 32 * PAIRS) {
            uint32 word[PAIRS][CHANNELS];
#pragma unroll
            for (int j = 0; j < PAIRS; ++j) {
                const int place = start + 2 * (first + 32 * j);
                const bool is_inside = (uint32)place < width && place < left + p.pitch;
#pragma unroll
                for (int i = 0; i < CHANNELS; ++i)
                    word[j][i] = is_inside ? from[place / 2 * CHANNELS + i] : 0;
            }
#pragma unroll
            for (int j = 0; j < PAIRS; ++j) {
                const int place = start + 2 * (first + 32 * j);
                Piece piece[2];
#pragma unroll
                for (int i = 0; i < 2 * PIXEL; ++i) {
                    const int element = i / PIXEL * CHANNELS + i % PIXEL;
                    piece[i / PIXEL].item[i % PIXEL] = i % PIXEL < CHANNELS
                        ? (uint16)(word[j][element / 2 % CHANNELS] >> element % 2 * 16) : 0;
                }
                if (place >= left && place < left + p.pitch) at[place] = piece[0];
                if (place + 1 < left + p.pitch) at[place + 1] = piece[1];
            }
        }
    }
}
#endif

// Loads the rows of x from `top` on, from the pixel `left` on, each by one warp.
DEVICE void load_lines(const FewParameters& p, const uint16* x, int top, int left, Piece* to) {
    const ConvolutionParameters& c = p.common;
    const int32 right = (int32)c.x.axes[2], deep = (int32)c.x.channel;
    const int lane = threadIdx.x % 32;
    for (int line = threadIdx.x / 32; line < p.lines; line += WARPS) {
        const uint32 width = (uint32)(top + line) < (uint32)c.axes[1].x ? c.axes[2].x : 0;
        const uint16* from = x + (top + line) * c.x.axes[1] + (int64)left * right;
        Piece* const at = to + line * p.pitch;
        for (int first = lane; first < p.pitch; first += 32 * AHEAD) {
            uint16 value[AHEAD][CHANNELS];
#pragma unroll
            for (int j = 0; j < AHEAD; ++j) {
                const int place = first + 32 * j;
                const bool is_inside = (uint32)(left + place) < width && place < p.pitch;
#pragma unroll
                for (int i = 0; i < CHANNELS; ++i) {
                    value[j][i] = 0;
                    if (is_inside) value[j][i] = from[(int64)place * right + (int64)i * deep];
                }
            }
#pragma unroll
            for (int j = 0; j < AHEAD; ++j) {
                Piece piece;
#pragma unroll
                for (int i = 0; i < PIXEL; ++i) piece.item[i] = i < CHANNELS ? value[j][i] : 0;
                if (first + 32 * j < p.pitch) at[first + 32 * j] = piece;
            }
        }
    }
}

// Keeps the first `count` elements of a pair and sets the others to zero.
DEVICE uint32 terms_of(uint32 pair, int count) {
    return count >= 2 ? pair : count == 1 ? pair & 0xffff : 0;
}

// Writes a thread's outputs of a pixel, eight of every 32; `out` is the first of the block.
DEVICE void write(const ConvolutionParameters& p, const float* sums, E* out, int64 added,
                  int outputs) {
    const int first = threadIdx.x % 4 * 8;
#pragma unroll
    for (int g = 0; g < BN / 32; ++g) {
        const int output = 32 * g + first;
        if (output >= outputs) break;
        float value[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            C a = sums[(4 * g + i / 2) * 4 + i % 2];
#if ADDEND
            if (output + i < outputs)
                a += wide(reinterpret_cast<const E*>(p.addend.ptr)[
                    added + (output + i) * p.addend.channel]);
#endif
            value[i] = ACTIVATION;
        }
#if VECTORED
        Words words;
#pragma unroll
        for (int i = 0; i < 4; ++i) words.item[i] = pack(value[2 * i], value[2 * i + 1]);
        *reinterpret_cast<Words*>(out + output) = words;
#else
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (output + i < outputs) out[(output + i) * p.out.channel] = narrow<E>(value[i]);
#endif
    }
}

// Multiplies and writes the fragments of one tile from `first` on.
DEVICE void multiply_fragments(const FewParameters& p, uint32 weights, uint32 tile,
                               const float* biases, int first, const Pixel& corner, int column,
                               E* out) {
    const ConvolutionParameters& c = p.common;
    const int lane = threadIdx.x % 32, count = p.rows * p.fragments;
    const uint32 line = p.pitch * PIXEL * 2;
    const uint32 part = (65535 + p.fragments) / p.fragments;    // of 2^16, to divide small numbers
    uint32 from[TOGETHER];
    float sums[TOGETHER][BN / 8][4];
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
        const int number = first + i < count ? first + i : first, row = number * part >> 16;
        const int place = (number - row * p.fragments) * 16 + lane % 16;
        from[i] = tile + row * c.axes[1].stride * line + (place * STRIDE * PIXEL + lane / 16 * 8) * 2;
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
#pragma unroll
            for (int v = 0; v < 4; ++v)
                sums[i][j][v] = biases[j / 4 * 32 + lane % 4 * 8 + j % 4 * 2 + v % 2];
    }
    weights += ((lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8) * 2;
    const uint32 down = c.axes[1].dilation * line;
#pragma unroll 1
    for (int y = 0; y < HEIGHT; ++y) {
#pragma unroll
        for (int k = 0; k < ROW_TERMS; k += 16) {
            uint32 a[TOGETHER][4];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                matrices(a[i], from[i] + k * 2);
                if (k + 16 > WIDTH * PIXEL) {
#pragma unroll
                    for (int half = 0; half < 4; ++half)
                        a[i][half] = terms_of(
                            a[i][half], WIDTH * PIXEL - k - half / 2 * 8 - lane % 4 * 2);
                }
            }
#pragma unroll
            for (int j = 0; j < BN / 16; ++j) {
                uint32 b[4];
                matrices(b, weights + (j * 16 * PITCH + k) * 2);
#pragma unroll
                for (int i = 0; i < TOGETHER; ++i) {
                    multiply(sums[i][2 * j], a[i], b[0], b[1]);
                    multiply(sums[i][2 * j + 1], a[i], b[2], b[3]);
                }
            }
        }
        weights += ROW_TERMS * 2;
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) from[i] += down;
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
        const int number = first + i, row = number * part >> 16;
        if (number >= count || corner.place[1] + row >= c.axes[1].out) break;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int place = (number - row * p.fragments) * 16 + lane / 4 + 8 * half;
            if (corner.place[2] + place >= c.axes[2].out) continue;
            int64 added = 0;
#if ADDEND
            Pixel pixel = corner;
            pixel.place[1] += row;
            pixel.place[2] += place;
            added = offset_of(c.addend, pixel) + column * c.addend.channel;
#endif
            write(c, &sums[i][0][2 * half], out + (int64)row * (int32)c.out.axes[1]
                      + (int64)place * (int32)c.out.axes[2], added, c.outputs - column);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) kernel(const FewParameters p) {
    start_early();
    extern __shared__ __align__(16) char memory[];
    __shared__ float biases[BN];
    const ConvolutionParameters& c = p.common;
    const uint32 weights = shared_address(memory), tile_at = weights + BN * PITCH * 2;
    const int column = (int)(blockIdx.x % c.column_tiles) * BN, warp = threadIdx.x / 32;
    load_weights(c, column, reinterpret_cast<uint16*>(memory));
    for (int i = threadIdx.x; i < BN; i += THREADS)
        biases[i] = c.bias && column + i < c.outputs
            ? wide(reinterpret_cast<const E*>(c.bias)[(column + i) * c.bias_stride]) : 0.0f;
    const uint32 step = gridDim.x / c.column_tiles;
    for (uint32 number = blockIdx.x / c.column_tiles; number < p.tiles; number += step) {
        const uint32 rest = number / p.across, image = rest / p.down;
        Pixel corner;
        corner.batch = image;
        corner.place[0] = 0;
        corner.place[1] = (int)(rest - image * p.down) * p.rows;
        corner.place[2] = (int)(number - rest * p.across) * p.fragments * 16;
        __syncthreads();                // all threads have read the tile before
        const uint16* const x = reinterpret_cast<const uint16*>(c.x.ptr)
            + (int64)image * c.x.batch;
        const int top = corner.place[1] * c.axes[1].stride - c.axes[1].padding;
        const int left = corner.place[2] * STRIDE - c.axes[2].padding;
        Piece* const lines = reinterpret_cast<Piece*>(memory + BN * PITCH * 2);
#if DENSE
        load_dense_lines(p, x, top, left, lines);
#else
        load_lines(p, x, top, left, lines);
#endif
        __syncthreads();
        E* const out = reinterpret_cast<E*>(c.out.ptr) + offset_of(c.out, corner)
            + column * c.out.channel;
        for (int first = warp * TOGETHER; first < p.rows * p.fragments; first += WARPS * TOGETHER)
            multiply_fragments(p, weights, tile_at, biases, first, corner, column, out);
    }
}
