// Functions of the element-wise operations that need more than an expression, complex ones first.
//
// Values are NumPy's (DESIGN.md, Values). The expressions are in operations.py.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/special/activations.h"
#if NEEDS_NORMAL
#include "gputensor/_kernels/cuda/special/normal.h"
#endif
#if NEEDS_GAMMAS
#include "gputensor/_kernels/cuda/special/gammas.h"
#endif
#if NEEDS_DIGITS
#include "gputensor/_kernels/cuda/special/digits.h"
#endif
#if NEEDS_INTEGRALS
#include "gputensor/_kernels/cuda/special/integrals.h"
#endif
#if NEEDS_BESSEL
#include "gputensor/_kernels/cuda/special/bessel.h"
#endif

#define FN template <class T> __device__ __forceinline__

FN complex_t<T> make(T re, T im) { complex_t<T> z = {re, im}; return z; }
FN complex_t<T> operator+(complex_t<T> a, complex_t<T> b) { return make(a.re + b.re, a.im + b.im); }
FN complex_t<T> operator-(complex_t<T> a, complex_t<T> b) { return make(a.re - b.re, a.im - b.im); }
FN complex_t<T> operator-(complex_t<T> a) { return make(-a.re, -a.im); }
FN complex_t<T> operator*(complex_t<T> a, complex_t<T> b) {
    return make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
FN complex_t<T> operator*(complex_t<T> a, T b) { return make(a.re * b, a.im * b); }
FN complex_t<T> operator/(complex_t<T> a, complex_t<T> b) {
    // Smith's method: no overflow in |b|^2.
    if (fabs(b.re) >= fabs(b.im)) {
        if (b.re == 0 && b.im == 0) return make(a.re / fabs(b.re), a.im / fabs(b.re));
        T ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return make((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
    }
    T ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
    return make((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);
}
FN bool operator==(complex_t<T> a, complex_t<T> b) { return a.re == b.re && a.im == b.im; }
FN bool operator!=(complex_t<T> a, complex_t<T> b) { return !(a == b); }
FN T magnitude(complex_t<T> a) { return hypot(a.re, a.im); }
// The following functions have the special cases of C's Annex G: `not_finite(x)` is NaN, an exact
// zero stays zero, and a part that overflows is a product of two factors with half its exponent.
FN T not_finite(T x) { return x - x; }
FN complex_t<T> directed(T size, T exponent, T share, complex_t<T> direction) {
    // size * direction; a size above every number of the type is share^2 * exp(exponent).
    if (!isinf(size)) return direction * size;
    const T half = exp(exponent * (T)0.5) * share;
    return make(half * direction.re * half, half * direction.im * half);
}
FN complex_t<T> exp(complex_t<T> a) {
    T size = exp(a.re);
    if (a.im == 0) return make(size, a.im);
    if (!isfinite(a.im)) {
        if (!isinf(a.re)) return make(not_finite(a.im), not_finite(a.im));
        return a.re > 0 ? make(a.re, not_finite(a.im)) : make((T)0, copysign((T)0, a.im));
    }
    return directed(size, a.re, (T)1, make(cos(a.im), sin(a.im)));
}
__device__ __forceinline__ float large_size(float) { return 1e37f; }
__device__ __forceinline__ double large_size(double) { return 1e307; }
__device__ __forceinline__ float tiny_size(float) { return 1e-30f; }
__device__ __forceinline__ double tiny_size(double) { return 1e-290; }
// A power of 4 that scales the parts of a number away from the ends of the type's range.
FN T to_the_middle(complex_t<T> a) {
    T size = fmax(fabs(a.re), fabs(a.im));
    if (size > large_size(size)) return (T)0.0625;
    return size < tiny_size(size) ? (T)3.2451855365842673e32 : (T)1;
}
FN complex_t<T> log(complex_t<T> a) {
    const T factor = to_the_middle(a), re = fabs(a.re), im = fabs(a.im);
    const T size = magnitude(a * factor), large = re > im ? re : im, small = re > im ? im : re;
    // Near 1 the logarithm depends on the distance from 1, which the rounded size has lost.
    T result = log(size) - log(factor);
    if (size > (T)0.5 && size < (T)2 && factor == 1)
        result = (T)0.5 * log1p((large - 1) * (large + 1) + small * small);
    return make(result, atan2(a.im, a.re));
}
FN complex_t<T> sqrt(complex_t<T> a) {
    if (a.re == 0 && a.im == 0) return make((T)0, a.im);
    if (isinf(a.im)) return make(fabs(a.im), a.im);
    if (isinf(a.re)) {
        const T rest = not_finite(a.im);
        return a.re > 0 ? make(a.re, copysign(rest, a.im)) : make(fabs(rest), copysign(a.re, a.im));
    }
    const T factor = to_the_middle(a), back = 1 / sqrt(factor);
    a = a * factor;
    T half = sqrt((fabs(a.re) + magnitude(a)) * (T)0.5);
    return (a.re >= 0 ? make(half, a.im / (2 * half))
                      : make(fabs(a.im) / (2 * half), copysign(half, a.im))) * back;
}
FN complex_t<T> sinh(complex_t<T> a) {
    if (a.im == 0) return make(sinh(a.re), a.im);
    if (!isfinite(a.im))
        return make(a.re == 0      ? a.re
                    : isinf(a.re) ? fabs(a.re)
                                  : not_finite(a.im), not_finite(a.im));
    if (a.re == 0) return make(copysign((T)0, a.re * cos(a.im)), sin(a.im));
    const complex_t<T> both = directed(cosh(a.re), fabs(a.re), (T)0.70710678118654752440,
                                       make(cos(a.im), sin(a.im)));
    return make(isinf(cosh(a.re)) ? copysign((T)1, a.re) * both.re : sinh(a.re) * cos(a.im),
                both.im);
}
FN complex_t<T> cosh(complex_t<T> a) {
    if (a.im == 0) return make(cosh(a.re), copysign((T)1, a.re) * a.im);
    if (!isfinite(a.im))
        return a.re == 0 ? make(not_finite(a.im), a.re)
                         : make(isinf(a.re) ? fabs(a.re) : not_finite(a.im), not_finite(a.im));
    if (a.re == 0) return make(cos(a.im), a.re * sin(a.im));
    const complex_t<T> both = directed(cosh(a.re), fabs(a.re), (T)0.70710678118654752440,
                                       make(cos(a.im), sin(a.im)));
    return make(both.re,
                isinf(cosh(a.re)) ? copysign((T)1, a.re) * both.im : sinh(a.re) * sin(a.im));
}
FN complex_t<T> tanh(complex_t<T> a) {
    if (a.im == 0) return make(tanh(a.re), a.im);
    if (!isfinite(a.im)) {
        if (isinf(a.re)) return make(copysign((T)1, a.re), copysign((T)0, a.im));
        return make(a.re == 0 ? a.re : not_finite(a.im), not_finite(a.im));
    }
    const T cosine = cos(a.im), product = sin(a.im) * cosine;
    if (fabs(a.re) > 20) {      // tanh is 1 to every digit, and the squares below would overflow
        const T small = exp(-fabs(a.re));
        return make(copysign((T)1, a.re), 4 * product * small * small);
    }
    const T side = sinh(a.re), scale = 1 / (side * side + cosine * cosine);
    return make(side * cosh(a.re) * scale, product * scale);
}
// sin z = i sinh -iz, cos z = cosh iz, tan z = -i tanh iz
FN complex_t<T> sin(complex_t<T> a) {
    complex_t<T> b = sinh(make(a.im, -a.re));
    return make(-b.im, b.re);
}
FN complex_t<T> sinc(complex_t<T> a) {
    if (a.re == 0 && a.im == 0) return make((T)1, (T)0);
    a = a * (T)3.14159265358979323846;
    return sin(a) / a;
}
FN complex_t<T> cos(complex_t<T> a) { return cosh(make(-a.im, a.re)); }
FN complex_t<T> tan(complex_t<T> a) {
    complex_t<T> b = tanh(make(-a.im, a.re));
    return make(b.im, -b.re);
}
FN bool is_nan(complex_t<T> a) { return a.re != a.re || a.im != a.im; }
FN bool is_inf(complex_t<T> a) { return isinf(a.re) || isinf(a.im); }
FN bool is_finite(complex_t<T> a) { return isfinite(a.re) && isfinite(a.im); }
// The inverse functions, by Kahan's formulas (Branch cuts for complex elementary functions, 1987):
// square roots of z + 1 and z - 1 keep the signs of both sides of a cut. Beyond `large_size` a
// square would overflow, and the logarithm of the magnitude is exact.
FN T large_log(complex_t<T> a) { return log(hypot(a.re / 2, a.im / 2)) + (T)1.3862943611198906188; }
FN bool is_large(complex_t<T> a) {
    const T most = large_size(a.re);
    return fabs(a.re) > most || fabs(a.im) > most;
}
FN complex_t<T> acos(complex_t<T> a) {
    if (is_nan(a)) {
        const T rest = a.re + a.im;
        if (isinf(a.re) || isinf(a.im))
            return make(rest, -copysign(isinf(a.re) ? a.re : a.im, a.im));
        return make(a.re == 0 ? (T)1.57079632679489661923 : rest, rest);
    }
    if (is_large(a)) return make(atan2(fabs(a.im), a.re), -copysign(large_log(a), a.im));
    const complex_t<T> low = sqrt(make(1 - a.re, -a.im)), high = sqrt(make(1 + a.re, a.im));
    return make(2 * atan2(low.re, high.re), asinh(high.re * low.im - high.im * low.re));
}
FN complex_t<T> acosh(complex_t<T> a) {
    const complex_t<T> b = acos(a);
    return make(fabs(b.im), a.im != a.im ? b.re : copysign(b.re, a.im));
}
FN complex_t<T> asinh(complex_t<T> a) {
    if (is_nan(a)) {
        const T rest = a.re + a.im;
        if (isinf(a.re) || isinf(a.im))
            return make(isinf(a.re) ? a.re : copysign(a.im, a.re), rest);
        return make(rest, a.im == 0 ? a.im : rest);
    }
    if (is_large(a)) return make(copysign(large_log(a), a.re), atan2(a.im, fabs(a.re)));
    const complex_t<T> high = sqrt(make(1 + a.im, -a.re)), low = sqrt(make(1 - a.im, a.re));
    return make(asinh(high.re * low.im - low.re * high.im),
                atan2(a.im, high.re * low.re - high.im * low.im));
}
FN complex_t<T> atanh(complex_t<T> a) {
    const T turn = copysign((T)1.57079632679489661923, a.im), x = fabs(a.re), y = fabs(a.im);
    if (isinf(a.im)) return make(copysign((T)0, a.re), turn);
    if (isinf(a.re)) return make(copysign((T)0, a.re), a.im != a.im ? a.im : turn);
    if (is_nan(a)) return make(a.re == 0 ? a.re : a.re + a.im, a.re + a.im);
    if (is_large(a)) {
        const T half = hypot(x / 2, y / 2);
        return make(copysign(x / 4 / half / half, a.re), turn);
    }
    if (x == 1 && y < tiny_size(y)) {
        if (y == 0) return make(copysign(1 / y, a.re), a.im);
        return make(copysign(-log(sqrt(y) / sqrt(hypot(y, (T)2))), a.re),
                    copysign(atan2((T)2, -y) / 2, a.im));
    }
    return make(copysign(log1p(4 * x / ((1 - x) * (1 - x) + y * y)) / 4, a.re),
                copysign(atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2, a.im));
}
// asin z = -i asinh iz, atan z = -i atanh iz
FN complex_t<T> asin(complex_t<T> a) {
    // A GPU drops the sign of a NaN that it negates, so this case cannot be left to asinh.
    if (isinf(a.re) && a.im != a.im) return make(a.im, copysign(a.re, a.im));
    const complex_t<T> b = asinh(make(-a.im, a.re));
    return make(b.im, -b.re);
}
FN complex_t<T> atan(complex_t<T> a) {
    const complex_t<T> b = atanh(make(-a.im, a.re));
    return make(b.im, -b.re);
}
FN complex_t<T> expm1(complex_t<T> a) {
    const complex_t<T> whole = exp(a);
    if (!isfinite(a.re) || !isfinite(a.im) || isinf(whole.re)) return make(whole.re - 1, whole.im);
    const T half = sin(a.im / 2);
    return make(expm1(a.re) * cos(a.im) - 2 * half * half, whole.im);
}
FN complex_t<T> log1p(complex_t<T> a) {
    if (!(fabs(a.re) < (T)0.5 && fabs(a.im) < (T)0.5)) return log(make(1 + a.re, a.im));
    return make(log1p(a.re * (2 + a.re) + a.im * a.im) / 2, atan2(a.im, 1 + a.re));
}
FN complex_t<T> log2(complex_t<T> a) { return log(a) * (T)1.44269504088896340736; }
FN complex_t<T> log10(complex_t<T> a) { return log(a) * (T)0.43429448190325182765; }
FN complex_t<T> power(complex_t<T> a, complex_t<T> b) {
    if (b.re == 0 && b.im == 0) return make((T)1, (T)0);
    if (a.re == 0 && a.im == 0) {
        const T rest = b.re > 0 ? (T)0 : not_finite((T)1 / fabs(a.re));
        return make(rest, rest);
    }
    if (b.im != 0 || !(fabs(b.re) < 100) || b.re != trunc(b.re)) return exp(b * log(a));
    // Small whole powers are products, as in NumPy.
    if (b.re == 1) return a;
    complex_t<T> result = a;
    bool is_first = true;
    for (int rest = (int)fabs(b.re); rest != 0; rest >>= 1) {
        if (rest & 1) result = is_first ? a : result * a;
        if (rest & 1) is_first = false;
        a = a * a;
    }
    return b.re < 0 ? make((T)1, (T)0) / result : result;
}
FN complex_t<T> reciprocal(complex_t<T> a) {
    if (fabs(a.re) >= fabs(a.im)) {
        T ratio = a.im / a.re, size = a.re + a.im * ratio;
        return make(1 / size, -ratio / size);
    }
    T ratio = a.re / a.im, size = a.re * ratio + a.im;
    return make(ratio / size, -1 / size);
}
FN complex_t<T> sign(complex_t<T> a) {
    // An infinite part counts as 1 and a finite part beside it as 0; two infinities have no
    // direction.
    if (a.re != a.re || a.im != a.im) return make(a.re + a.im, a.re + a.im);
    if (isinf(a.re) && isinf(a.im)) return make(not_finite(a.re), not_finite(a.re));
    if (isinf(a.re) || isinf(a.im))
        a = make(copysign((T)isinf(a.re), a.re), copysign((T)isinf(a.im), a.im));
    if (fabs(a.re) > 1 || fabs(a.im) > 1) a = a * (T)0.5;
    T size = magnitude(a);
    return size == 0 ? make((T)0, (T)0) : make(a.re / size, a.im / size);
}
FN T sign(T a) { return a != a ? a : (T)((a > (T)0) - (a < (T)0)); }
FN T larger(T a, T b) { return a > b || a != a ? a : b; }
FN T smaller(T a, T b) { return a < b || a != a ? a : b; }
#if __CUDA_ARCH__ >= 800 && !defined(GPUTENSOR_ON_CPU)
template <> __device__ __forceinline__ float larger<float>(float a, float b) {
    float y; asm volatile("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y;
}
template <> __device__ __forceinline__ float smaller<float>(float a, float b) {
    float y; asm volatile("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y;
}
#endif
// Computed in uint64: signed overflow is undefined in C, and NumPy wraps.
FN T integer_divide(T a, T b) {
    if (b == 0) return 0;
    if ((T)-1 < (T)0 && b == (T)-1) return (T)(0 - (uint64)a);
    T quotient = a / b;
    return quotient - (T)(a % b != 0 && ((a < 0) != (b < 0)));
}
FN T integer_modulo(T a, T b) {
    if (b == 0 || ((T)-1 < (T)0 && b == (T)-1)) return 0;
    T rest = a % b;
    return rest != 0 && ((rest < 0) != (b < 0)) ? (T)(rest + b) : rest;
}
FN T float_modulo(T a, T b) {
    T rest = fmod(a, b);
    if (b == 0) return rest;
    if (rest == 0) return copysign((T)0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}
FN T float_divide_floor(T a, T b) {
    if (b == 0) return a / b;
    T rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return copysign((T)0, a / b);
    T whole = floor(quotient);
    return quotient - whole > (T)0.5 ? whole + 1 : whole;
}
FN T integer_power(T a, T b) {
    if (b < 0) return a == 1 ? 1 : a == (T)-1 ? (T)(b & 1 ? -1 : 1) : 0;
    uint64 base = (uint64)a, result = 1;
    for (uint64 rest = (uint64)b; rest != 0; rest >>= 1) {
        if (rest & 1) result *= base;
        base *= base;
    }
    return (T)result;
}
// CUDA's pow may be off by an ulp where the result is a itself: pow(3.0, 1.0) is below 3.
FN T float_power(T a, T b) { return b == 1 ? a : b == 2 ? a * a : pow(a, b); }
FN T shift_left(T a, T b) {
    return (uint64)b < 8 * sizeof(T) ? (T)((uint64)a << (uint64)b) : (T)0;
}
FN T shift_right(T a, T b) {
    return (uint64)b < 8 * sizeof(T) ? (T)(a >> (int32)b) : a < 0 ? (T)-1 : (T)0;
}
__device__ __forceinline__ uint64 size_of_integer(uint64 a, bool is_negative) {
    return is_negative ? 0 - a : a;
}
__device__ __forceinline__ uint64 common_divisor(uint64 x, uint64 y) {
    while (y != 0) {
        const uint64 rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}
FN T greatest_divisor(T a, T b) {
    return (T)common_divisor(size_of_integer((uint64)a, a < 0), size_of_integer((uint64)b, b < 0));
}
FN T least_multiple(T a, T b) {
    const uint64 x = size_of_integer((uint64)a, a < 0), y = size_of_integer((uint64)b, b < 0);
    return x == 0 ? (T)0 : (T)(x / common_divisor(x, y) * y);
}
FN T bit_count(T a) {
    const uint64 x = size_of_integer((uint64)a, a < 0);
    return (T)(__popc((uint32)x) + __popc((uint32)(x >> 32)));
}
// exp(x) for results of 16 bits: the relative error is at most x * 2^-24 + 2^-22; 0 below 2^-126.
__device__ __forceinline__ float rough_exp(float x) {
    float y;
    x *= 1.44269504088896340736f;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ double rough_exp(double x) { return exp(x); }
