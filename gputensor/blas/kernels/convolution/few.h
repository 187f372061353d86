// The parameters of convolution of few channels (few.cuh).
#pragma once

#include "gputensor/blas/kernels/convolution/convolution.h"

namespace gputensor {

struct FewParameters {
    ConvolutionParameters common;
    int32 rows, fragments;              // of a tile: rows of results, and 16 neighbours of each row
    int32 down, across;                 // tiles of an image
    int32 lines, pitch;                 // of x that a tile reads: its rows, and pixels of each
    uint32 tiles;
    int32 zero;
};
static_assert(sizeof(FewParameters) == sizeof(ConvolutionParameters) + 8 * 4,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
