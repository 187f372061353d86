// The lines of an operand on their way to shared memory, for narrow.cuh.
//
// A step has TERMS terms. Lines lie along the terms, one for each row or feature of the tile, or
// along rows or features, one for each term. In shared memory they always start at a multiple of 16
// bytes, PITCH apart, so that matrices of 8 lines of 16 bytes lie in different banks. Terms that do
// not exist are zeros; rows and features that do not exist have no sums that matter.
#pragma once

#include "gputensor/blas/kernels/shared/words.cuh"

const int ITEM = X_KIND == 2 ? 4 : 2;
const int TERMS = 128 / ITEM;
const int PART_TERMS = 32 / ITEM;       // of one mma
const int PARTS = 4;

template <int NBYTES>
__device__ __forceinline__ void copy(uint32 to, const char* from, int valid) {
    if (NBYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(to), "l"(from), "r"(valid) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                     :: "r"(to), "l"(from), "r"(valid) : "memory");
}

template <bool IS_ALONG, int EXTENT, int PIECE> struct Operand {
    static const bool ALONG = IS_ALONG;
    static const int LINES = ALONG ? EXTENT : TERMS;
    static const int LINE = (ALONG ? TERMS : EXTENT) * ITEM;    // bytes
    static const int PITCH = LINE + (ALONG || ITEM == 2 ? 16 : 32);
    static const int NBYTES = LINES * PITCH;
    static const int UNIT = PIECE == 16 ? 16 : 4;               // bytes of a copy
    static const int ACROSS = LINE / UNIT < 32 ? LINE / UNIT : 32;
    static const int TURNS = LINE / UNIT / ACROSS;
    static const int AT_ONCE = 32 / ACROSS;                     // lines that the lanes copy at once
    static const int MOVED = LINES / AT_ONCE < 8 ? LINES / AT_ONCE : 8;    // lines under way

    const char* from;       // the step's first term of the tile's first line
    int64 pitch;
    int valid;              // rows or features that exist

    __device__ __forceinline__ Operand(const char* first, int64 line_pitch, int count)
        : from(first), pitch(line_pitch), valid(count) {}

    __device__ __forceinline__ void next() {
        from += ALONG ? (int64)(WARPS * TERMS * ITEM) : WARPS * TERMS * pitch;
    }
    // The bytes by which a line starts behind a word.
    static __device__ __forceinline__ int shift_of(const char* line) {
        return PIECE == 2 ? (int)((uint64)line & 2) : 0;
    }

    // Copies a step, of which `left` terms are left in all. Steps with further lines or terms behind
    // them are copied whole: what a copy reads beyond an edge is in the matrix, and in no sum.
    __device__ __forceinline__ void load(uint32 to, int64 left) const {
        const bool is_whole = left >= TERMS
            && (ALONG || valid == EXTENT || (left - TERMS) * pitch >= LINE);
        if (is_whole) load_step<true>(to, TERMS);
        else load_step<false>(to, left < TERMS ? (int)left : TERMS);
    }

    template <bool WHOLE> __device__ __forceinline__ void load_step(uint32 to, int count) const {
        const int lane = threadIdx.x % 32, first = lane / ACROSS;
        const int nbytes = (ALONG ? count : valid) * ITEM;      // of a line
        const char* line = from + first * pitch;
        to += first * PITCH + lane % ACROSS * UNIT;
#pragma unroll (WHOLE ? 16 : 8)     // further code takes longer to come than it saves
        for (int i = 0; i < LINES; i += AT_ONCE) {
            const int shift = shift_of(line);
#pragma unroll
            for (int turn = 0; turn < TURNS; ++turn) {
                const int offset = (lane % ACROSS + turn * 32) * UNIT;
                put<WHOLE>(to + turn * 32 * UNIT, line - shift + offset, first + i, count,
                           nbytes + shift - offset);
            }
            to += AT_ONCE * PITCH;
            line += AT_ONCE * pitch;
        }
        if (PIECE > 2) return;
        // The last word of lines that end in the middle of one.
        to -= LINES * PITCH + first * PITCH + lane % ACROSS * UNIT;
#pragma unroll
        for (int i = 0; i < LINES; i += 32) {
            const int own = i + lane;
            line = from + own * pitch;
            if (own < LINES && shift_of(line))
                put<false>(to + own * PITCH + LINE, line - 2 + LINE, own, count, nbytes + 2 - LINE);
        }
    }

    // Copies one piece, of which `left` bytes belong to its line; of terms that do not exist, zeros.
    template <bool WHOLE>
    __device__ __forceinline__ void put(uint32 to, const char* at, int line, int count,
                                        int left) const {
        if (WHOLE) {
            if (!ALONG || line < valid) copy<UNIT>(to, at, UNIT);
        } else if (ALONG ? line < valid : left > 0) {
            const int some = !ALONG && line >= count ? 0 : left < 0 ? 0 : left < UNIT ? left : UNIT;
            copy<UNIT>(to, some ? at : from - shift_of(from), some);
        }
    }

    // Moves the elements of lines that start in the middle of a word to the line's place.
    __device__ __forceinline__ void straighten(uint32 at) const {
        if (PIECE > 2) return;
        const int lane = threadIdx.x % 32, first = lane / ACROSS;
        const char* line = from + first * pitch;
        at += first * PITCH + lane % ACROSS * 4;
#pragma unroll 1
        for (int i = 0; i < LINES; i += MOVED * AT_ONCE) {
            uint32 moved[MOVED][TURNS];
#pragma unroll
            for (int j = 0; j < MOVED * TURNS; ++j) {
                const uint32 word = at + j / TURNS * AT_ONCE * PITCH + j % TURNS * 128;
                moved[j / TURNS][j % TURNS] = pick(load_word(word), load_word(word + 4), 0x5432);
            }
            __syncwarp();
#pragma unroll
            for (int j = 0; j < MOVED; ++j) {
#pragma unroll
                for (int turn = 0; turn < TURNS; ++turn)
                    if (shift_of(line))
                        asm volatile("st.shared.u32 [%0], %1;"
                                     :: "r"(at + j * AT_ONCE * PITCH + turn * 128),
                                        "r"(moved[j][turn]) : "memory");
                line += AT_ONCE * pitch;
            }
            at += MOVED * AT_ONCE * PITCH;
        }
        __syncwarp();
    }
};
