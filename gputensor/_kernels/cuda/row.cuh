// A formula along rows: each row is read once, folded, and written once.
//
// LANES threads share a row; a thread holds UNITS units of VECTOR neighbouring columns in registers,
// and one unit of a thread is CLUSTER * LANES units after the one before. Without ACROSS, the lanes
// are neighbours along the columns; with ACROSS, the threads of a warp have neighbouring rows,
// whose elements are neighbours in memory. CLUSTER blocks share a row that one block cannot hold;
// LOOP reads a row again for each of its phases instead; if the rows of CACHED blocks fit the first
// cache together, the last phase finds its row there. MAP: there are no folds, so a row is cut into
// `period` parts, each for the lanes of one row here.
//
// With AHEAD, a block takes row after row, and copies the next one to shared memory before it folds
// the one in its registers. A thread copies its own units, so no other thread waits for them.
//
// A fold has fixed steps, so its bits depend on neither timing nor other rows: a thread's elements
// in order, then the lanes of a warp by exchange, then the warps of a block or of all blocks of a
// cluster. Exchange gives every lane the same bits since every fold is commutative. Blocks wait for
// each other in an exchange, so row_program.py lets two folds share one where it can: a maximum and
// the sum of powers beside it, a mean and the sum of squares beside it.
//
// Defined before this text: VECTOR, UNITS, LANES, ROWS (rows of a block), ACROSS, CLUSTER, LOOP,
// MAP; FULL (the columns fill all lanes exactly), COLUMN_AXES, KEPT_AXES; ARITHMETIC, the type of
// all values; FOLDS, their number; AHEAD; and the parts that row_program.py writes: FUNCTIONS of
// the steps, TYPES, POINTERS and DECLARE of the operands, LOAD of one unit, FETCH of one to shared
// memory and TAKE of it from there, BODY (the phases that fold), and the steps of the results and
// their stores. Operands that only the last phase needs, and in a LOOP all of them, are loaded
// there by LOAD_LATE, LATE units before the first of them is stored: the compiler moves no load
// over a store. If they are equal for all rows, AHEAD keeps their first FIXED units in shared
// memory, where FETCH_FIXED copies one unit of each.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/math.cuh"
#include "gputensor/_kernels/cuda/row.h"
#include "gputensor/_kernels/cuda/vector.cuh"

typedef RowParameters Parameters;
typedef ARITHMETIC C;
typedef C A;
#define LOWEST (-__int_as_float(0x7f800000))
#define HIGHEST __int_as_float(0x7f800000)

FUNCTIONS
TYPES

__device__ __forceinline__ C from_lane(C x, int mask) {
    union { C value; uint32 words[sizeof(C) / 4]; } u = {x};
#pragma unroll
    for (int i = 0; i < sizeof(C) / 4; ++i)
        u.words[i] = __shfl_xor_sync(0xffffffffu, u.words[i], mask);
    return u.value;
}

#if CLUSTER > 1
#include "gputensor/_kernels/cuda/copies/barrier.cuh"

__device__ __forceinline__ uint32 cluster_rank() {
    uint32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;"
                 ::: "memory");
}
// Each exchange has a barrier in each block: a phase ends when the block has announced how many bytes
// come, and all have come. The blocks do not wait in barrier.cluster, whose release also waits until
// the last row's results have reached memory.
__device__ __forceinline__ uint32 place_in(uint32 here, uint32 rank) {
    uint32 there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
    return there;
}
// Stores x in the slot of another block, and counts its bytes at that block's barrier.
__device__ __forceinline__ void send(C* slot, uint64* barrier, uint32 rank, C x) {
    const uint32 to = place_in(shared_address(slot), rank);
    const uint32 at = place_in(shared_address(barrier), rank);
    union { C value; uint32 words[sizeof(C) / 4]; } u = {x};
#pragma unroll
    for (int i = 0; i < sizeof(C) / 4; ++i)
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                     ::"r"(to + 4 * i), "r"(u.words[i]), "r"(at) : "memory");
}
#define BY_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#else
#define BY_CLUSTER
#endif

#if AHEAD
template <int NBYTES> __device__ __forceinline__ void fetch(char* to, const void* from) {
    if (NBYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     :: "r"((uint32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                     :: "r"((uint32)__cvta_generic_to_shared(to)), "l"(from), "n"(NBYTES)
                     : "memory");
}
#endif

#if CACHED
// A row that the last phase reads again, and weights, are the last that a cache gives up; a row
// that is read for the last time, and results, are the first.
#ifdef GPUTENSOR_ON_CPU
template <class V> V load_kept(const V* from) { return *from; }
template <class V> V load_last(const V* from) { return *from; }
template <class V> void store_last(V* to, const V& x) { *to = x; }
#else
#define BY_POLICY(policy, text)                                                       \
    "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::" policy ".b64 policy, 1.0;\n"  \
    text ", policy;\n}"
#define LOAD_BY_POLICY(name, policy, text)                                            \
    template <class V> __device__ __forceinline__ V name(const V* from) {             \
        if (sizeof(V) != 16) return *from;                                            \
        alignas(16) uint32 words[4];                                                  \
        asm volatile(BY_POLICY(policy, text " {%0, %1, %2, %3}, [%4]")                \
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) \
                     : "l"(from));                                                    \
        return *reinterpret_cast<const V*>(words);                                    \
    }
LOAD_BY_POLICY(load_kept, "evict_last", "ld.global.L1::evict_last.L2::cache_hint.v4.u32")
LOAD_BY_POLICY(load_last, "evict_first", "ld.global.L1::no_allocate.L2::cache_hint.v4.u32")
template <class V> __device__ __forceinline__ void store_last(V* to, const V& x) {
    if (sizeof(V) != 16) {
        *to = x;
        return;
    }
    const uint32* words = reinterpret_cast<const uint32*>(&x);
    asm volatile(BY_POLICY("evict_first", "st.global.L1::no_allocate.L2::cache_hint.v4.u32"
                                          " [%0], {%1, %2, %3, %4}")
                 :: "l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}
#endif
#endif

// The fold of the values of a row's lanes in this block; every lane gets it.
template <class F> __device__ __forceinline__ C in_block(C x, C* slot, uint32 lane, uint32 row) {
#if ACROSS
    slot[lane * ROWS + row] = x;
    for (int half = LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half)
            slot[lane * ROWS + row] = F::combine(slot[lane * ROWS + row],
                                                 slot[(lane + half) * ROWS + row]);
    }
    __syncthreads();
    return slot[row];
#else
    const int width = LANES < 32 ? LANES : 32;
#pragma unroll
    for (int mask = 1; mask < width; mask *= 2) x = F::combine(x, from_lane(x, mask));
#if LANES > 32
    const int warps = LANES / 32;
    if (lane % 32 == 0) slot[row * warps + lane / 32] = x;
    __syncthreads();
    x = slot[row * warps + lane % 32 % warps];
#pragma unroll
    for (int mask = 1; mask < warps; mask *= 2) x = F::combine(x, from_lane(x, mask));
#endif
    return x;
#endif
}

#if CLUSTER > 1
// The warps of all blocks of a cluster are peers: each sends its value to every block, and then
// folds all values, in the same order.
struct Exchange {
    C* slots;
    uint64* barriers;
    uint32 parity;
};
#define PEERS (CLUSTER * LANES / 32)
#define SHARES (PEERS < 32 ? 1 : PEERS / 32)    // values that a lane folds before the exchange
template <class F> __device__ __forceinline__ C of_warp(C x) {
#pragma unroll
    for (int mask = 1; mask < (PEERS < 32 ? PEERS : 32); mask *= 2)
        x = F::combine(x, from_lane(x, mask));
    return x;
}
template <class F> __device__ __forceinline__ C in_warp(C x) {
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) x = F::combine(x, from_lane(x, mask));
    return x;
}
__device__ __forceinline__ uint32 peer_of(uint32 lane) {
    return cluster_rank() * (LANES / 32) + lane / 32;
}
// Sends the value of fold `number`, which the exchange of fold `at` waits for.
__device__ __forceinline__ void share(const Exchange& e, int number, int at, C x, uint32 lane) {
    if (lane % 32 < CLUSTER)
        send(e.slots + number * PEERS + peer_of(lane), e.barriers + at, lane % 32, x);
}
// Waits for the values of `folds` folds.
__device__ __forceinline__ void exchange(const Exchange& e, int at, int folds, uint32 lane) {
    if (lane == 0) barrier_expect(e.barriers + at, folds * PEERS * sizeof(C));
    barrier_wait(e.barriers + at, e.parity);
}
template <class F> __device__ __forceinline__ C of_cluster(const C* slot, uint32 lane) {
    C x = slot[lane % 32 % PEERS];
#pragma unroll
    for (int i = 1; i < SHARES; ++i) x = F::combine(x, slot[lane % 32 + 32 * i]);
    return of_warp<F>(x);
}
// The number of columns of a warp: the warps have pieces of neighbouring units in turn.
__device__ __forceinline__ C columns_of(const Parameters& p, uint32 peer) {
    if (FULL) return UNITS * 32 * VECTOR;
    const uint32 pieces = (uint32)p.columns / (32 * VECTOR);
    const uint32 rest = (uint32)p.columns % (32 * VECTOR);
    const uint32 whole = (pieces + PEERS - 1 - peer) / PEERS;
    return (C)(whole * (32 * VECTOR) + (pieces % PEERS == peer ? rest : 0));
}
// The mean of a warp's columns from their sum; 0 if it has no columns.
__device__ __forceinline__ C mean_of(const Parameters& p, uint32 peer, C sum) {
    const C count = columns_of(p, peer);
    return count == 0 ? (C)0 : sum / count;
}
__device__ __forceinline__ C finite(C largest) { return largest == LOWEST ? (C)0 : largest; }
#endif

// FOLDED is the fold of the values of a row's lanes; every lane gets it.
#if CLUSTER > 1
template <class F> __device__ __forceinline__ C folded(C x, const Exchange& e, int number,
                                                       uint32 lane) {
    share(e, number, number, in_warp<F>(x), lane);
    exchange(e, number, 1, lane);
    return of_cluster<F>(e.slots + number * PEERS, lane);
}
#define SLOT PEERS
#define FOLDED(F, number, x) \
    F::finish(folded<F>(x, rounds, number, lane), (double)p.columns)
#else
#define SLOT (ACROSS ? LANES * ROWS : 32)
#define FOLDED(F, number, x) \
    F::finish(in_block<F>(x, shared + number * SLOT, lane, row_of_block), (double)p.columns)
#endif

#if LOOP || MAP
typedef int64 Column;
#else
typedef int32 Column;
#endif
#define COLUMN(k) (begin + ((Column)(k) * (CLUSTER * LANES) + (Column)place) * VECTOR)
#define IS_INSIDE(column) (FULL || column < limit)
#if LOOP
// A phase reads the row again, each thread UNITS units at a time.
#define EACH(...)                                                                     \
    for (int64 from = 0; from < p.columns; from += (int64)UNITS * LANES * VECTOR) {   \
        DECLARE                                                                       \
        _Pragma("unroll") for (int k = 0; k < UNITS; ++k) {                           \
            const Column column = from + COLUMN(k);                                   \
            if (IS_INSIDE(column)) { LOAD }                                           \
        }                                                                             \
        _Pragma("unroll") for (int k = 0; k < UNITS; ++k) {                           \
            const Column column = from + COLUMN(k);                                   \
            if (IS_INSIDE(column)) {                                                  \
                _Pragma("unroll") for (int v = 0; v < VECTOR; ++v) { __VA_ARGS__ }    \
            }                                                                         \
        }                                                                             \
    }
#else
#define EACH(...)                                                                     \
    _Pragma("unroll") for (int k = 0; k < UNITS; ++k) {                               \
        const Column column = COLUMN(k);                                              \
        if (IS_INSIDE(column)) {                                                      \
            _Pragma("unroll") for (int v = 0; v < VECTOR; ++v) { __VA_ARGS__ }        \
        }                                                                             \
    }
#endif

// The offset of a column from the first element of its row, for an operand without unit stride.
__device__ __forceinline__ int64 along(const Parameters& p, int operand, int64 column) {
#if COLUMN_AXES == 1
    return column * p.axes[0].strides[operand];
#else
    int64 offset = 0;
    uint32 rest = (uint32)column;
#pragma unroll
    for (int d = 0; d < COLUMN_AXES; ++d) {
        const uint32 next = d + 1 < COLUMN_AXES ? rest / (uint32)p.axes[d].size : 0;
        offset += (int64)(rest - next * (uint32)p.axes[d].size) * p.axes[d].strides[operand];
        rest = next;
    }
    return offset;
#endif
}
__device__ __forceinline__ int64 to_row(const Parameters& p, int operand, int64 row) {
    int64 offset = 0;
#pragma unroll
    for (int d = 0; d < KEPT_AXES; ++d) {
        const RowAxis& axis = p.axes[COLUMN_AXES + d];
        const int64 next = d + 1 < KEPT_AXES ? row / axis.size : 0;
        offset += (row - next * (d + 1 < KEPT_AXES ? axis.size : 0)) * axis.strides[operand];
        row = next;
    }
    return offset;
}

#if AHEAD
#define FETCH_ROW(number, STATEMENTS)                                                 \
    {                                                                                 \
        const int64 here = number;                                                    \
        POINTERS                                                                      \
        _Pragma("unroll") for (int k = 0; k < UNITS; ++k) {                           \
            const Column column = COLUMN(k);                                          \
            if (IS_INSIDE(column)) { STATEMENTS }                                     \
        }                                                                             \
    }
#endif

#if CACHED > 1
#define BOUNDS __launch_bounds__(LANES * ROWS, CACHED)
#else
#define BOUNDS __launch_bounds__(LANES * ROWS)
#endif
extern "C" __global__ void BY_CLUSTER BOUNDS
kernel(const Parameters p) {
    start_early();
    __shared__ C slots[(1 + AHEAD) * (FOLDS ? FOLDS : 1) * SLOT];
    C* shared = slots;
    const uint32 lane = ACROSS ? threadIdx.y : threadIdx.x;
    const uint32 row_of_block = ACROSS ? threadIdx.x : threadIdx.y;
#if CLUSTER > 1
    const uint32 place = cluster_rank() * LANES + lane;
    int64 row = blockIdx.x / CLUSTER;
    __shared__ uint64 barriers[2 * FOLDS];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * FOLDS; ++i) barrier_init(barriers + i);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync();                     // no block sends to another one before that one has begun
    Exchange rounds = {slots, barriers, 0};
#else
    const uint32 place = lane;
    int64 row = (int64)blockIdx.x * ROWS + row_of_block;
#endif
#if MAP
    if (row >= p.rows * p.period) return;
    const int64 whole = KEPT_AXES ? row / p.period : 0;
    const Column begin = (row - whole * p.period) * (UNITS * LANES * VECTOR);
    row = whole;
#else
    const Column begin = 0;
#endif
    const Column limit = (Column)p.columns;
#if AHEAD
    extern __shared__ __align__(16) char ahead[];
    const int64 step = gridDim.x / CLUSTER;
    FETCH_ROW(0, FETCH_FIXED)
    if (row < p.rows) FETCH_ROW(row, FETCH)
    for (const int64 first = row; row < p.rows; row += step) {
        const int64 here = row, next = row + step;
        DECLARE
        asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll
        for (int k = 0; k < UNITS; ++k) {
            const Column column = COLUMN(k);
            if (IS_INSIDE(column)) { TAKE }
        }
        if (next < p.rows) FETCH_ROW(next, FETCH)
        // Rows use the two sets of slots in turn: blocks may still read those of the row before.
#if CLUSTER > 1
        if (row != first) {
            if (rounds.slots != slots) rounds.parity ^= 1;
            rounds.barriers = rounds.slots == slots ? barriers + FOLDS : barriers;
            rounds.slots = rounds.slots == slots ? slots + FOLDS * SLOT : slots;
        }
#else
        shared = shared == slots ? slots + FOLDS * SLOT : slots;
#endif
#else
    {
        // All threads take part in the folds; those beyond the last row compute that row again.
        const int64 here = row < p.rows ? row : p.rows - 1;
#endif
    POINTERS
#if !LOOP && !AHEAD
    DECLARE
#pragma unroll
    for (int k = 0; k < UNITS; ++k) {
        const Column column = COLUMN(k);
        if (IS_INSIDE(column)) { LOAD }
    }
#endif
    BODY
#if HAS_RESULT
#if LOOP
    for (int64 from = 0; from < p.columns; from += (int64)UNITS * LANES * VECTOR) {
        DECLARE
#else
    {
        const Column from = 0;
#endif
#pragma unroll
        for (int group = 0; group < UNITS; group += LATE) {
            DECLARE_LATE
#if LATE > 1
#pragma unroll
            for (int k = group; k < group + LATE && k < UNITS; ++k) {
                const Column column = from + COLUMN(k);
                if (IS_INSIDE(column)) { LOAD_LATE }
            }
#endif
#pragma unroll
            for (int k = group; k < group + LATE && k < UNITS; ++k) {
                const Column column = from + COLUMN(k);
                if (IS_INSIDE(column)) {
#if LATE == 1
                    LOAD_LATE
#endif
                    RESULT_DECLARE
#pragma unroll
                    for (int v = 0; v < VECTOR; ++v) { RESULT_STEPS }
                    RESULT_STORE
                }
            }
        }
    }
#endif
        if (place == 0) { ROW_RESULT }
    }
}
