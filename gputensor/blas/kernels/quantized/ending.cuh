// From a sum to a result of a tile: the scale of a feature, and a bias or a formula.
//
// Defined before this text: X_KIND, Y_KIND; PAIRED, whether a result has two features, n / 2 apart;
// FORMULA, if there is one. FORMULA is the text of `Held`, what a formula reads for a column,
// `hold`, which reads it, and `finished`, which computes a result (quantized_programs.py).
#pragma once

#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/quantized/tile.h"

typedef QuantizedTileParameters Parameters;

// An element of an operand of a kind as Y_KIND is.
template <int KIND> __device__ __forceinline__ float element(const char* at, int64 place) {
    if (KIND == 2) return reinterpret_cast<const float*>(at)[place];
    return wide(reinterpret_cast<const uint16*>(at)[place], KIND);
}

#ifdef FORMULA
#define BIAS_KIND X_KIND
#include "gputensor/_kernels/cuda/math.cuh"
typedef float C;
FORMULA
#else
#define BIAS_KIND Y_KIND
#endif

struct Ending {
    float scale[1 + PAIRED], bias[1 + PAIRED];
#ifdef FORMULA
    Held held;
#endif
    // `is_scaled`: each feature has one scale, which is applied here.
    __device__ __forceinline__ void begin(const Parameters& p, int64 column, bool is_scaled) {
#pragma unroll
        for (int i = 0; i <= PAIRED; ++i) {
            const int64 feature = column + i * (p.n / 2);
            scale[i] = is_scaled ? element<X_KIND>(p.scales, feature) : 1;
            bias[i] = p.bias ? element<BIAS_KIND>(p.bias, feature) : 0;
        }
#ifdef FORMULA
        held = hold(p, column);
#endif
    }
    __device__ __forceinline__ float of(const Parameters& p, int64 row, int64 column, float x,
                                        float second) const {
#ifdef FORMULA
        return finished(p, held, row, column, fmaf(x, scale[0], bias[0]),
                        fmaf(second, scale[PAIRED], bias[PAIRED]));
#else
        return fmaf(x, scale[0], bias[0]);
#endif
    }
};
