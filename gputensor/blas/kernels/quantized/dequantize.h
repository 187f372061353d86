// The parameters of the kernel that converts quantized weights to floats (dequantize.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct DequantizeParameters {
    GPUTENSOR_POINTER(const char) w;
    GPUTENSOR_POINTER(const char) scales;   // [groups, n], or [1, n]
    GPUTENSOR_POINTER(char) out;
    int64 n, k;
    int64 tiles;            // int4: tiles of 64 k in a tile row
    int64 group;            // k that share a scale
};
static_assert(sizeof(DequantizeParameters) == 56,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
