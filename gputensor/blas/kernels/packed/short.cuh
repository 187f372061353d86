// Short names of integers, for the programs of packed products.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

typedef uint16 u16;
typedef uint32 u32;
typedef uint64 u64;
typedef int64 i64;
#define DEVICE __device__ __forceinline__
