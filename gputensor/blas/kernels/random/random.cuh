// Fills operands for tuning with random finite numbers.
//
// Values change the time of a product: a GPU that multiplies zeros draws less power and clocks
// higher. Floating-point elements get a random sign, a random mantissa and the exponent of 0.5.
#pragma once

#include "gputensor/blas/kernels/random/random.h"

typedef RandomParameters Parameters;

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    uint64 stride = (uint64)gridDim.x * blockDim.x;
    for (uint64 i = (uint64)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += stride) {
        uint64 x = (i + p.seed) * 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        ((uint64*)p.ptr)[i] = ((x ^ (x >> 31)) & p.keep) | p.set;
    }
}
