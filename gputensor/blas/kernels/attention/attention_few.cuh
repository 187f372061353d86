// Attention of few rows and many keys, as in decoding: at most 16 rows of queries share their keys.
//
// The keys are cut among blocks, and those of a block among its warps, 16 at a time. Each warp has
// copies of its own next keys and values under way, so that no warp waits for another before the
// end. Scores are computed with keys as the rows of a product and queries as its columns, which
// then lie as the product with the values needs them (mma m16n8k16). At the end, the warps of a
// block join their sums in a fixed order; with several splits, join.cuh does the rest.
//
// Defined before this text: ELEMENT, a 16-bit float; INSTRUCTION, the name of its mma; PACK, that
// of the conversion of two floats; HEAD, the head size, a multiple of 16 (columns beyond `size` are
// 0); EIGHTS, 1 or 2, of rows; WARPS; STAGES; MASK: 0, 1 (bool) or 2, with MASK_TYPE.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/attention/attention.h"
#include "gputensor/blas/kernels/attention/softmax.cuh"
#include "gputensor/blas/kernels/shared/fragments.cuh"

typedef AttentionParameters Parameters;
typedef ELEMENT element;

const int BM = 8 * EIGHTS, THREADS = 32 * WARPS, STEP = 16;
const int PITCH = 2 * HEAD + 16;                // bytes; an odd multiple of 16: no bank conflicts
const int CHUNKS = HEAD / 8;                    // of 16 bytes, in a row
const int STAGE = 2 * STEP * PITCH;             // keys and values of a step
const int RING = STAGES * STAGE;                // of a warp
const int LINE = HEAD + 4;                      // floats: sums of a row, its maximum and total
static_assert(BM * LINE * 4 <= RING, "the sums of a warp fit in the place of its keys");

DEVICE uint32 turned(uint32 x) {
    uint32 y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}
// Copies 16 rows of a matrix from row `first` on; rows from `end` on are 0.
DEVICE void fetch(uint32 to, const char* from, int64 row_bytes, int first, int end, int size) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = lane; i < STEP * CHUNKS; i += 32) {
        const int row = i / CHUNKS, chunk = i % CHUNKS;
        const bool is_valid = first + row < end && chunk * 8 < size;
        copy_16(to + row * PITCH + chunk * 16,
                from + (is_valid ? (first + row) * row_bytes + chunk * 16 : 0), is_valid);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_together();
    extern __shared__ __align__(16) char memory[];
    const uint32 shared = shared_address(memory);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32 ring = shared + warp * RING;
    const int split = blockIdx.x % p.splits;
    const uint32 place = blockIdx.x / p.splits;
    const int kept = place % p.kept;
    const int64 batch = place / p.kept;
    const int rows = p.queries * p.shared;
    int keys = p.keys;
    if (p.length) {
        const int64 at = batch * p.length_batch;
        const int64 length = p.is_long ? reinterpret_cast<const int64*>(p.length)[at]
                                       : reinterpret_cast<const int32*>(p.length)[at];
        keys = length < 0 ? 0 : length < keys ? (int)length : keys;
    }
    // The first query sees the first key that any sees, and the last query the last key.
    const int reach = keys - p.queries + 1;
    const int begin = p.window && reach > p.window ? reach - p.window : 0;
    // The steps of this block and of this warp.
    const int steps = keys > begin ? (keys - begin + STEP - 1) / STEP : 0;
    const int own = (int)((int64)steps * split / p.splits) + warp;
    const int stop = (int)((int64)steps * (split + 1) / p.splits);
    const char* key = p.key.ptr + 2 * (batch * p.key.batch + kept * p.key.head);
    const char* value = p.value.ptr + 2 * (batch * p.value.batch + kept * p.value.head);
#pragma unroll
    for (int i = 0; i < STAGES; ++i) {
        if (own + i * WARPS < stop) {
            const int from = begin + (own + i * WARPS) * STEP;
            fetch(ring + i * STAGE, key, 2 * p.key.row, from, keys, p.size);
            fetch(ring + i * STAGE + STEP * PITCH, value, 2 * p.value.row, from, keys, p.size);
        }
        copies_commit();
    }

    // Queries as columns: those of a lane in a product, and those whose scores it has.
    uint32 q[EIGHTS][HEAD / 16][2];
    int last[EIGHTS][2];
#if MASK
    int64 mask_row[EIGHTS][2];
#endif
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
            }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int column = e * 8 + lane % 4 * 2 + i, inside = column < rows ? column : rows - 1;
            last[e][i] = inside % p.queries + keys - p.queries;
#if MASK
            mask_row[e][i] = batch * p.mask_batch + inside % p.queries * p.mask_row
                + (kept * p.shared + inside / p.queries) * p.mask_head;
#endif
        }
    }

    float sums[EIGHTS][HEAD / 16][4], largest[EIGHTS][2], total[EIGHTS][2];
    const float infinity = __int_as_float(0x7f800000), log2e = 1.4426950408889634f;
#pragma unroll
    for (int e = 0; e < EIGHTS; ++e) {
        largest[e][0] = largest[e][1] = -infinity;
        total[e][0] = total[e][1] = 0;
#pragma unroll
        for (int c = 0; c < HEAD / 16; ++c)
            sums[e][c][0] = sums[e][c][1] = sums[e][c][2] = sums[e][c][3] = 0;
    }
    // Scores are multiplied by `unit` inside the power; by other factors before that.
    const bool is_scaled = MASK == 2 || p.cap != 0 || !(p.scale > 0);
    const float unit = is_scaled ? 1.0f : p.scale * log2e;

    int stage = 0;
    for (int step = own; step < stop; step += WARPS) {
        copies_wait<STAGES - 1>();
        __syncwarp();
        const uint32 k_at = ring + stage * STAGE, v_at = k_at + STEP * PITCH;
        const int from = begin + step * STEP;
        float s[EIGHTS][4];
#pragma unroll
        for (int e = 0; e < EIGHTS; ++e) s[e][0] = s[e][1] = s[e][2] = s[e][3] = 0;
#pragma unroll
        for (int c = 0; c < HEAD / 16; ++c) {
            uint32 a[4];
            matrices(a, k_at + lane % 16 * PITCH + c * 32 + lane / 16 * 16);
#pragma unroll
            for (int e = 0; e < EIGHTS; ++e) multiply(s[e], a, q[e][c][0], q[e][c][1]);
        }
        const bool is_whole = !MASK && from + STEP <= keys
            && (!p.is_causal || (from + STEP - 1 <= keys - p.queries && !p.window));
        uint32 weights[EIGHTS][2];
#pragma unroll
        for (int e = 0; e < EIGHTS; ++e) {
            if (is_scaled) {
                const float scale = (p.cap != 0 ? p.cap : p.scale) * log2e;
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    s[e][i] = scale * (p.cap != 0 ? tanhf(s[e][i] * (p.scale / p.cap)) : s[e][i]);
            }
            if (!is_whole) {
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
                        s[e][i] +=
                            log2e * (float)wide(reinterpret_cast<const MASK_TYPE*>(p.mask)[at]);
#endif
                    }
#endif
                    if (!is_seen) s[e][i] = -infinity;
                }
            }
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float most = fmaxf(s[e][r], s[e][r + 2]);
#pragma unroll
                for (int bits = 4; bits < 32; bits *= 2)
                    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, bits));
                most = fmaxf(most, largest[e][r]);
                const float shift = most == -infinity ? 0.0f : most * unit;
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
            matrices_turned(a, v_at + (lane % 8 + lane / 16 * 8) * PITCH + c * 32
                                   + lane / 8 % 2 * 16);
#pragma unroll
            for (int e = 0; e < EIGHTS; ++e) multiply(sums[e][c], a, weights[e][0], weights[e][1]);
        }
        __syncwarp();
        const int next = step + STAGES * WARPS;
        if (next < stop) {
            fetch(k_at, key, 2 * p.key.row, begin + next * STEP, keys, p.size);
            fetch(v_at, value, 2 * p.value.row, begin + next * STEP, keys, p.size);
        }
        copies_commit();
        if (++stage == STAGES) stage = 0;
    }

    // The sums of the warp, in the place of its keys.
    float* lines = reinterpret_cast<float*>(memory + warp * RING);
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
    __syncthreads();
    for (int i = threadIdx.x; i < rows * HEAD; i += THREADS) {
        const int row = i / HEAD, column = i % HEAD;
        const float* line = reinterpret_cast<const float*>(memory) + row * LINE;
        float most = -infinity, sum = 0, whole = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) most = fmaxf(most, line[w * RING / 4 + HEAD]);
        const float shift = most == -infinity ? 0.0f : most;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            const float factor = power_of_two(line[w * RING / 4 + HEAD] - shift);
            sum += line[w * RING / 4 + column] * factor;
            whole += line[w * RING / 4 + HEAD + 1] * factor;
        }
        if (p.splits > 1) {
            float* part = p.partial + ((int64)blockIdx.x * BM + row) * (HEAD + 2);
            part[column] = sum;
            if (column == 0) {
                part[HEAD] = most;
                part[HEAD + 1] = whole;
            }
        } else if (column < p.size) {
            const int64 at = batch * p.out.batch + row % p.queries * p.out.row
                + (kept * p.shared + row / p.queries) * p.out.head + column;
            reinterpret_cast<element*>(p.out.ptr)[at] =
                narrow<element>(whole == 0 ? 0.0f : sum / whole);
        }
    }
}
