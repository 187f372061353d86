// Barriers in shared memory that one arrival and the bytes of copies complete (sm_90).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

__device__ __forceinline__ uint32 shared_address(const void* at) {
    return (uint32)__cvta_generic_to_shared(at);
}
__device__ __forceinline__ void barrier_init(uint64* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void barrier_expect(uint64* barrier, uint32 nbytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(shared_address(barrier)), "r"(nbytes) : "memory");
}
__device__ __forceinline__ void barrier_wait(uint64* barrier, uint32 parity) {
    uint32 done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
}
