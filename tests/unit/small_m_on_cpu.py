"""The kernels of skinny products, compiled for the CPU and run block by block (see fake_gpu.cpp).

The PTX of the kernel is replaced by C++ of the same meaning on cuda_on_cpu.h, where the threads of
a block are fibers that take turns at barriers. A tensor core instruction is a meeting of a warp:
each lane leaves its fragments, then each computes its own part of the result from the whole warp's.
So the layout of fragments is checked against the documented one, apart from the kernel. The blocks
of a cluster run one after the other, each leaving its sums; the last round of them adds all up.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from tests.unit import kernel_compiler
from tests.unit.kernel_compiler import COMPILER, HERE

# The PTX that is replaced, by how its text and operands begin, and the C++ of the same meaning.
_REPLACEMENTS = (
    ("cp.async.cg", "cpu_copy(to, from, is_valid, 16);"),
    ("cp.async.ca", "cpu_copy(to, from, is_valid, 8);"),
    ("cp.async.", ";"),
    ("ld.shared.v4", "memcpy(&x, cpu_shared + from, 16);"),
    ("cvt.f32.f16", "%0 = cpu_half_to_float(%1);"),
    ("cvt.rn.bf16.f32", "%0 = cpu_float_to_bfloat(%1);"),
    ("cvt.rn.f16.f32", "%0 = cpu_float_to_half(%1);"),
    ("mma.sync", "cpu_multiply<X_KIND>(d, a0, a1, a2, a3, b0, b1);"),
    ("fma.rn.bf16x2", "y = cpu_add_pair<1>(pair, offset);"),
    ("add.rn.f16x2", "y = cpu_add_pair<0>(pair, offset);"),
    ("cvt.rn.bf16x2.f32", "%0 = cpu_float_to_bfloat(%2) | cpu_float_to_bfloat(%1) << 16;"),
    ("ld.shared.u16", "memcpy(&%0, cpu_shared + %1, 2);"),
    ("st.shared.f32", "memcpy(cpu_shared + %0, &%1, 4);"),
    ("mapa", "there = from;"),
    ("ld.shared::cluster", "memcpy(&x, cpu_clusters[split] + from, 4);"),
    ("ld.shared.f32", "memcpy(&x, cpu_shared + from, 4);"),
    ("barrier.cluster.arrive", "__syncthreads();"),
    ("barrier.cluster.wait", ";"),
)

_SHIM = r"""
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) out |= (unsigned)(both >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
    return out;
}
#define __align__(n)
#undef __launch_bounds__
#define __launch_bounds__(...)
#define __cluster_dims__(x, y, z)
#define __syncwarp() __syncthreads()
static char* cpu_shared;
static std::vector<char> cpu_clusters_memory[8];
static char* cpu_clusters[8];
static unsigned __cvta_generic_to_shared(const void*) { return 0; }
static void cpu_copy(unsigned to, const char* from, bool is_valid, int nbytes) {
    if ((size_t)from % nbytes || to % nbytes) abort();
    if (is_valid) memcpy(cpu_shared + to, from, nbytes); else memset(cpu_shared + to, 0, nbytes);
}
template <int KIND> static float cpu_wide(unsigned short bits) {
    return KIND == 1 ? __uint_as_float((unsigned)bits << 16) : cpu_half_to_float(bits);
}
template <int KIND> static unsigned short cpu_narrow(float x) {
    return KIND == 1 ? cpu_float_to_bfloat(x) : cpu_float_to_half(x);
}
template <int KIND> static unsigned cpu_add_pair(unsigned x, unsigned y) {
    unsigned low = cpu_narrow<KIND>(cpu_wide<KIND>(x) + cpu_wide<KIND>(y));
    return low | cpu_narrow<KIND>(cpu_wide<KIND>(x >> 16) + cpu_wide<KIND>(y >> 16)) << 16;
}
static unsigned __shfl_xor_sync(unsigned, unsigned value, int mask) {
    cpu_lanes[threadIdx.x] = value;
    __syncthreads();
    unsigned found = cpu_lanes[threadIdx.x ^ mask];
    __syncthreads();
    return found;
}
static float __shfl_xor_sync(unsigned all, float value, int mask) {
    return __uint_as_float(__shfl_xor_sync(all, __float_as_uint(value), mask));
}
// The fragments as the PTX manual draws them: A[row][k], B[k][column], D[row][column].
static unsigned cpu_fragments[1024][6];
template <int KIND> static void cpu_multiply(float* d, unsigned a0, unsigned a1, unsigned a2,
                                             unsigned a3, unsigned b0, unsigned b1) {
    const int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    const unsigned mine[6] = {a0, a1, a2, a3, b0, b1};
    memcpy(cpu_fragments[threadIdx.x], mine, sizeof mine);
    __syncthreads();
    for (int e = 0; e < 4; ++e) {
        const int row = lane / 4 + 8 * (e / 2), column = 2 * (lane % 4) + e % 2;
        for (int k = 0; k < 16; ++k) {
            const unsigned* a = cpu_fragments[first + row % 8 * 4 + k % 8 / 2];
            const unsigned* b = cpu_fragments[first + column * 4 + k % 8 / 2];
            d[e] += cpu_wide<KIND>(a[row / 8 + 2 * (k / 8)] >> 16 * (k % 2))
                  * cpu_wide<KIND>(b[4 + k / 8] >> 16 * (k % 2));
        }
    }
    __syncthreads();
}
static bool cpu_is_first_round;
"""

_RUN = r"""
static const Parameters* cpu_parameters;
static bool cpu_done[1024];
static void cpu_entry() { kernel(*cpu_parameters); cpu_done[threadIdx.x] = true; }
static void cpu_block(unsigned block, unsigned threads) {
    static std::vector<ucontext_t> fibers(1024);
    static std::vector<char> stacks(1024 * 65536);
    blockIdx = {block, 0, 0};
    for (unsigned t = 0; t < threads; ++t) {
        cpu_done[t] = false;
        getcontext(&fibers[t]);
        fibers[t].uc_stack.ss_sp = &stacks[t * 65536];
        fibers[t].uc_stack.ss_size = 65536;
        fibers[t].uc_link = &cpu_scheduler;
        makecontext(&fibers[t], cpu_entry, 0);
    }
    for (bool is_running = true; is_running;) {
        is_running = false;
        for (unsigned t = 0; t < threads; ++t) {
            if (cpu_done[t]) continue;
            threadIdx = {t, 0, 0};
            cpu_fiber = &fibers[t];
            swapcontext(&cpu_scheduler, &fibers[t]);
            is_running = true;
        }
    }
}
extern "C" size_t parameters_nbytes() { return sizeof(Parameters); }
extern "C" void run(const unsigned* grid, const unsigned* block, const void* parameters) {
    cpu_parameters = static_cast<const Parameters*>(parameters);
    blockDim = {block[0], 1, 1};
    gridDim = {grid[0], 1, 1};
    for (int s = 0; s < SPLITS; ++s) {
        cpu_clusters_memory[s].assign(CPU_SHARED_NBYTES + 128, (char)0xff);
        cpu_clusters[s] = (char*)((size_t)(cpu_clusters_memory[s].data() + 127) / 128 * 128);
    }
    for (unsigned first = 0; first < grid[0]; first += SPLITS)
        for (int round = SPLITS > 1 ? 0 : 1; round < 2; ++round)
            for (int s = 0; s < SPLITS; ++s) {
                cpu_is_first_round = round == 0;
                cpu_shared = cpu_clusters[s];
                cpu_block(first + s, THREADS);
            }
}
"""
# In its first round a block of a cluster leaves after its sums are stored.
_LAST = "    for (int i = threadIdx.x + split"
_LEAVE = "    if (cpu_is_first_round) return;\n"


def statement_end(source, start):
    """Return where the asm statement that begins at `start` ends, and its operands."""
    depth, index, in_text, first, operands = 0, start, False, 0, []
    while True:
        letter = source[index]
        if letter == '"':
            in_text = not in_text
        elif not in_text and letter == "(":
            depth += 1
            if depth == 2:
                first = index + 1
        elif not in_text and letter == ")":
            depth -= 1
            if depth == 1:
                operands.append(source[first:index])
            if depth == 0:
                return source.index(";", index) + 1, operands
        index += 1


def without_ptx(source):
    """Return the program with each asm statement replaced."""
    parts, done = [], 0
    for found in re.finditer(r'asm(?: volatile)?\("', source):
        end, operands = statement_end(source, found.start())
        text = source[found.end() :]
        statement = next(cpp for begin, cpp in _REPLACEMENTS if text.startswith(begin))
        for number, operand in enumerate(operands):
            statement = statement.replace(f"%{number}", f"({operand})")
        parts += [source[done : found.start()], statement]
        done = end
    return "".join([*parts, source[done:]])


def cpu_source(source):
    """Return the program with its shim in front and its entry behind."""
    source = without_ptx(source)
    source = source.replace("extern __shared__", "static").replace("memory[];", "memory[1];")
    assert source.count(_LAST) == 1
    source = source.replace(_LAST, _LEAVE + _LAST)
    shared = "#define CPU_SHARED_NBYTES 240000\n"
    return f'#include "{HERE}/cuda_on_cpu.h"\n{_SHIM}{source}{shared}{_RUN}'


def compile_source(source, target, options=()):
    """Stand in for NVRTC; the image is for fake_gpu.cpp."""
    del target, options
    if "dequantize" in source:
        source = without_ptx(source)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "kernel.so"
        subprocess.run(
            [COMPILER, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-x", "c++", "-"]
            + ["-o", str(output)],
            input=cpu_source(source)
            if "cp.async" in source
            else kernel_compiler.cpu_source(source),
            text=True,
            check=True,
        )
        library = output.read_bytes()
    return len(library).to_bytes(8, "little") + library
