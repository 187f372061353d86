// The functions of C that the texts of special functions use on the host device.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

// Loops that compilers turn into vector instructions, those of the processor that runs them.
#if defined(__GNUC__) && !defined(__clang__)
#define GPUTENSOR_FLAT __attribute__((always_inline)) inline
#define GPUTENSOR_FAST __attribute__((optimize("O3")))
#else
#define GPUTENSOR_FLAT inline
#define GPUTENSOR_FAST
#endif
// Loops whose products and sums are rounded one by one, never fused.
#if defined(__GNUC__) && !defined(__clang__)
#define GPUTENSOR_EXACT __attribute__((optimize("O3", "fp-contract=off")))
#else
#define GPUTENSOR_EXACT
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GPUTENSOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GPUTENSOR_CLONES
#endif

namespace gputensor {

using std::copysign; using std::cos; using std::erf; using std::erfc; using std::expm1;
using std::fabs; using std::floor; using std::fmax; using std::fmin; using std::isfinite;
using std::isinf;
using std::log; using std::log1p; using std::pow; using std::rint; using std::sin;
using std::sqrt; using std::tan; using std::tanh;

// In double: C's functions of float lose digits, near the zeros of lgamma most of them. C's lgamma
// writes the sign to a variable that all threads share.
inline double lgamma(double x) {
    int sign;
    return ::lgamma_r(x, &sign);
}
inline float lgamma(float x) { return (float)lgamma((double)x); }
inline double tgamma(double x) { return std::tgamma(x); }
inline float tgamma(float x) { return (float)std::tgamma((double)x); }

inline double exp(double x) { return std::exp(x); }

// 2^k exp(r) with k + r / log(2) = x / log(2) and a polynomial for |r| < log(2) / 2 (coefficients of
// the Cephes library); the relative error is below .7 units in the last place. Without branches, so
// that loops are vectorized. Adding 1.5 * 2^23 rounds to the integer k, in the lowest bits.
GPUTENSOR_FLAT float exp(float x) {
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    const float moved = x * 1.44269504088896341f + 12582912.0f, whole = moved - 12582912.0f;
    const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits;
    std::memcpy(&bits, &moved, sizeof(bits));
    // Two factors, since 2^k alone may be infinite or 0.
    const int32_t k = bits - 0x4B400000, half = k >> 1;
    const int32_t low = (half + 127) << 23, high = (k - half + 127) << 23;
    float first, second;
    std::memcpy(&first, &low, sizeof(first));
    std::memcpy(&second, &high, sizeof(second));
    return p * first * second;
}

}  // namespace gputensor
