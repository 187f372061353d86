// The parameters of brief products (brief.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct BriefParameters {
    GPUTENSOR_POINTER(const char) x;        // [rows, k]
    GPUTENSOR_POINTER(const char) w;        // [n, k]
    GPUTENSOR_POINTER(const char) bias;     // [n], or null
    GPUTENSOR_POINTER(const char) addend;   // [rows, n]
    GPUTENSOR_POINTER(char) y;              // [rows, n]
    int rows, columns, k;                   // `columns` is n
    int parts;                              // blocks side by side along the features
};
static_assert(sizeof(BriefParameters) == 56, "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
