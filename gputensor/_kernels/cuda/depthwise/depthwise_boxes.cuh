// Depthwise convolution of 16-bit floats without a stride, on GPUs that copy by tensor maps.
//
// One copy brings the part of x that a block's windows use, a box, to shared memory, where elements
// outside x are zeros; another one takes the block's results from there, but for those outside. So
// threads compute no addresses and test no places: most of their instructions multiply, and they hold
// no lines that are still under way. The weights of the block's channels come to shared memory
// while the box does.
//
// Defined before this text: what depthwise_block.cuh needs, ADDEND as 0; BIAS, whether it is given;
// LANES, threads of different channels; MOST_THREADS of a block. blockDim.y counts a block's threads
// along the width, blockDim.z those along the height. In the parameters, `channels` counts VECTORs,
// `chunks` are the parts of the channels that blocks have, and `tiles` are those along the width.
#pragma once

#include "gputensor/_kernels/cuda/copies/barrier.cuh"
#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/depthwise/depthwise_block.cuh"
#include "gputensor/_kernels/cuda/depthwise/depthwise_boxes.h"
#include "gputensor/_kernels/cuda/divide.cuh"

typedef DepthwiseBoxParameters Parameters;
const int COLUMN = LANES * VECTOR;      // elements of a column of a box

// Places of the first element of a box; they may be outside.
struct Corner { int channel, x, y, image; };

__device__ __forceinline__ void prepare_copies(uint64* arrived, const Parameters& p) {
    asm volatile("prefetch.tensormap [%0];" :: "l"(&p.x) : "memory");
    asm volatile("prefetch.tensormap [%0];" :: "l"(&p.out) : "memory");
    barrier_init(arrived);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void begin_box(char* box, uint64* arrived, const Parameters& p,
                                          const Corner& at) {
    barrier_expect(arrived, p.nbytes);
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(shared_address(box)), "l"(&p.x), "r"(at.channel), "r"(at.x), "r"(at.y),
                    "r"(at.image), "r"(shared_address(arrived)) : "memory");
}
__device__ __forceinline__ void write_box(const Parameters& p, const char* box, const Corner& at) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group"
                 " [%0, {%1, %2, %3, %4}], [%5];"
                 :: "l"(&p.out), "r"(at.channel), "r"(at.x), "r"(at.y), "r"(at.image),
                    "r"(shared_address(box)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS)
kernel(const __grid_constant__ Parameters given) {
    extern __shared__ __align__(128) char box[];
    __shared__ Elements weights[LANES * TAPS];
    __shared__ uint64 arrived;
    const WindowParameters& p = given.common;
    const uint32 tile = divide(blockIdx.x, p.chunks), chunk = blockIdx.x - tile * p.chunks.size;
    const uint32 tile_y = divide(tile, p.tiles), tile_x = tile - tile_y * p.tiles.size;
    const uint32 first = chunk * LANES;
    const uint32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * LANES + threadIdx.x;
    const Corner at = {(int)(first * VECTOR), (int)(tile_x * blockDim.y * PIXELS),
                       (int)(tile_y * blockDim.z * ROWS), (int)blockIdx.y};
    if (thread == 0) prepare_copies(&arrived, given);
    start_early();
    if (thread == 0)
        begin_box(box, &arrived, given, {at.channel, at.x - p.axes[2].padding,
                                         at.y - p.axes[1].padding, at.image});
    begin_weights(weights, p, first, thread);

    const int right = threadIdx.y * PIXELS, down = threadIdx.z * ROWS;
    const E* x = reinterpret_cast<const E*>(box) + down * given.line + right * COLUMN
        + threadIdx.x * VECTOR;
    E* out = reinterpret_cast<E*>(box + given.results) + down * given.out_line + right * COLUMN
        + threadIdx.x * VECTOR;
    C bias[VECTOR] = {}, none[VECTOR] = {};
#if BIAS
    if (first + threadIdx.x < p.channels)
        load_bias(bias, p, at.channel + threadIdx.x * VECTOR);
#endif
    end_weights();
    C factors[TAPS][VECTOR], sums[ROWS][PIXELS][VECTOR];
    widen_weights(factors, weights + threadIdx.x * TAPS);
    barrier_wait(&arrived, 0);
#pragma unroll
    for (int i = 0; i < LINES; ++i, x += given.line) {
        Piece columns[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            columns[c] = *reinterpret_cast<const Piece*>(x + c * COLUMN);
        add_line(sums, columns, factors, bias, i);
        const int row = i - (HEIGHT - 1) * DILATION_Y;
        if (row < 0) continue;
#pragma unroll
        for (int j = 0; j < PIXELS; ++j)
            *reinterpret_cast<Elements*>(out + j * COLUMN) = finished(sums[row][j], none);
        out += given.out_line;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");    // copies see these results
    __syncthreads();
    if (thread == 0) write_box(given, box + given.results, at);
}
