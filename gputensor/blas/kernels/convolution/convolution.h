// The parameters of all convolution kernels.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct ConvolutionOperand {
    GPUTENSOR_POINTER(char) ptr;
    int64 batch, channel, axes[3];      // strides, in elements; for weights, batch is per output
};
struct ConvolutionAxis {
    int32 x, out, kernel, stride, padding, dilation;
};
struct ConvolutionParameters {
    ConvolutionOperand x, weight, out;
    ConvolutionOperand addend;          // no address: none
    GPUTENSOR_POINTER(char) bias;
    int64 bias_stride;
    GPUTENSOR_POINTER(float) partial;   // sums of each split: [split][group][pixel][output]
    ConvolutionAxis axes[3];            // depth, height, width; absent ones have 1 element
    int32 pixels;                       // results of one output
    int32 channels, outputs, groups;    // channels and outputs of one group
    int32 column_tiles;                 // tiles of a group's outputs
    int32 splits, steps, zero;          // steps of the terms for each split
};
static_assert(sizeof(ConvolutionParameters) == 4 * 48 + 24 + 3 * 24 + 8 * 4,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
