// The parameters of convolution by shifted patches (shifted.cuh).
#pragma once

#include "gputensor/blas/kernels/convolution/convolution.h"

namespace gputensor {

struct ShiftedTap {
    int32 shift;                // of its rows in the patch, in rows
    int16 number, is_first;     // among the taps of the weights; whether a patch begins with it
    int16 y, x;                 // of the patch: added to a position's place in x
};
struct ShiftedParameters {
    ConvolutionParameters common;       // its steps: those of a block
    int64 positions;                    // of all images
    int32 pitch, image;                 // positions of a row and of an image
    int32 lead;                         // rows of a patch before the first position
    int32 rows;                         // loaded rows of a patch
    int32 patch;                        // bytes of a patch, a multiple of 1,024
    int32 taps, steps;
    uint32 tiles;
    ShiftedTap tap[64];
};
static_assert(sizeof(ShiftedParameters) == sizeof(ConvolutionParameters) + 8 + 8 * 4 + 64 * 12,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor
