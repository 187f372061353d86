"""What the program of skinny products is made of: parameters, copies, conversions, one instruction.

The device functions here know nothing of the kernel's loop (small_m_source.py), only its constants:
asynchronous copies of 16 and 8 bytes, loads and stores of the result's type, mma.m16n8k16, and the
expansion of int4 and int8 weights into pairs of 16-bit floats.
"""

__all__ = ["PRIMITIVES"]

PRIMITIVES = r"""
typedef unsigned int uint32;
typedef unsigned short uint16;
typedef long long int64;

struct Parameters {
    const char* x;
    const char* w;
    const char* scales;     // [groups, n] in the type of x
    const char* bias;       // [n] in the type of y, or null
    const char* addend;     // [m, n] in the type of y; read when beta is not 0
    char* y;
    int64 n, k;
    int64 x_pitch;          // bytes from row to row
    int64 w_pitch;          // bytes; for INT4 tiles of 64 k from tile row to tile row
    int64 y_pitch;          // elements
    int64 addend_pitch;     // elements
    int64 slice;            // k of one split, a multiple of 128
    int m;
    int span;               // k of x in shared memory at a time, a multiple of 128
    int x_offset;           // bytes in shared memory
    int scales_offset;
    int x_row;              // bytes of a row of x in shared memory
    float alpha, beta;
};

#define THREADS (32 * WARPS)
#define WARP_ROWS (16 * TILES)
#define BLOCK_ROWS (WARP_ROWS * WARPS)
#define IS_QUANTIZED (FORM >= 2)
#define X_NBYTES (X_KIND == 2 ? 4 : 2)
// Eight lanes copy one whole line of 128 bytes, wherever the weights lie in lines that long: two
// substeps of k come with it.
#define SUBSTEP (IS_QUANTIZED ? 64 : 64 / X_NBYTES)
#define SUBSTEPS ((FORM == 0 || (FORM == 2 && GROUP != 32)) ? 2 : 1)
#define STEP (SUBSTEP * SUBSTEPS)
#define STAGE_NBYTES (SUBSTEPS * CHUNKS * THREADS * 16)
#define CHUNKS (FORM == 3 ? TILES : 2 * TILES)
#define TOKEN_TILES (X_KIND == 2 ? 1 : TOKENS / 8)

__device__ __forceinline__ void copy_16(uint32 to, const char* from, bool is_valid) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(is_valid ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copy_8(uint32 to, const char* from, bool is_valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 :: "r"(to), "l"(from), "r"(is_valid ? 8 : 0) : "memory");
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

#if X_KIND != 2
__device__ __forceinline__ void multiply(float* d, uint32 a0, uint32 a1, uint32 a2, uint32 a3,
                                         uint32 b0, uint32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." X_TYPE "." X_TYPE ".f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#endif

#if IS_QUANTIZED
// Eight weights of one feature as four pairs of 16-bit floats, exact. An integer is put into the
// mantissa of a power of two, whose last place is 1, and that number is subtracted again.
__device__ __forceinline__ uint32 less(uint32 pair, uint32 offset) {
    uint32 y;
#if X_KIND == 1
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(pair), "r"(0x3f803f80u), "r"(offset));
#else
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(pair), "r"(offset));
#endif
    return y;
}
__device__ __forceinline__ void expand_int4(uint32 word, uint32* pairs) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const uint32 nibbles = (word >> (4 * j)) & 0x000f000fu;
#if X_KIND == 1
        pairs[j] = less(nibbles | 0x43004300u, 0xc308c308u);      // 128 + u, minus 136
#else
        pairs[j] = less(nibbles | 0x64006400u, 0xe408e408u);      // 1024 + u, minus 1032
#endif
    }
}
__device__ __forceinline__ void expand_int8(uint32 word, uint32* pairs) {
    const uint32 u = word ^ 0x80808080u;
#if X_KIND == 1
    float f[4];     // bfloat16 has 8 bits only: through float, 2^23 + u
#pragma unroll
    for (int j = 0; j < 4; ++j)
        f[j] = __uint_as_float(__byte_perm(u, 0x4b000000u, 0x7440u + j)) - 8388736.0f;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pairs[0]) : "f"(f[1]), "f"(f[0]));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pairs[1]) : "f"(f[3]), "f"(f[2]));
#else
    pairs[0] = less(__byte_perm(u, 0x64646464u, 0x4140), 0xe480e480u);
    pairs[1] = less(__byte_perm(u, 0x64646464u, 0x4342), 0xe480e480u);
#endif
}
#endif
"""
