// The parameters of skinny products in float32 (skinny.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct SkinnyParameters {
    GPUTENSOR_POINTER(const char) x;
    GPUTENSOR_POINTER(const char) w;
    GPUTENSOR_POINTER(const char) bias;     // [n], or null
    GPUTENSOR_POINTER(const char) addend;   // [m, n]; read when beta is not 0
    GPUTENSOR_POINTER(char) y;
    int64 n, k;
    int64 x_pitch;          // bytes from row to row
    int64 w_pitch;          // bytes
    int64 y_pitch;          // elements
    int64 addend_pitch;     // elements
    int64 slice;            // k of one split, a multiple of 128
    int m;
    int span;               // k of x in shared memory at a time, a multiple of 128
    int x_offset;           // bytes in shared memory
    int x_row;              // bytes of a row of x in shared memory
    float alpha, beta;
    int is_turned;          // y and addend are [n, m], bias is [m]
    int unused;
};
static_assert(sizeof(SkinnyParameters) == 128,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
