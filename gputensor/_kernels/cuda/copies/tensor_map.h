// A tensor map among the parameters of a kernel (_driver/tensor_maps.pxd).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

#ifdef __CUDACC__
struct alignas(64) TensorMap { uint64 words[16]; };
#else
struct TensorMap { uint64 words[16]; };     // the driver aligns the copy that a kernel gets
#endif

}  // namespace gputensor
