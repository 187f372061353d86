// The parameters of panel products whose weights are held (held.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct HeldParameters {
    GPUTENSOR_POINTER(const char) x;
    GPUTENSOR_POINTER(const char) w;
    GPUTENSOR_POINTER(const char) bias;     // [n], or null
    GPUTENSOR_POINTER(const char) addend;   // [m, n], or null
    GPUTENSOR_POINTER(char) y;
    int64 x_pitch, w_pitch, y_pitch, addend_pitch;  // elements from row to row
    int m, n, k;
    int chunks;                             // of 64 terms; the last one may be incomplete
    int columns;                            // panels of weights side by side
    int groups;                             // blocks with the same panel
};
static_assert(sizeof(HeldParameters) == 96, "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
