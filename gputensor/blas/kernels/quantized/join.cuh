// Adds, in their order, the sums of blocks that share the terms of a quantized product (tile.cuh).
//
// A thread has four neighbouring features of a row. Defined before this text: IS_SCALED, whether a
// feature has one scale, which is applied here; X_KIND, Y_KIND.
#pragma once

#define SPLITS 1                // blocks of a cluster
#define THREADS 256

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/quantized/tile.h"

typedef QuantizedTileParameters Parameters;

struct alignas(16) Four { float item[4]; };

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    const int quads = (int)(p.sums_pitch / 4);
    const int64 index = (int64)blockIdx.x * THREADS + threadIdx.x, token = index / quads;
    const int64 feature = (index - token * quads) * 4;
    if (token >= p.m || feature >= p.n) return;
    Four sum = {};
#pragma unroll 4
    for (int i = 0; i < p.splits; ++i) {
        const Four part = *reinterpret_cast<const Four*>(
            p.sums + (i * p.m + token) * p.sums_pitch + feature);
#pragma unroll
        for (int e = 0; e < 4; ++e) sum.item[e] += part.item[e];
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        if (feature + e >= p.n) break;
        float value = sum.item[e];
#if IS_SCALED
        value *= wide(reinterpret_cast<const uint16*>(p.scales)[feature + e], X_KIND);
#endif
        if (p.bias) value += load_y(p.bias, feature + e);
        store_y(p.y, token * p.y_pitch + feature + e, value);
    }
}
