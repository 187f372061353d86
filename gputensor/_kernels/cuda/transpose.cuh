// The tiled transposition: a copy whose input is contiguous along another axis.
//
// A block moves one tile through shared memory, so that both the reads (along the input's unit
// axis) and the writes (along the output's) are whole lines. Blocks walk the further axes.
//
// In chunks: elements of 1, 2 or 4 bytes move 16 aligned bytes at a time. A chunk of row r lies at
// its place ^ (r / LANES) % 8, so that neither storing chunks of rows nor loading words of columns
// has bank conflicts. A thread loads the words of as many rows as a chunk has elements, which hold
// one chunk of each of the word's columns. Otherwise rows of the tile are one bank longer than a
// power of two, so that its columns have no bank conflicts.
//
// Defined before this text: ROWS and COLUMNS of the tile; IN_CHUNKS; PAD, elements of a bank;
// BATCH, further axes; OUTPUT and INPUT, the stored types (in chunks one type).
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/transpose.h"
#include "gputensor/_kernels/cuda/vector.cuh"

typedef TransposeParameters Parameters;
typedef OUTPUT TO;
typedef INPUT TI;

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    uint32 rest = blockIdx.x;
    const uint32 out_begin = rest % p.out_tiles * ROWS;
    rest /= p.out_tiles;
    const uint32 in_begin = rest % p.in_tiles * COLUMNS;
    rest /= p.in_tiles;
    long long in_offset = 0, out_offset = 0;
#pragma unroll
    for (int d = 0; d < BATCH; ++d) {
        const uint32 index = rest % p.batch[d].size;
        rest /= p.batch[d].size;
        in_offset += (long long)index * p.batch[d].in_stride;
        out_offset += (long long)index * p.batch[d].out_stride;
    }
    const TI* in = reinterpret_cast<const TI*>(p.input) + in_offset;
    TO* out = reinterpret_cast<TO*>(p.out) + out_offset;
#if IN_CHUNKS
    // LANES elements of a chunk, PACKED ones of a word of 4 bytes.
    const int SIZE = sizeof(TO), LANES = 16 / SIZE, PACKED = 4 / SIZE;
    const int CHUNKS = COLUMNS / LANES, GROUPS = ROWS / LANES;
    const int LOADS = ROWS * CHUNKS / 256, STORES = GROUPS * (COLUMNS / PACKED) / 256;
    typedef Vector<uint32, 4> Chunk;
    __shared__ Chunk tile[ROWS][CHUNKS];
    const int thread = threadIdx.y * 32 + threadIdx.x;
    Chunk loaded[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        const uint32 row = (thread + 256 * i) / CHUNKS, chunk = (thread + 256 * i) % CHUNKS;
        if (out_begin + row < p.out_size && in_begin + chunk * LANES < p.in_size)
            loaded[i] = *reinterpret_cast<const Chunk*>(
                in + ((long long)(out_begin + row) * p.in_stride + (in_begin + chunk * LANES)));
    }
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        const uint32 row = (thread + 256 * i) / CHUNKS, chunk = (thread + 256 * i) % CHUNKS;
        tile[row][chunk ^ row / LANES % 8] = loaded[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < STORES; ++i) {
        const uint32 far = (thread + 256 * i) / 32;
        const uint32 group = thread % 8 + far % (GROUPS / 8) * 8;
        const uint32 word = thread / 8 % 4, chunk = far / (GROUPS / 8);
        uint32 words[LANES];
#pragma unroll
        for (int k = 0; k < LANES; ++k)
            words[k] = tile[group * LANES + k][chunk ^ group % 8].item[word];
#pragma unroll
        for (int e = 0; e < PACKED; ++e) {
            Chunk turned;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                turned.item[j] = 0;
#pragma unroll
                for (int r = 0; r < PACKED; ++r)
                    turned.item[j] |= (words[j * PACKED + r] >> 8 * SIZE * e
                                       & 0xffffffffu >> (32 - 8 * SIZE)) << 8 * SIZE * r;
            }
            const uint32 column = in_begin + (chunk * 4 + word) * PACKED + e;
            const uint32 row = out_begin + group * LANES;
            if (row < p.out_size && column < p.in_size)
                *reinterpret_cast<Chunk*>(out + ((long long)column * p.out_stride + row)) = turned;
        }
    }
#else
    __shared__ TO tile[ROWS][COLUMNS + PAD];
#pragma unroll
    for (uint32 row = threadIdx.y; row < ROWS; row += 8)
#pragma unroll
        for (uint32 column = threadIdx.x; column < COLUMNS; column += 32)
            if (out_begin + row < p.out_size && in_begin + column < p.in_size)
                tile[row][column] = convert<TO>(
                    in[(long long)(out_begin + row) * p.in_stride + (in_begin + column)]);
    __syncthreads();
#pragma unroll
    for (uint32 row = threadIdx.y; row < COLUMNS; row += 8)
#pragma unroll
        for (uint32 column = threadIdx.x; column < ROWS; column += 32)
            if (in_begin + row < p.in_size && out_begin + column < p.out_size)
                out[(long long)(in_begin + row) * p.out_stride + (out_begin + column)] =
                    tile[column][row];
#endif
}
