// What the kernels of attention of few rows share: what a warp knows of its rows, adding 16 keys to
// it, and joining the warps of a block.
//
// Scores are computed with keys as the rows of a product and queries as its columns, which then lie
// as the product with the values needs them (mma m16n8k16).
//
// Defined before this text: ELEMENT, a 16-bit float; INSTRUCTION, the name of its mma; PACK, that
// of the conversion of two floats; HEAD, the head size, a multiple of 16 (columns beyond `size` are
// 0); EIGHTS, 1 or 2, of rows; WARPS that multiply; MASK: 0, 1 (bool) or 2, with MASK_TYPE.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/attention/attention.h"
#include "gputensor/blas/kernels/attention/softmax.cuh"
#include "gputensor/blas/kernels/shared/fragments.cuh"

typedef ELEMENT element;

const int BM = 8 * EIGHTS;
// Floats of a row in shared memory and in a part: its sums, maximum and total.
const int LINE = HEAD + 4, PART = HEAD + 2;

DEVICE float infinity() { return __int_as_float(0x7f800000); }
DEVICE uint32 turned(uint32 x) {
    uint32 y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// The keys that the rows of a sequence see.
struct Range {
    int begin, end;
    DEVICE int count() const { return end > begin ? end - begin : 0; }
};
DEVICE Range range_of(const AttentionParameters& p, int64 batch) {
    int keys = p.keys;
    if (p.length) {
        const int64 at = batch * p.length_batch;
        const int64 length = p.is_long ? reinterpret_cast<const int64*>(p.length)[at]
                                       : reinterpret_cast<const int32*>(p.length)[at];
        keys = length < 0 ? 0 : length < keys ? (int)length : keys;
    }
    // The first query sees the first key that any sees, and the last query the last key.
    const int reach = keys - p.queries + 1;
    return {p.window && reach > p.window ? reach - p.window : 0, keys};
}

// Scores are multiplied by a factor inside the power, or by others before that.
DEVICE bool is_scaled(const AttentionParameters& p) { return MASK == 2 || p.cap != 0 || !(p.scale > 0); }
DEVICE float unit_of(const AttentionParameters& p) {
    return is_scaled(p) ? 1.0f : p.scale * 1.4426950408889634f;
}

struct Rows {
    // Queries as columns: those of a lane in a product, and those whose scores it has.
    uint32 q[EIGHTS][HEAD / 16][2];
    int last[EIGHTS][2];
#if MASK
    int64 mask_row[EIGHTS][2];
#endif
    float sums[EIGHTS][HEAD / 16][4], largest[EIGHTS][2], total[EIGHTS][2], unit;

    DEVICE void begin(const AttentionParameters& p, int64 batch, int kept, int keys) {
        const int lane = threadIdx.x % 32, rows = p.queries * p.shared;
        unit = unit_of(p);
#pragma unroll
        for (int e = 0; e < EIGHTS; ++e) {
            const int row = e * 8 + lane / 4, s = row < rows ? row : 0;
            const uint32* from = reinterpret_cast<const uint32*>(
                p.query.ptr + 2 * (batch * p.query.batch + s % p.queries * p.query.row
                                   + (kept * p.shared + s / p.queries) * p.query.head));
#pragma unroll
            for (int c = 0; c < HEAD / 16; ++c)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const bool is_valid = row < rows && c * 16 + i * 8 < p.size;
                    q[e][c][i] = is_valid ? from[c * 8 + i * 4 + lane % 4] : 0;
                    sums[e][c][i] = sums[e][c][i + 2] = 0;
                }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int column = e * 8 + lane % 4 * 2 + i;
                const int inside = column < rows ? column : rows - 1;
                last[e][i] = inside % p.queries + keys - p.queries;
                largest[e][i] = -infinity();
                total[e][i] = 0;
#if MASK
                mask_row[e][i] = batch * p.mask_batch + inside % p.queries * p.mask_row
                    + (kept * p.shared + inside / p.queries) * p.mask_head;
#endif
            }
        }
    }

    // Scales scores of keys from `from` on, and hides those that the rows do not see.
    DEVICE void mask(const AttentionParameters& p, float s[EIGHTS][4], int from, int keys) {
        const float log2e = 1.4426950408889634f;
        const int lane = threadIdx.x % 32;
        const bool is_whole = !MASK && from + 16 <= keys
            && (!p.is_causal || (from + 15 <= keys - p.queries && !p.window));
#pragma unroll
        for (int e = 0; e < EIGHTS; ++e) {
            if (is_scaled(p)) {
                const float scale = (p.cap != 0 ? p.cap : p.scale) * log2e;
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    s[e][i] = scale * (p.cap != 0 ? tanhf(s[e][i] * (p.scale / p.cap)) : s[e][i]);
            }
            if (is_whole) continue;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int r = i % 2, column = from + lane / 4 + i / 2 * 8;
                bool is_seen = column < keys;
                if (p.is_causal) is_seen = is_seen && column <= last[e][r];
                if (p.window) is_seen = is_seen && last[e][r] - column < p.window;
#if MASK
                if (is_seen) {
                    const int64 at = mask_row[e][r] + column * p.mask_column;
#if MASK == 1
                    is_seen = reinterpret_cast<const bool*>(p.mask)[at];
#else
                    s[e][i] += log2e * (float)wide(reinterpret_cast<const MASK_TYPE*>(p.mask)[at]);
#endif
                }
#endif
                if (!is_seen) s[e][i] = -infinity();
            }
        }
    }

    // Adds 16 keys from `from` on, and their values.
    template <class Step>
    DEVICE void add(const AttentionParameters& p, const Step& step, int from, int keys) {
        float s[EIGHTS][4];
#pragma unroll
        for (int e = 0; e < EIGHTS; ++e) s[e][0] = s[e][1] = s[e][2] = s[e][3] = 0;
#pragma unroll
        for (int c = 0; c < HEAD / 16; ++c) {
            uint32 a[4];
            matrices(a, step.key(c));
#pragma unroll
            for (int e = 0; e < EIGHTS; ++e) multiply(s[e], a, q[e][c][0], q[e][c][1]);
        }
        mask(p, s, from, keys);
        uint32 weights[EIGHTS][2];
#pragma unroll
        for (int e = 0; e < EIGHTS; ++e) {
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float most = fmaxf(s[e][r], s[e][r + 2]);
#pragma unroll
                for (int bits = 4; bits < 32; bits *= 2)
                    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, bits));
                most = fmaxf(most, largest[e][r]);
                const float shift = most == -infinity() ? 0.0f : most * unit;
                const float factor = power_of_two(largest[e][r] * unit - shift);
                largest[e][r] = most;
                s[e][r] = power_of_two(s[e][r] * unit - shift);
                s[e][r + 2] = power_of_two(s[e][r + 2] * unit - shift);
                total[e][r] = total[e][r] * factor + s[e][r] + s[e][r + 2];
#pragma unroll
                for (int c = 0; c < HEAD / 16; ++c) {
                    sums[e][c][r] *= factor;
                    sums[e][c][r + 2] *= factor;
                }
            }
            weights[e][0] = turned(pack(s[e][0], s[e][1]));
            weights[e][1] = turned(pack(s[e][2], s[e][3]));
        }
#pragma unroll
        for (int c = 0; c < HEAD / 16; ++c) {
            uint32 a[4];
            matrices_turned(a, step.value(c));
#pragma unroll
            for (int e = 0; e < EIGHTS; ++e) multiply(sums[e][c], a, weights[e][0], weights[e][1]);
        }
    }

    // Writes the sums of the warp as BM lines.
    DEVICE void put(float* lines) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int e = 0; e < EIGHTS; ++e)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
#pragma unroll
                for (int bits = 4; bits < 32; bits *= 2)
                    total[e][r] += __shfl_xor_sync(0xffffffffu, total[e][r], bits);
                float* line = lines + (e * 8 + lane % 4 * 2 + r) * LINE;
#pragma unroll
                for (int c = 0; c < HEAD / 16; ++c) {
                    line[c * 16 + lane / 4] = sums[e][c][r];
                    line[c * 16 + 8 + lane / 4] = sums[e][c][r + 2];
                }
                if (lane / 4 == 0) {
                    line[HEAD] = largest[e][r] * unit;
                    line[HEAD + 1] = total[e][r];
                }
            }
    }
};

// Sums of an element of a row relative to a maximum, and of the weights.
struct Sum { float most, value, total; };

// Adds COUNT lines in this order; load(i, column) is a float of line i.
template <int COUNT, class Load>
DEVICE Sum sum_of(const Load& load, int column) {
    Sum sum = {-infinity(), 0, 0};
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum.most = fmaxf(sum.most, load(i, HEAD));
    const float shift = sum.most == -infinity() ? 0.0f : sum.most;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const float factor = power_of_two(load(i, HEAD) - shift);
        sum.value += load(i, column) * factor;
        sum.total += load(i, HEAD + 1) * factor;
    }
    return sum;
}
DEVICE void write(const AttentionParameters& p, const Sum& sum, int64 batch, int kept, int row,
                  int column) {
    const int64 at = batch * p.out.batch + row % p.queries * p.out.row
        + (kept * p.shared + row / p.queries) * p.out.head + column;
    if (column < p.size)
        reinterpret_cast<element*>(p.out.ptr)[at] =
            narrow<element>(sum.total == 0 ? 0.0f : sum.value / sum.total);
}
// Lines of the warps of a block, APART floats from one to the next.
template <int APART> struct OfWarps {
    const float* line;
    DEVICE float operator()(int i, int column) const { return line[i * APART + column]; }
};
// Joins the lines of the warps: to a part of PART floats a row at `to`, or if that is null, to the
// result.
template <int APART>
DEVICE void finish(const AttentionParameters& p, const float* lines, float* to, int64 batch,
                   int kept) {
    for (int i = threadIdx.x; i < p.queries * p.shared * HEAD; i += 32 * WARPS) {
        const int row = i / HEAD, column = i % HEAD;
        const Sum sum = sum_of<WARPS>(OfWarps<APART>{lines + row * LINE}, column);
        if (!to) {
            write(p, sum, batch, kept, row, column);
            continue;
        }
        float* part = to + row * PART;
        part[column] = sum.value;
        if (column == 0) {
            part[HEAD] = sum.most;
            part[HEAD + 1] = sum.total;
        }
    }
}
DEVICE float* part_of(const AttentionParameters& p) {
    return p.splits > 1 ? p.partial + (int64)blockIdx.x * (BM * PART) : nullptr;
}
