// Skinny products on tensor cores: y[m, n] = sum over k of x[m, k] * w[n, k].
//
// m is at most 16, x is in 16-bit floats, the weights in the same type or in int8 or int4 with
// scales. They are read once, so the kernel is a queue for memory: every lane keeps STAGES - 1
// steps of 16-byte asynchronous copies in flight, into slots of shared memory that no other warp
// reads; no barrier stands between two steps. One block takes a whole multiprocessor; its warps
// share its outputs ("features") and, K_WARPS ways, its k. K is cut once more among the SPLITS
// blocks of a cluster. All sums are added in a fixed order in the shared memory of the block that
// owns the features, without atomics, so the bits are equal from run to run.
//
// Each mma.m16n8k16 has the weights as its left operand (16 features) and x as its right one (8
// tokens). Any assignment of k and features to the places of an instruction is allowed if the
// operands agree. Here lane (g, t), g = lane / 4 and t = lane % 4, holds features 2 g and 2 g + 1
// of a tile of 16 x 64 at the 8 k from 8 t and from 8 t + 32 on (WIDE: the 16 from 16 t on, which
// are contiguous in int8, unless a scale holds for only 32 k). x lies in shared memory in the same
// order.
//
// Defined before this text: FORM, 0 for plain weights, 1 for int8, 2 for int4; X_KIND, X_TYPE and
// Y_KIND; TOKENS, 8 or 16; TILES, STEP, ROW_WARPS, K_WARPS, STAGES, SPLITS; GROUP, the number of k
// that share a scale, 0 for all; NORM, the chunks of a row per thread if x is normalized first
// (norm.cuh), else 0, and CENTERED; PAIRS (pairs.cuh), 0 if features are independent; GATE, the
// activation; STEADY, whether weights, gain and shift may be read before earlier work has ended.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/shared/mma.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/skinny/expand.cuh"
#include "gputensor/blas/kernels/skinny/skinny_mma.h"

#if NORM || PAIRS || GATE
typedef SkinnyFusedParameters Parameters;
#else
typedef SkinnyMmaParameters Parameters;
#endif

// A column is 64 k; tile: 16 features of a column. A step is STEP columns of a warp's TILES tiles.
#define THREADS (32 * ROW_WARPS * K_WARPS)
#define WARP_ROWS (16 * TILES)
#define BLOCK_ROWS (WARP_ROWS * ROW_WARPS)
#define PREFETCH_NBYTES 65536       // of a block; more would come before what earlier work reads
#define OWN_ROWS (BLOCK_ROWS / SPLITS)
#define PARTS (SPLITS * K_WARPS)
#define WIDE (FORM == 1 && GROUP != 32)
#define COPIES (FORM == 2 ? 1 : FORM == 1 ? 2 : 4)          // of 16 bytes, of a lane for a tile
#define COLUMN_NBYTES (FORM == 2 ? 512 : FORM == 1 ? 64 : 128)
#define SOURCES (FORM == 2 ? TILES : 2 * TILES)
#define GROUPS (GROUP ? STEP * 64 / (GROUP + !GROUP) : 0)   // of a step
#define WEIGHTS_NBYTES (STEP * TILES * COPIES * 512)
#define STAGE_NBYTES (WEIGHTS_NBYTES + GROUPS * TILES * 128)
#define TOKEN_TILES (TOKENS / 8)
// x in shared memory: bytes of a token in a column, which a lane reads in two halves. Copies are
// fastest for a line in one piece, reads of a quarter of a warp for different banks.
#define X_NBYTES (WIDE ? 144 : 128)
#if PAIRS
#define LAST p.last
#define SCALES_PITCH p.scales_pitch
#include "gputensor/blas/kernels/skinny/pairs.cuh"
#else
#define LAST ((int)p.n - 1)
#define SCALES_PITCH p.n
#endif

// The place of a lane. `source` and `scales` move on from step to step.
struct Place {
    int row;                // first feature of the warp
    int begin, end;         // columns of the warp's part of k
    int ahead;              // first column of the step that is copied next
    uint32 ring;            // shared address of the warp's stages, plus 16 * lane
    uint32 target;          // the same of the stage that is copied to next
    Policy policy;
    const char* source[SOURCES];
    const char* scales[TILES];
};

__device__ __forceinline__ int part_begin(const Parameters& p, int part) {
    const int columns = (int)((p.k + 63) / 64), steps = (columns + STEP - 1) / STEP;
    const int begin = (int)((uint32)(steps * part) / (uint32)PARTS) * STEP;
    return begin < columns ? begin : columns;
}

__device__ __forceinline__ void find_sources(const Parameters& p, Place& at) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, last = LAST;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#if PAIRS
        const bool is_second = (at.row / 16 + tile) % 2;
        const int row = tile_begin(p, at.row + 16 * tile);
        const char* const weights = is_second ? p.second_w : p.w;
        const char* const scales = is_second ? p.second_scales : p.scales;
#else
        const int row = at.row + 16 * tile;
        const char* const weights = p.w;
        const char* const scales = p.scales;
#endif
        // Features beyond the last are read from it, and their sums are not stored.
#if FORM == 2
        const int tile_row = (row < last ? row : last) / 16;
        at.source[tile] = weights + tile_row * p.w_pitch + lane * 16;
#else
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int feature = row + 2 * g + r < last ? row + 2 * g + r : last;
            at.source[2 * tile + r] =
                weights + feature * p.w_pitch + t * (FORM == 1 && !WIDE ? 8 : 16);
        }
#endif
#if GROUP
        const int pair = row + 2 * g < last ? row + 2 * g : last - 1;
        at.scales[tile] = scales + ((int64)at.begin * 64 / GROUP * SCALES_PITCH + pair) * 2;
#endif
    }
#pragma unroll
    for (int i = 0; i < SOURCES; ++i) at.source[i] += (int64)at.begin * COLUMN_NBYTES;
}

// Fetches the first PREFETCH_NBYTES of the block's weights into the second cache while earlier work
// still runs. Fetching the scales as well gains nothing.
__device__ __forceinline__ void prefetch_weights(const Parameters& p, const Place& at) {
    const int runs = FORM == 2 ? TILES : WARP_ROWS, lane = threadIdx.x % 32;
    const int most = PREFETCH_NBYTES / (ROW_WARPS * K_WARPS * runs * COLUMN_NBYTES);
    const int whole = (int)(p.k / 64), end = FORM == 2 || at.end < whole ? at.end : whole;
    const int columns = end - at.begin < most ? end - at.begin : most;
    if (columns <= 0) return;
#pragma unroll
    for (int i = 0; i < SOURCES; ++i)
        if (FORM == 2 ? lane == 0 : lane % 4 == 0) prefetch(at.source[i], columns * COLUMN_NBYTES);
}

// Queues the copies of the next step, if there is one, and closes their group.
__device__ __forceinline__ void copy_step(const Parameters& p, Place& at) {
    const int lane = threadIdx.x % 32, t = lane % 4;
    if (at.ahead < at.end) {
        const bool is_whole = at.ahead + STEP <= at.end
                            && (FORM == 2 || (int64)(at.ahead + STEP) * 64 <= p.k);
#pragma unroll
        for (int j = 0; j < STEP; ++j)
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
                for (int i = 0; i < COPIES; ++i) {
                    const uint32 slot = at.target + ((j * TILES + tile) * COPIES + i) * 512;
                    const char* from = at.source[FORM == 2 ? tile : 2 * tile + i % 2]
                                     + j * COLUMN_NBYTES + i / 2 * 64;
#if FORM == 1 && !WIDE
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const int64 k = (int64)(at.ahead + j) * 64 + 32 * half + 8 * t;
                        const bool is_valid = at.ahead + j < at.end && k < p.k;
                        copy_8(slot + 8 * half, is_valid ? from + 32 * half : p.w, is_valid);
                    }
                    continue;
#endif
                    if (is_whole) {
                        copy_weights_16(slot, from, at.policy);
                    } else {
                        const int64 k = (int64)(at.ahead + j) * 64
                                      + (FORM == 2 ? 0 : FORM == 1 ? 16 * t : i / 2 * 32 + 8 * t);
                        const bool is_valid = at.ahead + j < at.end && k < p.k;
                        copy_16(slot, is_valid ? from : p.w, is_valid);
                    }
                }
#if GROUP
#pragma unroll
        for (int s = 0; s < GROUPS; ++s)
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                const uint32 slot = at.target - 12 * lane + WEIGHTS_NBYTES
                                  + (s * TILES + tile) * 128;
                const bool is_valid = (int64)at.ahead * 64 + s * GROUP < p.k;
                copy_4(slot, is_valid ? at.scales[tile] + s * SCALES_PITCH * 2 : p.scales,
                       is_valid);
            }
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) at.scales[tile] += GROUPS * SCALES_PITCH * 2;
#endif
    }
    copies_commit();
#pragma unroll
    for (int i = 0; i < SOURCES; ++i) at.source[i] += STEP * COLUMN_NBYTES;
    at.ahead += STEP;
    at.target += STAGE_NBYTES;
    if (at.target == at.ring + STAGES * STAGE_NBYTES) at.target = at.ring;
}

// The place of a chunk, 8 k of a token, in x: [part][column][half][token][t], which lanes read
// together; WIDE: [part][column][token][chunk], because lanes read chunks 2 t and 2 t + 1.
__device__ __forceinline__ int x_place(const Parameters& p, int part, int token, int chunk) {
    const int column = part * p.span + chunk / 8;
#if WIDE
    return p.x_offset + (column * p.m + token) * X_NBYTES + chunk % 8 * 16;
#else
    return p.x_offset + ((column * 2 + chunk % 8 / 4) * p.m + token) * 64 + chunk % 4 * 16;
#endif
}
__device__ __forceinline__ void copy_x(const Parameters& p, uint32 shared, int split, int from) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = warp; i < K_WARPS * p.m; i += ROW_WARPS * K_WARPS) {
        const int part = i % K_WARPS, token = i / K_WARPS;
        const int column = part_begin(p, split * K_WARPS + part) + from;
        const int64 end = (int64)part_begin(p, split * K_WARPS + part + 1) * 64;
        const int64 k = (int64)column * 64, left = (end < p.k ? end : p.k) - k;
        const char* row = p.x + token * p.x_pitch + k * 2;
#pragma unroll 4
        for (int chunk = lane; chunk < p.span * 8; chunk += 32) {
            const bool is_valid = chunk * 8 < left;
            copy_x_16(shared + x_place(p, part, token, chunk), is_valid ? row + chunk * 16 : p.x,
                      is_valid);
        }
    }
}

#if STEADY
// Like copy_x, but not in the queue of copies, where x would arrive only after the weights.
__device__ __forceinline__ void load_x(const Parameters& p, uint32 shared, int split) {
    const int chunks = p.span * 8, count = p.m * K_WARPS * chunks;
    for (int first = threadIdx.x; first < count; first += 4 * THREADS) {
        Words x[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = first + j * THREADS, chunk = i % chunks;
            const int part = i / chunks % K_WARPS, token = i / chunks / K_WARPS;
            const int64 k = (int64)part_begin(p, split * K_WARPS + part) * 64 + chunk * 8;
            const int64 end = (int64)part_begin(p, split * K_WARPS + part + 1) * 64;
            x[j] = {};
            if (i < count && k < p.k && k < end)
                x[j] = *reinterpret_cast<const Words*>(p.x + token * p.x_pitch + k * 2);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int i = first + j * THREADS;
            if (i < count)
                store_16(shared + x_place(p, i / chunks % K_WARPS, i / chunks / K_WARPS, i % chunks),
                         x[j]);
        }
    }
}
#endif

#if NORM
#include "gputensor/blas/kernels/skinny/norm.cuh"
#endif

// sums += part * scales of the features, and part = 0.
__device__ __forceinline__ void fold(uint32 scales, float sums[TILES][TOKEN_TILES][4],
                                     float part[TILES][TOKEN_TILES][4]) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        const uint32 pair = shared_4(scales + tile * 128);
        const float low = wide((uint16)pair, X_KIND), high = wide((uint16)(pair >> 16), X_KIND);
#pragma unroll
        for (int i = 0; i < TOKEN_TILES; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float& sum = sums[tile][i][e];
                sum = fmaf(e / 2 ? high : low, part[tile][i][e], sum);
                part[tile][i][e] = 0;
            }
    }
}

// Multiplies one step: `stage` is the lane's place in it, x[i] the shared address of its first
// chunk.
__device__ __forceinline__ void multiply_step(const Parameters& p, uint32 stage,
                                              uint32 x[TOKEN_TILES],
                                              float sums[TILES][TOKEN_TILES][4]) {
    float part[TILES][TOKEN_TILES][4] = {};
    const uint32 scales = stage - threadIdx.x % 32 * 12 + WEIGHTS_NBYTES;
#pragma unroll
    for (int j = 0; j < STEP; ++j) {
        Words w[TILES][COPIES];
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (int i = 0; i < COPIES; ++i)
                w[tile][i] = shared_16(stage + ((j * TILES + tile) * COPIES + i) * 512);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            Words v[TOKEN_TILES];
#pragma unroll
            for (int i = 0; i < TOKEN_TILES; ++i) {
                v[i] = shared_16(x[i] + half * (WIDE ? 16 : p.m * 64));
                if (half) x[i] += p.m * X_NBYTES;
            }
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                uint32 a[4], b[4];      // feature 2 g, feature 2 g + 1
#if FORM == 2
                expand_int4(w[tile][0].item[2 * half], a);
                expand_int4(w[tile][0].item[2 * half + 1], b);
#elif FORM == 1
                expand_int8(w[tile][0].item[2 * half], a);
                expand_int8(w[tile][0].item[2 * half + 1], a + 2);
                expand_int8(w[tile][1].item[2 * half], b);
                expand_int8(w[tile][1].item[2 * half + 1], b + 2);
#else
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    a[e] = w[tile][2 * half].item[e];
                    b[e] = w[tile][2 * half + 1].item[e];
                }
#endif
#pragma unroll
                for (int i = 0; i < TOKEN_TILES; ++i) {
                    float* d = GROUP ? part[tile][i] : sums[tile][i];
                    multiply(d, a[0], b[0], a[1], b[1], v[i].item[0], v[i].item[1]);
                    multiply(d, a[2], b[2], a[3], b[3], v[i].item[2], v[i].item[3]);
                }
            }
            if (GROUP == 32) fold(scales + (2 * j + half) * TILES * 128, sums, part);
        }
        if (GROUP > 32 && (j + 1) % (GROUP / 64) == 0)
            fold(scales + ((j + 1) / (GROUP / 64) - 1) * TILES * 128, sums, part);
    }
}

#include "gputensor/blas/kernels/skinny/sums.cuh"

extern "C" __global__ void BY_CLUSTER __launch_bounds__(THREADS, 1)
kernel(const Parameters p) {
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row_warp = warp % ROW_WARPS, k_warp = warp / ROW_WARPS;
    const int split = blockIdx.x % SPLITS, block_row = (int)(blockIdx.x / SPLITS) * BLOCK_ROWS;
    const int part = split * K_WARPS + k_warp;
    Place at;
    at.row = block_row + row_warp * WARP_ROWS;
    at.begin = at.ahead = part_begin(p, part);
    at.end = part_begin(p, part + 1);
    at.policy = read_once();
    at.ring = at.target = shared + warp * (STAGES * STAGE_NBYTES) + lane * 16;
    find_sources(p, at);
#if SPLITS > 1
    // No block writes to another before that one runs: the wait is below, after the last step.
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
#if !STEADY
    prefetch_weights(p, at);
    start_early();
#endif
    // One step goes before x, so that the memory is busy while the cache delivers x, unless x is
    // small.
    const bool is_x_first = FORM == 1 || p.m == 1;
#if STEADY
#if NORM
    const Row gain = load_row(p, p.gain), shift = p.shift ? load_row(p, p.shift) : Row{};
#endif
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) copy_step(p, at);
    start_early();
#if NORM
    const Row row = load_row(p, p.x);
#else
    load_x(p, shared, split);
#endif
#else
#if NORM
    const Row row = load_row(p, p.x), gain = load_row(p, p.gain);
    const Row shift = p.shift ? load_row(p, p.shift) : Row{};
#endif
#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
        if (!NORM && (is_x_first ? s == 0 : s == 1)) {
            copy_x(p, shared, split, 0);
            copies_commit();
        }
        if (s < STAGES - 1) copy_step(p, at);
    }
#endif
#if NORM
    normed_x(p, shared, split, row, gain, shift);
#endif
    float sums[TILES][TOKEN_TILES][4] = {};
    int longest = 0;
#pragma unroll
    for (int i = 0; i < K_WARPS; ++i) {
        const int part = split * K_WARPS + i;
        const int columns = part_begin(p, part + 1) - part_begin(p, part);
        longest = columns > longest ? columns : longest;
    }
    uint32 stage = at.ring;
    for (int from = 0; from < longest; from += p.span) {
        if (from) {
            __syncthreads();
            copy_x(p, shared, split, from);
            copies_commit();
            copies_wait<0>();
        } else if (!NORM && !STEADY && is_x_first) {
            copies_wait<STAGES - 1>();
        } else {
            copies_wait<STAGES - 2>();
        }
        __syncthreads();
        uint32 x[TOKEN_TILES];
#pragma unroll
        for (int i = 0; i < TOKEN_TILES; ++i) {
            const int token = 8 * i + lane / 4 < p.m ? 8 * i + lane / 4 : p.m - 1;
            x[i] = shared + x_place(p, k_warp, token, WIDE ? lane % 4 * 2 : lane % 4);
        }
        const int first = at.begin + from;
        const int end = first + p.span < at.end ? first + p.span : at.end;
#pragma unroll 1
        for (int column = first; column < end; column += STEP) {
            copies_wait<STAGES - 2>();
            copy_step(p, at);
            multiply_step(p, stage, x, sums);
            stage += STAGE_NBYTES;
            if (stage == at.ring + STAGES * STAGE_NBYTES) stage = at.ring;
        }
    }

    if (SPLITS == 1 || IS_ADDED_FIRST) {
        // The sums overwrite the stages.
        copies_wait<0>();
        __syncthreads();
    }
#if SPLITS > 1
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        const int place = row_warp * TILES + tile;
#if PAIRS       // the sums of a pair are adjacent
        const int feature = place / 2 * 32 + place % 2 + lane / 4 * 4, next = feature + 2;
#else
        const int feature = 16 * place + lane / 4 * 2, next = feature + 1;
#endif
#pragma unroll
        for (int i = 0; i < TOKEN_TILES; ++i)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int token = 8 * i + lane % 4 * 2 + e;
                if (token >= p.m) continue;
                const float low = sums[tile][i][e], high = sums[tile][i][e + 2];
                if (IS_ADDED_FIRST) {
                    store_4(part_place(p, shared, k_warp, token, feature), low);
                    store_4(part_place(p, shared, k_warp, token, next), high);
                } else {
                    send_sum(p, shared, part, token, feature, low);
                    send_sum(p, shared, part, token, next, high);
                }
            }
    }
    if (IS_ADDED_FIRST) send_sums(p, shared, split);
    meet();
#if PAIRS
    for (int i = threadIdx.x; i < p.m * (OWN_ROWS / 2); i += THREADS) {
        const int token = i / (OWN_ROWS / 2), own = i % (OWN_ROWS / 2) * 2;
        finish_pair(p, token, (block_row + split * OWN_ROWS + own) / 2,
                    p.alpha * whole_sum(p, shared, token, own),
                    p.alpha * whole_sum(p, shared, token, own + 1));
    }
#else
    for (int i = threadIdx.x; i < p.m * OWN_ROWS; i += THREADS) {
        const int token = i / OWN_ROWS, own = i % OWN_ROWS;
        const int row = block_row + split * OWN_ROWS + own;
        float sum = whole_sum(p, shared, token, own);
        if (row < p.n) {
#if FORM && !GROUP
            sum *= wide(reinterpret_cast<const uint16*>(p.scales)[row], X_KIND);
#endif
            sum *= p.alpha;
            if (p.beta != 0)
                sum = fmaf(p.beta, load_y(p.addend, token * p.addend_pitch + row), sum);
            if (p.bias) sum += load_y(p.bias, row);
            store_y(p.y, token * p.y_pitch + row, activated(sum));
        }
    }
#endif
}
