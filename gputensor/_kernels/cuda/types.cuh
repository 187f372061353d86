// Element types and the conversions between them, which nearly every kernel includes.
//
// NVRTC does not come with cuda_fp16.h, so the 16-bit and 8-bit floats are structs of bits here,
// converted by PTX instructions (bfloat16: sm_80 and newer) or by integer arithmetic. There are
// three functions:
//
//     wide(x)          the arithmetic type of a stored element: float for 16- and 8-bit floats
//     narrow<To>(x)    an arithmetic value as the stored type To, rounded to nearest even
//     convert<To>(x)   narrow<To>(wide(x)): C's cast; where C is undefined, NumPy's values on x86
//
// A negative float goes to an unsigned type through a signed 64-bit one, since NumPy wraps there
// while the GPU's own instruction clamps to zero.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

struct half_t { uint16 bits; };
struct bfloat_t { uint16 bits; };
struct e4m3_t { uint8 bits; };
struct e5m2_t { uint8 bits; };
template <class T> struct alignas(2 * sizeof(T)) complex_t { T re, im; };

template <class A, class B> struct same { static const bool value = false; };
template <class A> struct same<A, A> { static const bool value = true; };

// Stored element -> arithmetic value.
template <class T> __device__ __forceinline__ T wide(T x) { return x; }
__device__ __forceinline__ float wide(half_t x) {
    float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y;
}
__device__ __forceinline__ float wide(bfloat_t x) { return __uint_as_float((uint32)x.bits << 16); }
__device__ __forceinline__ float wide(e5m2_t x) {
    half_t y; y.bits = (uint16)((uint16)x.bits << 8); return wide(y);
}
__device__ __forceinline__ float wide(e4m3_t x) {
    // The same fields with float16's bias of 15 instead of 7: smaller by 2^8, denormals included.
    half_t y; y.bits = (uint16)((((uint16)x.bits & 0x80) << 8) | (((uint16)x.bits & 0x7f) << 7));
    return (x.bits & 0x7f) == 0x7f ? __uint_as_float(0x7fffffff) : wide(y) * 256.0f;
}

// Arithmetic value -> stored element.
// A double becomes a float16 through a float that is rounded to odd, so that the second rounding
// sees whether bits were cut off. (ml_dtypes rounds a double to bfloat16 and fp8 through float; so
// do we.)
__device__ __forceinline__ float odd_float(double x) {
    float y = __double2float_rz(x);
    return (double)y == x ? y : __uint_as_float(__float_as_uint(y) | 1);
}
template <int EXPONENT_BIAS, int MANTISSA, int LARGEST, int OVERFLOW>
__device__ __forceinline__ uint8 eight_bits(float x) {
    uint32 all = __float_as_uint(x), sign = (all >> 24) & 0x80, a = all & 0x7fffffff, code;
    if (a > 0x7f800000) return (uint8)(sign | 0x7f);
    if (a < (uint32)(128 - EXPONENT_BIAS) << 23) {
        float quanta = __uint_as_float((uint32)(127 + EXPONENT_BIAS + MANTISSA - 1) << 23);
        code = (uint32)rintf(__uint_as_float(a) * quanta);
    } else {
        int shift = 23 - MANTISSA;
        a += ((1u << (shift - 1)) - 1) + ((a >> shift) & 1);
        code = (a >> shift) - ((127u - EXPONENT_BIAS) << MANTISSA);
        if (code > LARGEST) code = OVERFLOW;
    }
    return (uint8)(sign | code);
}

template <class To> struct Narrow {
    template <class T> static __device__ __forceinline__ To from(T x) { return (To)x; }
    template <class T> static __device__ __forceinline__ To from(complex_t<T> x) {
        return from(x.re);
    }
};
template <> struct Narrow<bool> {
    template <class T> static __device__ __forceinline__ bool from(T x) { return x != (T)0; }
    template <class T> static __device__ __forceinline__ bool from(complex_t<T> x) {
        return x.re != (T)0 || x.im != (T)0;
    }
};
template <class To, class Through> struct NarrowThrough {
    template <class T> static __device__ __forceinline__ To from(T x) { return (To)x; }
    static __device__ __forceinline__ To from(float x) { return (To)(Through)x; }
    static __device__ __forceinline__ To from(double x) { return (To)(Through)x; }
    template <class T> static __device__ __forceinline__ To from(complex_t<T> x) {
        return from(x.re);
    }
};
template <> struct Narrow<int8> : NarrowThrough<int8, int32> {};
template <> struct Narrow<int16> : NarrowThrough<int16, int32> {};
template <> struct Narrow<uint8> : NarrowThrough<uint8, int32> {};
template <> struct Narrow<uint16> : NarrowThrough<uint16, int32> {};
template <> struct Narrow<uint32> : NarrowThrough<uint32, int64> {};
template <> struct Narrow<uint64> {
    template <class T> static __device__ __forceinline__ uint64 from(T x) { return (uint64)x; }
    static __device__ __forceinline__ uint64 from(float x) { return from((double)x); }
    static __device__ __forceinline__ uint64 from(double x) {
        return x < 0 ? (uint64)(int64)x : (uint64)x;
    }
    template <class T> static __device__ __forceinline__ uint64 from(complex_t<T> x) {
        return from(x.re);
    }
};
template <> struct Narrow<half_t> {
    static __device__ __forceinline__ half_t from(float x) {
        half_t y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); return y;
    }
    static __device__ __forceinline__ half_t from(double x) { return from(odd_float(x)); }
    template <class T> static __device__ __forceinline__ half_t from(T x) { return from((float)x); }
    template <class T> static __device__ __forceinline__ half_t from(complex_t<T> x) {
        return from(x.re);
    }
};
template <> struct Narrow<bfloat_t> {
    static __device__ __forceinline__ bfloat_t from(float x) {
        bfloat_t y;
#if __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
        uint32 a = __float_as_uint(x);
        y.bits = x != x ? 0x7fff : (uint16)((a + 0x7fff + ((a >> 16) & 1)) >> 16);
#endif
        return y;
    }
    static __device__ __forceinline__ bfloat_t from(double x) { return from((float)x); }
    template <class T> static __device__ __forceinline__ bfloat_t from(T x) {
        return from((float)x);
    }
    template <class T> static __device__ __forceinline__ bfloat_t from(complex_t<T> x) {
        return from(x.re);
    }
};
template <> struct Narrow<e4m3_t> {
    static __device__ __forceinline__ e4m3_t from(float x) {
        e4m3_t y; y.bits = eight_bits<7, 3, 0x7e, 0x7f>(x); return y;
    }
    static __device__ __forceinline__ e4m3_t from(double x) { return from((float)x); }
    template <class T> static __device__ __forceinline__ e4m3_t from(T x) { return from((float)x); }
    template <class T> static __device__ __forceinline__ e4m3_t from(complex_t<T> x) {
        return from(x.re);
    }
};
template <> struct Narrow<e5m2_t> {
    static __device__ __forceinline__ e5m2_t from(float x) {
        e5m2_t y; y.bits = eight_bits<15, 2, 0x7c, 0x7c>(x); return y;
    }
    static __device__ __forceinline__ e5m2_t from(double x) { return from((float)x); }
    template <class T> static __device__ __forceinline__ e5m2_t from(T x) { return from((float)x); }
    template <class T> static __device__ __forceinline__ e5m2_t from(complex_t<T> x) {
        return from(x.re);
    }
};
template <class R> struct Narrow<complex_t<R>> {
    template <class T> static __device__ __forceinline__ complex_t<R> from(T x) {
        complex_t<R> y = {(R)x, (R)0}; return y;
    }
    template <class T> static __device__ __forceinline__ complex_t<R> from(complex_t<T> x) {
        complex_t<R> y = {(R)x.re, (R)x.im}; return y;
    }
};
template <class To, class T> __device__ __forceinline__ To narrow(T x) {
    return Narrow<To>::from(x);
}

// A value that already has the stored type is not changed.
template <class To, class From> struct Convert {
    static __device__ __forceinline__ To from(From x) { return narrow<To>(wide(x)); }
};
template <class To> struct Convert<To, To> {
    static __device__ __forceinline__ To from(To x) { return x; }
};
template <class To, class From> __device__ __forceinline__ To convert(From x) {
    return Convert<To, From>::from(x);
}
