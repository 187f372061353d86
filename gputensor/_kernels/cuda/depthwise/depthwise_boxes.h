// The parameters of depthwise convolution with copied boxes (depthwise_boxes.cuh).
#pragma once

#include "gputensor/_kernels/cuda/copies/tensor_map.h"
#include "gputensor/_kernels/cuda/window.h"

namespace gputensor {

struct DepthwiseBoxParameters {
    TensorMap x, out;
    WindowParameters common;
    int32 line, out_line;               // elements of a line of a box
    int32 nbytes;                       // of a box of x
    int32 results;                      // where the box of results begins in shared memory
};
static_assert(sizeof(DepthwiseBoxParameters) == 2 * 128 + sizeof(WindowParameters) + 4 * 4
                  && sizeof(DepthwiseBoxParameters) % 64 == 0,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
