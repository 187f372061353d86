// Attention on the tensor cores of Hopper (sm_90a), for many queries; see attention.cuh.
//
// GROUPS warpgroups have 64 rows each; one more copies keys and values, BN at a time, into two
// places each. A group multiplies the queries by the next keys, and then the weights of the last
// keys, which it holds in registers, by their values. While the second product runs, the scores of
// the first become weights (the order of Shah and others, 2024). Rows of 128 bytes lie swizzled, 64
// elements of a head to a panel.
//
// Defined before this text: ELEMENT, a 16-bit float; PACK, the name of the conversion of two
// floats; HEAD, 64 or 128; GROUPS; BLOCKS of a multiprocessor; BN; HELD and COPYING, registers of a
// thread that multiplies or copies; SCORES, the instruction that multiplies 16 elements of queries
// and keys from the descriptors a and b and adds them to the sums d, or overwrites d if `adds` is 0;
// SUMS, the one that adds 16 keys from registers a and descriptor b.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/attention/attention.h"
#include "gputensor/blas/kernels/attention/softmax.cuh"
#include "gputensor/blas/kernels/shared/mma.cuh"

typedef AttentionParameters Parameters;

const int BM = 64 * GROUPS, MULTIPLYING = 128 * GROUPS, THREADS = MULTIPLYING + 128;
const int PANELS = HEAD / 64, CHUNKS = HEAD / 8;
const int TILE = BN * HEAD * 2;                 // bytes of keys or of values

DEVICE void multiply_scores(float* d, uint64 a, uint64 b, uint32 adds) { SCORES; }
DEVICE void multiply_values(float* d, const uint32* a, uint64 b) { SUMS; }
// Rows of 128 bytes, swizzled; `leading` is the distance of panels where columns span several.
DEVICE uint64 descriptor(uint32 at, int leading) {
    return (uint64)(at >> 4) | (uint64)(leading >> 4) << 16 | 64ull << 32 | 1ull << 62;
}
DEVICE uint32 pack(float low, float high) {
    uint32 y;
    asm volatile("cvt.rn." PACK ".f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}
DEVICE void arrive_with_copies(uint32 barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
}
DEVICE void arrive(uint32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
DEVICE void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

struct Barriers { uint64 key[2], key_left[2], value[2], value_left[2]; };

// Where a chunk of 16 bytes of a row lies in panels of `rows` rows.
DEVICE uint32 place_of(int row, int chunk, int rows) {
    return chunk / 8 * rows * 128 + row * 128 + ((chunk % 8 ^ row % 8) << 4);
}
// BN rows from row `first` on; rows from `end` on are 0.
DEVICE void load(uint32 to, const char* from, int64 row_bytes, int first, int end) {
    const int thread = threadIdx.x - MULTIPLYING, line = thread / CHUNKS, chunk = thread % CHUNKS;
    const int lines = 128 / CHUNKS;             // a multiple of 8: a thread's swizzle stays
    from += (int64)(first + line) * row_bytes + chunk * 16;
    to += place_of(line, chunk, BN);
    const int left = end - first - line;
#pragma unroll
    for (int i = 0; i < BN / lines; ++i)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                     :: "r"(to + i * lines * 128), "l"(from + i * lines * row_bytes),
                     "r"(i * lines < left ? 16 : 0) : "memory");
}

struct Rows { int last[2], least; };            // keys that a thread's rows see, and its warp's
struct State { float largest[2], total[2], factor[2]; };

// Turns scores of keys from `from` on into weights, in place, and updates `state`.
DEVICE void weigh(const Parameters& p, float* s, State& state, const Rows& rows, int from,
                  int keys, float scale) {
    const float infinity = __int_as_float(0x7f800000);
    const int lane = threadIdx.x % 32;
    if (p.cap != 0) {
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) s[i] = tanhf(s[i] * (p.scale / p.cap));
    }
    if (from + BN > keys || (p.is_causal && (from + BN - 1 > rows.least || p.window))) {
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) {
            const int r = i / 2 % 2, column = from + i / 4 * 8 + lane % 4 * 2 + i % 2;
            bool is_seen = column < keys;
            if (p.is_causal) is_seen = is_seen && column <= rows.last[r];
            if (p.window) is_seen = is_seen && column > rows.last[r] - p.window;
            if (!is_seen) s[i] = -infinity;
        }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        float most = state.largest[r];
#pragma unroll
        for (int i = 0; i < BN / 2; i += 4)
            most = fmaxf(most, fmaxf(s[i + 2 * r], s[i + 2 * r + 1]));
        most = of_quad(most, false);
        const float shift = most == -infinity ? 0.0f : most * scale;
        state.factor[r] = power_of_two(state.largest[r] * scale - shift);
        state.largest[r] = most;
        float total = 0;
#pragma unroll
        for (int i = 0; i < BN / 2; i += 4)
#pragma unroll
            for (int v = 0; v < 2; ++v) {
                float& x = s[i + 2 * r + v];
                x = power_of_two(x * scale - shift);
                total += x;
            }
        state.total[r] = state.total[r] * state.factor[r] + total;
    }
}
DEVICE void pack_all(const float* s, uint32* weights) {
#pragma unroll
    for (int i = 0; i < BN / 4; ++i) weights[i] = pack(s[2 * i], s[2 * i + 1]);
}
DEVICE void score(float* s, uint32 queries, uint32 keys) {
    wgmma_fence();
#pragma unroll
    for (int c = 0; c < HEAD / 16; ++c)
        multiply_scores(s, descriptor(queries + c / 4 * (BM * 128), 16) + c % 4 * 2,
                        descriptor(keys + c / 4 * (BN * 128), 16) + c % 4 * 2, c);
    wgmma_commit();
}
DEVICE void add_values(float* sums, const uint32* weights, uint32 values) {
    wgmma_fence();
#pragma unroll
    for (int c = 0; c < BN / 16; ++c)
        multiply_values(sums, weights + 4 * c, descriptor(values, BN * 128) + c * 128);
    wgmma_commit();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
kernel(const __grid_constant__ Parameters p) {
    start_early();
    extern __shared__ __align__(1024) char memory[];
    __shared__ Barriers barriers;
    const uint32 queries = shared_address(memory);
    const uint32 keys_at = queries + BM * HEAD * 2, values_at = keys_at + 2 * TILE;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    // The last tiles come first, because with a causal mask they have the most keys.
    const int tile = p.tiles - 1 - blockIdx.x % p.tiles;
    const int kept = blockIdx.x / p.tiles % p.kept;
    const int64 batch = blockIdx.x / p.tiles / p.kept;
    const int rows = p.queries * p.shared;
    int keys = p.keys;
    if (p.length) {
        const int64 at = batch * p.length_batch;
        const int64 length = p.is_long ? reinterpret_cast<const int64*>(p.length)[at]
                                       : reinterpret_cast<const int32*>(p.length)[at];
        keys = length < 0 ? 0 : length < keys ? (int)length : keys;
    }
    // The keys that some row of the block sees.
    int begin = 0, end = keys;
    if (p.is_causal) {
        const int from = tile * BM, to = from + BM < rows ? from + BM : rows;
        const bool is_one = from / p.queries == (to - 1) / p.queries;
        const int highest = is_one ? (to - 1) % p.queries : p.queries - 1;
        const int lowest = is_one ? from % p.queries : 0;
        const int most = highest + keys - p.queries + 1;
        end = most < end ? most : end;
        if (p.window) {
            const int least = lowest + keys - p.queries - p.window + 1;
            begin = least > 0 ? least / BN * BN : 0;
        }
    }
    const int tiles = end > begin ? (end - begin + BN - 1) / BN : 0;
    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            barrier_init(shared_address(&barriers.key[i]), 128);
            barrier_init(shared_address(&barriers.value[i]), 128);
            barrier_init(shared_address(&barriers.key_left[i]), 4 * GROUPS);
            barrier_init(shared_address(&barriers.value_left[i]), 4 * GROUPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (group == GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COPYING));
        const char* key = p.key.ptr + 2 * (batch * p.key.batch + kept * p.key.head);
        const char* value = p.value.ptr + 2 * (batch * p.value.batch + kept * p.value.head);
        for (int i = 0; i < tiles; ++i) {
            const int place = i & 1, from = begin + i * BN;
            const uint32 phase = i / 2 + 1 & 1;
            barrier_wait(shared_address(&barriers.key_left[place]), phase);
            load(keys_at + place * TILE, key, 2 * p.key.row, from, keys);
            arrive_with_copies(shared_address(&barriers.key[place]));
            barrier_wait(shared_address(&barriers.value_left[place]), phase);
            load(values_at + place * TILE, value, 2 * p.value.row, from, keys);
            arrive_with_copies(shared_address(&barriers.value[place]));
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(HELD));
    // Each group copies its own queries, while the first keys come.
    for (int i = threadIdx.x % 128; i < 64 * CHUNKS; i += 128) {
        const int line = 64 * group + i / CHUNKS, chunk = i % CHUNKS;
        const int r = tile * BM + line, s = r < rows ? r : 0;
        copy_16(queries + place_of(line, chunk, BM),
                p.query.ptr + 2 * (batch * p.query.batch
                                   + (kept * p.shared + s / p.queries) * p.query.head
                                   + s % p.queries * p.query.row + chunk * 8),
                r < rows);
    }
    copies_commit();
    copies_wait<0>();
    proxy_fence();
    asm volatile("bar.sync 1, %0;" :: "n"(MULTIPLYING) : "memory");
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool is_one = lane == 0;
    int row[2], head[2], query[2];
    Rows seen;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        row[i] = tile * BM + warp * 16 + lane / 4 + 8 * i;
        const int inside = row[i] < rows ? row[i] : rows - 1;
        head[i] = kept * p.shared + inside / p.queries;
        query[i] = inside % p.queries;
        seen.last[i] = query[i] + keys - p.queries;     // the key of this query
    }
    seen.least = min(seen.last[0], seen.last[1]);
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2)
        seen.least = min(seen.least, __shfl_xor_sync(0xffffffffu, seen.least, mask));

    const float infinity = __int_as_float(0x7f800000);
    const float scale = (p.cap != 0 ? p.cap : p.scale) * 1.4426950408889634f;
    State state = {{-infinity, -infinity}, {0, 0}, {0, 0}};
    float s[BN / 2], sums[HEAD / 2];
    uint32 weights[BN / 4];
#pragma unroll
    for (int i = 0; i < HEAD / 2; ++i) sums[i] = 0;
    const uint32 mine = queries + group * 8192;
    if (tiles > 0) {
        barrier_wait(shared_address(&barriers.key[0]), 0);
        proxy_fence();
        score(s, mine, keys_at);
        wgmma_wait<0>();
        settle<BN / 2>(s);
        if (is_one) arrive(shared_address(&barriers.key_left[0]));
        weigh(p, s, state, seen, begin, keys, scale);
        pack_all(s, weights);
        for (int i = 1; i < tiles; ++i) {
            const int place = i & 1, before = place ^ 1;
            barrier_wait(shared_address(&barriers.key[place]), i / 2 & 1);
            proxy_fence();
            score(s, mine, keys_at + place * TILE);
            barrier_wait(shared_address(&barriers.value[before]), (i - 1) / 2 & 1);
            proxy_fence();
            add_values(sums, weights, values_at + before * TILE);
            wgmma_wait<1>();
            settle<BN / 2>(s);
            if (is_one) arrive(shared_address(&barriers.key_left[place]));
            weigh(p, s, state, seen, begin + i * BN, keys, scale);
            wgmma_wait<0>();
            settle<HEAD / 2>(sums);
            if (is_one) arrive(shared_address(&barriers.value_left[before]));
#pragma unroll
            for (int j = 0; j < HEAD / 2; ++j) sums[j] *= state.factor[j / 2 % 2];
            pack_all(s, weights);
        }
        const int last = tiles - 1;
        barrier_wait(shared_address(&barriers.value[last & 1]), last / 2 & 1);
        proxy_fence();
        add_values(sums, weights, values_at + (last & 1) * TILE);
        wgmma_wait<0>();
        settle<HEAD / 2>(sums);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const float total = of_quad(state.total[r], true);
        if (row[r] >= rows) continue;
        const float factor = total == 0 ? 0.0f : 1 / total;
        char* out = p.out.ptr + 2 * (batch * p.out.batch + head[r] * p.out.head
                                     + query[r] * p.out.row);
#pragma unroll
        for (int n = 0; n < HEAD / 8; ++n)
            reinterpret_cast<uint32*>(out)[n * 4 + lane % 4] =
                pack(sums[4 * n + 2 * r] * factor, sums[4 * n + 2 * r + 1] * factor);
    }
}
