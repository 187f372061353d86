// Convolution on tensor cores: a product of weights and patches of x, gathered as they are read.
//
// A block has BM pixels (results of one output) and BN outputs of a group. Terms are numbered tap
// by tap, the channels of a tap one after the other, and copied in chunks of 16 bytes. From x the
// chunk of a pixel's tap is copied, or zeros where the tap lies outside; from the weights, which lie
// in the order of their terms, the chunk of an output. STAGES steps of BK terms are in shared memory
// at once. Sums are float32. With SPLIT the terms are cut among blocks, which leave their sums for
// join.cuh. Elements are 16-bit floats, or float32 that the tensor cores read as TF32.
//
// Results go through shared memory, so that whole chunks are written where channels (VECTORED) or
// pixels are neighbours.
//
// Defined before this text: the names that pixel.cuh and fragments.cuh need; BM, BN, WARPS_M and
// WARPS_N; BK and STAGES; SPLIT; VECTORED; SPATIAL, 2 without depth and 3 with it; OFFSET, a type
// that holds places in x, small if possible because large tiles are short of registers for pixels.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/convolution/pixel.cuh"
#include "gputensor/blas/kernels/shared/fragments.cuh"

const int THREADS = 32 * WARPS_M * WARPS_N;
const int WM = BM / WARPS_M, WN = BN / WARPS_N;     // of a warp
const int SIZE = sizeof(E), CHUNK = 16 / SIZE;      // bytes of an element, elements of a chunk
const int PITCH = BK + CHUNK;                       // an odd multiple of 16 bytes
const int CHUNKS = BK / CHUNK;                      // of a row, in a step
const int STAGE = (BM + BN) * PITCH * SIZE;         // bytes
const int LINES = THREADS / CHUNKS;                 // rows that the threads copy at once
const int OUT_PITCH = BN + CHUNK;
const int FIRST = 3 - SPATIAL;

// The place of a thread among the terms: the chunk of a tap's channels, and the tap.
struct Walk {
    int chunk, chunks;      // this one, those of a tap
    int tap[3], step[3];
    OFFSET offset;          // of the tap, in elements of x
    bool is_inside;
};
__device__ __forceinline__ void walk_place(const Parameters& p, Walk& walk) {
    walk.offset = walk.chunk * CHUNK;
#pragma unroll
    for (int d = FIRST; d < 3; ++d) {
        walk.step[d] = walk.tap[d] * p.axes[d].dilation;
        walk.offset += (OFFSET)(walk.step[d] * p.x.axes[d]);
    }
    walk.is_inside = walk.tap[FIRST] < p.axes[FIRST].kernel;
}
__device__ __forceinline__ void walk_begin(const Parameters& p, Walk& walk, int chunk) {
    walk.chunks = p.channels / CHUNK;
    int tap = chunk / walk.chunks;
    walk.chunk = chunk - tap * walk.chunks;
#pragma unroll
    for (int d = 2; d > FIRST; --d) {
        const int rest = tap / p.axes[d].kernel;
        walk.tap[d] = tap - rest * p.axes[d].kernel;
        tap = rest;
    }
    walk.tap[FIRST] = tap;
    walk_place(p, walk);
}
__device__ __forceinline__ void walk_on(const Parameters& p, Walk& walk) {
    walk.chunk += CHUNKS;
    while (walk.chunk >= walk.chunks) {
        walk.chunk -= walk.chunks;
        if (++walk.tap[2] < p.axes[2].kernel) continue;
        walk.tap[2] = 0;
#if SPATIAL == 3
        if (++walk.tap[1] < p.axes[1].kernel) continue;
        walk.tap[1] = 0;
#endif
        ++walk.tap[FIRST];
    }
    walk_place(p, walk);
}

// The pixels whose chunks a thread copies: offset and coordinates of their first tap.
struct Rows {
    OFFSET from[BM / LINES];
    int corner[BM / LINES][SPATIAL];
};
__device__ __forceinline__ void rows_of(const Parameters& p, uint32 first, int group, Rows& rows) {
#pragma unroll
    for (int i = 0; i < BM / LINES; ++i) {
        const uint32 number = first + threadIdx.x / CHUNKS + LINES * i;
        const Pixel pixel = pixel_of(p, number < p.pixels ? number : 0);
        int64 offset = pixel.batch * p.x.batch + (int64)group * p.channels;
#pragma unroll
        for (int d = FIRST; d < 3; ++d) {
            const int corner = pixel.place[d] * p.axes[d].stride - p.axes[d].padding;
            rows.corner[i][d - FIRST] = corner;
            offset += corner * p.x.axes[d];
        }
        if (number >= p.pixels) rows.corner[i][0] = -(1 << 30);
        rows.from[i] = (OFFSET)offset;
    }
}
__device__ __forceinline__ void fetch(const Parameters& p, uint32 to, const Rows& rows,
                                      const Walk& walk, const char* weights, int outputs,
                                      int64 term) {
    const int line = threadIdx.x / CHUNKS, column = threadIdx.x % CHUNKS * CHUNK;
#pragma unroll
    for (int i = 0; i < BM / LINES; ++i) {
        bool is_inside = walk.is_inside;
#pragma unroll
        for (int d = FIRST; d < 3; ++d)
            is_inside = is_inside
                && (uint32)(rows.corner[i][d - FIRST] + walk.step[d]) < (uint32)p.axes[d].x;
        const int64 offset = is_inside ? rows.from[i] + walk.offset : 0;
        copy_16(to + ((line + LINES * i) * PITCH + column) * SIZE, p.x.ptr + SIZE * offset,
                is_inside);
    }
#pragma unroll
    for (int i = 0; i < (BN + LINES - 1) / LINES; ++i) {
        const int output = line + LINES * i;
        if (BN % LINES && output >= BN) break;
        const bool is_inside = walk.is_inside && output < outputs;
        copy_16(to + ((BM + output) * PITCH + column) * SIZE,
                is_inside ? weights + SIZE * (output * p.weight.batch + term) : p.weight.ptr,
                is_inside);
    }
}

__device__ __forceinline__ void multiply_step(uint32 at, float (&sums)[WM / 16][WN / 8][4]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / WARPS_N * WM, column = BM + warp % WARPS_N * WN;
#pragma unroll
    for (int k = 0; k < BK; k += 2 * CHUNK) {
        uint32 a[WM / 16][4], b[WN / 16][4];
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            matrices(a[i],
                     at + ((row + i * 16 + lane % 16) * PITCH + k + lane / 16 * CHUNK) * SIZE);
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            matrices(b[j], at + ((column + j * 16 + lane / 16 * 8 + lane % 8) * PITCH
                                 + k + lane / 8 % 2 * CHUNK) * SIZE);
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
            for (int j = 0; j < WN / 16; ++j) {
                multiply(sums[i][2 * j], a[i], b[j][0], b[j][1]);
                multiply(sums[i][2 * j + 1], a[i], b[j][2], b[j][3]);
            }
    }
}

__device__ __forceinline__ void store_pair(char* to, const float* value) {
#ifdef PACK
    *reinterpret_cast<uint32*>(to) = pack(value[0], value[1]);
#else
    struct alignas(8) Pair { float first, second; };
    *reinterpret_cast<Pair*>(to) = {value[0], value[1]};
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS) kernel(const Parameters p) {
    start_early();
    extern __shared__ __align__(16) char memory[];
    const uint32 shared = shared_address(memory);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32 place = blockIdx.x;
    const int split = SPLIT ? place % p.splits : 0;
    if (SPLIT) place /= p.splits;
    const int column = (int)(place % p.column_tiles) * BN;
    place /= p.column_tiles;
    const int group = (int)(place % p.groups);
    const uint32 first = place / p.groups * BM;

    const int taps = p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel;
    const int all = (taps * (p.channels / CHUNK) + CHUNKS - 1) / CHUNKS;
    const int begin = SPLIT ? split * p.steps : 0;
    const int end = SPLIT && begin + p.steps < all ? begin + p.steps : all;
    Rows rows;
    rows_of(p, first, group, rows);
    Walk walk;
    walk_begin(p, walk, begin * CHUNKS + threadIdx.x % CHUNKS);
    const int outputs = p.outputs - column;
    const char* weights = p.weight.ptr
        + SIZE * ((int64)group * p.outputs + column) * p.weight.batch;
    int64 term = (int64)begin * BK + threadIdx.x % CHUNKS * CHUNK;

    float sums[WM / 16][WN / 8][4];
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
            sums[i][j][0] = sums[i][j][1] = sums[i][j][2] = sums[i][j][3] = 0;
    int loaded = begin;
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage, ++loaded) {
        if (loaded < end) {
            fetch(p, shared + stage * STAGE, rows, walk, weights, outputs, term);
            walk_on(p, walk);
            term += BK;
        }
        copies_commit();
    }
    int stage = 0, next = STAGES - 1;
    for (int step = begin; step < end; ++step, ++loaded) {
        copies_wait<STAGES - 2>();
        __syncthreads();
        if (loaded < end) {
            fetch(p, shared + next * STAGE, rows, walk, weights, outputs, term);
            walk_on(p, walk);
            term += BK;
        }
        copies_commit();
        multiply_step(shared + stage * STAGE, sums);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
    copies_wait<0>();
    __syncthreads();

    const int row = warp / WARPS_N * WM + lane / 4, side = warp % WARPS_N * WN + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int inside = row + i * 16 + half * 8;
            const uint32 number = first + inside;
#if SPLIT
            if (number >= p.pixels) continue;
            float* to = p.partial + (((int64)split * p.pixels + number) * p.groups + group)
                * p.outputs + column;
#pragma unroll
            for (int j = 0; j < WN / 8; ++j)
#pragma unroll
                for (int v = 0; v < 2; ++v)
                    if (side + j * 8 + v < outputs)
                        to[side + j * 8 + v] = sums[i][j][2 * half + v];
#else
            int64 added = 0;
            if (p.addend.ptr)
                added = offset_of(p.addend, pixel_of(p, number < p.pixels ? number : 0));
#pragma unroll
            for (int j = 0; j < WN / 8; ++j) {
                float value[2];
#pragma unroll
                for (int v = 0; v < 2; ++v) {
                    int output = side + j * 8 + v;
                    if (output >= outputs) output = outputs - 1;
                    value[v] = finished(p, sums[i][j][2 * half + v],
                                        (int64)group * p.outputs + column + output, added);
                }
                store_pair(memory + (inside * OUT_PITCH + side + j * 8) * SIZE, value);
            }
#endif
        }
#if !SPLIT
    __syncthreads();
    E* out = reinterpret_cast<E*>(p.out.ptr)
        + ((int64)group * p.outputs + column) * p.out.channel;
#if VECTORED
    for (int i = threadIdx.x; i < BM * (BN / CHUNK); i += THREADS) {
        const int inside = i / (BN / CHUNK), output = i % (BN / CHUNK) * CHUNK;
        const uint32 number = first + inside;
        if (number < p.pixels && output < outputs)
            *reinterpret_cast<Words*>(out + offset_of(p.out, pixel_of(p, number)) + output) =
                *reinterpret_cast<const Words*>(memory + (inside * OUT_PITCH + output) * SIZE);
    }
#else
    for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
        const int inside = i % BM, output = i / BM;
        const uint32 number = first + inside;
        if (number < p.pixels && output < outputs)
            out[offset_of(p.out, pixel_of(p, number)) + output * p.out.channel] =
                *reinterpret_cast<const E*>(memory + (inside * OUT_PITCH + output) * SIZE);
    }
#endif
#endif
}
