// What both programs of tiles share: scales of pairs of weights, and the end of a product.
//
// Defined before this text: FORM, X_KIND, Y_KIND, GROUP (tile.cuh); PAIRED and FORMULA (ending.cuh).
#pragma once

#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/quantized/ending.cuh"

// Multiplies four pairs of weights by a scale, which both halves of the word have.
__device__ __forceinline__ void scale_pairs(uint32* pairs, uint32 scale) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#if X_KIND == 1
        asm("fma.rn.bf16x2 %0, %1, %2, %3;"
            : "=r"(pairs[j]) : "r"(pairs[j]), "r"(scale), "r"(0x80008000u));
#else
        asm("fma.rn.f16x2 %0, %1, %2, %3;"
            : "=r"(pairs[j]) : "r"(pairs[j]), "r"(scale), "r"(0x80008000u));
#endif
    }
}

struct alignas(8) Two { float item[2]; };

template <int TOKEN_TILES>
__device__ __forceinline__ void keep_sums(const Parameters& p, int split, int token, int64 feature,
                                          const float (*sums)[4]) {
    float* to = p.sums + ((int64)split * p.m + token) * p.sums_pitch + feature;
#pragma unroll
    for (int i = 0; i < TOKEN_TILES; ++i)
#pragma unroll
        for (int e = 0; e < 2; ++e)
            if (token + 8 * i + e < p.m)
                *reinterpret_cast<Two*>(to + (8 * i + e) * p.sums_pitch) =
                    Two{{sums[i][e], sums[i][e + 2]}};
}

// Writes the results of `column` and the next for a lane's tokens: from `token` on, two neighbours
// of each eight. `second` has the sums of the second features of pairs.
template <int TOKEN_TILES>
__device__ __forceinline__ void write_features(const Parameters& p, int split, int token,
                                               int column, const float (*sums)[4],
                                               const float (*second)[4]) {
    const int64 columns = p.n >> PAIRED;
    if (column >= columns) return;
    if (p.splits > 1) {
        keep_sums<TOKEN_TILES>(p, split, token, column, sums);
        if (PAIRED) keep_sums<TOKEN_TILES>(p, split, token, p.sums_pitch / 2 + column, second);
        return;
    }
    const bool has_next = column + 1 < columns;
    Ending ends[2];
    ends[0].begin(p, column, FORM && !GROUP);
    if (has_next) ends[1].begin(p, column + 1, FORM && !GROUP);
    const bool has_pairs = p.has_pairs && has_next;
#pragma unroll
    for (int i = 0; i < TOKEN_TILES; ++i)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int64 row = token + 8 * i + e, place = row * p.y_pitch + column;
            if (row >= p.m) continue;
            const float low = ends[0].of(p, row, column, sums[i][e], second[i][e]);
            if (!has_next) {
                store_y(p.y, place, low);
                continue;
            }
            const float high = ends[1].of(p, row, column + 1, sums[i][e + 2], second[i][e + 2]);
            if (has_pairs) {
#if Y_KIND < 2
                *reinterpret_cast<uint32*>(p.y + place * 2) =
                    (uint32)narrow(high, Y_KIND) << 16 | narrow(low, Y_KIND);
#else
                *reinterpret_cast<Two*>(p.y + place * 4) = Two{{low, high}};
#endif
            } else {
                store_y(p.y, place, low);
                store_y(p.y, place + 1, high);
            }
        }
}
