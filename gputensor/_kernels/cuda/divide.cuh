// The division of an index by the size of an axis, with constants that the host prepared.
#pragma once

#include "gputensor/_kernels/cuda/axis.h"

// The quotient by a size: magic = floor(2^32 (2^shift - size) / size) + 1.
__device__ __forceinline__ uint32 divide(uint32 x, const LaunchAxis& axis) {
    return (__umulhi(x, axis.magic) + x) >> axis.shift;
}
