// Writes the table of addresses that a pointer-array call reads, from the strides of a batch.
//
// A table is three arrays of `total` addresses, of the matrices A, B and D. The batch may have up
// to 17 dimensions. A graph keeps the parameters, which are all that the kernel reads, so the
// launch may be captured.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/pointers/pointers.h"

typedef StridedParameters Parameters;

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    int64 stride = (int64)gridDim.x * blockDim.x;
    for (int64 item = (int64)blockIdx.x * blockDim.x + threadIdx.x; item < p.total;
         item += stride) {
        uint64 a = p.a, b = p.b, d = p.d;
        int64 rest = item;
        for (int axis = 0; axis < p.ndim; ++axis) {
            int64 next = rest / p.count[axis];
            int64 index = rest - next * p.count[axis];
            a += (uint64)(index * p.step_a[axis]);
            b += (uint64)(index * p.step_b[axis]);
            d += (uint64)(index * p.step_d[axis]);
            rest = next;
        }
        p.table[item] = a;
        p.table[p.total + item] = b;
        p.table[2 * p.total + item] = d;
    }
}
