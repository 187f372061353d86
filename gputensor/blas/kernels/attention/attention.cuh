// Attention: softmax(scale * query @ key.T, masked) @ value, without the scores in memory.
//
// A block has BM rows: the queries of all heads that share keys, one head after the other. It walks
// the keys in tiles of BN, two in flight; a warp has 16 rows, keeps their running maximum and
// total, and corrects its sums when the maximum grows (Milakov and Gimelshein, 2018; Dao and
// others, 2022). Products use mma m16n8k16 with float32 sums; weights are rounded to the element
// type first. With SPLIT the keys are cut among blocks, each of which writes its sums, maximum and
// total for join.cuh.
//
// Defined before this text: ELEMENT, a 16-bit float; INSTRUCTION, the name of its mma; PACK, that
// of the conversion of two floats; HEAD, the head size, a multiple of 16 (columns beyond `size` are
// 0); WARPS, BN; SPLIT; MASK: 0, 1 (bool) or 2, with MASK_TYPE.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/attention/attention.h"
#include "gputensor/blas/kernels/attention/softmax.cuh"
#include "gputensor/blas/kernels/shared/fragments.cuh"

typedef AttentionParameters Parameters;
typedef ELEMENT element;

const int BM = 16 * WARPS, THREADS = 32 * WARPS;
const int PITCH = HEAD + 8;                     // an odd multiple of 16 bytes: no bank conflicts
const int CHUNKS = HEAD / 8;                    // of 16 bytes, in a row
const int TILE = BN * PITCH;
// Offset of queries: behind the tiles, or without SPLIT in the place of the second tiles.
const int ALONE = SPLIT ? 8 * TILE : 4 * TILE;
static_assert(SPLIT || BM <= 2 * BN, "queries fit in the place of a tile of keys and values");

// `count` rows of a matrix from row `first` on to shared memory; rows from `end` on are 0.
DEVICE void fetch(uint32 to, const char* from, int64 row_bytes, int count, int first, int end,
                  int size) {
    for (int i = threadIdx.x; i < count * CHUNKS; i += THREADS) {
        const int row = i / CHUNKS, chunk = i % CHUNKS;
        const bool is_valid = first + row < end && chunk * 8 < size;
        copy_16(to + (row * PITCH + chunk * 8) * 2,
                from + (is_valid ? (int64)(first + row) * row_bytes + chunk * 16 : 0), is_valid);
    }
}

// The head of a row among those that share keys.
DEVICE int part_of(const Parameters& p, int row) { return p.shared == 1 ? 0 : row / p.queries; }

// Blocks on a multiprocessor: 24 warps leave each thread 80 registers. Larger heads and masks need
// more; with SPLIT there are few blocks.
const int RESIDENT = SPLIT || MASK || HEAD > 32 || BN > 64 ? 1 : 24 / WARPS;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) kernel(const Parameters p) {
    start_together();
    extern __shared__ __align__(16) char memory[];
    const uint32 shared = shared_address(memory);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int split = SPLIT ? blockIdx.x % p.splits : 0;
    const uint32 place = SPLIT ? blockIdx.x / p.splits : blockIdx.x;
    // The last tiles come first, because with a causal mask they have the most keys.
    const int tile = p.tiles - 1 - place % p.tiles;
    const int kept = place / p.tiles % p.kept;
    const int64 batch = place / p.tiles / p.kept;
    const int rows = p.queries * p.shared;
    int keys = p.keys;
    if (p.length) {
        const int64 at = batch * p.length_batch;
        const int64 length = p.is_long ? reinterpret_cast<const int64*>(p.length)[at]
                                       : reinterpret_cast<const int32*>(p.length)[at];
        keys = length < 0 ? 0 : length < keys ? (int)length : keys;
    }
    const char* key = p.key.ptr + 2 * (batch * p.key.batch + kept * p.key.head);
    const char* value = p.value.ptr + 2 * (batch * p.value.batch + kept * p.value.head);

    // The rows of this thread: two of its warp's sixteen.
    int row[2], head[2], query[2], last[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        row[i] = tile * BM + warp * 16 + lane / 4 + 8 * i;
        const int inside = row[i] < rows ? row[i] : rows - 1;
        head[i] = kept * p.shared + part_of(p, inside);
        query[i] = inside - part_of(p, inside) * p.queries;
        last[i] = query[i] + keys - p.queries;          // the key of this query
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
    if (SPLIT) {
        const int tiles = end > begin ? (end - begin + BN - 1) / BN : 0;
        const int each = (tiles + p.splits - 1) / p.splits;
        const int stop = begin + (split + 1) * each * BN;
        begin += split * each * BN;
        end = stop < end ? stop : end;
    }

    // Loads queries as fragments, beside the first tiles.
    for (int i = threadIdx.x; i < BM * CHUNKS; i += THREADS) {
        const int r = tile * BM + i / CHUNKS, chunk = i % CHUNKS;
        const bool is_valid = r < rows && chunk * 8 < p.size;
        const int s = is_valid ? r : 0, part = part_of(p, s);
        copy_16(shared + ALONE + (i / CHUNKS * PITCH + chunk * 8) * 2,
                p.query.ptr + 2 * (batch * p.query.batch + (kept * p.shared + part) * p.query.head
                                   + (s - part * p.queries) * p.query.row
                                   + (is_valid ? chunk * 8 : 0)),
                is_valid);
    }
    copies_commit();
    if (begin < end) {
        fetch(shared, key, 2 * p.key.row, BN, begin, keys, p.size);
        fetch(shared + 2 * TILE, value, 2 * p.value.row, BN, begin, keys, p.size);
    }
    copies_commit();
    copies_wait<1>();
    __syncthreads();
    uint32 q[HEAD / 16][4];
#pragma unroll
    for (int c = 0; c < HEAD / 16; ++c)
        matrices(q[c], shared + ALONE
                           + ((warp * 16 + lane % 16) * PITCH + c * 16 + lane / 16 * 8) * 2);
#if !SPLIT
    __syncthreads();
#endif

    float sums[HEAD / 8][4];
#pragma unroll
    for (int n = 0; n < HEAD / 8; ++n) sums[n][0] = sums[n][1] = sums[n][2] = sums[n][3] = 0;
    const float infinity = __int_as_float(0x7f800000), log2e = 1.4426950408889634f;
    // Scores are multiplied by `unit` inside the power; by other factors before that.
    const bool is_scaled = MASK == 2 || p.cap != 0 || !(p.scale > 0);
    const float unit = is_scaled ? 1.0f : p.scale * log2e;
    float largest[2] = {-infinity, -infinity}, total[2] = {0, 0};

    int stage = 0;
    for (int from = begin; from < end; from += BN, stage ^= 1) {
        const uint32 k_tile = shared + stage * 4 * TILE, v_tile = k_tile + 2 * TILE;
        if (from + BN < end) {
            const uint32 next = shared + (stage ^ 1) * 4 * TILE;
            fetch(next, key, 2 * p.key.row, BN, from + BN, keys, p.size);
            fetch(next + 2 * TILE, value, 2 * p.value.row, BN, from + BN, keys, p.size);
        }
        copies_commit();
        copies_wait<1>();
        __syncthreads();

        float s[BN / 8][4];
#pragma unroll
        for (int n = 0; n < BN / 8; ++n) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll
        for (int c = 0; c < HEAD / 16; ++c)
#pragma unroll
            for (int n = 0; n < BN / 16; ++n) {
                uint32 b[4];
                matrices(b, k_tile + ((n * 16 + lane / 16 * 8 + lane % 8) * PITCH
                                      + c * 16 + lane / 8 % 2 * 8) * 2);
                multiply(s[2 * n], q[c], b[0], b[1]);
                multiply(s[2 * n + 1], q[c], b[2], b[3]);
            }

        const bool is_whole = !MASK && from + BN <= keys
            && (!p.is_causal || (from + BN - 1 <= last[0] && from + BN - 1 <= last[1] && !p.window));
        if (is_scaled) {
            const float scale = (p.cap != 0 ? p.cap : p.scale) * log2e;
#pragma unroll
            for (int n = 0; n < BN / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    s[n][i] = scale * (p.cap != 0 ? tanhf(s[n][i] * (p.scale / p.cap)) : s[n][i]);
        }
        if (!is_whole) {
#pragma unroll
            for (int n = 0; n < BN / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int r = i / 2;
                    const int column = from + n * 8 + lane % 4 * 2 + i % 2;
                    bool is_seen = column < keys;
                    if (p.is_causal) is_seen = is_seen && column <= last[r];
                    if (p.window) is_seen = is_seen && column > last[r] - p.window;
#if MASK
                    if (is_seen) {
                        const int64 at = batch * p.mask_batch + head[r] * p.mask_head
                            + query[r] * p.mask_row + column * p.mask_column;
#if MASK == 1
                        is_seen = reinterpret_cast<const bool*>(p.mask)[at];
#else
                        s[n][i] +=
                            log2e * (float)wide(reinterpret_cast<const MASK_TYPE*>(p.mask)[at]);
#endif
                    }
#endif
                    if (!is_seen) s[n][i] = -infinity;
                }
        }
        float most[2] = {largest[0], largest[1]};
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) most[i / 2] = fmaxf(most[i / 2], s[n][i]);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            most[r] = of_quad(most[r], false);
            const float shift = most[r] == -infinity ? 0.0f : most[r] * unit;
            const float factor = power_of_two(largest[r] * unit - shift);
            largest[r] = most[r];
            total[r] *= factor;
#pragma unroll
            for (int n = 0; n < HEAD / 8; ++n) {
                sums[n][2 * r] *= factor;
                sums[n][2 * r + 1] *= factor;
            }
#pragma unroll
            for (int n = 0; n < BN / 8; ++n)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float x = power_of_two(s[n][2 * r + i] * unit - shift);
                    s[n][2 * r + i] = x;
                    total[r] += x;
                }
        }
#pragma unroll
        for (int c = 0; c < BN / 16; ++c) {
            const uint32 a[4] = {pack(s[2 * c][0], s[2 * c][1]), pack(s[2 * c][2], s[2 * c][3]),
                                 pack(s[2 * c + 1][0], s[2 * c + 1][1]),
                                 pack(s[2 * c + 1][2], s[2 * c + 1][3])};
#pragma unroll
            for (int n = 0; n < HEAD / 16; ++n) {
                uint32 b[4];
                matrices_turned(b, v_tile + ((c * 16 + lane % 16) * PITCH
                                             + n * 16 + lane / 16 * 8) * 2);
                multiply(sums[2 * n], a, b[0], b[1]);
                multiply(sums[2 * n + 1], a, b[2], b[3]);
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int r = 0; r < 2; ++r) {
        total[r] = of_quad(total[r], true);
        if (row[r] >= rows) continue;
#if SPLIT
        const int64 at = ((int64)place * p.splits + split) * BM + warp * 16 + lane / 4 + 8 * r;
        float* partial = p.partial + at * (HEAD + 2);
#endif
#if SPLIT
#pragma unroll
        for (int n = 0; n < HEAD / 8; ++n) {
            partial[n * 8 + lane % 4 * 2] = sums[n][2 * r];
            partial[n * 8 + lane % 4 * 2 + 1] = sums[n][2 * r + 1];
        }
        if (lane % 4 == 0) {
            partial[HEAD] = largest[r] * unit;
            partial[HEAD + 1] = total[r];
        }
#else
        const float factor = total[r] == 0 ? 0.0f : 1 / total[r];
        char* out = p.out.ptr + 2 * (batch * p.out.batch + head[r] * p.out.head
                                     + query[r] * p.out.row);
#pragma unroll
        for (int n = 0; n < HEAD / 8; ++n)
            if (n * 8 < p.size)
                reinterpret_cast<uint32*>(out)[n * 4 + lane % 4] =
                    pack(sums[n][2 * r] * factor, sums[n][2 * r + 1] * factor);
#endif
    }
}
