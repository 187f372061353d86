// Packed products on Hopper: D = alpha A B^T + beta C from packed tiles (packing.cuh).
//
// A and B are tiles of 128 rows and 128 bytes of K. D is row-major here, with any distance between
// rows and any address that its elements allow. Two blocks form a cluster, which computes 256 x BN
// elements of D at a time. Each block has 128 rows; both share the BN rows of B, and each loads
// half of these for both. In a block one thread keeps a ring of stages filled by bulk copies; two
// groups of four warps multiply 64 rows each. Blocks wait only for sums of blocks that were started
// before them, so the grid need not fit on the device at once.
//
// Defined before this text: HAS_ADDEND; BN, 256 or 128; STAGES; STRIP_STEPS, steps of a strip in a
// stage; OUT_NBYTES and OUT_IS_HALF, of D's elements; WGMMA_256 (with BN 256), WGMMA_128 and
// WGMMA_32, the instructions that multiply 64 rows by as many columns.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/shared/mma.cuh"
#include "gputensor/blas/kernels/packed/packed.h"
#include "gputensor/blas/kernels/packed/short.cuh"

typedef PackedParameters Parameters;

template <int N> struct Wgmma;
#if BN > 128
template <> struct Wgmma<256> {
    static DEVICE void run(float* d, u32 a, u32 b, u32 adds) { WGMMA_256; }
};
#endif
template <> struct Wgmma<128> {
    static DEVICE void run(float* d, u32 a, u32 b, u32 adds) { WGMMA_128; }
};
template <> struct Wgmma<32> {
    static DEVICE void run(float* d, u32 a, u32 b, u32 adds) { WGMMA_32; }
};

#include "gputensor/blas/kernels/packed/result.cuh"
#include "gputensor/blas/kernels/packed/work.cuh"

#define TILE_NBYTES 16384
#define STAGE_NBYTES (TILE_NBYTES + BN * 128)
#define NARROW_AT (STRIP_STEPS * TILE_NBYTES)   // of a stage that holds steps of a strip
#define NARROW_NBYTES 4096
#define STAGED_AT (STAGES * STAGE_NBYTES)
#define BARRIERS_AT (STAGED_AT + 8 * STAGED_NBYTES)

DEVICE int columns_of(i64 left) { return BN > 128 && left > 128 ? 256 : 128; }

struct Ring {
    u32 shared, stage, phase;
    DEVICE u32 at() const { return shared + stage * STAGE_NBYTES; }
    DEVICE u32 full() const { return shared + BARRIERS_AT + 8 * stage; }
    DEVICE u32 empty() const { return full() + 8 * STAGES; }
    DEVICE void next() {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
};

// ---- the thread that loads

DEVICE void load_tile(const Parameters& p, const Work& work, Ring& ring, u32 rank) {
    int tile_m, tile_n;
    tile_at(p, work.index, &tile_m, &tile_n);
    const u32 part = columns_of(p.n - (i64)tile_n * BN) / 2;    // rows of B that this block loads
    const i64 above = (i64)tile_m * 2 + rank;
    const i64 line = (i64)tile_n * BN + rank * part;
    const bool has_rows = above * 128 < p.m;
    u64 from_a = p.a + (above * p.line + work.first) * TILE_NBYTES;
    u64 from_b = p.b + ((line >> 7) * p.line + work.first) * TILE_NBYTES + (line & 127) * 128;
    const u32 nbytes = part * 256 + (has_rows ? TILE_NBYTES : 0);
    for (int step = work.first; step < work.last; ++step) {
        barrier_wait(ring.empty(), ring.phase);
        barrier_expect(ring.full(), nbytes);
        if (has_rows) bulk_load(ring.at(), from_a, TILE_NBYTES, ring.full());
        bulk_load_to_both(ring.at() + TILE_NBYTES + rank * part * 128, from_b, part * 128,
                          ring.full());
        from_a += TILE_NBYTES;
        from_b += TILE_NBYTES;
        ring.next();
    }
}
DEVICE void load_strip(const Parameters& p, const Work& work, Ring& ring, u32 rank) {
    const Strip strip(p, work.index, rank);
    const u64 wide = (strip.is_across ? p.b : p.a) + (strip.wide >> 7) * p.line * TILE_NBYTES;
    const u64 narrow = (strip.is_across ? p.a : p.b) + (strip.narrow >> 7) * p.line * TILE_NBYTES;
    const bool has_rows = strip.wide < strip.limit;
    for (int step = work.first; step < work.last; step += STRIP_STEPS) {
        const u64 offset = (u64)step * TILE_NBYTES;
        barrier_wait(ring.empty(), ring.phase);
        barrier_expect(ring.full(), STRIP_STEPS * (NARROW_NBYTES + (has_rows ? TILE_NBYTES : 0)));
        if (has_rows) bulk_load(ring.at(), wide + offset, STRIP_STEPS * TILE_NBYTES, ring.full());
#pragma unroll
        for (int i = 0; i < STRIP_STEPS; ++i)
            bulk_load(ring.at() + NARROW_AT + i * NARROW_NBYTES, narrow + offset + i * TILE_NBYTES,
                      NARROW_NBYTES, ring.full());
        ring.next();
    }
}

// ---- the groups that multiply

// Gives a stage back to both blocks, since both load into it, one stage after it was read.
DEVICE void release(u32 barrier, int lane) {
    if (lane < 2) barrier_arrive_at(barrier, lane);
}
template <int N, int STEPS, int B_AT, int B_NBYTES>
DEVICE void multiply(float* d, Ring& ring, int steps, int group, bool is_idle, int lane) {
    u32 last = 0;
    for (int step = 0; step < steps; step += STEPS) {
        barrier_wait(ring.full(), ring.phase);
        if (!is_idle) {
            // The middle of the lower half of a descriptor is 1, which wgmma does not read here.
            const u32 a = 0x10000 | ((ring.at() + group * 8192) >> 4);
            const u32 b = 0x10000 | ((ring.at() + B_AT) >> 4);
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < STEPS; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    Wgmma<N>::run(d, a + i * (TILE_NBYTES >> 4) + 2 * j,
                                  b + i * (B_NBYTES >> 4) + 2 * j, step | i | j);
            }
            wgmma_commit();
            wgmma_wait<1>();
        } else {
            __syncwarp();       // a lane that falls two phases behind would wait forever
        }
        if (step > 0) release(last, lane);
        last = ring.empty();
        ring.next();
    }
    wgmma_wait<0>();
    settle<N / 2>(d);
    release(last, lane);
}

// Returns whether the sums are complete here; if not, they are left for the block with the
// beginning.
template <int N> DEVICE bool unite(const Parameters& p, float* d, const Walk& walk,
                                   const Work& work, u32 rank, int warp, int lane) {
    if (work.first > 0) {
        leave_sums<N>(p, d, (walk.cluster * 2 + rank) * 8 + warp, lane);
        return false;
    }
    if (work.last == p.steps) return true;
    Place begin = walk.end;
    const int item = begin.item;
    for (int c = walk.cluster + 1; begin.item == item && begin.step > 0; ++c) {
        const Place end = place_at(p, c + 1, walk.clusters);
        if (begin.item != end.item || begin.step != end.step)
            add_sums<N>(p, d, (c * 2 + rank) * 8 + warp, lane);
        begin = end;
    }
    return true;
}
template <int N> DEVICE void compute_tile(const Parameters& p, float* d, Ring& ring, char* staged,
                                          const Walk& walk, const Work& work, u32 rank, i64 row0,
                                          i64 column0, int group, int warp, int lane) {
    multiply<N, 1, TILE_NBYTES, 0>(d, ring, work.last - work.first, group, row0 >= p.m, lane);
    if (row0 < p.m && unite<N>(p, d, walk, work, rank, warp, lane))
        write_tile<N>(p, d, staged, row0 + (warp & 3) * 16, column0, lane);
}
DEVICE void compute_strip(const Parameters& p, float* d, Ring& ring, char* staged, const Walk& walk,
                          const Work& work, u32 rank, int group, int warp, int lane) {
    const Strip strip(p, work.index, rank);
    const i64 row0 = strip.wide + group * 64;
    multiply<32, STRIP_STEPS, NARROW_AT, NARROW_NBYTES>(d, ring, work.last - work.first, group,
                                                        row0 >= strip.limit, lane);
    if (row0 >= strip.limit || !unite<32>(p, d, walk, work, rank, warp, lane)) return;
    if (strip.is_across)
        write_across<32>(p, d, row0 + (warp & 3) * 16, strip.limit, strip.narrow, lane);
    else
        write_tile<32>(p, d, staged, row0 + (warp & 3) * 16, strip.narrow, lane);
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
kernel(const __grid_constant__ Parameters p) {
    start_early();
    extern __shared__ __align__(1024) char memory[];
    const u32 rank = cluster_rank();
    const int clusters = gridDim.x / 2, cluster = clusters - 1 - blockIdx.x / 2;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    Ring ring = {shared_address(memory), 0, 0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(ring.full() + 8 * i, 1);
            barrier_init(ring.empty() + 8 * i, 16);     // eight warps of two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync();
    Work work;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        ring.phase = 1;
        if (threadIdx.x == 0) {
            Walk walk(p, cluster, clusters);
            while (walk.next(p, work)) {
                if (work.is_strip) load_strip(p, work, ring, rank);
                else load_tile(p, work, ring, rank);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float d[BN / 2];
        const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) - 4;
        char* staged = memory + STAGED_AT + warp * STAGED_NBYTES;
        Walk walk(p, cluster, clusters);
        while (walk.next(p, work)) {
            if (work.is_strip) {
                compute_strip(p, d, ring, staged, walk, work, rank, group - 1, warp, lane);
                continue;
            }
            int tile_m, tile_n;
            tile_at(p, work.index, &tile_m, &tile_n);
            const i64 row0 = ((i64)tile_m * 2 + rank) * 128 + (group - 1) * 64;
            const i64 column0 = (i64)tile_n * BN;
#if BN > 128
            if (columns_of(p.n - column0) == 256) {
                compute_tile<256>(p, d, ring, staged, walk, work, rank, row0, column0, group - 1,
                                  warp, lane);
                continue;
            }
#endif
            compute_tile<128>(p, d, ring, staged, walk, work, rank, row0, column0, group - 1, warp,
                              lane);
        }
    }
    // A block's shared memory must stay until it is stored and the other block has given its last
    // stage back.
    bulk_wait_read();
    cluster_sync();
}
