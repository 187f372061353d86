// Attention of few rows and many keys, on Hopper: attention_few.cuh with copies by tensor maps.
//
// The keys are cut among blocks. One warp has the copying unit load keys and values of KEYS keys as
// boxes of 64 elements, up to STAGES steps ahead; the others multiply, 16 keys of a step each. So
// copies cost no instructions of the warps that multiply, and memory is read in long runs. Rows of a
// box have 128 bytes in the order of the 128-byte swizzle. At the end, the warps join their sums in
// a fixed order. With several splits, join.cuh does the rest, or the blocks of a cluster do, which
// have the parts of all keys: each joins every CLUSTER-th element.
//
// With more units, which are the rows of a head of a sequence, than blocks fit and keys that are not
// cut, PERSISTENT blocks take units in turn. The next unit's keys are under way while the sums of one
// are joined, so these have a place of their own behind the ring.
//
// Defined before this text: STAGES of a block; CLUSTER, 1 or the number of splits; PERSISTENT; and
// what few_rows.cuh needs; HEAD is 64 or 128.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/copies/tensor_map.h"
#include "gputensor/blas/kernels/attention/few_rows.cuh"
#include "gputensor/blas/kernels/shared/ring.cuh"

typedef MappedAttentionParameters Parameters;

const int KEYS = 16 * WARPS, THREADS = 32 * WARPS + 32;
const int BOX = KEYS * 128, BOXES = HEAD / 64;
const int STAGE = 2 * BOXES * BOX;              // keys and values of a step
const int RING = STAGES * STAGE;
static_assert(PERSISTENT || BM * (WARPS * LINE + PART) * 4 <= RING,
              "all sums fit in the place of the keys");

#if CLUSTER > 1
#define BY_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#else
#define BY_CLUSTER
#endif

struct Barriers { uint64 full[STAGES], empty[STAGES]; };
// Which head of keys of which sequence.
struct Unit { int kept, batch; };
DEVICE Unit unit_at(const AttentionParameters& p, int i) { return {i % p.kept, i / p.kept}; }

DEVICE void load_box(uint32 to, const TensorMap* map, int column, int row, const Unit& unit,
                     uint32 barrier, Policy policy) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;"
                 :: "r"(to), "l"(map), "r"(column), "r"(row), "r"(unit.kept), "r"(unit.batch),
                    "r"(barrier), "l"(policy) : "memory");
}
DEVICE void clear_16(uint32 to) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(0), "r"(0), "r"(0), "r"(0) : "memory");
}
DEVICE void group_sync() { asm volatile("bar.sync 1, %0;" :: "n"(32 * WARPS) : "memory"); }

// Where matrices of 16 keys and values of a warp are, for this lane.
struct Step {
    uint32 key_at, value_at, key_piece, value_piece, turn;
    DEVICE uint32 place(uint32 at, uint32 piece) const {
        return at + piece / 8 * BOX + ((piece % 8 ^ turn) << 4);
    }
    DEVICE uint32 key(int c) const { return place(key_at, 2 * c + key_piece); }
    DEVICE uint32 value(int c) const { return place(value_at, 2 * c + value_piece); }
};
DEVICE Step step_at(uint32 stage, int warp) {
    const int lane = threadIdx.x % 32;
    return {stage + (warp * 16 + lane % 16) * 128,
            stage + BOXES * BOX + (warp * 16 + lane % 8 + lane / 16 * 8) * 128,
            (uint32)lane / 16, (uint32)lane / 8 % 2, (uint32)lane % 8};
}
// Values behind the last key may be no numbers, which weights of 0 would not hide. The next unit's
// copies come to this place, so they have to come after these stores.
DEVICE void clear(uint32 stage, int warp, int first, int end) {
    const int lane = threadIdx.x % 32;
    for (int i = lane; i < 16 * BOXES * 8; i += 32) {
        const int row = i / (BOXES * 8), piece = i % (BOXES * 8);
        if (first + row >= end)
            clear_16(stage + (BOXES + piece / 8) * BOX + (warp * 16 + row) * 128
                     + (piece % 8 << 4));
    }
#if PERSISTENT
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncwarp();
}

// What both kinds of warps have of the ring: the steps that they take follow each other in all units.
struct Stages {
    uint32 ring;
    Barriers* barriers;
    Ring at;
    DEVICE uint32 place() const { return ring + at.stage * STAGE; }
    DEVICE uint32 full() const { return shared_address(&barriers->full[at.stage]); }
    DEVICE uint32 empty() const { return shared_address(&barriers->empty[at.stage]); }
};
// One thread loads the keys and values from `from` to `to`.
DEVICE void load(const Parameters& p, Stages& stages, int from, int to, const Unit& unit,
                 Policy policy) {
    for (; from < to; from += KEYS, stages.at.next()) {
        const uint32 full = stages.full(), place = stages.place();
        barrier_wait(stages.empty(), stages.at.phase ^ 1);
        barrier_expect(full, STAGE);
#pragma unroll
        for (int i = 0; i < BOXES; ++i)
            load_box(place + i * BOX, &p.key, 64 * i, from, unit, full, policy);
#pragma unroll
        for (int i = 0; i < BOXES; ++i)
            load_box(place + (BOXES + i) * BOX, &p.value, 64 * i, from, unit, full, policy);
    }
}
// A warp adds its keys of these steps and writes its sums to its lines.
DEVICE void sum_up(const Parameters& p, Stages& stages, int from, int to, int end,
                   const Unit& unit, float* lines, int warp) {
    Rows rows;
    rows.begin(p.common, unit.batch, unit.kept, end);
    for (; from < to; from += KEYS, stages.at.next()) {
        const uint32 place = stages.place();
        const int own = from + warp * 16;
        barrier_wait(stages.full(), stages.at.phase);
        if (own + 16 > end) clear(place, warp, own, end);
        rows.add(p.common, step_at(place, warp), own, end);
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(stages.empty());
    }
    // Before, other warps may read the lines of the last unit, or keys in their place.
    group_sync();
    rows.put(lines + warp * BM * LINE);
    group_sync();
}

#if CLUSTER > 1
// Parts of the blocks of a cluster, at the same place in each.
struct OfBlocks {
    uint32 row;
    DEVICE float operator()(int i, int column) const {
        float x;
        uint32 there;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(row + column * 4), "r"(i));
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(there) : "memory");
        return x;
    }
};
DEVICE void unite(const Parameters& p, const float* part, int64 batch, int kept) {
    const int rank = cluster_rank(), all = p.common.queries * p.common.shared * HEAD;
    const uint32 at = shared_address(part);
    cluster_sync();
    for (int i = rank * THREADS + threadIdx.x; i < all; i += CLUSTER * THREADS)
        write(p.common, sum_of<CLUSTER>(OfBlocks{at + i / HEAD * PART * 4}, i % HEAD), batch, kept,
              i / HEAD, i % HEAD);
    cluster_sync();
}
#endif

extern "C" __global__ void BY_CLUSTER __launch_bounds__(THREADS)
kernel(const __grid_constant__ Parameters p) {
    start_together();
    extern __shared__ __align__(1024) char memory[];
    const uint32 ring = shared_address(memory);
    Barriers& barriers = *reinterpret_cast<Barriers*>(memory + RING);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(shared_address(&barriers.full[i]), 1);
            barrier_init(shared_address(&barriers.empty[i]), WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    Stages stages = {ring, &barriers, {0, 0}};
    const Policy policy = read_once();
#if PERSISTENT
    float* lines = reinterpret_cast<float*>(memory + RING + sizeof(Barriers));
    for (int i = blockIdx.x; i < p.common.units; i += gridDim.x) {
        const Unit unit = unit_at(p.common, i);
        const Range range = range_of(p.common, unit.batch);
        const int to = range.begin + (range.count() + KEYS - 1) / KEYS * KEYS;
        if (warp == WARPS) {
            if (threadIdx.x % 32 == 0) load(p, stages, range.begin, to, unit, policy);
        } else {
            sum_up(p, stages, range.begin, to, range.end, unit, lines, warp);
            finish<BM * LINE>(p.common, lines, nullptr, unit.batch, unit.kept);
        }
    }
#else
    const int split = blockIdx.x % p.common.splits;
    const Unit unit = unit_at(p.common, blockIdx.x / p.common.splits);
    const Range range = range_of(p.common, unit.batch);
    const int steps = (range.count() + KEYS - 1) / KEYS;
    const int begin = (int)((int64)steps * split / p.common.splits);
    const int end = (int)((int64)steps * (split + 1) / p.common.splits);
    const int from = range.begin + begin * KEYS, to = range.begin + end * KEYS;
    // The sums of the warps, in the place of their keys.
    float *lines = reinterpret_cast<float*>(memory), *part = lines + WARPS * BM * LINE;
    if (warp == WARPS) {
        if (threadIdx.x % 32 == 0) load(p, stages, from, to, unit, policy);
        __syncwarp();
    } else {
        sum_up(p, stages, from, to, range.end, unit, lines, warp);
        finish<BM * LINE>(p.common, lines, CLUSTER > 1 ? part : part_of(p.common), unit.batch,
                          unit.kept);
    }
#if CLUSTER > 1
    unite(p, part, unit.batch, unit.kept);
#endif
#endif
}
