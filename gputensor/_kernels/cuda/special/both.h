// What the texts of special functions need to be compiled into kernels and for the host device.
//
// These texts are templates of the arithmetic type. A kernel takes the functions of C from the
// compiler, the host device from host_functions.h; both overload them for float and double.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

#ifdef GPUTENSOR_KERNEL
#define GPUTENSOR_SPECIAL __device__
// Of the functions that expressions name: a kernel with several elements a thread has their text
// once, which compiles several times as fast.
#define GPUTENSOR_CALLED __device__ __noinline__
#define GPUTENSOR_UNROLL _Pragma("unroll")
#define GPUTENSOR_ROLL _Pragma("unroll 1")
#else
#include "gputensor/_kernels/loops/host_functions.h"
#define GPUTENSOR_SPECIAL inline
#define GPUTENSOR_CALLED inline
#define GPUTENSOR_UNROLL _Pragma("GCC unroll 32")
#define GPUTENSOR_ROLL
#endif
