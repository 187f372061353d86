// Shared by all convolution kernels: the place of a result, and the end of its sum.
//
// Defined before this text: ELEMENT and ARITHMETIC; ACTIVATION, an expression of `a` of type C.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/math.cuh"
#include "gputensor/blas/kernels/convolution/convolution.h"

typedef ConvolutionParameters Parameters;
typedef ELEMENT E;
typedef ARITHMETIC C;

// From a result's number among those of one output to its image and place.
struct Pixel {
    int64 batch;
    int place[3];
};
__device__ __forceinline__ Pixel pixel_of(const Parameters& p, uint32 number) {
    Pixel pixel;
#pragma unroll
    for (int d = 2; d >= 0; --d) {
        const uint32 extent = p.axes[d].out, rest = number / extent;
        pixel.place[d] = (int)(number - rest * extent);
        number = rest;
    }
    pixel.batch = number;
    return pixel;
}
__device__ __forceinline__ int64 offset_of(const ConvolutionOperand& operand, const Pixel& pixel) {
    int64 offset = pixel.batch * operand.batch;
#pragma unroll
    for (int d = 0; d < 3; ++d) offset += pixel.place[d] * operand.axes[d];
    return offset;
}
__device__ __forceinline__ C finished(const Parameters& p, C a, int64 output, int64 added) {
    if (p.bias) a += wide(reinterpret_cast<const E*>(p.bias)[output * p.bias_stride]);
    if (p.addend.ptr)
        a += wide(reinterpret_cast<const E*>(p.addend.ptr)[added + output * p.addend.channel]);
    return ACTIVATION;
}
