// Writes the table of addresses that a pointer-array call reads, from a list in the parameters.
//
// A table is three arrays of `total` addresses, of the matrices A, B and D. A graph keeps the
// parameters, so the launch may be captured.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/pointers/pointers.h"

typedef ListedParameters Parameters;

extern "C" __global__ void __launch_bounds__(LISTED_PRODUCTS) kernel(const Parameters p) {
    start_early();
    if (threadIdx.x >= p.count) return;
    for (int which = 0; which < 3; ++which)
        p.table[which * p.total + p.first + threadIdx.x] = p.addresses[3 * threadIdx.x + which];
}
