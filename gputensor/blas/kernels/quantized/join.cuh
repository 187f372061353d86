// Adds, in their order, the sums of blocks that share the terms of a product (tile.cuh).
//
// A thread has four neighbouring columns of a row. Defined before this text: IS_SCALED, whether a
// feature has one scale, which is applied here; X_KIND, Y_KIND; PAIRED and FORMULA (ending.cuh).
#pragma once

#define SPLITS 1                // blocks of a cluster
#define THREADS 256

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/quantized/ending.cuh"

struct alignas(16) Four { float item[4]; };

__device__ __forceinline__ Four sum_of(const Parameters& p, int64 place) {
    Four sum = {};
#pragma unroll 4
    for (int i = 0; i < p.splits; ++i) {
        const Four part =
            *reinterpret_cast<const Four*>(p.sums + (int64)i * p.m * p.sums_pitch + place);
#pragma unroll
        for (int e = 0; e < 4; ++e) sum.item[e] += part.item[e];
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    const int pitch = (int)p.sums_pitch >> PAIRED, quads = pitch / 4;
    const int64 index = (int64)blockIdx.x * THREADS + threadIdx.x, token = index / quads;
    const int64 column = (index - token * quads) * 4, columns = p.n >> PAIRED;
    if (token >= p.m || column >= columns) return;
    const Four sum = sum_of(p, token * p.sums_pitch + column);
#if PAIRED
    const Four second = sum_of(p, token * p.sums_pitch + pitch + column);
#else
    const Four second = sum;
#endif
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        if (column + e >= columns) break;
        Ending end;
        end.begin(p, column + e, IS_SCALED);
        store_y(p.y, token * p.y_pitch + column + e,
                end.of(p, token, column + e, sum.item[e], second.item[e]));
    }
}
