// Activations, which kernels of products and rows name too.
#pragma once

#include "gputensor/_kernels/cuda/special/both.h"

#ifdef GPUTENSOR_KERNEL
#define GPUTENSOR_ACTIVATION template <class T> __device__ __forceinline__ T
#else
#define GPUTENSOR_ACTIVATION template <class T> GPUTENSOR_FLAT T
namespace gputensor {
#endif

// exp is taken of negative numbers only, so it cannot overflow.
GPUTENSOR_ACTIVATION sigmoid(T a) {
    const T small = exp(-fabs(a));
    return (a >= 0 ? (T)1 : small) / (1 + small);
}
GPUTENSOR_ACTIVATION gelu(T a) {
    return a * (T)0.5 * (1 + erf(a * (T)0.70710678118654752440));
}
// (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its digits where it is small.
GPUTENSOR_ACTIVATION gelu_tanh(T a) {
    return a * sigmoid((T)1.59576912160573071176 * (a + (T)0.044715 * a * a * a));
}

#ifndef GPUTENSOR_KERNEL
}  // namespace gputensor
#endif
