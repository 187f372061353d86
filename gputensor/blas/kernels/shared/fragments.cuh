// The fragments of mma m16n8k16 on 16-bit floats: reading, multiplying, packing. Those of m16n8k8 on
// float32, read as TF32, have as many bytes in the same places.
//
// Defined before this text: INSTRUCTION, the name of the mma; for 16-bit floats PACK, the types of a
// pair of elements.
#pragma once

#include "gputensor/blas/kernels/shared/mma.cuh"

// sums += a @ b: four sums, four words of a, two of b.
__device__ __forceinline__ void multiply(float* s, const uint32* a, uint32 b0, uint32 b1) {
    asm volatile("mma.sync.aligned." INSTRUCTION
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Four matrices of 8 rows of 16 bytes; each lane gives the address of one of their 32 rows.
__device__ __forceinline__ void matrices(uint32* x, uint32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
// The same, each of the four transposed.
__device__ __forceinline__ void matrices_turned(uint32* x, uint32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
#ifdef PACK
__device__ __forceinline__ uint32 pack(float low, float high) {
    uint32 y;
    asm volatile("cvt.rn." PACK ".f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}
#endif
