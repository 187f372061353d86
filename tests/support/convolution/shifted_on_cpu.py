"""Convolution by shifted patches, compiled for the CPU and run cluster by cluster (shifted.cuh).

Made like the kernels of skinny products (skinny_on_cpu.py), and wgmma like that of grouped products
(grouped_on_cpu.py). Copies are made at once, so barriers count them when they are issued; a thread
that waits for a barrier in shared memory lets the others run until its phase changes.
"""

import re

from tests.support import kernel_compiler, skinny_on_cpu
from tests.support.convolution import tile_on_cpu
from tests.support.kernel_compiler import HEADER
from tests.support.products import grouped_on_cpu

_SHIM = r"""
#define SPLITS SPLIT
#define __grid_constant__
struct float4 { float x, y, z, w; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static int min(int a, int b) { return a < b ? a : b; }
#define __cvta_generic_to_shared(at) (unsigned)((const char*)(at) - cpu_shared)
#define __shfl_sync(mask, value, lane) (value)      // the same for all lanes of the warp
struct CpuPhases { int generation; short count, left; };    // a barrier in shared memory
static CpuPhases& cpu_phases(unsigned at) {
    if (at % 8) abort();
    return *(CpuPhases*)(cpu_shared + at);
}
static void cpu_begin(unsigned at, int count) {
    cpu_phases(at) = {0, (short)count, (short)count};
}
static void cpu_arrive(unsigned at) {
    CpuPhases& phases = cpu_phases(at);
    if (--phases.left) return;
    phases.left = phases.count;
    ++phases.generation;
}
static bool cpu_try(unsigned at, int parity) {
    const CpuPhases& phases = cpu_phases(at);
    if (phases.generation % 2 != parity) return true;
    *cpu_wait = {&phases.generation, phases.generation};
    if (_setjmp(*cpu_turn) == 0) _longjmp(cpu_turns, 1);
    return true;
}
static CpuBarrier cpu_named[8][8];
// Element 2 (lane % 4) + v of column lane / 4, of two matrices whose rows the first lanes address.
static char* cpu_turned(unsigned at, int matrix, int v) {
    const int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    return cpu_shared + cpu_here->lanes[first + 8 * matrix + 2 * (lane % 4) + v] + lane / 4 * 2;
}
static void cpu_turn_lanes(unsigned at, unsigned* x, bool is_store) {
    if (at % 16) abort();
    cpu_here->lanes[threadIdx.x] = at;
    __syncwarp();
    for (int i = 0; i < 2; ++i)
        for (int v = 0; v < 2; ++v) {
            char* const there = cpu_turned(at, i, v);
            if (is_store) memcpy(there, (char*)&x[i] + 2 * v, 2);
            else memcpy((char*)&x[i] + 2 * v, there, 2);
        }
    __syncwarp();
}
static void cpu_multiply_chunk(float* d, unsigned long long a, unsigned long long b, int columns,
                               bool adds) {
    if (!adds) memset(d, 0, columns / 2 * sizeof *d);
    cpu_wgmma(d, a, b, columns, true);
}
"""
_OURS = (
    ("cp.async.mbarrier", "cpu_arrive(barrier);"),
    ("mbarrier.init", "cpu_begin(barrier, count);"),
    ("mbarrier.arrive.shared", "cpu_arrive(barrier);"),
    (r"{\n.reg .pred p;\nmbarrier.try", "done = cpu_try(barrier, phase);"),
    (r"{\n.reg .b32 there", "memcpy(&x, cpu_cluster[rank].shared + at, 16);"),
    ("bar.sync %0, 128", "cpu_named[cpu_here - cpu_cluster][1 + group].wait(128);"),
    ("bar.sync 3", "cpu_named[cpu_here - cpu_cluster][3].wait(COPYING);"),
    ("bar.sync 4", "cpu_named[cpu_here - cpu_cluster][4].wait(256);"),
    ("stmatrix", "uint32 both[2] = {x, y}; cpu_turn_lanes(to, both, true);"),
    ("ldmatrix", "cpu_turn_lanes(from, x, false);"),
    ("cvt.rn." + '"', "y = (uint32)cpu_narrow<KIND>(high) << 16 | cpu_narrow<KIND>(low);"),
    ("fence.", ";"),
    ("wgmma.", ";"),
    ('" : "+f"', ";"),
)
# A block's memory is cpu_shared; the barriers lie behind what it asks for at most.
_MEMORY = (
    ("extern __shared__ __align__(1024) char memory[];", "char* const memory = cpu_shared;"),
    (
        "__shared__ Barriers barriers;",
        "Barriers& barriers = *(Barriers*)(cpu_shared + (226 << 10));",
    ),
)


def cpu_source(source):
    """Return the program with its instructions replaced and its entry behind."""
    kind = 1 if "f32.bf16" in source else 0
    multiply = "cpu_multiply_chunk(d, a, b, COLUMNS, adds)"
    source = re.sub(r"(#define MULTIPLY ).*", rf"\1{multiply}", source)
    for begin, statement in _OURS:
        for found in reversed([*re.finditer(r'asm(?: volatile)?\("' + re.escape(begin), source)]):
            end, _ = skinny_on_cpu.statement_end(source, found.start())
            source = source[: found.start()] + statement + source[end:]
    for found, statement in _MEMORY:
        assert found in source
        source = source.replace(found, statement)
    run = skinny_on_cpu._RUN
    made = skinny_on_cpu.cpu_source(source).removesuffix(run)
    made += "#define Parameters ShiftedParameters" + run
    head = f'#include "{HEADER}"\n{skinny_on_cpu._SHIM}'
    assert made.startswith(head)
    wgmma = grouped_on_cpu._WGMMA.replace("#define SPLITS 1\n", "")
    return f"{head}static const int KIND = {kind};\n{wgmma}{_SHIM}{made[len(head) :]}"


def compile_source(source, target, options=()):
    """Stand in for NVRTC, for the tiles too; the image is for fake_gpu.cpp."""
    if "convolution/shifted.cuh" not in source:
        return tile_on_cpu.compile_source(source, target, options)
    return kernel_compiler.image_of(cpu_source(source), kernel_compiler.FAST)
