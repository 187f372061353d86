// The place of each element among sorted ones, before or after equal ones.
//
// Defined before this text: ELEMENT and KEY (keys.cuh).
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/orders/keys.cuh"

typedef SearchParameters Parameters;

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    const int64 i = (int64)blockIdx.x * 256 + threadIdx.x;
    if (i >= p.count) return;
    const T* sorted = reinterpret_cast<const T*>(p.sorted);
    const Key own = key_of(reinterpret_cast<const T*>(p.wanted)[i], false);
    int64 low = 0, high = p.columns;
    while (low < high) {
        const int64 half = low + (high - low) / 2;
        const Key key = key_of(sorted[half], false);
        const bool is_before = p.is_right ? key <= own : key < own;
        if (is_before) low = half + 1;
        else high = half;
    }
    p.out[i] = low;
}
