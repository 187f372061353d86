"""Convolution by wgmma, compiled for the CPU and run cluster by cluster: shifted.cuh, mapped.cuh.

Made like the kernels of skinny products (skinny_on_cpu.py), and wgmma like that of grouped products
(grouped_on_cpu.py). Copies are made at once, so barriers count them when they are issued; a thread
that waits for a barrier in shared memory lets the others run until its phase changes.
"""

import re

from tests.support import kernel_compiler
from tests.support.convolution import tile_on_cpu
from tests.support.kernel_compiler import HEADER
from tests.support.products import grouped_on_cpu, skinny_on_cpu

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
# Copies by tensor maps; a barrier counts their bytes, which it has to be told before.
_MAPPED = r"""
#include "tensor_map.h"
static int cpu_owed[8][1 << 15];            // bytes that a barrier still expects
static void cpu_count(unsigned barrier, int nbytes, int arrivals) {
    int& owed = cpu_owed[cpu_here - cpu_cluster][barrier / 8];
    CpuPhases& phases = cpu_phases(barrier);
    owed += nbytes;
    phases.left -= arrivals;
    if (owed < 0 || phases.left < 0) abort();
    if (owed || phases.left) return;
    phases.left = phases.count;
    ++phases.generation;
}
static char* cpu_swizzled(unsigned at) {
    return cpu_shared + (at ^ (at >> 7 & 7) << 4);
}
static void cpu_load_row(unsigned to, const CpuTensorMap& map, const int64_t* place) {
    int64_t one[4] = {place[0], place[1], place[2], place[3]};
    for (int i = 0; i < 64; ++i, ++one[0]) {
        const char* from = map.at(one);
        if (from) memcpy(cpu_swizzled(to + 2 * i), from, 2);
        else memset(cpu_swizzled(to + 2 * i), 0, 2);
    }
}
static void cpu_load_pixels(unsigned to, const void* words, int channel, int x, int y, int image,
                            int right, int down, unsigned barrier) {
    const CpuTensorMap& map = *(const CpuTensorMap*)words;
    int64_t at[2] = {x, y};
    if (to % 1024 || !map.is_pixels || right < 0 || right > 255 || down < 0 || down > 255) abort();
    for (int i = 0; i < map.box[1]; ++i) {
        const int64_t place[4] = {channel, at[0] + right, at[1] + down, image};
        cpu_load_row(to + 128 * i, map, place);
        for (int axis = 0; axis < 2; ++axis) {
            at[axis] += map.steps[axis + 1];
            if (at[axis] <= int64_t(map.extents[axis + 1]) - 1 + map.upper[axis]) break;
            at[axis] = map.lower[axis];
            image += axis;
        }
    }
    cpu_count(barrier, -128 * map.box[1], 0);
}
static void cpu_load_box(unsigned to, const void* words, int channel, int tap, int output,
                         unsigned barrier) {
    const CpuTensorMap& map = *(const CpuTensorMap*)words;
    if (to % 1024 || map.is_pixels || map.axes != 3 || map.box[0] != 64 || map.box[1] != 1) abort();
    for (int i = 0; i < map.box[2]; ++i) {
        const int64_t place[4] = {channel, tap, output + i, 0};
        cpu_load_row(to + 128 * i, map, place);
    }
    cpu_count(barrier, -128 * map.box[2], 0);
}
// A store reads shared memory when its thread waits for it, as late as it may.
struct CpuStore {
    const void* words;
    int output, position;
    unsigned from;
};
static CpuStore cpu_stores[8][512][16];
static int cpu_stored[8][512];
static void cpu_store_later(const void* words, int output, int position, unsigned from) {
    int& count = cpu_stored[cpu_here - cpu_cluster][threadIdx.x];
    if (count == 16) abort();
    cpu_stores[cpu_here - cpu_cluster][threadIdx.x][count++] = {words, output, position, from};
}
static void cpu_store_box(const void* words, int output, int position, unsigned from) {
    const CpuTensorMap& map = *(const CpuTensorMap*)words;
    if (from % 1024 || map.is_pixels || map.axes != 2 || map.box[0] != 64) abort();
    for (int i = 0; i < map.box[1]; ++i)
        for (int j = 0; j < 64; ++j) {
            const int64_t place[4] = {output + j, position + i, 0, 0};
            if (char* to = map.at(place)) memcpy(to, cpu_swizzled(from + 128 * i + 2 * j), 2);
        }
}
static void cpu_store_now() {
    const int block = cpu_here - cpu_cluster;
    for (int i = 0; i < cpu_stored[block][threadIdx.x]; ++i) {
        const CpuStore& one = cpu_stores[block][threadIdx.x][i];
        cpu_store_box(one.words, one.output, one.position, one.from);
    }
    cpu_stored[block][threadIdx.x] = 0;
}
"""
_OURS = (
    (
        "cp.async.bulk.tensor.4d",
        "cpu_load_pixels(to, map, channel, x, y, image, right, down, barrier);",
    ),
    ("cp.async.bulk.tensor.3d", "cpu_load_box(to, map, channel, tap, output, barrier);"),
    ("cp.async.bulk.tensor.2d", "cpu_store_later(map, output, position, from);"),
    ("cp.async.bulk.wait_group.read", "cpu_store_now();"),
    ("mbarrier.arrive.expect_tx", "cpu_count(barrier, (int)nbytes, 1);"),
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
    is_mapped = "convolution/mapped.cuh" in source
    for found, statement in _MEMORY[: 1 if is_mapped else 2]:
        assert found in source
        source = source.replace(found, statement)
    run = skinny_on_cpu._RUN
    made = skinny_on_cpu.cpu_source(source).removesuffix(run)
    made += f"#define Parameters {'Mapped' if is_mapped else 'Shifted'}Parameters{run}"
    head = f'#include "{HEADER}"\n{skinny_on_cpu._SHIM}'
    assert made.startswith(head)
    wgmma = grouped_on_cpu._WGMMA.replace("#define SPLITS 1\n", "")
    return f"{head}static const int KIND = {kind};\n{wgmma}{_SHIM}{_MAPPED}{made[len(head) :]}"


def compile_source(source, target, options=()):
    """Stand in for NVRTC, for the tiles too; the image is for fake_gpu.cpp."""
    if not any(f"convolution/{name}.cuh" in source for name in ("shifted", "mapped")):
        return tile_on_cpu.compile_source(source, target, options)
    return kernel_compiler.image_of(cpu_source(source), kernel_compiler.FAST)
