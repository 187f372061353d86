// The tiled transposition: a copy whose input is contiguous along another axis.
//
// A block moves one square tile through shared memory, so that both the reads (along the input's
// unit axis) and the writes (along the output's) are whole lines. Rows of the tile are one bank
// longer than a power of two, so that its columns have no bank conflicts. Blocks walk the further
// axes.
//
// Defined before this text: TILE, its edge; PAD, elements of a bank; BATCH, further axes; OUTPUT
// and INPUT, the stored types.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/transpose.h"

typedef TransposeParameters Parameters;
typedef OUTPUT TO;
typedef INPUT TI;

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    __shared__ TO tile[TILE][TILE + PAD];
    uint32 rest = blockIdx.x;
    const uint32 out_begin = rest % p.out_tiles * TILE;
    rest /= p.out_tiles;
    const uint32 in_begin = rest % p.in_tiles * TILE;
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
#pragma unroll
    for (uint32 row = threadIdx.y; row < TILE; row += 8)
#pragma unroll
        for (uint32 column = threadIdx.x; column < TILE; column += 32)
            if (out_begin + row < p.out_size && in_begin + column < p.in_size)
                tile[row][column] = convert<TO>(
                    in[(long long)(out_begin + row) * p.in_stride + (in_begin + column)]);
    __syncthreads();
#pragma unroll
    for (uint32 row = threadIdx.y; row < TILE; row += 8)
#pragma unroll
        for (uint32 column = threadIdx.x; column < TILE; column += 32)
            if (in_begin + row < p.in_size && out_begin + column < p.out_size)
                out[(long long)(in_begin + row) * p.out_stride + (out_begin + column)] =
                    tile[column][row];
}
