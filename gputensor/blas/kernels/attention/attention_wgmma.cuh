// Attention on the tensor cores of Hopper (sm_90a), for many queries; see attention.cuh.
//
// A block takes tile after tile of rows. GROUPS warpgroups have 64 rows each; one more copies keys
// and values, BN at a time, into two places each, and those of the next tile while the groups end
// theirs. Queries have two places as well: a group copies those of its next tile when it begins with
// one. A group multiplies the queries by the next keys, and then the weights of the last
// keys, which it holds in registers, by their values. While the second product runs, the scores of
// the first become weights (the order of Shah and others, 2024). Rows of 128 bytes, or of 64 where
// heads have 32 elements, lie swizzled, 64 elements of a head to a panel.
//
// Defined before this text: ELEMENT, a 16-bit float; PACK, the name of the conversion of two
// floats; HEAD, 32, 64 or 128; GROUPS; BLOCKS of a multiprocessor; BN; HELD and COPYING, registers
// of a thread that multiplies or copies; SCORES, the instruction that multiplies 16 elements of
// queries and keys from the descriptors a and b and adds them to the sums d, or overwrites d if
// `adds` is 0; SUMS, the one that adds 16 keys from registers a and descriptor b.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/attention/attention.h"
#include "gputensor/blas/kernels/attention/softmax.cuh"
#include "gputensor/blas/kernels/shared/mma.cuh"

typedef AttentionParameters Parameters;

const int BM = 64 * GROUPS, MULTIPLYING = 128 * GROUPS, THREADS = MULTIPLYING + 128;
const int ROW = HEAD < 64 ? 2 * HEAD : 128;     // bytes of a row of a panel
const int CHUNKS = HEAD / 8;
const int TILE = BN * HEAD * 2;                 // bytes of keys or of values
const int QUERIES = BM * HEAD * 2;

DEVICE void multiply_scores(float* d, uint64 a, uint64 b, uint32 adds) { SCORES; }
DEVICE void multiply_values(float* d, const uint32* a, uint64 b) { SUMS; }
// Swizzled rows of 128 or 64 bytes; `leading`: the distance of panels where columns span several.
DEVICE uint64 descriptor(uint32 at, int leading) {
    return (uint64)(at >> 4) | (uint64)(leading >> 4) << 16 | (uint64)(ROW / 2) << 32
        | (uint64)(ROW == 128 ? 1 : 2) << 62;
}
DEVICE uint32 pack(float low, float high) {
    uint32 y;
    asm volatile("cvt.rn." PACK ".f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}
DEVICE void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

struct Barriers { uint64 key[2], key_left[2], value[2], value_left[2]; };

// Where a chunk of 16 bytes of a row lies in panels of `rows` rows.
DEVICE uint32 place_of(int row, int chunk, int rows) {
    if (ROW == 64) return row * 64 + ((chunk ^ row / 2 % 4) << 4);
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
                     :: "r"(to + i * lines * ROW), "l"(from + i * lines * row_bytes),
                     "r"(i * lines < left ? 16 : 0) : "memory");
}

// The rows of a block: of `shared` heads, one after the other. `begin` is a step's first key.
struct Tile { int64 batch; int kept, from, to, keys, begin; };
struct Rows { int last[2], least; };            // keys that a thread's rows see, and its warp's
struct State { float largest[2], total[2], factor[2]; };

// Tile `number`: one head after the other, so that blocks share its keys in the cache. With a
// causal mask, those of all heads with the last rows come first, because they have the most keys.
DEVICE Tile tile_of(const Parameters& p, int number) {
    Tile x;
    const int heads = p.units / p.tiles, rows = p.queries * p.shared;
    const int tile = p.is_causal ? number / heads : number % p.tiles;
    const int head = p.is_causal ? number % heads : number / p.tiles;
    x.from = (p.tiles - 1 - tile) * BM;
    x.to = min(x.from + BM, rows);
    x.kept = head % p.kept;
    x.batch = head / p.kept;
    x.keys = p.keys;
    if (p.length) {
        const int64 at = x.batch * p.length_batch;
        const int64 length = p.is_long ? reinterpret_cast<const int64*>(p.length)[at]
                                       : reinterpret_cast<const int32*>(p.length)[at];
        x.keys = length < 0 ? 0 : length < x.keys ? (int)length : x.keys;
    }
    x.begin = 0;
    if (p.window) {
        const int lowest = x.from / p.queries == (x.to - 1) / p.queries ? x.from % p.queries : 0;
        const int least = lowest + x.keys - p.queries - p.window + 1;
        x.begin = least > 0 ? least / BN * BN : 0;
    }
    return x;
}
// The steps that rows [from, to) need.
DEVICE int steps_of(const Parameters& p, const Tile& x, int from, int to) {
    int end = x.keys;
    if (from >= to) return 0;
    if (p.is_causal) {
        const bool is_one = from / p.queries == (to - 1) / p.queries;
        const int highest = is_one ? (to - 1) % p.queries : p.queries - 1;
        end = min(end, highest + x.keys - p.queries + 1);
    }
    return end > x.begin ? (end - x.begin + BN - 1) / BN : 0;
}
// The tile that this block takes in a round. Every other round has the opposite order, so that no
// block has the longer tile each time.
DEVICE int number_of(int round) {
    const int place = round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    return round * gridDim.x + place;
}

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
        multiply_values(sums, weights + 4 * c, descriptor(values, BN * 128) + c * ROW);
    wgmma_commit();
}

// Copies the rows of one group.
DEVICE void load_queries(const Parameters& p, const Tile& x, uint32 queries, int group) {
#pragma unroll 4
    for (int i = threadIdx.x % 128; i < 64 * CHUNKS; i += 128) {
        const int line = 64 * group + i / CHUNKS, chunk = i % CHUNKS;
        const bool is_inside = x.from + line < x.to;
        const int r = is_inside ? x.from + line : 0;
        copy_16(queries + place_of(line, chunk, BM),
                p.query.ptr + 2 * (x.batch * p.query.batch
                                   + (x.kept * p.shared + r / p.queries) * p.query.head
                                   + r % p.queries * p.query.row + chunk * 8),
                is_inside);
    }
    copies_commit();
}
DEVICE void sync_group(int group) {
    asm volatile("bar.sync %0, %1;" :: "r"(1 + group), "n"(128) : "memory");
}
// The groups of a block queue the products of a step in turn, so that one multiplies while another
// turns scores into weights.
DEVICE void take_turn(int group) {
    asm volatile("bar.sync %0, %1;" :: "r"(1 + GROUPS + group), "n"(256) : "memory");
}
DEVICE void pass_turn(int group) {
    asm volatile("bar.arrive %0, %1;" :: "r"(1 + GROUPS + (group + 1) % GROUPS), "n"(256)
                 : "memory");
}
// Exchanges the words of the four lanes of a row, so that each has four words of one chunk: lane t
// gave word t of four chunks, and gets chunk t.
DEVICE void exchange(uint32* x) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 2; step > 0; step /= 2) {
        const bool is_upper = lane & step;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int low = step == 2 ? i : 2 * i, high = low + step;
            const uint32 got =
                __shfl_xor_sync(0xffffffffu, is_upper ? x[low] : x[high], step);
            if (is_upper) x[low] = got;
            else x[high] = got;
        }
    }
}
// Each warp of a group arrives once.
DEVICE void leave(uint64& barrier) {
    if (threadIdx.x % 32 == 0) arrive(shared_address(&barrier));
}

DEVICE void copy(const Parameters& p, Barriers& barriers, uint32 keys_at, uint32 values_at) {
    int n = 0;                                  // the steps so far
    for (int round = 0, number = blockIdx.x; number < p.units; number = number_of(++round)) {
        const Tile x = tile_of(p, number);
        const char* key = p.key.ptr + 2 * (x.batch * p.key.batch + x.kept * p.key.head);
        const char* value = p.value.ptr + 2 * (x.batch * p.value.batch + x.kept * p.value.head);
        const int steps = steps_of(p, x, x.from, x.to);
        for (int i = 0; i < steps; ++i, ++n) {
            const int place = n & 1, from = x.begin + i * BN;
            const uint32 phase = n / 2 + 1 & 1;
            barrier_wait(shared_address(&barriers.key_left[place]), phase);
            load(keys_at + place * TILE, key, 2 * p.key.row, from, x.keys);
            arrive_with_copies(shared_address(&barriers.key[place]));
            barrier_wait(shared_address(&barriers.value_left[place]), phase);
            load(values_at + place * TILE, value, 2 * p.value.row, from, x.keys);
            arrive_with_copies(shared_address(&barriers.value[place]));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
kernel(const __grid_constant__ Parameters p) {
    start_early();
    extern __shared__ __align__(1024) char memory[];
    __shared__ Barriers barriers;
    const uint32 queries = shared_address(memory);
    const uint32 keys_at = queries + 2 * QUERIES, values_at = keys_at + 2 * TILE;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
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
        copy(p, barriers, keys_at, values_at);
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(HELD));
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float infinity = __int_as_float(0x7f800000);
    const float scale = (p.cap != 0 ? p.cap : p.scale) * 1.4426950408889634f;
    int n = 0;                                  // the steps so far
    // Waits for the queries of a round's tile, and begins to copy those of the tile after it.
    auto await_queries = [&](int round) {
        const int after = number_of(round + 1);
        copies_wait<0>();
        proxy_fence();
        sync_group(group);
        if (after < p.units)
            load_queries(p, tile_of(p, after), queries + (round + 1) % 2 * QUERIES, group);
    };
    auto await_keys = [&](int step) {
        barrier_wait(shared_address(&barriers.key[step & 1]), step / 2 & 1);
        proxy_fence();
        return keys_at + (step & 1) * TILE;
    };
    auto await_values = [&](int step) {
        barrier_wait(shared_address(&barriers.value[step & 1]), step / 2 & 1);
        proxy_fence();
        return values_at + (step & 1) * TILE;
    };
    // With a causal mask more than two groups have different numbers of steps, and would wait.
    const bool has_turns = GROUPS == 2 || (GROUPS > 2 && !p.is_causal);
    if (has_turns && group == GROUPS - 1) pass_turn(group);
    load_queries(p, tile_of(p, blockIdx.x), queries, group);
    await_queries(0);
    for (int round = 0, number = blockIdx.x, next; number < p.units; number = next) {
        const Tile x = tile_of(p, number);
        const uint32 mine = queries + round % 2 * QUERIES + group * 64 * ROW;
        next = number_of(++round);
        const int first = x.from + 64 * group;
        const int all = steps_of(p, x, x.from, x.to);
        const int steps = steps_of(p, x, first, min(first + 64, x.to));
        int row[2];
        Rows seen;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            row[i] = x.from + warp * 16 + lane / 4 + 8 * i;
            const int inside = row[i] < x.to ? row[i] : x.to - 1;
            seen.last[i] = inside % p.queries + x.keys - p.queries;     // the key of this query
        }
        seen.least = min(seen.last[0], seen.last[1]);
#pragma unroll
        for (int mask = 1; mask < 32; mask *= 2)
            seen.least = min(seen.least, __shfl_xor_sync(0xffffffffu, seen.least, mask));
        State state = {{-infinity, -infinity}, {0, 0}, {0, 0}};
        float sums[HEAD / 2];
#pragma unroll
        for (int i = 0; i < HEAD / 2; ++i) sums[i] = 0;
        float s[BN / 2];
        uint32 weights[BN / 4];
        if (steps > 0) {
            score(s, mine, await_keys(n));
            wgmma_wait<0>();
            settle<BN / 2>(s);
            leave(barriers.key_left[n & 1]);
            weigh(p, s, state, seen, x.begin, x.keys, scale);
            pack_all(s, weights);
        }
        for (int i = 1; i < steps; ++i) {
            ++n;
            const uint32 keys = await_keys(n);
            if (has_turns) take_turn(group);
            score(s, mine, keys);
            add_values(sums, weights, await_values(n - 1));
            if (has_turns) pass_turn(group);
            wgmma_wait<1>();
            settle<BN / 2>(s);
            leave(barriers.key_left[n & 1]);
            weigh(p, s, state, seen, x.begin + i * BN, x.keys, scale);
            wgmma_wait<0>();
            settle<HEAD / 2>(sums);
            leave(barriers.value_left[~n & 1]);
#pragma unroll
            for (int j = 0; j < HEAD / 2; ++j) sums[j] *= state.factor[j / 2 % 2];
            pack_all(s, weights);
        }
        if (next < p.units) await_queries(round);
        if (steps > 0) {
            add_values(sums, weights, await_values(n));
            wgmma_wait<0>();
            settle<HEAD / 2>(sums);
            leave(barriers.value_left[n & 1]);
            ++n;
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const float total = of_quad(state.total[r], true);
            const float factor = total == 0 ? 0.0f : 1 / total;
            char* out = p.out.ptr + 2 * (x.batch * p.out.batch
                                         + (x.kept * p.shared + row[r] / p.queries) * p.out.head
                                         + row[r] % p.queries * p.out.row);
#pragma unroll
            for (int i = 0; i < HEAD / 8; i += 4) {
                Words chunk;
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    chunk.item[j] = pack(sums[4 * (i + j) + 2 * r] * factor,
                                         sums[4 * (i + j) + 2 * r + 1] * factor);
                exchange(chunk.item);
                if (row[r] < x.to) reinterpret_cast<Words*>(out)[i + lane % 4] = chunk;
            }
        }
        // Keys that only other groups need.
        for (int i = steps; i < all; ++i, ++n) {
            if (has_turns && i > 0) {
                take_turn(group);
                pass_turn(group);
            }
            barrier_wait(shared_address(&barriers.key[n & 1]), n / 2 & 1);
            leave(barriers.key_left[n & 1]);
            barrier_wait(shared_address(&barriers.value[n & 1]), n / 2 & 1);
            leave(barriers.value_left[n & 1]);
        }
    }
}
