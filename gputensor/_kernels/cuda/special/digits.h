// The fraction and the exponent of a float, from its bits: a is fraction * 2^exponent.
#pragma once

#include "gputensor/_kernels/cuda/special/both.h"

#ifdef GPUTENSOR_KERNEL
#define GPUTENSOR_DIGITS template <class T> __device__ __forceinline__
#else
#define GPUTENSOR_DIGITS template <class T> GPUTENSOR_FLAT
#endif

namespace gputensor {
namespace digits {

// The integer of the bits, the bits of the fraction, and the bias of the exponent.
template <class T> struct Format;
template <> struct Format<float> {
    typedef uint32 word;
    static const int digits = 23, bias = 127;
};
template <> struct Format<double> {
    typedef uint64 word;
    static const int digits = 52, bias = 1023;
};
template <class T> union Bits {
    T number;
    typename Format<T>::word bits;
};

// Whether a has a fraction of its own: it is finite and not 0.
GPUTENSOR_DIGITS bool is_plain(T a) { return a - a == 0 && a != 0; }

// Subnormal numbers are scaled up, which is exact.
GPUTENSOR_DIGITS bool is_small(T a) {
    Bits<T> least;
    least.bits = (typename Format<T>::word)1 << Format<T>::digits;
    return fabs(a) < least.number;
}
GPUTENSOR_DIGITS Bits<T> normal_bits(T a) {
    const T factor = (T)((typename Format<T>::word)1 << Format<T>::digits);
    Bits<T> found;
    found.number = is_small(a) ? a * factor : a;
    return found;
}

GPUTENSOR_DIGITS T fraction(T a) {
    typedef typename Format<T>::word word;
    Bits<T> found = normal_bits(a);
    const word field = (word)(2 * Format<T>::bias + 1) << Format<T>::digits;
    found.bits = (found.bits & ~field) | (word)(Format<T>::bias - 1) << Format<T>::digits;
    return is_plain(a) ? found.number : a;
}

GPUTENSOR_DIGITS T exponent(T a) {
    const int field = (int)(normal_bits(a).bits >> Format<T>::digits) & (2 * Format<T>::bias + 1);
    const int whole = field - (Format<T>::bias - 1) - (is_small(a) ? Format<T>::digits : 0);
    return is_plain(a) ? (T)whole : (T)0;
}

}  // namespace digits
}  // namespace gputensor
