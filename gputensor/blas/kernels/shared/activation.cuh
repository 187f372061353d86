// The activations that our kernels of products apply, chosen at run time by their ACT_* number.
//
// cuBLASLt applies these too; the epilogue kernel applies all others and has a program for each.
#pragma once

// 0: none, 1: relu, 2: gelu in the tanh form.
__device__ __forceinline__ float activate(float x, int activation) {
    if (activation == 1) return x <= 0.0f ? 0.0f : x;
    if (activation == 2)
        return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
    return x;
}
