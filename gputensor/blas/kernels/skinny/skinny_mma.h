// The parameters of skinny products on tensor cores (skinny_mma.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct SkinnyMmaParameters {
    GPUTENSOR_POINTER(const char) x;
    GPUTENSOR_POINTER(const char) w;
    GPUTENSOR_POINTER(const char) scales;   // [groups, n] in the type of x
    GPUTENSOR_POINTER(const char) bias;     // [n] in the type of y, or null
    GPUTENSOR_POINTER(const char) addend;   // [m, n] in the type of y; read when beta is not 0
    GPUTENSOR_POINTER(char) y;
    int64 n, k;
    int64 x_pitch;          // bytes from row to row
    int64 w_pitch;          // bytes from row to row; INT4: from tile row to tile row
    int64 y_pitch;          // elements
    int64 addend_pitch;     // elements
    int m;
    int span;               // columns of each part of k whose x is in shared memory at a time
    int x_offset;           // bytes in shared memory
    int received_offset;    // the same: sums from the other blocks of the cluster
    float alpha, beta;
};
static_assert(sizeof(SkinnyMmaParameters) == 120,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
