// The accumulator of a reduction: its type, identity, combination and result.
//
//     A                       the accumulator, whole 32-bit words
//     identity()              the accumulator of an empty reduction
//     accumulator(x, index)   one element at its reduced index, as C or, for arguments, as VALUE
//     combine(a, b)           associative up to rounding; for arguments also commutative
//     absorb(a, x, index)     combine(a, accumulator(x, index))
//     finish(a, count)        the stored result of type TO
//
// Sums of 16-bit floats are float; integers are added modulo 2^64 and so wrap to any narrower type.
//
// Defined before this text: BETTER, a comparison, for the argument of an extreme, WORST, a value that
// is not better than any other, and VALUE, their type; otherwise ACCUMULATOR, IDENTITY, LIFT (of x), COMBINE (a
// and b) and FINISH (a and count), with RESULT, the type of FINISH; LOWEST and HIGHEST, the values
// below and above every other; MOMENTS if the accumulator is Moments.
#pragma once

#ifdef MOMENTS
// The count of elements, their mean, and the sum of squared distances from it, updated element by
// element (Welford) and joined (Chan, Golub, LeVeque 1979), without differences of large sums.
struct Moments { C count, mean, squares, unused; };  // four, for alignment
__device__ __forceinline__ float inverse(float x) { return __fdividef(1.0f, x); }
__device__ __forceinline__ double inverse(double x) { return 1.0 / x; }
__device__ __forceinline__ Moments no_moments() {
    Moments a; a.count = a.mean = a.squares = a.unused = 0; return a;
}
__device__ __forceinline__ Moments moments_of(C x) {
    Moments a = no_moments(); a.count = 1; a.mean = x; a.squares = x - x; return a;
}
__device__ __forceinline__ Moments joined(Moments a, Moments b) {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const C count = a.count + b.count, away = b.mean - a.mean, share = b.count * inverse(count);
    a.mean += away * share;
    a.squares += b.squares + away * away * a.count * share;
    a.count = count;
    return a;
}
#endif

#ifdef BETTER
struct A { VALUE value; INDEX index; };
__device__ __forceinline__ A identity() {
    A a; a.value = (VALUE)(WORST); a.index = (INDEX)-1; return a;
}
__device__ __forceinline__ A accumulator(VALUE x, long long index) {
    A a; a.value = x; a.index = (INDEX)index; return a;
}
__device__ __forceinline__ A combine(A a, A b) {
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
    if (a_is_nan || a.value == b.value) return a.index < b.index ? a : b;
    return a.value BETTER b.value ? a : b;
}
__device__ __forceinline__ TO finish(A a, double) { return narrow<TO>((long long)a.index); }
#else
typedef ACCUMULATOR A;
__device__ __forceinline__ A identity() { return IDENTITY; }
__device__ __forceinline__ A accumulator(C x, long long) { return LIFT; }
__device__ __forceinline__ A combine(A a, A b) { return COMBINE; }
__device__ __forceinline__ TO finish(A a, double count) {
    return convert<TO>(narrow<RESULT>(FINISH));
}
#endif

#ifdef MOMENTS
__device__ __forceinline__ A absorb(A a, C x, long long) {
    a.count += 1;
    const C away = x - a.mean;
    a.mean += away * inverse(a.count);
    a.squares += away * (x - a.mean);
    return a;
}
#else
__device__ __forceinline__ A absorb(A a, C x, long long index) {
    return combine(a, accumulator(x, index));
}
#endif
