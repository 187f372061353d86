// Floor division and remainders of floats on a host device, with NumPy's bits.
//
// C's fmod takes 10 to 25 ns. Here the remainder of magnitudes x and y is x - q y for the integer q
// nearest to x / y, plus y if that is negative. It is exact wherever q y is: of floats in double,
// of doubles with the rounding error of the product beside it. What is left, such as infinities and
// quotients beyond the digits, takes fmod.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "gputensor/_kernels/loops/loops.h"

namespace gputensor {

// The integer nearest to a number of 0 to 2^51.
GPUTENSOR_FLAT double nearest_whole(double x) { return (x + 4503599627370496.0) - 4503599627370496.0; }

GPUTENSOR_FLAT float rest_of(float x, float y, uint32_t& is_far) {
    const double a = x, b = y, q = nearest_whole(a / b), rest = a - q * b;
    is_far |= !(q < 536870912.0) | (y == std::numeric_limits<float>::infinity());
    return static_cast<float>(rest < 0 ? rest + b : rest);
}

// Dekker's product: the halves of the factors have 26 bits.
GPUTENSOR_FLAT double high_half(double x) {
    const double moved = 134217729.0 * x;
    return moved - (moved - x);
}
GPUTENSOR_FLAT double rest_of(double a, double b, uint32_t& is_far) {
    const double q = nearest_whole(a / b), product = q * b;
    const double q_high = high_half(q), b_high = high_half(b);
    const double q_low = q - q_high, b_low = b - b_high;
    const double error =
        ((q_high * b_high - product) + q_high * b_low + q_low * b_high) + q_low * b_low;
    const double rest = (a - product) - error;
    // Parts of a product with a larger divisor may overflow.
    is_far |= !(q < 2251799813685248.0) | !(b < 1e298);
    return rest < 0 ? rest + b : rest;
}

// Results by the remainder of C, which has the sign of a.
struct Modulo {
    template <class T> static GPUTENSOR_FLAT T of(T, T b, T rest) {
        const T moved = (b < 0) != (rest < 0) ? rest + b : rest;
        return rest != 0 ? moved : std::copysign(T(0), b);
    }
    template <class T> static T of_zero(T, T, T rest) { return rest; }
};
struct FloorDivision {
    template <class T> static GPUTENSOR_FLAT T of(T a, T b, T rest) {
        const T quotient = (a - rest) / b;
        const T moved = rest != 0 && (b < 0) != (rest < 0) ? quotient - 1 : quotient;
        const T whole = std::floor(moved);
        const T rounded = moved - whole > T(0.5) ? whole + 1 : whole;
        return moved != 0 ? rounded : std::copysign(T(0), a / b);
    }
    template <class T> static T of_zero(T a, T b, T) { return a / b; }
};

template <class Of, class T>
T divided(T a, T b) {
    const T rest = std::fmod(a, b);
    return b != 0 ? Of::of(a, b, rest) : Of::of_zero(a, b, rest);
}

template <class Of, class T>
GPUTENSOR_CLONES GPUTENSOR_EXACT void division_loop(const LoopCall& call) {
    enum { BLOCK = 64 };
    T* out = static_cast<T*>(call.out);
    const T* x = static_cast<const T*>(call.inputs[0]);
    const T* y = static_cast<const T*>(call.inputs[1]);
    T a[BLOCK], b[BLOCK], made[BLOCK];
    for (int k = 0; k < BLOCK; ++k) a[k] = *x, b[k] = *y;
    for (int64_t i = 0; i < call.count; i += BLOCK) {
        const int count = static_cast<int>(call.count - i < BLOCK ? call.count - i : BLOCK);
        if (call.steps[0]) std::memcpy(a, x + i, count * sizeof(T));
        if (call.steps[1]) std::memcpy(b, y + i, count * sizeof(T));
        uint32_t is_far = 0;
        for (int k = 0; k < BLOCK; ++k) {
            const T rest = rest_of(std::fabs(a[k]), std::fabs(b[k]), is_far);
            made[k] = Of::of(a[k], b[k], std::copysign(rest, a[k]));
        }
        if (is_far)
            for (int k = 0; k < count; ++k) made[k] = divided<Of>(a[k], b[k]);
        std::memcpy(out + i, made, count * sizeof(T));
    }
}

}  // namespace gputensor
