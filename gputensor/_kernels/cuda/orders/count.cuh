// Adds how often each of 0 to length - 1 comes to `counts`; other numbers are left out.
//
// Few counts are collected in shared memory first. Integers are added, so the order does not count.
//
// Defined before this text: ELEMENT, an integer type; IS_SHARED, whether length is SHARED or less.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/orders/orders.h"

#define SHARED 4096

typedef CountParameters Parameters;
typedef ELEMENT T;

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    const T* input = reinterpret_cast<const T*>(p.input);
    const int64 step = (int64)gridDim.x * 256;
#if IS_SHARED
    __shared__ uint32 bins[SHARED];
    for (int k = threadIdx.x; k < p.length; k += 256) bins[k] = 0;
    __syncthreads();
#endif
    for (int64 i = (int64)blockIdx.x * 256 + threadIdx.x; i < p.count; i += step) {
        const int64 value = (int64)input[i];
        if (value < 0 || value >= p.length) continue;
#if IS_SHARED
        atomicAdd(&bins[value], 1u);
#else
        atomicAdd(&p.counts[value], 1ull);
#endif
    }
#if IS_SHARED
    __syncthreads();
    for (int k = threadIdx.x; k < p.length; k += 256)
        if (bins[k]) atomicAdd(&p.counts[k], (uint64)bins[k]);
#endif
}
