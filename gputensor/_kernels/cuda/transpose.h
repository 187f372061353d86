// The parameters of the tiled transposition (transpose.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct TransposeBatch {
    uint32 size;
    int32 in_stride, out_stride;
};
struct TransposeParameters {
    GPUTENSOR_POINTER(char) out;
    GPUTENSOR_POINTER(const char) input;
    uint32 out_size, in_size;           // lengths of the output's and the input's unit axis
    uint32 out_tiles, in_tiles;
    int32 in_stride, out_stride;        // of each side along the other side's unit axis
    TransposeBatch batch[16];
};
static_assert(sizeof(TransposeParameters) == 40 + 16 * 12,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
