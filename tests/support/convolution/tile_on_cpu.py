"""The kernels of convolution on tensor cores, compiled for the CPU and run block by block.

Made like those of skinny products (skinny_on_cpu.py): fibers for threads, and a synchronization of
the warp for each tensor core instruction and each load by several lanes.
"""

import re

from tests.support import kernel_compiler
from tests.support.kernel_compiler import HEADER
from tests.support.products import skinny_on_cpu

_LOADS = r"""
#define SPLITS 1
// Lane 8 i + r gives the address of row r of matrix i; each lane gets two elements of each.
static void cpu_matrices(unsigned* x, unsigned at) {
    cpu_here->lanes[threadIdx.x] = at;
    __syncwarp();
    const int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    for (int i = 0; i < 4; ++i) {
        const unsigned row = cpu_here->lanes[first + 8 * i + lane / 4];
        if (row % 16) abort();
        memcpy(&x[i], cpu_shared + row + lane % 4 * 4, 4);
    }
    __syncwarp();
}
// mma m16n8k8 on TF32: the upper 19 bits of each word.
static void cpu_multiply_words(float* d, const unsigned* a, unsigned b0, unsigned b1) {
    const int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    const unsigned mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
    memcpy(cpu_here->fragments[threadIdx.x], mine, sizeof mine);
    __syncwarp();
    for (int e = 0; e < 4; ++e) {
        const int row = lane / 4 + 8 * (e / 2), column = 2 * (lane % 4) + e % 2;
        for (int k = 0; k < 8; ++k)
            d[e] += __uint_as_float(cpu_here->fragments[first + row % 8 * 4 + k % 4]
                                        [row / 8 + 2 * (k / 4)] & 0xffffe000u)
                  * __uint_as_float(cpu_here->fragments[first + column * 4 + k % 4]
                                        [4 + k / 4] & 0xffffe000u);
    }
    __syncwarp();
}
static unsigned cpu_pack(float low, float high) {
    return (unsigned)cpu_narrow<KIND>(high) << 16 | cpu_narrow<KIND>(low);
}
"""
_OURS = (
    ("mma.sync", "cpu_multiply<KIND>(s, a[0], a[1], a[2], a[3], b0, b1);"),
    ("ldmatrix", "cpu_matrices(x, at);"),
    ("cvt.rn." + '"', "%0 = cpu_pack(low, high);"),
)


def cpu_source(source):
    """Return the program with its instructions replaced and its entry behind."""
    words = {"mma.sync": "cpu_multiply_words(s, a, b0, b1);"} if ".f32.tf32" in source else {}
    for begin, statement in _OURS:
        statement = words.get(begin, statement)
        for found in reversed([*re.finditer(r'asm(?: volatile)?\("' + re.escape(begin), source)]):
            end, operands = skinny_on_cpu.statement_end(source, found.start())
            for number, operand in enumerate(operands):
                statement = statement.replace(f"%{number}", f"({operand})")
            source = source[: found.start()] + statement + source[end:]
    kind = 1 if ".f32.bf16" in source else 0
    # The memory of a block is cpu_shared; in the text the name is an address within it.
    source = source.replace("extern __shared__ __align__(16) char memory[];",
                            "char* const memory = cpu_shared;")  # fmt: skip
    made = skinny_on_cpu.cpu_source(source)
    if "kernel(const FewParameters" in source:
        run = skinny_on_cpu._RUN
        made = made.replace(run, "#define Parameters FewParameters" + run)
    head = f'#include "{HEADER}"\n{skinny_on_cpu._SHIM}'
    assert made.startswith(head)
    return f"{head}static const int KIND = {kind};\n{_LOADS}{made[len(head) :]}"


def compile_source(source, target, options=()):
    """Stand in for NVRTC; the image is for fake_gpu.cpp."""
    del target, options
    is_tile = "ldmatrix" in source and "blas/kernels/convolution/" in source
    text = cpu_source(source) if is_tile else kernel_compiler.cpu_source(source)
    return kernel_compiler.image_of(text, kernel_compiler.FAST)
