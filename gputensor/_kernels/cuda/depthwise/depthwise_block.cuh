// What the kernels of depthwise convolution share whose blocks have tiles of results: weights in
// shared memory, the addend, rounding.
//
// The weights of a block's channels, which lie one channel after the other, come to shared memory
// whole while x is in flight: read by each thread for itself they would take more turns of the first
// cache than x does.
//
// Defined before this text: what depthwise_sums.cuh needs; ACTIVATION, an expression of `a`; ADDEND,
// whether there is one. `channels` of the parameters counts VECTORs.
#pragma once

#include "gputensor/_kernels/cuda/depthwise/depthwise_sums.cuh"

// Begins the copy of the weights of a block, whose first channel is `first`, to shared memory.
__device__ __forceinline__ void begin_weights(Elements* to, const WindowParameters& p, uint32 first,
                                              uint32 thread) {
    const uint32 others = p.channels - first, threads = blockDim.x * blockDim.y * blockDim.z;
    const uint32 count = (others < blockDim.x ? others : blockDim.x) * TAPS;
    const Elements* from = reinterpret_cast<const Elements*>(p.weight.ptr) + (uint64)first * TAPS;
#pragma unroll 1
    for (uint32 i = thread; i < count; i += threads) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                     :: "r"((uint32)__cvta_generic_to_shared(to + i)), "l"(from + i),
                        "n"(sizeof(Elements)) : "memory");
#else
        to[i] = from[i];
#endif
    }
}

__device__ __forceinline__ void end_weights() {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}

// The weights of a thread's channels, tap by tap, from those that lie one channel after the other.
__device__ __forceinline__ void widen_weights(C (&factors)[TAPS][VECTOR], const Elements* from) {
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
        C some[VECTOR];
        widen_all(some, from[i]);
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            factors[(i * VECTOR + v) % TAPS][(i * VECTOR + v) / TAPS] = some[v];
    }
}

__device__ __forceinline__ void load_bias(C (&bias)[VECTOR], const WindowParameters& p,
                                          int channel) {
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
        bias[v] = wide(reinterpret_cast<const E*>(p.bias)[(channel + v) * p.bias_stride]);
}

// Rounds the results of a pixel.
__device__ __forceinline__ Elements finished(const C (&sum)[VECTOR], const C (&addend)[VECTOR]) {
    C value[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        const C a = ADDEND ? sum[v] + addend[v] : sum[v];
        value[v] = ACTIVATION;
    }
    Elements result;
    narrow_all(result, value);
    return result;
}

__device__ __forceinline__ void load_addend(const WindowParameters& p, C (&addend)[VECTOR],
                                            int64 batch, int channel, int y, int x) {
    const E* from = reinterpret_cast<const E*>(p.addend.ptr) + batch * p.addend.batch
        + channel * p.addend.channel + y * p.addend.axes[1] + x * p.addend.axes[2];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) addend[v] = wide(from[v * p.addend.channel]);
}
