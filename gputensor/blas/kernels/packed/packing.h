// The parameters of the program that packs operands into tiles (packing.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct PackedMatrix {
    uint64 source, target;
    int64 pitch;            // elements from line to line
    int64 rows, k;
    int64 tiles;
    int steps;              // tiles along K
    int along_rows;         // whether lines run along the rows, not along K
};
struct PackingParameters {
    PackedMatrix a, b;
    uint64 flags;           // the kernel sets them to zero for the product
    int64 flag_count;
};
static_assert(sizeof(PackingParameters) == 2 * 56 + 16,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
