// What the texts of special functions need to be compiled into kernels and for the host device.
//
// These texts are templates of the arithmetic type. A kernel takes the functions of C from the
// compiler, the host device from <cmath>; both overload them for float and double.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

#ifdef GPUTENSOR_KERNEL
#define GPUTENSOR_SPECIAL __device__
// Of the functions that expressions name: a kernel with several elements a thread has their text
// once, which compiles several times as fast.
#define GPUTENSOR_CALLED __device__ __noinline__
#define GPUTENSOR_UNROLL _Pragma("unroll")
#else
#include <cmath>
#define GPUTENSOR_SPECIAL inline
#define GPUTENSOR_CALLED inline
#define GPUTENSOR_UNROLL _Pragma("GCC unroll 32")
namespace gputensor {
using std::acos; using std::copysign; using std::cos; using std::erf; using std::erfc; using std::exp;
using std::expm1; using std::fabs; using std::floor; using std::fmax; using std::fmin; using std::isinf;
using std::log; using std::log1p; using std::pow; using std::rint; using std::sin; using std::sqrt;
using std::tan;
}  // namespace gputensor
#endif
