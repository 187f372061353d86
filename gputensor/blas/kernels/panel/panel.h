// The parameters of panel products (panel.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct PanelParameters {
    GPUTENSOR_POINTER(const char) x;
    GPUTENSOR_POINTER(const char) w;
    GPUTENSOR_POINTER(const char) gain;     // [k], or null
    GPUTENSOR_POINTER(const char) shift;    // the same
    GPUTENSOR_POINTER(const char) bias;     // [n], or null
    GPUTENSOR_POINTER(const char) addend;   // [m, n], or null
    GPUTENSOR_POINTER(char) y;
    GPUTENSOR_POINTER(char) normed;         // [m, k], the normalized rows of x, or null
    int64 x_pitch, w_pitch;                 // bytes from row to row
    int64 y_pitch, addend_pitch;            // elements
    int m, n, k;
    int slice;                              // k, rounded up to a multiple of 16 * K_WARPS
    int columns;                            // tiles side by side
    int x_row, w_row;                       // bytes from row to row in shared memory
    int w_offset, vectors_offset;           // bytes in shared memory
    float epsilon;
};
static_assert(sizeof(PanelParameters) == 136,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
