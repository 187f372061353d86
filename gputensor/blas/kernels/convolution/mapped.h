// The parameters of convolution by tensor maps (mapped.cuh).
#pragma once

#include "gputensor/blas/kernels/convolution/convolution.h"
#include "gputensor/_kernels/cuda/copies/tensor_map.h"

namespace gputensor {

struct MappedParameters {
    TensorMap x, weight, out;
    ConvolutionParameters common;       // its steps: those of a block
    int32 steps;
    uint32 tiles;
    int32 zero[14];
};
static_assert(sizeof(MappedParameters) == 3 * 128 + sizeof(ConvolutionParameters) + 16 * 4
                  && sizeof(MappedParameters) % 64 == 0,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
