// Brings an operand of any alignment to the tensor cores, for unaligned.cuh.
//
// The rows of an odd matrix start anywhere. Whole aligned lines of 128 bytes are copied, the
// smallest amount that L2 can send, and each chunk of 16 bytes is put where it would be if its row
// started at a chunk. The rest of the row's start, less than 16 bytes, is an offset of the
// words that a thread reads, which costs no time; 16-bit rows that start in the middle of a word
// take two words and a permutation.
//
// Banks: the four threads that share a line of m or n read four words of k, or the other way round.
// For the 32 words to lie in 32 banks, mma's eight lines must start at the same offset. Rows UNIT
// apart do so if their pitch is odd, so a group of mma's eight lines is taken UNIT lines apart.
// Where k is not contiguous and rows are a multiple of a chunk apart, adjacent lines (UNIT 1, or 2
// to a word) are right.
#pragma once

#include "gputensor/blas/kernels/shared/words.cuh"

template <bool PART>
__device__ __forceinline__ void copy(uint32 to, const char* from, int nbytes, bool exists) {
    if (PART)       // bytes from `nbytes` on become zero
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 0;"
                     " @p cp.async.cg.shared.global [%0], [%1], 16, %2; }"
                     :: "r"(to), "l"(from), "r"(nbytes), "r"((int)exists) : "memory");
    else
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0;"
                     " @p cp.async.cg.shared.global [%0], [%1], 16; }"
                     :: "r"(to), "l"(from), "r"((int)exists) : "memory");
}
__device__ __forceinline__ void load_word(uint32& x, uint32 from, bool is_needed) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.shared.u32 %0, [%1]; }"
                 : "+r"(x) : "r"(from), "r"((int)is_needed));
}

// Maps lines (of m or n) of a tile to mma's slots: 8 slots are a group, UNIT groups share
// 8 * UNIT lines. The remaining lines at the end are shared by fewer groups.
template <int LINES, int UNIT> struct Order {
    static const int WHOLE = LINES / (8 * UNIT) * 8 * UNIT;
    static const int LAST = LINES > WHOLE ? (LINES - WHOLE) / 8 : 1;
    static __device__ __forceinline__ int line_of(int slot) {
        const int unit = slot < WHOLE ? UNIT : LAST;
        return slot / (8 * UNIT) * (8 * UNIT) + unit * (slot % 8) + slot / 8 % UNIT;
    }
    // The slot of a line below WHOLE, and below it, of one that is `line` beyond WHOLE. There are
    // two functions so that divisors are constants.
    static __device__ __forceinline__ int slot_of(int line) {
        const int within = line % (8 * UNIT);
        return line - within + within % UNIT * 8 + within / UNIT;
    }
    static __device__ __forceinline__ int last_slot_of(int line) {
        return WHOLE + line % LAST * 8 + line / LAST;
    }
};

// STAGES steps of an operand in shared memory. ALONG_K (its unit stride is along k): each line is a
// ring of STAGES * 128 bytes, followed by a second copy of its first chunk. Otherwise each k of a
// stage has a row.
template <bool ALONG_K, int LINES, int UNIT> struct Ring {
    typedef Order<LINES, UNIT> Map;
    static const int PITCH = ALONG_K ? STAGES * 128 + 16
                                     : LINES * E + 16 + (E == 4 && UNIT == 1 ? 16 : 0);
    static const int STEP = ALONG_K ? 128 : DEPTH * PITCH;      // bytes from stage to stage
    static const int NBYTES = ALONG_K ? LINES * PITCH : STAGES * STEP;
};

// The LOADERS threads copy an operand, 8 threads to a line of 128 bytes. Rows PERIOD apart
// start at the same offset, so a thread has KINDS of rows. ALONG_K, step s of a row is its s-th
// aligned line, which step s - 1 needs too.
template <bool ALONG_K, int LINES, int UNIT> struct Loader {
    typedef Ring<ALONG_K, LINES, UNIT> Shape;
    typedef typename Shape::Map Map;
    static const int PERIOD = 128 / E, KINDS = PERIOD / 16, ROUNDS = LINES / 16;
    static const int CHUNKS = LINES * E / 16 + 1, ACROSS = (CHUNKS + 14) / 8;   // not ALONG_K

    const char* from[KINDS];
    int place[KINDS];           // of the thread's chunk, in chunks from the row's first
    int left[KINDS];            // bytes of the row from its first chunk on
    uint32 to[KINDS];
    uint32 last[KINDS];         // ALONG_K: where lines from Map::WHOLE on are
    int64 period, advance;      // bytes to the next row of a kind, and to the next step
    int valid;                  // rows from the thread's first on

    __device__ __forceinline__ void open(const char* base, int64 ld, int first, int lines, int k,
                                         int end, uint32 memory) {
        const int thread = threadIdx.x - WORKERS, row = thread / 8, chunk = thread % 8;
        period = PERIOD * ld * E;
        advance = ALONG_K ? 128 : DEPTH * ld * E;
        valid = ALONG_K ? lines - first - row : end - k - row;
#pragma unroll
        for (int i = 0; i < KINDS; ++i) {
            const int own = row + 16 * i;
            const char* at = base
                + (ALONG_K ? (first + own) * ld + k : (k + own) * ld + first) * E;
            const int before = (int)((uint64)at & 127);
            from[i] = at - before + chunk * 16;
            place[i] = chunk - before / 16;
            if (ALONG_K) {
                left[i] = (end - k) * E + before % 16;
                to[i] = memory + Map::slot_of(own) * Shape::PITCH;
                last[i] = memory + Map::last_slot_of(own) * Shape::PITCH;
            } else {
                left[i] = min((lines - first) * E + before % 16, CHUNKS * 16);
                to[i] = memory + own * Shape::PITCH + place[i] * 16;
            }
        }
    }

    // Copies step `step` to stage `stage`. EDGE: where k begins or ends.
    template <bool EDGE> __device__ __forceinline__ void load(int step, int stage) {
#pragma unroll
        for (int kind = 0; kind < KINDS; ++kind) {
            if (ALONG_K) {
                const int position = step * 8 + place[kind];
                int slot = stage * 8 + place[kind];
                if (slot < 0) slot += 8 * STAGES;
                const int nbytes = min(16, max(0, left[kind] - position * 16));
                const char* at = from[kind];
#pragma unroll
                for (int i = kind; i < ROUNDS; i += KINDS) {
                    const bool exists = 16 * i < valid && (!EDGE || position >= 0);
                    const uint32 there = slot * 16 + (16 * i < Map::WHOLE
                        ? to[kind] + i / KINDS * (PERIOD * Shape::PITCH) : last[kind]);
                    copy<EDGE>(there, at, nbytes, exists);
                    if (slot == 0) copy<EDGE>(there + STAGES * 128, at, nbytes, exists);
                    at += period;
                }
            } else {
#pragma unroll
                for (int j = 0; j < ACROSS; ++j) {
                    const int position = place[kind] + 8 * j;
                    copy<EDGE>(to[kind] + stage * Shape::STEP + j * 128, from[kind] + j * 128,
                               16 * kind < valid ? 16 : 0,
                               (j > 0 || position >= 0) && position * 16 < left[kind]);
                }
            }
            from[kind] += advance;
        }
        if (!ALONG_K) valid -= DEPTH;
    }
};

// A warp reads its lines of an operand as mma's fragments: for a group of lines, in a part of k (32
// bytes), thread 4 g + t has the words t and t + 4 of k of line g.
template <bool ALONG_K, int LINES, int UNIT, int WARPS> struct Reader {
    typedef Ring<ALONG_K, LINES, UNIT> Shape;
    typedef typename Shape::Map Map;
    static const int PITCH = Shape::PITCH;
    static const int GROUPS = LINES / 8 / WARPS;        // of a warp
    // 16-bit elements with k not contiguous come for two groups at a time.
    static const bool BY_TWO = E == 2 && !ALONG_K;

    uint32 at[2][GROUPS];       // of few distinct groups; BY_TWO, of even and odd k
    bool is_odd[2];             // 16 bits: of even and odd groups, or of even and odd k
    uint32 which[2] = {};       // pick's choice for them

    // Groups UNIT apart differ by a constant, except those that may be among the last lines.
    static constexpr __device__ __forceinline__ bool has_own(int group) {
        return (WARPS - 1) * GROUPS + group >= Map::WHOLE / 8;
    }
    static constexpr __device__ __forceinline__ int index_of(int group) {
        return has_own(group) ? group : group % UNIT;
    }
    static constexpr __device__ __forceinline__ int offset_of(int group) {
        return has_own(group) ? 0 : group / UNIT * UNIT * 8 * (ALONG_K ? PITCH : E);
    }

    __device__ __forceinline__ void open(const char* base, int64 ld, int first, int k, int warp,
                                         uint32 memory) {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, pitch = (int)ld;
        const int start = (int)((uint64)base / E) + (ALONG_K ? k + first * pitch
                                                             : first + k * pitch);
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            const int slot = (warp * GROUPS + i) * 8 + g, line = Map::line_of(slot);
            if (ALONG_K) {
                const int shift = start + line * pitch & (16 / E - 1);
                at[0][i] = memory + slot * PITCH + (t + shift * E / 4) * 4;
            } else {
#pragma unroll
                for (int odd = 0; odd < 4 / E; ++odd) {
                    const int row = t * (4 / E) + odd;
                    const int shift = start + row * pitch & (16 / E - 1);
                    at[odd][i] = memory + row * PITCH + (shift + line) * E / 4 * 4;
                }
            }
        }
        if (E == 2)
#pragma unroll
            for (int odd = 0; odd < 2; ++odd) {
                is_odd[odd] = start + (odd + (ALONG_K ? warp * GROUPS : 0)) * pitch & 1;
                which[odd] = is_odd[odd] ? 0x5432 : 0x3210;
            }
    }

    // Reads the needed words of groups `group` and `group + 1`, 4 of each.
    __device__ __forceinline__ void fetch(uint32* x, int group, int part, uint32 stage) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int half = i % 2, other = i / 2;      // group, or parity of k
            if (!BY_TWO && group + other >= GROUPS) continue;
            const int k = part * 8 + half * 4, own = BY_TWO ? group : group + other;
            const uint32 from = at[BY_TWO ? other : 0][index_of(own)] + stage + offset_of(own)
                                + (ALONG_K ? k * 4 : k * (4 / E) * PITCH);
            x[2 * i] = load_word(from);
            if (E == 2) load_word(x[2 * i + 1], from + 4, is_odd[ALONG_K ? own % 2 : other]);
        }
    }
    // Makes mma's words of them: z[0], z[1] of the group and z[2], z[3] of the next.
    __device__ __forceinline__ void finish(uint32* z, const uint32* x, int group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int other = i / 2;
            if (!BY_TWO && group + other >= GROUPS) continue;
            const uint32 how = which[ALONG_K ? (group + other) % 2 : other];
            z[i] = E == 4 ? tf32_of(x[2 * i]) : pick(x[2 * i], x[2 * i + 1], how);
        }
        if (BY_TWO)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint32 even = z[half], odd = z[2 + half];
                z[half] = pick(even, odd, 0x5410);
                z[2 + half] = pick(even, odd, 0x7632);
            }
    }
};
