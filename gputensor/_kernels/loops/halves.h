// Conversions between 16-bit floats and float on a host device: float16 by the processor's own
// instructions (a million from float: 47 us, by NumPy 1,400), and to bfloat16 by vectors (125, 320).
#pragma once

#include <cstdint>

#include "gputensor/_kernels/loops/host_functions.h"

#if defined(__GNUC__) && defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace gputensor {

#if defined(__GNUC__) && defined(__x86_64__)
inline bool has_halves() {
    static const bool found = [] {
        unsigned a, b, c, d;
        return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    }();
    return found;
}

__attribute__((target("avx2,f16c")))
inline void widen_halves(const uint16_t* from, float* to, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + i))));
    for (; i < count; ++i) to[i] = _cvtsh_ss(from[i]);
}
// To the nearest, and to the even one of two.
__attribute__((target("avx2,f16c")))
inline void narrow_to_halves(const float* from, uint16_t* to, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i*)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
    for (; i < count; ++i) to[i] = _cvtss_sh(from[i], 0);
}
#elif defined(__aarch64__)
inline bool has_halves() { return true; }
inline void widen_halves(const uint16_t* from, float* to, int64_t count) {
    const __fp16* halves = reinterpret_cast<const __fp16*>(from);
    for (int64_t i = 0; i < count; ++i) to[i] = halves[i];
}
inline void narrow_to_halves(const float* from, uint16_t* to, int64_t count) {
    __fp16* halves = reinterpret_cast<__fp16*>(to);
    for (int64_t i = 0; i < count; ++i) halves[i] = (__fp16)from[i];
}
#else
inline bool has_halves() { return false; }
inline void widen_halves(const uint16_t*, float*, int64_t) {}
inline void narrow_to_halves(const float*, uint16_t*, int64_t) {}
#endif

// `from` are the bits of floats.
GPUTENSOR_CLONES GPUTENSOR_FAST
static void narrow_to_bfloats(const uint32_t* from, uint16_t* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const uint32_t bits = from[i], is_nan = (bits & 0x7fffffff) > 0x7f800000;
        const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        to[i] = (uint16_t)(is_nan ? (bits >> 16 & 0x8000) | 0x7fc0 : rounded);
    }
}

}  // namespace gputensor
