// What both programs of tiles share: scales of pairs of weights, and the end of a product.
//
// Defined before this text: X_KIND, Y_KIND, GROUP (tile.cuh).
#pragma once

#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/quantized/tile.h"

typedef QuantizedTileParameters Parameters;

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

// Writes the sums of `feature` and the next for a lane's tokens: from `token` on, two neighbours of
// each eight.
template <int TOKEN_TILES>
__device__ __forceinline__ void write_features(const Parameters& p, int split, int token,
                                               int feature, const float (*sums)[4]) {
    if (feature >= p.n) return;
    if (p.splits > 1) {
        float* to = p.sums + ((int64)split * p.m + token) * p.sums_pitch + feature;
#pragma unroll
        for (int i = 0; i < TOKEN_TILES; ++i)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                if (token + 8 * i + e < p.m)
                    *reinterpret_cast<Two*>(to + (8 * i + e) * p.sums_pitch) =
                        Two{{sums[i][e], sums[i][e + 2]}};
        return;
    }
    const bool has_next = feature + 1 < p.n;
    float scale[2] = {1, 1}, bias[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        if (j && !has_next) break;
#if !GROUP
        scale[j] = wide(reinterpret_cast<const uint16*>(p.scales)[feature + j], X_KIND);
#endif
        if (p.bias) bias[j] = load_y(p.bias, feature + j);
    }
    const bool has_pairs = p.has_pairs && has_next;
#pragma unroll
    for (int i = 0; i < TOKEN_TILES; ++i)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int64 place = (token + 8 * i + e) * p.y_pitch + feature;
            const float low = fmaf(sums[i][e], scale[0], bias[0]);
            const float high = fmaf(sums[i][e + 2], scale[1], bias[1]);
            if (token + 8 * i + e >= p.m) continue;
            if (has_pairs) {
#if Y_KIND < 2
                *reinterpret_cast<uint32*>(p.y + place * 2) =
                    (uint32)narrow(high, Y_KIND) << 16 | narrow(low, Y_KIND);
#else
                *reinterpret_cast<Two*>(p.y + place * 4) = Two{{low, high}};
#endif
            } else {
                store_y(p.y, place, low);
                if (has_next) store_y(p.y, place + 1, high);
            }
        }
}
