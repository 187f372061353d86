// Products of many rows on the tensor cores of Hopper (sm_90a), with weights of any form; see tile.cuh.
//
// wgmma takes its left operand, the weights, from registers, so these need no place in shared
// memory as 16-bit floats: a lane copies them as they are stored, makes floats of 32 k at a time and
// multiplies them, while the 32 k before are still multiplied. Two warpgroups have 64 * TILES
// features each. One more thread keeps a ring of x, which order.cuh has brought into the order of the
// instruction. order.cuh has waited for all work before this product, so the first weights are copied
// while it still runs. The two blocks of a cluster have the same rows of x, and each loads half of
// them for both. With PARTS, the blocks of a cluster have the same rows and features, and each has a
// part of K; they add their sums in shared memory.
//
// Defined before this text: FORM, X_KIND, Y_KIND, GROUP, PAIRED (TILES is 2 then) and FORMULA as in
// tile.cuh; TOKENS; TILES, blocks of 64 features of a warpgroup; STAGES of the rings of weights and
// of x; PARTS, 1, or the blocks of a cluster among which K is cut, a divisor of TOKENS / 8;
// MULTIPLY, the instruction that multiplies 16 k from registers a and descriptor b and adds them to
// the sums d.
#pragma once

#define SPLITS (PARTS > 1 ? PARTS : 2)      // blocks of a cluster
#define THREADS 384

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/shared/mma.cuh"
#include "gputensor/blas/kernels/skinny/expand.cuh"
#include "gputensor/blas/kernels/quantized/finish.cuh"
#include "gputensor/blas/kernels/quantized/sources.cuh"

#define BLOCK_ROWS (128 * TILES)
#define READS (SCALES == 2 && FORM == 1 ? 1 : SCALES)       // of scales of a feature, by a lane
#define STAGE_NBYTES (8 * WARP_NBYTES)
#define X_NBYTES (TOKENS * 128)                             // of a column
#define WEIGHTS_AT (STAGES * X_NBYTES)
#define BARRIERS_AT (WEIGHTS_AT + STAGES * STAGE_NBYTES)

__device__ __forceinline__ void multiply_16(float* d, const uint32* a, uint64 b) { MULTIPLY }

// Gives a stage of x back to the blocks that load into it: both, unless K is cut among them.
__device__ __forceinline__ void release(uint32 empty) {
#if PARTS > 1
    if (threadIdx.x % 32 == 0) arrive(empty);
#else
    if (threadIdx.x % 32 < 2) barrier_arrive_at(empty, threadIdx.x % 32);
#endif
}
// Rows of 128 bytes, swizzled. The upper bits of an address name the block of the cluster.
__device__ __forceinline__ uint64 descriptor(uint32 at) {
    return (uint64)((at & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// ---- sums of blocks that share the terms

#if PARTS > 1
// Waits for the warps that multiply.
__device__ __forceinline__ void meet_multipliers() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// Keeps four sums at an address in this block's shared memory.
__device__ __forceinline__ void store_four(uint32 to, const float* sums) {
    Words x;
#pragma unroll
    for (int e = 0; e < 4; ++e) x.item[e] = __float_as_uint(sums[e]);
    store_16(to, x);
}

// Adds the four sums at an address in the shared memory of a block of the cluster.
__device__ __forceinline__ void add_four(float* sums, uint32 from, int split) {
    Words x;
    uint32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(from), "r"(split));
    asm volatile("ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.item[0]), "=r"(x.item[1]), "=r"(x.item[2]), "=r"(x.item[3])
                 : "r"(there) : "memory");
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[e] += __uint_as_float(x.item[e]);
}
#endif

// ---- weights

struct Place {
    int ahead, end;             // columns: the next that is copied, and the end of the block's part
    uint32 to;                  // shared address of the lane's next copies
    uint32 w[TILES * COPIES];   // the next copies of the lane, in units of 16 bytes
    uint32 scales[TILES];       // the lane's features, in words
};

// Queues the copies of the next column, if there is one, and closes their group.
__device__ __forceinline__ void copy_column(const Parameters& p, Place& at, uint32 begin) {
    const int lane = threadIdx.x % 32;
    if (at.ahead < at.end) {
        const int64 first = (int64)at.ahead * 64;
#pragma unroll
        for (int i = 0; i < TILES * COPIES; ++i) {
            const uint32 to = at.to + lane * 16 + i * 512;
            const bool is_valid = is_in_row(first, i, p.k);
            copy_16(to, is_valid ? p.w + (uint64)at.w[i] * 16 : p.w, is_valid);
        }
#if GROUP
#pragma unroll
        for (int s = 0; s < SCALES; ++s) {
            const bool is_valid = SCALES == 1 || first + s * 32 < p.k;
            const uint32 group = SCALES == 1 ? (uint32)at.ahead / (GROUP / 64) : at.ahead * 2 + s;
            const uint64 from = (uint64)group * (uint32)(p.n / 2);
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile)
                copy_4(at.to + lane * 4 + TILES * COPIES * 512 + (s * TILES + tile) * 128,
                       is_valid ? p.scales + (from + at.scales[tile]) * 4 : p.scales,
                       is_valid);
        }
#endif
    }
    copies_commit();
#pragma unroll
    for (int i = 0; i < TILES * COPIES; ++i) at.w[i] += COLUMN_NBYTES / 16;
    ++at.ahead;
    at.to += STAGE_NBYTES;
    if (at.to == begin + STAGES * STAGE_NBYTES) at.to = begin;
}

// Reads a column's weights, and the scales of features 2 g and 2 g + 1 as pairs.
__device__ __forceinline__ void read_column(uint32 at, Words words[TILES][COPIES],
                                            uint32 (*scales)[TILES][2]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#pragma unroll
        for (int i = 0; i < COPIES; ++i)
            words[tile][i] = shared_16(at + lane * 16 + (tile * COPIES + i) * 512);
#pragma unroll
        for (int s = 0; s < READS; ++s) {
            const int group = SCALES == 1 ? 0 : FORM == 2 ? s : lane % 4 / 2;
            const uint32 pair = shared_4(at + lane * 4 + TILES * COPIES * 512
                                         + (group * TILES + tile) * 128);
            scales[s][tile][0] = __byte_perm(pair, 0, 0x1010);
            scales[s][tile][1] = __byte_perm(pair, 0, 0x3232);
        }
    }
}

// The weights of 32 k (int8: the half of 64 k) as the left operands of two instructions.
__device__ __forceinline__ void make_half(const Words words[TILES][COPIES],
                                          const uint32 (*scales)[TILES][2], int half,
                                          uint32 made[TILES][2][4]) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
        uint32 a[4], b[4];                  // feature 2 g, feature 2 g + 1
        expand_half(words[tile], half, a, b);
#if GROUP
        const int group = READS == 2 ? half : 0;
        scale_pairs(a, scales[group][tile][0]);
        scale_pairs(b, scales[group][tile][1]);
#endif
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            made[tile][i][0] = a[2 * i];
            made[tile][i][1] = b[2 * i];
            made[tile][i][2] = a[2 * i + 1];
            made[tile][i][3] = b[2 * i + 1];
        }
    }
}

__device__ __forceinline__ void multiply_half(float sums[TILES][TOKENS / 8][4],
                                              const uint32 made[TILES][2][4], uint64 x) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
            multiply_16(sums[tile][0], made[tile][i], x + 2 * i);
    wgmma_commit();
}

struct Part { int token, row, split, first, count; };   // of the block; columns

__device__ __forceinline__ void load_x(const Parameters& p, const Part& part, uint32 shared,
                                       uint32 rank) {
    const int half = X_NBYTES / 2, offset = PARTS > 1 ? 0 : rank * half;
    const uint32 full = shared + BARRIERS_AT, empty = full + 8 * STAGES;
    uint64 x = (uint64)(p.ordered + ((int64)part.first * p.ordered_rows + part.token) * 128
                        + offset);
    uint32 stage = 0, phase = 1;
    for (int step = 0; step < part.count; ++step) {
        barrier_wait(empty + 8 * stage, phase);
        barrier_expect(full + 8 * stage, X_NBYTES);
#if PARTS > 1
        bulk_load(shared + stage * X_NBYTES, x, X_NBYTES, full + 8 * stage);
#else
        bulk_load_to_both(shared + stage * X_NBYTES + offset, x, half, full + 8 * stage);
#endif
        x += (int64)p.ordered_rows * 128;
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
}

#if PARTS > 1
const int OWN = TOKENS / 8 / PARTS;     // eights of tokens whose sums a block adds

// Adds the sums of all blocks for this block's share of the tokens, in the order of the blocks, and
// writes the results. The sums lie where the rings were, a thread's fours 256 * 16 bytes apart.
__device__ __forceinline__ void join_parts(const Parameters& p, const Part& part, uint32 shared,
                                           const float (*sums)[TOKENS / 8][4], int row) {
    const int lane = threadIdx.x % 32, rank = blockIdx.x % SPLITS;
    const uint32 own = shared + threadIdx.x * 16;
    meet_multipliers();                 // nobody still reads weights or x
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int i = 0; i < TOKENS / 8; ++i)
            store_four(own + (tile * (TOKENS / 8) + i) * 4096, sums[tile][i]);
    cluster_sync();
    float total[TILES][OWN][4] = {};
#pragma unroll
    for (int split = 0; split < PARTS; ++split)
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (int i = 0; i < OWN; ++i)
                add_four(total[tile][i], own + (tile * (TOKENS / 8) + rank * OWN + i) * 4096,
                         split);
#pragma unroll
    for (int tile = 0; tile < TILES; tile += 1 + PAIRED)
        write_features<OWN>(p, part.split, part.token + rank * OWN * 8 + lane % 4 * 2,
                            row + 64 * tile + lane / 4 * 2, total[tile], total[tile + PAIRED]);
}
#endif

__device__ __forceinline__ void multiply_block(const Parameters& p, const Part& part,
                                               uint32 shared) {
    const uint32 full = shared + BARRIERS_AT, empty = full + 8 * STAGES;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = part.row + warp / 4 * (64 * TILES >> PAIRED) + warp % 4 * 16;
    const uint32 begin = shared + WEIGHTS_AT + warp * WARP_NBYTES;
    Place at;
    at.ahead = part.first;
    at.end = part.first + part.count;
    at.to = begin;
    find_weights(p, row, PAIRED ? (int)p.n / 2 : 64, at.ahead, at.w, at.scales);
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) copy_column(p, at, begin);
    start_early();
    float sums[TILES][TOKENS / 8][4] = {};
    uint32 weights = begin, stage = 0, phase = 0, last = 0;
    uint32 made[2][TILES][2][4];
#pragma unroll 1
    for (int step = 0; step < part.count; ++step) {
        copies_wait<STAGES - 2>();
        Words words[TILES][COPIES];
        uint32 scales[READS + 1][TILES][2];
        read_column(weights, words, scales);
        const uint64 x = descriptor(shared + stage * X_NBYTES);
        make_half(words, scales, 0, made[0]);
        barrier_wait(full + 8 * stage, phase);
        multiply_half(sums, made[0], x);
        wgmma_wait<1>();
        if (step) release(empty + 8 * last);
        make_half(words, scales, 1, made[1]);
        multiply_half(sums, made[1], x + 4);
        copy_column(p, at, begin);
        // Plain weights are multiplied in the registers to which the next step reads, and these may
        // not be written before the products that read them have ended.
        wgmma_wait<FORM == 0 ? 0 : 1>();
        weights += STAGE_NBYTES;
        if (weights == begin + STAGES * STAGE_NBYTES) weights = begin;
        last = stage;
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
    wgmma_wait<0>();
    copies_wait<0>();
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) settle<TOKENS / 2>(sums[tile][0]);
#if PARTS > 1
    join_parts(p, part, shared, sums, row);
#else
#pragma unroll
    for (int tile = 0; tile < TILES; tile += 1 + PAIRED)
        write_features<TOKENS / 8>(p, part.split, part.token + lane % 4 * 2,
                                   row + 64 * tile + lane / 4 * 2, sums[tile], sums[tile + PAIRED]);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(SPLITS, 1, 1)
kernel(const Parameters p) {
    extern __shared__ __align__(1024) char memory[];
    const uint32 shared = shared_address(memory), rank = blockIdx.x % SPLITS;
    const int columns = (int)((p.k + 63) / 64), parts = p.splits * PARTS;
    int place = blockIdx.x / SPLITS;
    Part part;
    part.token = place % p.token_tiles * TOKENS;
    place /= p.token_tiles;
#if PARTS > 1
    part.row = place % p.row_tiles * (BLOCK_ROWS >> PAIRED);
    part.split = place / p.row_tiles;
    const int cut = part.split * PARTS + (int)rank;
#else
    const int pairs = (p.row_tiles + 1) / 2;
    part.row = (place % pairs * 2 + (int)rank) * (BLOCK_ROWS >> PAIRED);
    const int cut = part.split = place / pairs;
#endif
    part.first = (int)((int64)columns * cut / parts);
    part.count = (int)((int64)columns * (cut + 1) / parts) - part.first;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(shared + BARRIERS_AT + 8 * i, 1);
            // The warps of this block, or of both.
            barrier_init(shared + BARRIERS_AT + 8 * (STAGES + i), PARTS > 1 ? 8 : 16);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync();
    if (threadIdx.x >= 256) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        start_early();
        if (threadIdx.x == 256) load_x(p, part, shared, rank);
        __syncwarp();
#if PARTS > 1
        cluster_sync();         // that of join_parts
#endif
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply_block(p, part, shared);
    }
    // A block's shared memory must stay until no other gives a stage back or reads its sums.
    cluster_sync();
}
