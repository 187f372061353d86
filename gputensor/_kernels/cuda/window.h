// The parameters of a fold over windows (window.cuh).
#pragma once

#include "gputensor/_kernels/cuda/axis.h"
#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct WindowOperand {
    GPUTENSOR_POINTER(char) ptr;
    int64 batch, channel, axes[3];      // strides, in elements
};
struct WindowAxis {
    int32 x, out;                       // extents
    int32 kernel;                       // 0: as many windows as the result has, of any extent
    int32 stride, padding, ends, dilation;
};
struct WindowParameters {
    WindowOperand x, out, weight;       // weight: channel is its output, batch is not used
    WindowOperand addend;               // address 0: none
    GPUTENSOR_POINTER(char) bias;
    int64 bias_stride;
    uint64 units;
    WindowAxis axes[3];                 // depth, height, width; absent axes have 1 element
    int32 channels;                     // of the result, in units of VECTOR
    int32 multiplier;                   // channels of the result for each channel of x
    int32 blocks;                       // groups of PIXELS neighbours along the width
    LaunchAxis chunks, tiles;           // of depthwise_tiles.cuh: their strides are not used
};
static_assert(sizeof(WindowParameters) == 4 * 48 + 24 + 5 * 28 + 12,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
