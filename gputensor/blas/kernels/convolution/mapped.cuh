// Convolution on the tensor cores of Hopper (sm_90a), copied by tensor maps.
//
// Results of an output are numbered as positions, over all images. A step of a tile multiplies BM
// outputs and BN positions by 64 channels of a tap: one thread has the copying unit load the
// weights as a box of a tensor map, and the pixels as neighbours in a map that knows where windows
// begin, how far they are apart and where the next row and image follow. What is outside of x is
// zeros. So every position is a result, at any stride, and no thread computes addresses.
//
// Sums are transposed as in shifted.cuh: outputs are the rows of wgmma, positions its columns. Two
// warpgroups multiply (BM 64: each has half of the positions; BM 128: half of the outputs), a warp
// copies, STAGES steps ahead and into the next tile of the block. SPLIT blocks of a cluster share
// the terms of a tile; each finishes its part of the positions from the shared memory of all, in the
// order of the blocks. Results are turned in shared memory and stored by the copying unit too, while
// the warpgroup goes on.
//
// Defined before this text: the names that pixel.cuh needs; BM; COLUMNS, positions of a warpgroup;
// STAGES; SPLIT; BLOCKS of a multiprocessor; PACK and MULTIPLY as in shifted.cuh.
#pragma once
#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/convolution/pixel.cuh"
#include "gputensor/blas/kernels/convolution/mapped.h"
#include "gputensor/blas/kernels/shared/mma.cuh"
#include "gputensor/blas/kernels/shared/ring.cuh"

const int MULTIPLYING = 256, THREADS = MULTIPLYING + 32;
const int ACROSS = BM == 64 ? 2 : 1;
const int BN = COLUMNS * ACROSS;
const int SUMS = COLUMNS / 2;
const int WEIGHTS = BM * 128;
const int STAGE = WEIGHTS + BN * 128;
const int PART = COLUMNS / SPLIT;
const int SPAN = 32;
const int STORED = PART % 32 == 0 ? 32 : PART % 16 == 0 ? 16 : 8;
const int STAGED = SPAN * 128;

#include "gputensor/blas/kernels/convolution/sums.cuh"

DEVICE void load_pixels(uint32 to, const TensorMap* map, int channel, int x, int y, int image,
                        int right, int down, uint32 barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
                 :: "r"(to), "l"(map), "r"(channel), "r"(x), "r"(y), "r"(image), "r"(barrier),
                    "h"((uint16)right), "h"((uint16)down) : "memory");
}
DEVICE void load_weights(uint32 to, const TensorMap* map, int channel, int tap, int output,
                         uint32 barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(map), "r"(channel), "r"(tap), "r"(output), "r"(barrier)
                 : "memory");
}
DEVICE void store_results(const TensorMap* map, int output, int position, uint32 from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(map), "r"(output), "r"(position), "r"(from) : "memory");
}

struct Barriers { uint64 full[STAGES], empty[STAGES]; };
struct Tile { int column, first; };
DEVICE Tile tile_of(const MappedParameters& p, uint32 number) {
    const uint32 rest = number / p.common.column_tiles;
    Tile tile;
    tile.column = (int)(number - rest * p.common.column_tiles) * BM;
    tile.first = (int)rest * BN;
    return tile;
}

DEVICE void load(const MappedParameters& p, uint32 ring, Barriers& barriers, Ring& at,
                 const Tile& tile, int begin, int end) {
    const ConvolutionParameters& c = p.common;
    int x[ACROSS], y[ACROSS], image[ACROSS];
#pragma unroll
    for (int i = 0; i < ACROSS; ++i) {
        const uint32 position = (uint32)tile.first + i * COLUMNS, row = position / c.axes[2].out;
        const uint32 number = row / c.axes[1].out;
        x[i] = (int)(position - row * c.axes[2].out) * c.axes[2].stride - c.axes[2].padding;
        y[i] = (int)(row - number * c.axes[1].out) * c.axes[1].stride - c.axes[1].padding;
        image[i] = (int)number;
    }
    const int taps = c.axes[1].kernel * c.axes[2].kernel;
    int chunk = begin / taps, tap = begin - chunk * taps;
    int down = tap / c.axes[2].kernel, right = tap - down * c.axes[2].kernel;
    for (int step = begin; step < end; ++step, at.next()) {
        const uint32 full = shared_address(&barriers.full[at.stage]);
        const uint32 to = ring + at.stage * STAGE;
        barrier_wait(shared_address(&barriers.empty[at.stage]), at.phase ^ 1);
        barrier_expect(full, STAGE);
        load_weights(to, &p.weight, chunk * 64, tap, tile.column, full);
#pragma unroll
        for (int i = 0; i < ACROSS; ++i)
            load_pixels(to + WEIGHTS + i * COLUMNS * 128, &p.x, chunk * 64, x[i], y[i], image[i],
                        right * c.axes[2].dilation, down * c.axes[1].dilation, full);
        ++tap;
        if (++right == c.axes[2].kernel) {
            right = 0;
            if (++down == c.axes[1].kernel) {
                down = tap = 0;
                ++chunk;
            }
        }
    }
}

DEVICE void multiply_all(uint32 ring, Barriers& barriers, Ring& at, float* d, int group, int begin,
                         int end) {
    uint32 last = 0;
    const bool is_one = threadIdx.x % 32 == 0;
    for (int step = begin; step < end; ++step, at.next()) {
        barrier_wait(shared_address(&barriers.full[at.stage]), at.phase);
        const uint32 from = ring + at.stage * STAGE;
        const uint32 from_a = from + (BM == 128 ? group * 8192 : 0);
        const uint32 from_b = from + WEIGHTS + (ACROSS == 2 ? group * COLUMNS * 128 : 0);
        const uint64 a = (uint64)((from_a & 0x3ffff) >> 4) | 0x4000004000010000ull;
        const uint64 b = (uint64)((from_b & 0x3ffff) >> 4) | 0x4000004000010000ull;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k) multiply(d, a + 2 * k, b + 2 * k, step - begin | k);
        wgmma_commit();
        wgmma_wait<1>();
        if (is_one && step > begin) arrive(last);
        last = shared_address(&barriers.empty[at.stage]);
    }
    wgmma_wait<0>();
    settle<SUMS>(d);
    if (is_one && begin < end) arrive(last);
}

// Writes 64 outputs of PART positions from `first` on.
DEVICE void write(const MappedParameters& p, const float* d, uint32 staged, int& turn, int column,
                  int first, int group) {
    const ConvolutionParameters& c = p.common;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const bool is_one = threadIdx.x % 128 == 0;
    const E* bias = reinterpret_cast<const E*>(c.bias);
    float added[2] = {0, 0};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int output = column + warp * 16 + lane / 4 + 8 * h;
        if (bias && output < c.outputs) added[h] = wide(bias[output * c.bias_stride]);
    }
    const uint32 to = staged + lane % 8 * 128 + ((warp * 2 + lane / 8 % 2 ^ lane % 8) << 4);
#pragma unroll
    for (int from = 0; from < PART; from += SPAN) {
        const uint32 buffer = turn * STAGED;
        turn ^= 1;
#pragma unroll
        for (int j = from / 8; j < (from + SPAN) / 8 && j < PART / 8; ++j) {
            uint32 both[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float value[2];
#pragma unroll
                for (int v = 0; v < 2; ++v) {
                    float a = d[4 * j + 2 * h + v] + added[h];
                    value[v] = ACTIVATION;
                }
                both[h] = pack(value[0], value[1]);
            }
            store_turned(to + buffer + (8 * j - from) * 128, both[0], both[1]);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        if (is_one) bulk_wait_read();
        group_sync(group);
        if (is_one) {
#pragma unroll
            for (int i = from; i < from + SPAN && i < PART; i += STORED)
                store_results(&p.out, column, first + i, staged + buffer + (i - from) * 128);
            bulk_commit();
        }
    }
}

extern "C" __global__ void BY_CLUSTER __launch_bounds__(THREADS, BLOCKS)
kernel(const __grid_constant__ MappedParameters p) {
    start_early();
    extern __shared__ __align__(1024) char memory[];
    const uint32 ring = shared_address(memory);
    const uint32 tables = ring + STAGES * STAGE;
    Barriers& barriers = *reinterpret_cast<Barriers*>(memory + STAGES * STAGE + 4 * STAGED);
    const int split = blockIdx.x % SPLIT;
    const int begin = min(split * p.common.steps, p.steps);
    const int end = min(begin + p.common.steps, p.steps);
    const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(shared_address(&barriers.full[i]), 1);
            barrier_init(shared_address(&barriers.empty[i]), MULTIPLYING / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    Ring at = {0, 0};
    if (group == 2) {
        if (threadIdx.x % 32 == 0)
            for (uint32 i = blockIdx.x / SPLIT; i < p.tiles; i += gridDim.x / SPLIT)
                load(p, ring, barriers, at, tile_of(p, i), begin, end);
        __syncwarp();
#if SPLIT > 1
        cluster_sync();
        cluster_sync();
#endif
    } else {
        const uint32 staged = tables + group * 2 * STAGED;
        int turn = 0;
        for (uint32 i = blockIdx.x / SPLIT; i < p.tiles; i += gridDim.x / SPLIT) {
            const Tile tile = tile_of(p, i);
            float d[SUMS];
#pragma unroll
            for (int j = 0; j < SUMS; ++j) d[j] = 0;
            multiply_all(ring, barriers, at, d, group, begin, end);
#if SPLIT > 1
            asm volatile("bar.sync 4, 256;" ::: "memory");
            unite(d, memory, split);
#endif
            write(p, d, staged, turn, tile.column + (BM == 128 ? group * 64 : 0),
                  tile.first + (ACROSS == 2 ? group * COLUMNS : 0) + split * PART, group);
        }
        if (threadIdx.x % 128 == 0) bulk_wait_read();
    }
}
