// Functions of the element-wise operations that need more than an expression, complex ones first.
//
// Values are NumPy's (elementwise.pxd). The expressions are in expressions.py.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"

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
    // Smith's form: no overflow in |b|^2.
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
FN complex_t<T> exp(complex_t<T> a) {
    T scale = exp(a.re);
    return a.im == 0 ? make(scale, a.im) : make(scale * cos(a.im), scale * sin(a.im));
}
FN complex_t<T> log(complex_t<T> a) { return make(log(magnitude(a)), atan2(a.im, a.re)); }
FN complex_t<T> sqrt(complex_t<T> a) {
    if (a.re == 0 && a.im == 0) return make((T)0, a.im);
    T half = sqrt((fabs(a.re) + magnitude(a)) * (T)0.5);
    return a.re >= 0 ? make(half, a.im / (2 * half))
                     : make(fabs(a.im) / (2 * half), copysign(half, a.im));
}
FN complex_t<T> sin(complex_t<T> a) {
    return make(sin(a.re) * cosh(a.im), cos(a.re) * sinh(a.im));
}
FN complex_t<T> cos(complex_t<T> a) {
    return make(cos(a.re) * cosh(a.im), -sin(a.re) * sinh(a.im));
}
FN complex_t<T> sinh(complex_t<T> a) {
    return make(sinh(a.re) * cos(a.im), cosh(a.re) * sin(a.im));
}
FN complex_t<T> cosh(complex_t<T> a) {
    return make(cosh(a.re) * cos(a.im), sinh(a.re) * sin(a.im));
}
FN complex_t<T> tanh(complex_t<T> a) {
    // From |re| = 20 on tanh is 1 to every digit, and cosh(2 re) would overflow later.
    if (fabs(a.re) > 20) return make(copysign((T)1, a.re), copysign((T)0, sin(2 * a.im)));
    T scale = 1 / (1 + 2 * sinh(a.re) * sinh(a.re) + cos(2 * a.im));
    return make(sinh(2 * a.re) * scale, sin(2 * a.im) * scale);
}
FN complex_t<T> tan(complex_t<T> a) {
    complex_t<T> b = tanh(make(-a.im, a.re));
    return make(b.im, -b.re);
}
FN complex_t<T> power(complex_t<T> a, complex_t<T> b) {
    if (b.re == 0 && b.im == 0) return make((T)1, (T)0);
    if (a.re == 0 && a.im == 0) return make((T)0, (T)0);
    return exp(b * log(a));
}
FN complex_t<T> sign(complex_t<T> a) {
    T size = magnitude(a);
    return size == 0 ? a : make(a.re / size, a.im / size);
}
FN bool is_nan(complex_t<T> a) { return a.re != a.re || a.im != a.im; }
FN bool is_inf(complex_t<T> a) { return isinf(a.re) || isinf(a.im); }
FN bool is_finite(complex_t<T> a) { return isfinite(a.re) && isfinite(a.im); }

FN T sign(T a) { return a != a ? a : (T)((a > (T)0) - (a < (T)0)); }
FN T larger(T a, T b) { return a > b || a != a ? a : b; }
FN T smaller(T a, T b) { return a < b || a != a ? a : b; }
// The work is done on uint64: signed overflow is undefined in C, wrapping is what NumPy does.
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
FN T shift_left(T a, T b) {
    return (uint64)b < 8 * sizeof(T) ? (T)((uint64)a << (uint64)b) : (T)0;
}
FN T shift_right(T a, T b) {
    return (uint64)b < 8 * sizeof(T) ? (T)(a >> (int32)b) : a < 0 ? (T)-1 : (T)0;
}
FN T sigmoid(T a) {
    T small = exp(-fabs(a));
    return a >= 0 ? 1 / (1 + small) : small / (1 + small);
}
FN T gelu(T a) { return a * (T)0.5 * (1 + erf(a * (T)0.70710678118654752440)); }
FN T gelu_tanh(T a) {
    T inner = (T)0.79788456080286535588 * (a + (T)0.044715 * a * a * a);
    return (T)0.5 * a * (1 + tanh(inner));
}
