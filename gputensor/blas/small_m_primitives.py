"""Parts of both programs of skinny products: copies, a cluster's barrier, the result's type.

The device functions here know nothing of the kernels' loops (small_m_source.py in float32,
small_m_mma_source.py for 16-bit x), only the constants SPLITS and Y_KIND.
"""

__all__ = ["PRIMITIVES"]

PRIMITIVES = r"""
typedef unsigned int uint32;
typedef unsigned short uint16;
typedef long long int64;

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

// The threads of the block, or of its whole cluster: what they wrote before, all see after.
__device__ __forceinline__ void meet() {
#if SPLITS > 1
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

__device__ __forceinline__ float wide(uint16 bits, int kind) {
    float y;
    if (kind == 1) return __uint_as_float((uint32)bits << 16);
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(bits));
    return y;
}
__device__ __forceinline__ float load_y(const char* from, int64 index) {
#if Y_KIND == 2
    return reinterpret_cast<const float*>(from)[index];
#else
    return wide(reinterpret_cast<const uint16*>(from)[index], Y_KIND);
#endif
}
__device__ __forceinline__ void store_y(char* to, int64 index, float x) {
#if Y_KIND == 2
    reinterpret_cast<float*>(to)[index] = x;
#else
    uint16 bits;
#if Y_KIND == 1
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#endif
    reinterpret_cast<uint16*>(to)[index] = bits;
#endif
}
"""
