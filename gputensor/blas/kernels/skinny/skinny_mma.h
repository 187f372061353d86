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
    int sums_offset;        // the same: the sums of all parts of K for the block's own features
    float alpha, beta;
};
static_assert(sizeof(SkinnyMmaParameters) == 120,
              "both sides of a launch lay the parameters out alike");

// For kernels with a norm before the product, an activation after it, or pairs of features, which
// `n` then counts.
struct SkinnyFusedParameters : SkinnyMmaParameters {
    GPUTENSOR_POINTER(const char) gain;             // [k] in the type of x
    GPUTENSOR_POINTER(const char) second_w;         // the second features begin here
    GPUTENSOR_POINTER(const char) second_scales;
    GPUTENSOR_POINTER(const char) second_bias;      // or null
    GPUTENSOR_POINTER(const float) cosines;         // [m, half]
    GPUTENSOR_POINTER(const float) sines;
    GPUTENSOR_POINTER(const char) places;           // [m]: int64 if `long_places`, else int32
    GPUTENSOR_POINTER(char) keys;                   // [kept, length, 2 half], pitches in elements
    GPUTENSOR_POINTER(char) values;
    int64 key_head, key_row, value_head, value_row;
    int64 length;
    int64 scales_pitch;     // features in a row of `scales`
    GPUTENSOR_POINTER(const char) shift;            // [k] in the type of x, or null
    float epsilon;
    int norm_offset;        // bytes in shared memory
    int last;               // last row of the weights, counted from w or second_w
    int group_tiles;        // tiles of first features before as many of second features
    int heads, kept;        // query heads; key heads, as many as value heads
    int long_places;
    int unused;
};
static_assert(sizeof(SkinnyFusedParameters) == 280,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
