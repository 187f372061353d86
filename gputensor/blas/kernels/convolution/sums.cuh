// Sums of convolutions that are transposed for wgmma: outputs by positions, in 256 threads.
//
// Defined before this text: SUMS of a thread, PART of its positions that a block finishes, SPLIT
// blocks of a cluster, PACK and MULTIPLY as in shifted.cuh.
#pragma once

#include "gputensor/blas/kernels/shared/mma.cuh"

#define DEVICE __device__ __forceinline__

DEVICE void multiply(float* d, uint64 a, uint64 b, uint32 adds) { MULTIPLY; }
DEVICE uint32 pack(float low, float high) {
    uint32 y;
    asm volatile("cvt.rn." PACK ".f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}
DEVICE void store_turned(uint32 to, uint32 x, uint32 y) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 :: "r"(to), "r"(x), "r"(y) : "memory");
}
DEVICE void group_sync(int group) {
    asm volatile("bar.sync %0, 128;" :: "r"(1 + group) : "memory");
}

#if SPLIT > 1
DEVICE float4 float4_of(uint32 at, uint32 rank) {
    float4 x;
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(at), "r"(rank) : "memory");
    return x;
}
// Adds the sums of this block's part of the positions from all blocks of the cluster.
DEVICE void unite(float* d, char* memory, int split) {
    float4* sums = reinterpret_cast<float4*>(memory) + threadIdx.x;
#pragma unroll
    for (int j = 0; j < SUMS / 4; ++j)
        sums[j * 256] = make_float4(d[4 * j], d[4 * j + 1], d[4 * j + 2], d[4 * j + 3]);
    cluster_sync();
    const uint32 at = shared_address(sums) + split * (PART / 8) * 4096;
#pragma unroll
    for (int j = 0; j < PART / 8; ++j) {
        float4 sum = float4_of(at + j * 4096, 0);
#pragma unroll
        for (int rank = 1; rank < SPLIT; ++rank) {
            const float4 x = float4_of(at + j * 4096, rank);
            sum.x += x.x;
            sum.y += x.y;
            sum.z += x.z;
            sum.w += x.w;
        }
        d[4 * j] = sum.x;
        d[4 * j + 1] = sum.y;
        d[4 * j + 2] = sum.z;
        d[4 * j + 3] = sum.w;
    }
    cluster_sync();
}
#define BY_CLUSTER __cluster_dims__(SPLIT, 1, 1)
#else
#define BY_CLUSTER
#endif
