// Activations for results of 16 and fewer bits, by fast instructions.
//
// SiLU and the tanh form of GELU are x / (1 + exp(-u)), since 0.5 (1 + tanh(u / 2)) is 1 / (1 +
// exp(-u)); their relative errors are 2^-21 at most.
//
// The exact GELU(x), whose relative error is below 2^-14 from -8 on, is x P(x), where P is the normal distribution. The logarithm of P is nearly a parabola
// for x < 0, so P(-t) is two to the power of a polynomial of t here, fitted between 0 and 8; beyond,
// the polynomial goes on to fall. For x > 0, P(x) is 1 - P(-x). Other forms take a division or
// cancel where the result is small.
#pragma once

__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float inverse(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float quick_logistic(float x, float u) {
    return x * inverse(1 + power_of_two(-1.44269504f * u));
}

__device__ __forceinline__ float quick_gelu(float x) {
    const float t = fabsf(x);
    float power = -1.262458454e-06f;
    power = fmaf(power, t, 4.820329559e-05f);
    power = fmaf(power, t, -0.0008072484052f);
    power = fmaf(power, t, 0.007944580168f);
    power = fmaf(power, t, -0.05263538659f);
    power = fmaf(power, t, -0.4599568248f);
    power = fmaf(power, t, -1.15060997f);
    power = fmaf(power, t, -1.000043035f);
    const float outside = power_of_two(power);
    return x * (x > 0 ? 1 - outside : outside);
}
