// An arithmetic progression. Integers wrap, so they are computed as uint64; floats are computed as
// double, without a fused multiply-add, as on the host (5 * .4 - 2 is 0), and rounded once.
//
// Defined before this text: OUTPUT, the type of an element; IS_INTEGER.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/index.h"

typedef ArangeParameters Parameters;
typedef OUTPUT TO;

#if IS_INTEGER
#define VALUE (int64)((uint64)p.integer_start + (uint64)i * (uint64)p.integer_step)
#else
#define VALUE __dadd_rn(__dmul_rn((double)i, p.step), p.start)
#endif

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    const long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i < p.size) reinterpret_cast<TO*>(p.out)[i * p.stride] = narrow<TO>(VALUE);
}
