"""The CUDA program that fills operands for tuning with random finite numbers.

Values matter to the time of a product: a GPU that multiplies zeros draws less power and clocks
higher. Floating-point elements get a random sign, a random mantissa and an exponent around 1.
"""

__all__ = ["SOURCE"]

SOURCE = r"""
typedef unsigned long long u64;

struct Parameters {
    u64 ptr;
    u64 count;       // 8-byte words
    u64 keep;        // bits of a word that are random
    u64 set;         // bits that are 1: an exponent below that of 1
    u64 seed;
};

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += stride) {
        u64 x = (i + p.seed) * 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        ((u64*)p.ptr)[i] = ((x ^ (x >> 31)) & p.keep) | p.set;
    }
}
"""
