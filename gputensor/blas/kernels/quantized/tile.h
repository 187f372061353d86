// The parameters of tiles of products (tile.cuh, wgmma.cuh, join.cuh, order.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

// Element (row, column) of an operand of a formula is `row` * row + `column` * column elements on.
struct QuantizedTileOperand {
    GPUTENSOR_POINTER(const char) at;
    int64 row, column;
};

struct QuantizedTileParameters {
    GPUTENSOR_POINTER(const char) x;
    GPUTENSOR_POINTER(const char) w;
    GPUTENSOR_POINTER(const char) scales;   // [groups, n] in the type of x
    GPUTENSOR_POINTER(const char) bias;     // [n] in the type of y (with a formula, of x), or null
    GPUTENSOR_POINTER(char) y;
    GPUTENSOR_POINTER(float) sums;          // [splits, m, sums_pitch]; used by more than one split
    GPUTENSOR_POINTER(char) ordered;        // x for wgmma (order.cuh)
    int64 n, k;
    int64 x_pitch;          // bytes from row to row
    int64 w_pitch;          // bytes from row to row; int4: from tile row to tile row
    int64 y_pitch;          // elements
    int64 sums_pitch;       // elements, whole tiles
    int m, splits;
    int row_tiles, token_tiles;
    int has_pairs;          // whether two neighbours of y can be written as one word
    int ordered_rows;       // whole tiles
    QuantizedTileOperand others[3];     // of a formula
};
static_assert(sizeof(QuantizedTileParameters) == 200,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
