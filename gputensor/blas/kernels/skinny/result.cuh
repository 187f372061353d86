// The end of programs of skinny products: synchronizing a cluster, and the result's type.
//
// Defined before this text: SPLITS, blocks of a cluster; Y_KIND, 0 for float16, 1 for bfloat16, 2
// for float32. `activated` exists where GATE is defined, the number of an activation.
#pragma once

#include "gputensor/_kernels/cuda/words.h"
#include "gputensor/blas/kernels/shared/quick.cuh"

// Declares a kernel's clusters.
#if SPLITS > 1
#define BY_CLUSTER __cluster_dims__(SPLITS, 1, 1)
#else
#define BY_CLUSTER
#endif

// Synchronizes the threads of the block, or of its whole cluster, and makes their writes visible.
__device__ __forceinline__ void meet() {
#if SPLITS > 1
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// The sum at this shared address of a block of the cluster.
__device__ __forceinline__ float load_total(uint32 from, int split) {
    float x;
#if SPLITS > 1
    uint32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(from), "r"(split));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(there) : "memory");
#else
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
#endif
    return x;
}

__device__ __forceinline__ float wide(uint16 bits, int kind) {
    float y;
    if (kind == 1) return __uint_as_float((uint32)bits << 16);
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(bits));
    return y;
}
__device__ __forceinline__ uint16 narrow(float x, int kind) {
    uint16 bits;
    if (kind == 1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
        const uint32 whole = __float_as_uint(x);
        bits = x != x ? 0x7fff : (whole + 0x7fff + (whole >> 16 & 1)) >> 16;
#endif
    } else {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    }
    return bits;
}
#ifdef GATE
__device__ __forceinline__ float activated(float x) {
#if GATE == 4
    return Y_KIND == 2 ? x / (1 + expf(-x)) : quick_logistic(x, x);
#elif GATE == 3
    return Y_KIND == 2 ? 0.5f * x * (1 + erff(x * 0.70710678f)) : quick_gelu(x);
#elif GATE == 2
    const float u = 1.5957691216f * (x + 0.044715f * x * x * x);
    return Y_KIND == 2 ? 0.5f * x * (1 + tanhf(0.5f * u)) : quick_logistic(x, u);
#elif GATE == 1
    return x < 0 ? 0 : x;
#else
    return x;
#endif
}
#endif

__device__ __forceinline__ void store_4(uint32 to, float x) {
    asm volatile("st.shared.f32 [%0], %1;" :: "r"(to), "f"(x) : "memory");
}
// An element of kind 0 for float16, 1 for bfloat16, 2 for float32.
template <int KIND> __device__ __forceinline__ float load_of(const char* from, int64 index) {
    if (KIND == 2) return reinterpret_cast<const float*>(from)[index];
    return wide(reinterpret_cast<const uint16*>(from)[index], KIND);
}
__device__ __forceinline__ float load_y(const char* from, int64 index) {
    return load_of<Y_KIND>(from, index);
}
__device__ __forceinline__ void store_y(char* to, int64 index, float x) {
#if Y_KIND == 2
    reinterpret_cast<float*>(to)[index] = x;
#else
    reinterpret_cast<uint16*>(to)[index] = narrow(x, Y_KIND);
#endif
}

// alpha * sum + beta * addend + bias, for parameters with these names: the result before rounding.
template <class P>
__device__ __forceinline__ float ended(const P& p, float sum, int64 addend, int64 bias) {
    sum *= p.alpha;
    if (p.beta != 0) sum = fmaf(p.beta, load_y(p.addend, addend), sum);
    if (p.bias) sum += load_y(p.bias, bias);
    return sum;
}
