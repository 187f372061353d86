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
#define GPUTENSOR_ROLL _Pragma("unroll 1")
#else
#include <cmath>
#define GPUTENSOR_SPECIAL inline
#define GPUTENSOR_CALLED inline
#define GPUTENSOR_UNROLL _Pragma("GCC unroll 32")
#define GPUTENSOR_ROLL
namespace gputensor {
using std::copysign; using std::cos; using std::erf; using std::erfc; using std::exp;
using std::expm1; using std::fabs; using std::floor; using std::fmax; using std::fmin;
using std::isinf; using std::log; using std::log1p; using std::pow; using std::rint;
using std::sin; using std::sqrt; using std::tan; using std::tanh;
// In double: C's functions of float lose digits, near the zeros of lgamma most of them.
inline double lgamma(double x) { return std::lgamma(x); }
inline float lgamma(float x) { return (float)std::lgamma((double)x); }
inline double tgamma(double x) { return std::tgamma(x); }
inline float tgamma(float x) { return (float)std::tgamma((double)x); }
}  // namespace gputensor
#endif
