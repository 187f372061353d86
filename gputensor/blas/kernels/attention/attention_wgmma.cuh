// Attention on the tensor cores of Hopper (sm_90a), for many queries; see attention.cuh.
//
// A block takes tile after tile of rows. GROUPS warpgroups have 64 rows each; one more finds the
// tiles and copies queries, keys and values: keys and values BN at a time, into a ring of places,
// and those of the next tile while the groups end theirs; queries, in two places, a tile ahead. A
// group multiplies the queries by the next keys, and then the weights of the last keys, which it
// holds in registers, by their values. While the second product runs, the scores of the first
// become weights (the order of Shah and others, 2024). Rows of 128 bytes, or of 64 where heads have
// 32 elements, lie swizzled, 64 elements of a head to a panel.
//
// Defined before this text: ELEMENT, a 16-bit float; PACK, the name of the conversion of two
// floats; HEAD, 32, 64 or 128; GROUPS; BLOCKS of a multiprocessor; BN; KEY_PLACES and VALUE_PLACES;
// HELD and COPYING, registers of a thread that multiplies or copies; SCORES, the instruction that
// multiplies 16 elements of queries and keys from the descriptors a and b and adds them to the sums
// d, or overwrites d if `adds` is 0; SUMS, the one that adds 16 keys from registers a and
// descriptor b.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/divide.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/attention/attention.h"
#include "gputensor/blas/kernels/attention/softmax.cuh"
#include "gputensor/blas/kernels/shared/mma.cuh"

typedef TiledAttentionParameters Parameters;

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

struct Barriers {
    uint64 key[KEY_PLACES], key_left[KEY_PLACES], value[VALUE_PLACES], value_left[VALUE_PLACES];
    uint64 query[2], query_left[2];
};
// A warpgroup's place in a ring. The barrier that says that the place is full completes its phase
// `phase`, the one that says that it is free the phase before.
template <int PLACES> struct Ring {
    int place = 0;
    uint32 phase = 0;
    DEVICE void advance() {
        if (++place == PLACES) {
            place = 0;
            phase ^= 1;
        }
    }
};

// Where a chunk of 16 bytes of a row lies in panels of `rows` rows.
DEVICE uint32 place_of(int row, int chunk, int rows) {
    if (ROW == 64) return row * 64 + ((chunk ^ row / 2 % 4) << 4);
    return chunk / 8 * rows * 128 + row * 128 + ((chunk % 8 ^ row % 8) << 4);
}
// BN rows, of which those behind the first `count` are 0.
DEVICE void load(uint32 to, const char* from, int64 row_bytes, int count) {
    const int thread = threadIdx.x - MULTIPLYING, line = thread / CHUNKS, chunk = thread % CHUNKS;
    const int lines = 128 / CHUNKS;             // a multiple of 8: a thread's swizzle stays
    from += line * row_bytes + chunk * 16;
    to += place_of(line, chunk, BN);
    const int left = count - line;
#pragma unroll
    for (int i = 0; i < BN / lines; ++i)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                     :: "r"(to + i * lines * ROW), "l"(from + i * lines * row_bytes),
                     "r"(i * lines < left ? 16 : 0) : "memory");
}

// The rows of a block: of `shared` heads, one after the other. `begin` is a step's first key; `all`
// are the steps of the block, below 0 behind its last tile.
struct Tile { int batch, kept, from, to, keys, begin, all; };
struct Place { Tile tile; int steps[GROUPS]; }; // the steps of each group
struct Rows { int last[2], least; };            // keys that a thread's rows see, and its warp's
struct State { float largest[2], total[2], factor[2]; };

// The head of a row of those that share keys, and the row in it.
DEVICE int head_of(const Parameters& p, int row) {
    return p.shared == 1 ? 0 : divide(row, p.by_queries);
}
DEVICE int head_row(const Parameters& p, int row) { return row - head_of(p, row) * p.queries; }
// The steps that rows [from, to) need.
DEVICE int steps_of(const Parameters& p, const Tile& x, int from, int to) {
    int end = x.keys;
    if (from >= to) return 0;
    if (p.is_causal) {
        const bool is_one = head_of(p, from) == head_of(p, to - 1);
        const int highest = is_one ? head_row(p, to - 1) : p.queries - 1;
        end = min(end, highest + x.keys - p.queries + 1);
    }
    return end > x.begin ? (end - x.begin + BN - 1) / BN : 0;
}
// Tile `number`, one head after the other; of a negative number, a tile without rows.
DEVICE Tile tile_of(const Parameters& p, int number) {
    Tile x;
    const int given = number < 0 ? 0 : number, head = divide(given, p.by_tiles);
    x.from = (given - head * p.tiles) * BM;
    x.to = number < 0 ? x.from : min(x.from + BM, p.queries * p.shared);
    x.batch = divide(head, p.by_kept);
    x.kept = head - x.batch * p.kept;
    x.keys = p.keys;
    if (p.length) {
        const int64 at = x.batch * p.length_batch;
        const int64 length = p.is_long ? reinterpret_cast<const int64*>(p.length)[at]
                                       : reinterpret_cast<const int32*>(p.length)[at];
        x.keys = length < 0 ? 0 : length < x.keys ? (int)length : x.keys;
    }
    x.begin = 0;
    if (p.window) {
        const bool is_one = head_of(p, x.from) == head_of(p, x.to - 1);
        const int lowest = is_one ? head_row(p, x.from) : 0;
        const int least = lowest + x.keys - p.queries - p.window + 1;
        x.begin = least > 0 ? least / BN * BN : 0;
    }
    x.all = steps_of(p, x, x.from, x.to);
    return x;
}
// The number of the tile that this block takes in a round: from `units` on, none. Without a causal
// mask, blocks take one tile after the other, so that they share a head's keys in the cache.
//
// With it, tile t of the `run` tiles of a head has about t + 1 times the steps of the first, so a
// block takes a long tile and then the short one that makes every pair equal: tiles run - 1 - level
// and level, or level - 1 where `run` is odd, and -1 is a tile without rows. After `paired` rounds
// the `rest` of the pairs come apart, all long tiles first, every other round the other way round:
// then blocks without a pair of their own have single tiles instead. (All tiles in this order would
// read keys from memory as often as a head has tiles, where those of all heads exceed the cache.)
// These pairs come by level, and those of `head`, which the paired rounds began, from level `begun`
// on: before them are `earlier` pairs of the heads behind it.
DEVICE int number_of(const Parameters& p, int round) {
    const int blocks = gridDim.x, block = blockIdx.x;
    if (p.run == 0) return round * blocks + block;
    int head, level;
    bool is_long;
    if (round < p.paired) {
        const int pair = round / 2 * blocks + block;
        is_long = round % 2 == 0;
        head = divide(pair, p.by_half);
        level = pair - head * (int)p.by_half.size;
    } else {
        const int at = (round - p.paired) * blocks + (round % 2 ? blocks - 1 - block : block);
        if (at >= 2 * p.rest) return p.units;
        is_long = at < p.rest;
        const int pair = is_long ? at : 2 * p.rest - 1 - at;
        if (pair < p.earlier) {
            level = divide(pair, p.by_whole);
            head = p.head + 1 + pair - level * (int)p.by_whole.size;
        } else {
            level = divide(pair - p.earlier, p.by_more);
            head = p.head + pair - p.earlier - level * (int)p.by_more.size;
            level += p.begun;
        }
    }
    const int tile = is_long ? p.run - 1 - level : level - p.run % 2;
    return tile < 0 ? -1 : head * p.run + tile;
}

// Turns scores of keys from `from` on into weights, in place, and updates `state`.
DEVICE void weigh(const Parameters& p, float* s, State& state, const Rows& rows, int from,
                  int keys, float scale) {
    const float infinity = __int_as_float(0x7f800000);
    if (p.cap != 0) {
#pragma unroll
        for (int i = 0; i < BN / 2; ++i) s[i] = tanhf(s[i] * (p.scale / p.cap));
    }
    // Columns from those of this thread's first scores on.
    const int column = from + threadIdx.x % 4 * 2;
    if (from + BN > keys || (p.is_causal && from + BN - 1 > rows.least)) {
        int most[2];
#pragma unroll
        for (int r = 0; r < 2; ++r)
            most[r] = (p.is_causal ? min(rows.last[r], keys - 1) : keys - 1) - column;
#pragma unroll
        for (int i = 0; i < BN / 2; ++i)
            if (i / 4 * 8 + i % 2 > most[i / 2 % 2]) s[i] = -infinity;
    }
    if (p.window && from <= max(rows.last[0], rows.last[1]) - p.window) {
#pragma unroll
        for (int i = 0; i < BN / 2; ++i)
            if (i / 4 * 8 + i % 2 <= rows.last[i / 2 % 2] - p.window - column) s[i] = -infinity;
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

DEVICE void load_queries(const Parameters& p, const Tile& x, uint32 to) {
    const int thread = threadIdx.x - MULTIPLYING, line = thread / CHUNKS, chunk = thread % CHUNKS;
    const int lines = 128 / CHUNKS;             // a multiple of 8: a thread's swizzle stays
    const char* from = p.query.ptr + 2 * (x.batch * p.query.batch
                                          + x.kept * p.shared * p.query.head + chunk * 8);
    to += place_of(line, chunk, BM);
#pragma unroll 1
    for (int i = 0; i < BM / lines; ++i) {
        const int row = x.from + line + i * lines;
        const bool is_inside = row < x.to;
        const int r = is_inside ? row : 0;
        copy_16(to + i * lines * ROW, from + 2 * (head_of(p, r) * p.query.head
                                                  + head_row(p, r) * p.query.row), is_inside);
    }
}
DEVICE const char* row_of(const AttentionOperand& one, const Tile& x, int row) {
    return one.ptr + 2 * (x.batch * one.batch + x.kept * one.head + row * one.row);
}
// What the warpgroup that copies does. Values follow the keys of the next step, whose place is free
// earlier. The queries of the next tile follow the second step of a tile, when the places are full.
DEVICE void copy(const Parameters& p, Barriers& barriers, Place* places, uint32 queries,
                 uint32 keys_at, uint32 values_at) {
    Ring<KEY_PLACES> key;
    Ring<VALUE_PLACES> value;
    const char* values = nullptr;               // of the last step, whose keys have come
    int count = 0;
    auto load_values = [&]() {
        if (!values) return;
        barrier_wait(shared_address(&barriers.value_left[value.place]), value.phase ^ 1);
        load(values_at + value.place * TILE, values, 2 * p.value.row, count);
        arrive_with_copies(shared_address(&barriers.value[value.place]));
        value.advance();
        values = nullptr;
    };
    auto begin = [&](int round) {
        const int place = round & 1, number = number_of(p, round);
        barrier_wait(shared_address(&barriers.query_left[place]), round / 2 + 1 & 1);
        Tile x = tile_of(p, number < p.units ? number : -1);
        if (number >= p.units) x.all = -1;
        load_queries(p, x, queries + place * QUERIES);
        arrive_with_copies(shared_address(&barriers.query[place]));
        const int group = threadIdx.x - MULTIPLYING, first = x.from + 64 * group;
        if (group < GROUPS) {
            if (group == 0) places[place].tile = x;
            places[place].steps[group] = steps_of(p, x, first, min(first + 64, x.to));
            arrive(shared_address(&barriers.query[place]));
        }
        return x;
    };
    Tile next = {};
    for (int round = 0; next.all >= 0; ++round) {
        const Tile x = next;
        for (int i = 0; i < max(x.all, 1); ++i) {
            const int from = x.begin + i * BN;
            if (x.all > 0) {
                barrier_wait(shared_address(&barriers.key_left[key.place]), key.phase ^ 1);
                load(keys_at + key.place * TILE, row_of(p.key, x, from), 2 * p.key.row,
                     x.keys - from);
                arrive_with_copies(shared_address(&barriers.key[key.place]));
                key.advance();
            }
            load_values();
            if (x.all > 0) {
                values = row_of(p.value, x, from);
                count = x.keys - from;
            }
            if (i == 1 || x.all < 2) next = begin(round);
        }
    }
    load_values();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
kernel(const __grid_constant__ Parameters p) {
    start_early();
    extern __shared__ __align__(1024) char memory[];
    __shared__ Barriers barriers;
    __shared__ Place places[2];
    const uint32 queries = shared_address(memory);
    const uint32 keys_at = queries + 2 * QUERIES, values_at = keys_at + KEY_PLACES * TILE;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    if (threadIdx.x == 0) {
        auto init = [](uint64* full, uint64* left, int places, int arriving) {
            for (int i = 0; i < places; ++i) {
                barrier_init(shared_address(full + i), arriving);
                barrier_init(shared_address(left + i), 4 * GROUPS);
            }
        };
        init(barriers.key, barriers.key_left, KEY_PLACES, 128);
        init(barriers.value, barriers.value_left, VALUE_PLACES, 128);
        init(barriers.query, barriers.query_left, 2, 128 + GROUPS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (group == GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COPYING));
        copy(p, barriers, places, queries, keys_at, values_at);
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(HELD));
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float infinity = __int_as_float(0x7f800000);
    const float scale = (p.cap != 0 ? p.cap : p.scale) * 1.4426950408889634f;
    Ring<KEY_PLACES> key;
    Ring<VALUE_PLACES> value;
    auto await_keys = [&]() {
        barrier_wait(shared_address(&barriers.key[key.place]), key.phase);
        proxy_fence();
        return keys_at + key.place * TILE;
    };
    auto await_values = [&]() {
        barrier_wait(shared_address(&barriers.value[value.place]), value.phase);
        proxy_fence();
        return values_at + value.place * TILE;
    };
    auto leave_keys = [&]() {
        leave(barriers.key_left[key.place]);
        key.advance();
    };
    auto leave_values = [&]() {
        leave(barriers.value_left[value.place]);
        value.advance();
    };
    // With a causal mask more than two groups have different numbers of steps, and would wait.
    const bool has_turns = GROUPS == 2 || (GROUPS > 2 && !p.is_causal);
    if (has_turns && group == GROUPS - 1) pass_turn(group);
    for (int round = 0;; ++round) {
        const int place = round & 1;
        barrier_wait(shared_address(&barriers.query[place]), round / 2 & 1);
        proxy_fence();
        const Tile x = places[place].tile;
        if (x.all < 0) break;
        const uint32 mine = queries + place * QUERIES + group * 64 * ROW;
        const int steps = places[place].steps[group];
        int row[2];
        Rows seen;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            row[i] = x.from + warp * 16 + lane / 4 + 8 * i;
            const int inside = row[i] < x.to ? row[i] : x.to - 1;
            seen.last[i] = head_row(p, inside) + x.keys - p.queries;    // the key of this query
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
            score(s, mine, await_keys());
            wgmma_wait<0>();
            settle<BN / 2>(s);
            leave_keys();
            weigh(p, s, state, seen, x.begin, x.keys, scale);
            pack_all(s, weights);
        }
        for (int i = 1; i < steps; ++i) {
            const uint32 keys = await_keys();
            if (has_turns) take_turn(group);
            score(s, mine, keys);
            add_values(sums, weights, await_values());
            if (has_turns) pass_turn(group);
            wgmma_wait<1>();
            settle<BN / 2>(s);
            leave_keys();
            weigh(p, s, state, seen, x.begin + i * BN, x.keys, scale);
            wgmma_wait<0>();
            settle<HEAD / 2>(sums);
            leave_values();
#pragma unroll
            for (int j = 0; j < HEAD / 2; ++j) sums[j] *= state.factor[j / 2 % 2];
            pack_all(s, weights);
        }
        leave(barriers.query_left[place]);
        if (steps > 0) {
            add_values(sums, weights, await_values());
            wgmma_wait<0>();
            settle<HEAD / 2>(sums);
            leave_values();
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const float total = of_quad(state.total[r], true);
            const float factor = total == 0 ? 0.0f : 1 / total;
            char* out = p.out.ptr + 2 * (x.batch * p.out.batch
                                         + (x.kept * p.shared + head_of(p, row[r])) * p.out.head
                                         + head_row(p, row[r]) * p.out.row);
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
        for (int i = steps; i < x.all; ++i) {
            if (has_turns && i > 0) {
                take_turn(group);
                pass_turn(group);
            }
            await_keys();
            leave_keys();
            await_values();
            leave_values();
        }
    }
}
