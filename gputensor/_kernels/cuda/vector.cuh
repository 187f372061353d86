// Neighbouring elements that one instruction loads or stores.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"

template <class T, int N> struct alignas(sizeof(T) * N) Vector { T item[N]; };

// Rounds arithmetic values to neighbouring elements; one instruction rounds two 16-bit floats.
template <class To, int N, class T> __device__ __forceinline__ void narrow_all(
        Vector<To, N>& y, const T (&x)[N]) {
#pragma unroll
    for (int v = 0; v < N; ++v) y.item[v] = narrow<To>(x[v]);
}
#if __CUDA_ARCH__ >= 800 && !defined(GPUTENSOR_ON_CPU)
#define NARROW_PAIRS(To, type)                                                                  \
    template <int N> __device__ __forceinline__ void narrow_all(                                \
            Vector<To, N>& y, const float (&x)[N]) {                                            \
        uint32* words = reinterpret_cast<uint32*>(&y);                                          \
        _Pragma("unroll") for (int v = 0; v + 1 < N; v += 2)                                    \
            asm volatile("cvt.rn." type "x2.f32 %0, %1, %2;"                                    \
                         : "=r"(words[v / 2]) : "f"(x[v + 1]), "f"(x[v]));                      \
        if (N % 2) y.item[N - 1] = narrow<To>(x[N - 1]);                                        \
    }
NARROW_PAIRS(half_t, "f16")
NARROW_PAIRS(bfloat_t, "bf16")
#undef NARROW_PAIRS
#endif

// One of neighbouring elements as an arithmetic value; `v` is a constant after unrolling. Taken from a
// word of two, a bfloat16 needs one instruction.
template <class T, int N> __device__ __forceinline__ auto widened(const Vector<T, N>& x, int v)
        -> decltype(wide(x.item[0])) {
    return wide(x.item[v]);
}
#ifndef GPUTENSOR_ON_CPU
template <int N> __device__ __forceinline__ float widened(const Vector<bfloat_t, N>& x, int v) {
    if (N % 2) return wide(x.item[v]);
    const uint32 word = reinterpret_cast<const uint32*>(&x)[v / 2];
    return __uint_as_float(v % 2 ? word & 0xffff0000u : word << 16);
}
#endif

// Widens neighbouring elements to arithmetic values; 16-bit floats are read from words, in pairs.
template <class T, int N, class C> __device__ __forceinline__ void widen_all(
        C (&y)[N], const Vector<T, N>& x) {
#pragma unroll
    for (int v = 0; v < N; ++v) y[v] = wide(x.item[v]);
}
#ifndef GPUTENSOR_ON_CPU
template <int N> __device__ __forceinline__ void widen_all(float (&y)[N],
                                                           const Vector<bfloat_t, N>& x) {
    const uint32* words = reinterpret_cast<const uint32*>(&x);
#pragma unroll
    for (int v = 0; v + 1 < N; v += 2) {
        y[v] = __uint_as_float(words[v / 2] << 16);
        y[v + 1] = __uint_as_float(words[v / 2] & 0xffff0000u);
    }
    if (N % 2) y[N - 1] = wide(x.item[N - 1]);
}
template <int N> __device__ __forceinline__ void widen_all(float (&y)[N],
                                                           const Vector<half_t, N>& x) {
    const uint32* words = reinterpret_cast<const uint32*>(&x);
#pragma unroll
    for (int v = 0; v + 1 < N; v += 2)
        asm volatile("{\n.reg .f16 low, high;\nmov.b32 {low, high}, %2;\n"
                     "cvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}"
                     : "=f"(y[v]), "=f"(y[v + 1]) : "r"(words[v / 2]));
    if (N % 2) y[N - 1] = wide(x.item[N - 1]);
}
#endif
