// Skinny products in float32: y[m, n] = sum over k of x[m, k] * w[n, k].
//
// m is at most 16. The weights are read once, so the kernel is a queue for memory: every thread
// keeps STAGES - 1 groups of 16-byte asynchronous copies in flight, into slots of shared memory
// that its warp reads back; no barrier of the block stands between two steps. The activations lie
// in shared memory, shared by all warps, each of which owns WARP_ROWS outputs ("features"): lane
// (g, t), g = lane / 4 and t = lane % 4, multiplies feature g of each eight at the 4 k from 4 t on,
// by FFMA. K is cut among the SPLITS blocks of a cluster, whose sums are added through distributed
// shared memory in a fixed order, without atomics, so the bits are equal from run to run.
//
// 16-bit and quantized weights go through tensor cores instead (skinny_mma.cuh).
//
// Defined before this text: TOKENS, the most rows of x; TILES of a warp, with 16 outputs each;
// WARPS; STAGES; SPLITS; MIN_BLOCKS, blocks of a multiprocessor that registers allow; Y_KIND.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/shared/mma.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/skinny/skinny.h"

typedef SkinnyParameters Parameters;

#define THREADS (32 * WARPS)
#define WARP_ROWS (16 * TILES)
#define BLOCK_ROWS (WARP_ROWS * WARPS)
#define CHUNKS (2 * TILES)          // of 8 features
// Eight lanes copy a whole line of 128 bytes, which has two substeps of k.
#define SUBSTEP 16
#define SUBSTEPS 2
#define STEP (SUBSTEP * SUBSTEPS)
#define STAGE_NBYTES (SUBSTEPS * CHUNKS * THREADS * 16)

// The place of one thread.
struct Place {
    int lane_g, lane_t;
    int64 row;              // first feature of the warp
    int64 k_end;            // of this split
    uint32 ring;            // shared address of the warp's slots
    const char* source;     // the thread's first chunk of k = 0
};

// The place of the chunk of lane (g, t) in a warp's slots, without bank conflicts for the copies,
// whose lanes go by lines, and for the reads of a quarter of a warp.
__device__ __forceinline__ int slot_of(int g, int t, int substep) {
    return (4 * g + t) ^ (4 * substep);
}

// Loads into the slots of the lanes that use the weights.
__device__ __forceinline__ void load_weights(const Parameters& p, const Place& at, int64 k,
                                             int stage) {
    const uint32 to = at.ring + stage * STAGE_NBYTES;
    const int lane = threadIdx.x % 32, substep = lane % 8 / 4;
    const bool has_k = k + lane % 8 * 4 < at.k_end;
#pragma unroll
    for (int c = 0; c < 2 * CHUNKS; ++c) {
        const int row = 4 * c + lane / 8;
        const uint32 slot = to + (substep * CHUNKS + c / 2) * (THREADS * 16)
                          + slot_of(row % 8, lane % 4, substep) * 16;
        const bool is_valid = has_k && at.row + row < p.n;
        const char* from = at.source + 4 * c * p.w_pitch + k * 4;
        copy_16(slot, is_valid ? from : p.w, is_valid);
    }
}

// Loads the activations of `span` k from `k` on.
__device__ __forceinline__ void load_x(const Parameters& p, uint32 shared, int64 k) {
    const int in_row = p.span / 4;
    const int count = p.m * in_row;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const int token = i / in_row, chunk = i - token * in_row;
        const bool is_valid = k + chunk * 4 < p.k;
        const char* from = p.x + token * p.x_pitch + (k + chunk * 4) * 4;
        const uint32 to = shared + p.x_offset + token * p.x_row + chunk * 16;
        copy_16(to, is_valid ? from : p.x, is_valid);
    }
}

// Adds one substep of k: `ring` is the thread's slot, `x` the shared address of k in row 0.
__device__ __forceinline__ void consume(const Parameters& p, const Place& at, uint32 ring, uint32 x,
                                        float sums[CHUNKS][TOKENS]) {
    const uint32 mine = x + at.lane_t * 16;
    Words w[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) w[c] = shared_16(ring + c * (THREADS * 16));
#pragma unroll
    for (int m = 0; m < TOKENS; ++m) {
        const Words v = shared_16(mine + (m < p.m ? m : p.m - 1) * p.x_row);
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sums[c][m] = fmaf(__uint_as_float(w[c].item[e]), __uint_as_float(v.item[e]),
                                  sums[c][m]);
    }
}

__device__ __forceinline__ void store_sums(const Place& at, uint32 total,
                                           float sums[CHUNKS][TOKENS]) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
#pragma unroll
        for (int m = 0; m < TOKENS; ++m) {
            float sum = sums[c][m];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (at.lane_t == m % 4)
                asm volatile("st.shared.f32 [%0], %1;"
                             :: "r"(total + (m * BLOCK_ROWS + 8 * c + at.lane_g) * 4), "f"(sum)
                             : "memory");
        }
}

extern "C" __global__ void BY_CLUSTER __launch_bounds__(THREADS, MIN_BLOCKS)
kernel(const Parameters p) {
    start_early();
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int split = blockIdx.x % SPLITS;
    const int64 block_row = (int64)(blockIdx.x / SPLITS) * BLOCK_ROWS;
    const int64 k_begin = split * p.slice;
    Place at;
    at.lane_g = lane / 4;
    at.lane_t = lane % 4;
    at.row = block_row + warp * WARP_ROWS;
    at.k_end = k_begin + p.slice < p.k ? k_begin + p.slice : p.k;
    at.ring = shared + warp * 512;
    at.source = p.w + (at.row + lane / 8) * p.w_pitch + lane % 8 * 16;
    const int steps = at.k_end > k_begin ? (int)((at.k_end - k_begin + STEP - 1) / STEP) : 0;
    float sums[CHUNKS][TOKENS] = {};

    load_x(p, shared, k_begin);
    copies_commit();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) load_weights(p, at, k_begin + (int64)s * STEP, s);
        copies_commit();
    }
    copies_wait<STAGES - 1>();
    __syncthreads();

    const int span_steps = p.span / STEP;
    int stage = 0, in_span = 0;
    for (int step = 0; step < steps; ++step) {
        if (in_span == span_steps) {
            __syncthreads();
            load_x(p, shared, k_begin + (int64)step * STEP);
            copies_commit();
            copies_wait<0>();
            __syncthreads();
            in_span = 0;
        }
        // All lanes have their copies, and no lane still reads the stage before.
        copies_wait<STAGES - 2>();
        __syncwarp();
        const int ahead = step + STAGES - 1;
        const int free_stage = stage == 0 ? STAGES - 1 : stage - 1;
        if (ahead < steps) load_weights(p, at, k_begin + (int64)ahead * STEP, free_stage);
        copies_commit();
        // Larger tiles would spill if unrolled.
#pragma unroll (TILES == 1 ? SUBSTEPS : 1)
        for (int substep = 0; substep < SUBSTEPS; ++substep) {
            const uint32 slots = at.ring + stage * STAGE_NBYTES + substep * (CHUNKS * THREADS * 16)
                               + slot_of(at.lane_g, at.lane_t, substep) * 16;
            consume(p, at, slots, shared + p.x_offset + (in_span * STEP + substep * SUBSTEP) * 4,
                    sums);
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        ++in_span;
    }

    // The sums overwrite the slots.
    copies_wait<0>();
    __syncthreads();
    store_sums(at, shared + warp * WARP_ROWS * 4, sums);
    meet();
    for (int i = threadIdx.x + split * THREADS; i < p.m * BLOCK_ROWS; i += SPLITS * THREADS) {
        const int token = i / BLOCK_ROWS;
        const int64 row = block_row + i % BLOCK_ROWS;
        float part[SPLITS], sum = 0;
#pragma unroll
        for (int s = 0; s < SPLITS; ++s) part[s] = load_total(shared + i * 4, s);
#pragma unroll
        for (int s = 0; s < SPLITS; ++s) sum += part[s];
        if (row < p.n) {
            const int64 line = p.is_turned ? row : token, column = p.is_turned ? token : row;
            sum = ended(p, sum, line * p.addend_pitch + column, column);
            store_y(p.y, line * p.y_pitch + column, sum);
        }
    }
#if SPLITS > 1
    meet();     // no block of the cluster leaves while another still reads its sums
#endif
}
