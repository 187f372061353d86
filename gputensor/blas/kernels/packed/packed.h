// The parameters of a product of packed operands (packed.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct PackedParameters {
    uint64 a, b, c, d;
    uint64 sums, flags;     // of divided tiles
    int64 ldc, ldd;         // elements
    int64 m, n;
    int64 units_tiles, units;   // work in the divided tiles, and in these and the divided strips
    int steps;              // tiles along K that hold elements
    int line;               // tiles along K in memory
    int main_m, main_n;     // whole tiles
    int edge_m, edge_n;     // tiles of the last, incomplete row and column of tiles
    int whole, divided;     // of these tiles
    int strips_n, strips_m; // of the columns and of the rows left over
    int strips_from;        // the first cluster that does whole strips; -1: strips are divided
    int weight_tile, weight_strip;  // of one step
    float alpha, beta;
};
static_assert(sizeof(PackedParameters) == 160,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
