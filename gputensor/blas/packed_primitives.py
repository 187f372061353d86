"""What the program of packed products is made of: barriers, bulk copies, the wgmma instruction.

The device functions here know nothing of tiles and tasks (packed_source.py). Two things are less
than obvious. The barriers are used with their default semantics, which order shared memory within a
block: what crosses from block to block of a cluster is only "this place is free again", and the
stronger forms cost a fence over all memory for each step. And a matrix descriptor has two halves:
the upper says 128-byte swizzle with 1,024 bytes from one group of eight rows to the next and is the
same for all tiles, so only the lower one, an address, is passed around.
"""

__all__ = ["PRIMITIVES", "wgmma"]

PRIMITIVES = r"""
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;
typedef long long i64;
#define DEVICE __device__ __forceinline__

DEVICE u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
DEVICE void barrier_init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}
DEVICE void barrier_expect(u32 barrier, u32 nbytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(nbytes) : "memory");
}
DEVICE void barrier_arrive_at(u32 barrier, u32 rank) {
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}"
                 :: "r"(barrier), "r"(rank) : "memory");
}
DEVICE bool barrier_try(u32 barrier, u32 phase) {
    u32 done;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
    return done != 0;
}
DEVICE void barrier_wait(u32 barrier, u32 phase) {
    while (!barrier_try(barrier, phase)) {}
}
DEVICE void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;"
                 ::: "memory");
}
DEVICE u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
DEVICE void bulk_load(u32 to, u64 from, u32 nbytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(nbytes), "r"(barrier) : "memory");
}
// To the same place of both blocks of the cluster, each of whose barriers counts the bytes.
DEVICE void bulk_load_to_both(u32 to, u64 from, u32 nbytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;"
                 :: "r"(to), "l"(from), "r"(nbytes), "r"(barrier), "h"((u16)3) : "memory");
}
// Addresses and size are multiples of 16 bytes. A thread waits until what it has committed is read.
DEVICE void bulk_store(u64 to, u32 from, u32 nbytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(from), "r"(nbytes) : "memory");
}
DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}
// No use of the sums moves before this.
template <int COUNT> DEVICE void settle(float* d) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i]) :: "memory");
}
template <int N> struct Wgmma;
"""

_FORMS = {
    "bfloat16": ("k16.f32.bf16.bf16", "1, 1, 0, 0"),
    "float16": ("k16.f32.f16.f16", "1, 1, 0, 0"),
    "float32": ("k8.f32.tf32.tf32", "1, 1"),
}


def wgmma(n, dtype):
    """Return CUDA text: ``Wgmma<n>::run(d, a, b, adds)`` for 64 x n sums of products.

    `a` and `b` are the lower halves of descriptors of K-major tiles; `adds` is 0 to forget what
    the sums `d` held. float32 is read as TF32.

    >>> "m64n32k8.f32.tf32.tf32" in wgmma(32, "float32")
    True
    """
    count = n // 2
    form, tail = _FORMS[dtype]
    registers = ", ".join(f"%{i}" for i in range(count))
    sums = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    return f"""
template <> struct Wgmma<{n}> {{
    static DEVICE void run(float* d, u32 a, u32 b, u32 adds) {{
        asm volatile("{{\\n.reg .pred p;\\n.reg .b64 from_a, from_b;\\n"
                     "setp.ne.b32 p, %{count + 2}, 0;\\n"
                     "mov.b64 from_a, {{%{count}, 0x40000040}};\\n"
                     "mov.b64 from_b, {{%{count + 1}, 0x40000040}};\\n"
                     "wgmma.mma_async.sync.aligned.m64n{n}{form} "
                     "{{{registers}}}, from_a, from_b, p, {tail};\\n}}"
                     : {sums} : "r"(a), "r"(b), "r"(adds));
    }}
}};
"""
