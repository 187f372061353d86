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

// Unsigned words of B bytes: those that hold an element, or four bytes each of a wide load.
template <int B> struct Word { typedef uint32 type; };
template <> struct Word<1> { typedef uint8 type; };
template <> struct Word<2> { typedef uint16 type; };

// N neighbouring elements, of which those of at most two bytes are read as words: the compiler takes
// apart words that are read from a vector of elements.
template <class T, int N, bool IS_SHORT = sizeof(T) <= 2> struct UnitOf {
    typedef Vector<T, N> Type;
    static __device__ __forceinline__ T item(const Type& x, int v) { return x.item[v]; }
};
template <class T, int N> struct UnitOf<T, N, true> {
    typedef typename Word<sizeof(T)>::type Bits;
    typedef typename Word<(N * sizeof(T) < 4 ? sizeof(T) : 4)>::type Part;
    typedef Vector<Part, N * sizeof(T) / sizeof(Part)> Type;
    static __device__ __forceinline__ T item(const Type& x, int v) {
        const int EACH = sizeof(Part) / sizeof(T);
        const Bits bits = (Bits)(x.item[v / EACH] >> v % EACH * 8 * (int)sizeof(T));
        return reinterpret_cast<const T&>(bits);
    }
};

// N elements that lie STEP apart in memory (STEP may be negative), of at most four bytes each. They
// are read with all that is between them, by aligned loads of PIECE elements: item 0 or, with a
// negative STEP, the last item is element SHIFT of the first load. SHIFT is below |STEP|, and only
// loads that hold an item are made, so that none leaves the 16 aligned bytes around an item.
template <class T, int N, int STEP, int SHIFT, int PIECE> struct Spaced {
    static const int GAP = STEP < 0 ? -STEP : STEP;
    typedef typename Word<sizeof(T)>::type Bits;
    typedef typename Word<(PIECE * sizeof(T) < 4 ? PIECE * sizeof(T) : 4)>::type Part;
    typedef Vector<Part, PIECE * sizeof(T) / sizeof(Part)> Piece;
    Piece pieces[GAP * N / PIECE];

    static __device__ __forceinline__ constexpr int place(int v) {
        return SHIFT + GAP * (STEP < 0 ? N - 1 - v : v);
    }
    // Whether a piece holds an item: the first place from its beginning on is inside it.
    static __device__ __forceinline__ constexpr bool has_item(int piece) {
        const int begin = piece * PIECE < SHIFT ? SHIFT : piece * PIECE;
        const int first = SHIFT + (begin - SHIFT + GAP - 1) / GAP * GAP;
        return first < (piece + 1) * PIECE && first <= SHIFT + GAP * (N - 1);
    }
    __device__ __forceinline__ void load(const T* item) {
        const Piece* from = reinterpret_cast<const Piece*>(item - place(0));
#pragma unroll
        for (int i = 0; i < GAP * N / PIECE; ++i)
            if (has_item(i)) pieces[i] = from[i];
    }
    __device__ __forceinline__ T item(int v) const {
        const int byte = place(v) % PIECE * (int)sizeof(T);
        const Part part = pieces[place(v) / PIECE].item[byte / (int)sizeof(Part)];
        const Bits bits = (Bits)(part >> byte % (int)sizeof(Part) * 8);
        return reinterpret_cast<const T&>(bits);
    }
};
