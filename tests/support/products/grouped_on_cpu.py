"""Grouped products by wgmma, compiled for the CPU and run block by block (grouped_wgmma.cuh).

Made like the kernels of skinny products (skinny_on_cpu.py). A warpgroup's instruction is computed
by its warps one by one, since each has 16 rows of its own; both operands are read from shared
memory, as their descriptors say.
"""

import re

from tests.support import kernel_compiler
from tests.support.kernel_compiler import HEADER
from tests.support.products import skinny_on_cpu

_WGMMA = r"""
#define SPLITS 1
static void cpu_copy_some(unsigned to, const char* from, int nbytes) {
    if ((size_t)from % 16 || to % 16) abort();
    memset(cpu_shared + to, 0, 16);
    memcpy(cpu_shared + to, from, nbytes);
}
// Rows of 128 bytes, whose pieces of 16 are exchanged by the number of the row mod 8.
static float cpu_element(unsigned at) {
    unsigned short bits;
    at ^= (at >> 7 & 7) << 4;
    memcpy(&bits, cpu_shared + at, 2);
    return cpu_wide<KIND>(bits);
}
// d[64][columns] += a b: a lies along k; b does if `is_along`, and along its columns otherwise.
static void cpu_wgmma(float* d, unsigned long long a, unsigned long long b, int columns,
                      bool is_along) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const unsigned left = (a & 0x3fff) << 4, right = (b & 0x3fff) << 4;
    const unsigned rows = (a >> 32 & 0x3fff) << 4, lines = (b >> 32 & 0x3fff) << 4;
    const unsigned panels = (b >> 16 & 0x3fff) << 4;
    if ((a | b) >> 62 != 1) abort();        // the swizzle
    for (int i = 0; i < columns / 2; ++i) {
        const int row = warp * 16 + lane / 4 + 8 * (i % 4 / 2);
        const int column = i / 4 * 8 + 2 * (lane % 4) + i % 2;
        for (int k = 0; k < 16; ++k) {
            const unsigned along = right + column / 8 * lines + column % 8 * 128 + k * 2;
            const unsigned across = right + column / 64 * panels + k / 8 * lines + k % 8 * 128
                                  + column % 64 * 2;
            d[i] += cpu_element(left + row / 8 * rows + row % 8 * 128 + k * 2)
                  * cpu_element(is_along ? along : across);
        }
    }
}
"""
_OURS = (
    ("{ wgmma.mma_async", "cpu_wgmma(d, a, b, COLUMNS, IS_ALONG_TERMS)"),
    ("cp.async.cg", "cpu_copy_some(to, from, nbytes);"),
    ("cp.async.", ";"),
    ("fence.", ";"),
    ("wgmma.", ";"),
)


def cpu_source(source):
    """Return the program with its instructions replaced and its entry behind."""
    kind = 1 if "f32.bf16" in source else 0
    for begin, statement in _OURS:
        for found in reversed([*re.finditer(r'asm(?: volatile)?\("' + re.escape(begin), source)]):
            # The instruction of MULTIPLY has no semicolon of its own.
            end, _ = skinny_on_cpu.statement_end(source, found.start())
            if begin.startswith("{"):
                end = source.index("\n", found.start())
            source = source[: found.start()] + statement + source[end:]
    made = kernel_compiler.cpu_source(source)
    head, entry = f'#include "{HEADER}"\n', "\nCUDA_ON_CPU_RUN\n"
    assert made.startswith(head)
    assert made.endswith(entry)
    made = made.removesuffix(entry).replace("extern __shared__ char raw[];", "static char raw[1];")
    shim = f"{skinny_on_cpu._SHIM}static const int KIND = {kind};\n{_WGMMA}"
    return f"{head}{shim}{made[len(head) :]}{skinny_on_cpu._RUN}"


def compile_source(source, target, options=()):
    """Stand in for NVRTC; the image is for fake_gpu.cpp."""
    del target, options
    is_ours = "wgmma.mma_async" in source
    text = cpu_source(source) if is_ours else kernel_compiler.cpu_source(source)
    return kernel_compiler.image_of(text, kernel_compiler.FAST)
