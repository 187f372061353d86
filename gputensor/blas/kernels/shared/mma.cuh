// The single PTX instructions of products on tensor cores, and no other code.
//
// Asynchronous copies (sm_80), clusters, barriers in shared memory and bulk copies (sm_90), wgmma
// (sm_90a). Only called instructions are compiled. Two points are not obvious. The barriers
// are used with their default semantics, which order shared memory within a block. Blocks of a
// cluster only signal each other that a place is free again, and the stronger forms cost
// a fence over all memory for each step. And a matrix descriptor has two halves: the upper one
// states 128-byte swizzle with 1,024 bytes from one group of eight rows to the next and is the same
// for all tiles, so only the lower one, an address, is passed around.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

// ---- asynchronous copies, and shared memory

__device__ __forceinline__ void copy_16(uint32 to, const char* from, bool is_valid) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(is_valid ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copies_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int PENDING> __device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}
struct alignas(16) Words { uint32 item[4]; };
__device__ __forceinline__ Words shared_16(uint32 from) {
    Words x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.item[0]), "=r"(x.item[1]), "=r"(x.item[2]), "=r"(x.item[3])
                 : "r"(from) : "memory");
    return x;
}
__device__ __forceinline__ void store_16(uint32 to, const Words& x) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(x.item[0]), "r"(x.item[1]), "r"(x.item[2]), "r"(x.item[3])
                 : "memory");
}

// Weights are read once, so they leave the cache first and x stays there.
typedef unsigned long long Policy;
__device__ __forceinline__ Policy read_once() {
    Policy policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
__device__ __forceinline__ void copy_weights_16(uint32 to, const char* from, Policy policy) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::256B [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "l"(policy) : "memory");
}
// Fetches bytes into the second cache and no further, so it may run before earlier work has ended: what
// that work still writes, it writes there. Address and size are multiples of 16 bytes.
__device__ __forceinline__ void prefetch(const char* from, uint32 nbytes) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(from), "r"(nbytes) : "memory");
#endif
}
// Without a prefetch of whole lines, which would slow down x because all blocks read it at once.
__device__ __forceinline__ void copy_x_16(uint32 to, const char* from, bool is_valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(is_valid ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copy_8(uint32 to, const char* from, bool is_valid) {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;"
                 :: "r"(to), "l"(from), "r"(is_valid ? 8 : 0) : "memory");
}
__device__ __forceinline__ void copy_4(uint32 to, const char* from, bool is_valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(to), "l"(from), "r"(is_valid ? 4 : 0) : "memory");
}
__device__ __forceinline__ uint32 shared_4(uint32 from) {
    uint32 word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    return word;
}

// (word & mask) | base, in one instruction; from two constants the compiler would make two.
__device__ __forceinline__ uint32 masked_or(uint32 word, uint32 mask, uint32 base) {
    uint32 y;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(y) : "r"(word), "r"(mask), "r"(base));
    return y;
}

// ---- barriers, clusters, bulk copies, wgmma

__device__ __forceinline__ uint32 shared_address(const void* at) {
    return (uint32)__cvta_generic_to_shared(at);
}
__device__ __forceinline__ void barrier_init(uint32 barrier, uint32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_expect(uint32 barrier, uint32 nbytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(nbytes) : "memory");
}
__device__ __forceinline__ void arrive(uint32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
// The barrier counts this thread once its asynchronous copies so far have arrived.
__device__ __forceinline__ void arrive_with_copies(uint32 barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_arrive_at(uint32 barrier, uint32 rank) {
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}"
                 :: "r"(barrier), "r"(rank) : "memory");
}
__device__ __forceinline__ bool barrier_try(uint32 barrier, uint32 phase) {
    uint32 done;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
    return done != 0;
}
__device__ __forceinline__ void barrier_wait(uint32 barrier, uint32 phase) {
    while (!barrier_try(barrier, phase)) {}
}
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;"
                 ::: "memory");
}
__device__ __forceinline__ uint32 cluster_rank() {
    uint32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ void bulk_load(uint32 to, uint64 from, uint32 nbytes, uint32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(nbytes), "r"(barrier) : "memory");
}
// Loads to the same place of both blocks of the cluster; the barrier of each counts the bytes.
__device__ __forceinline__ void bulk_load_to_both(uint32 to, uint64 from, uint32 nbytes,
                                                  uint32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;"
                 :: "r"(to), "l"(from), "r"(nbytes), "r"(barrier), "h"((uint16)3) : "memory");
}
// Addresses and size are multiples of 16 bytes. bulk_wait_read waits until the thread's committed
// stores have read their source.
__device__ __forceinline__ void bulk_store(uint64 to, uint32 from, uint32 nbytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(from), "r"(nbytes) : "memory");
}
__device__ __forceinline__ void bulk_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}
// Keeps the compiler from moving a use of the sums before this.
template <int COUNT> __device__ __forceinline__ void settle(float* d) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i]) :: "memory");
}
