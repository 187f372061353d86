// Conversion of double to float16, for factors that the libraries take in that type.
#pragma once

#include <cstdint>
#include <cstring>

// Rounds to nearest even; overflow gives infinity. Subnormal results are rounded as well.
static inline uint16_t gt_half_of(double value) {
    float single = (float)value;
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    if (rest < 0x38800000u) {
        float magnitude;
        std::memcpy(&magnitude, &rest, 4);
        // Adding 0.5 leaves the bits of a half subnormal at the end of the mantissa.
        float shifted = magnitude + 0.5f;
        uint32_t out;
        std::memcpy(&out, &shifted, 4);
        return (uint16_t)(sign | (out - 0x3f000000u));
    }
    rest += 0xfffu + ((rest >> 13) & 1u);
    return (uint16_t)(sign | ((rest - 0x38000000u) >> 13));
}
