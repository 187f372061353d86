// Adds, in their order, the sums of a convolution whose terms were cut among blocks.
//
// A thread has one result. Defined before this text: the names that pixel.cuh needs.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/convolution/pixel.cuh"

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    const uint32 outputs = p.groups * p.outputs;
    const int64 all = (int64)p.pixels * outputs, index = (int64)blockIdx.x * 256 + threadIdx.x;
    if (index >= all) return;
    C sum = 0;
    for (int i = 0; i < p.splits; ++i) sum += p.partial[i * all + index];
    const uint32 number = (uint32)(index / outputs), output = (uint32)(index - (int64)number * outputs);
    const Pixel pixel = pixel_of(p, number);
    reinterpret_cast<E*>(p.out.ptr)[offset_of(p.out, pixel) + output * p.out.channel] =
        narrow<E>(finished(p, sum, output, offset_of(p.addend, pixel)));
}
