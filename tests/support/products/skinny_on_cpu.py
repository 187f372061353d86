"""The kernels of skinny products, compiled for the CPU and run cluster by cluster (fake_gpu.cpp).

The PTX of a kernel is replaced by C++ of the same meaning on cuda_on_cpu.h. The threads of all
blocks of a cluster are fibers that take turns; a barrier of a warp, a block or the cluster counts
its arrivals and releases all of them at the last. A tensor core instruction synchronizes a warp:
each lane stores its fragments, then each computes its part of the result from those of the whole
warp. So the layout of fragments is checked against the documented one, independently of the kernel.
"""

import re

from tests.support import kernel_compiler
from tests.support.kernel_compiler import HEADER

# The PTX that is replaced, by the start of its text and operands, and the C++ of the same meaning.
_REPLACEMENTS = (
    ("cp.async.cg.shared.global.L2::cache_hint", "cpu_copy(to, from, true, 16);"),
    ("cp.async.cg", "cpu_copy(to, from, is_valid, 16);"),
    ("cp.async.ca.shared.global.L2::128B", "cpu_copy(to, from, is_valid, 8);"),
    ("cp.async.ca", "cpu_copy(to, from, is_valid, 4);"),
    (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ",
        "cpu_bulk_copy(to, from, nbytes, barrier, cpu_here - cpu_cluster, 1);",
    ),
    ("cp.async.bulk.prefetch", "cpu_prefetch(from, nbytes);"),
    ("cp.async.bulk.shared", "cpu_bulk_copy(to, from, nbytes, barrier, 0, cpu_splits);"),
    ("{\\n.reg .b32 remote;", "cpu_barrier(barrier, rank).arrive(0);"),
    ("cp.async.", ";"),
    ("createpolicy", "policy = 0;"),
    ("ld.global.nc", "if ((size_t)from % 16) abort(); memcpy(&x, from, 16);"),
    ("ld.shared.v4", "memcpy(&x, cpu_shared + from, 16);"),
    ("ld.shared.v2.u32", "memcpy(&x, cpu_shared + from, 8);"),
    ("ld.shared.u16", "memcpy(&bits, cpu_shared + from, 2);"),
    ("st.shared.u16", "memcpy(cpu_shared + %0, &%1, 2);"),
    ("ld.shared.b32", "memcpy(&word, cpu_shared + from, 4);"),
    ("cvt.f32.f16", "%0 = cpu_half_to_float(%1);"),
    ("cvt.rn.bf16.f32", "%0 = cpu_float_to_bfloat(%1);"),
    ("ex2.approx", "y = exp2f(x);"),
    ("rcp.approx", "y = 1 / x;"),
    ("cvt.rn.f16.f32", "%0 = cpu_float_to_half(%1);"),
    ("mma.sync", "cpu_multiply<X_KIND>(d, a0, a1, a2, a3, b0, b1);"),
    ("lop3.b32", "%0 = (%1 & %2) | %3;"),
    ("fma.rn.bf16x2", "%0 = cpu_fma_pair<1>(%1, %2, %3);"),
    ("fma.rn.f16x2", "%0 = cpu_fma_pair<0>(%1, %2, %3);"),
    ("add.rn.f16x2", "%0 = cpu_fma_pair<0>(%1, 0x3c003c00u, %2);"),
    ("st.shared.f32", "memcpy(cpu_shared + %0, &%1, 4);"),
    ("st.shared.v4", "memcpy(cpu_shared + to, &x, 16);"),
    ("st.shared.v2", "cpu_store_pair(cpu_shared + %0, %1, %2);"),
    ("st.shared::cluster.f32", "memcpy(cpu_cluster[owner].shared + %0, &%1, 4);"),
    ("mapa", "%0 = %1;"),
    ("ld.shared::cluster.v4", "memcpy(&x, cpu_cluster[split].shared + from, 16);"),
    ("bar.sync 1, 256;", "cpu_here->some.wait(256);"),
    ("ld.shared::cluster", "memcpy(&x, cpu_cluster[split].shared + from, 4);"),
    ("ld.shared.f32", "memcpy(&x, cpu_shared + from, 4);"),
    ("barrier.cluster.arrive", "cpu_whole.wait(SPLITS * blockDim.x);"),
    ("barrier.cluster.wait", ";"),
    ("mbarrier.init", "cpu_barrier(barrier) = {(int)count, (int)count, 0, 0};"),
    ("mbarrier.arrive.expect_tx", "cpu_barrier(barrier).arrive((int)nbytes);"),
    ("mbarrier.arrive", "cpu_barrier(barrier).arrive(0);"),
    ("{\\n.reg .pred p;\\nmbarrier.try_wait", "done = cpu_barrier(barrier).wait((int)phase);"),
    ("fence.", ";"),
    ("setmaxnreg", ";"),
    ("wgmma.mma_async", "cpu_wgmma<TOKENS, X_KIND>(d, a, b);"),
    ("wgmma.", ";"),
    ('" :', ";"),
)

_SHIM = r"""
#define CPU_SHARED_NBYTES 240000
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
#define __align__(n)
#undef __launch_bounds__
#define __launch_bounds__(...)
#define __cluster_dims__(x, y, z)
static jmp_buf cpu_turns, *cpu_turn;        // the loop over threads, and the one that runs
struct CpuWait {                            // for a barrier's next generation
    const int* generation;
    int last;
};
static CpuWait* cpu_wait;                   // of the thread that runs
struct CpuBarrier {
    int came = 0, generation = 0;
    void wait(int count) {
        if (++came == count) {
            came = 0;
            ++generation;
            return;
        }
        *cpu_wait = {&generation, generation};
        if (_setjmp(*cpu_turn) == 0) _longjmp(cpu_turns, 1);
    }
};
struct CpuBlock {
    char memory[CPU_SHARED_NBYTES + 128];
    char* shared;
    CpuBarrier all, some, warps[32];
    unsigned lanes[1024], fragments[1024][6];
};
static CpuBlock cpu_cluster[8];
static int cpu_splits;                      // blocks of a cluster
static CpuBarrier cpu_whole;
static CpuBlock* cpu_here;
static char* cpu_shared;
#define __syncthreads() cpu_here->all.wait(blockDim.x)
#define __syncwarp() cpu_here->warps[threadIdx.x / 32].wait(32)
static unsigned __cvta_generic_to_shared(const void*) { return 0; }
static void cpu_copy(unsigned to, const char* from, bool is_valid, int nbytes) {
    if ((size_t)from % nbytes || to % nbytes) abort();
    if (is_valid) memcpy(cpu_shared + to, from, nbytes); else memset(cpu_shared + to, 0, nbytes);
}
// Reads what the device would fetch, so that bytes beyond an operand are found.
static void cpu_prefetch(const char* from, unsigned nbytes) {
    if ((size_t)from % 16 || nbytes % 16) abort();
    for (unsigned i = 0; i < nbytes; i += 16) (void)*(volatile const char*)(from + i);
}
static void cpu_store_pair(char* to, float a, float b) {
    if ((size_t)to % 8) abort();
    memcpy(to, &a, 4);
    memcpy(to + 4, &b, 4);
}
template <int KIND> static float cpu_wide(unsigned short bits) {
    return KIND == 1 ? __uint_as_float((unsigned)bits << 16) : cpu_half_to_float(bits);
}
template <int KIND> static unsigned short cpu_narrow(float x) {
    return KIND == 1 ? cpu_float_to_bfloat(x) : cpu_float_to_half(x);
}
template <int KIND> static unsigned cpu_fma_pair(unsigned x, unsigned y, unsigned z) {
    unsigned out = 0;
    for (int i = 0; i < 32; i += 16)
        out |= (unsigned)cpu_narrow<KIND>(cpu_wide<KIND>(x >> i) * cpu_wide<KIND>(y >> i)
                                          + cpu_wide<KIND>(z >> i)) << i;
    return out;
}
static float __shfl_xor_sync(unsigned, float value, int mask) {
    cpu_here->lanes[threadIdx.x] = __float_as_uint(value);
    __syncwarp();
    unsigned found = cpu_here->lanes[threadIdx.x ^ mask];
    __syncwarp();
    return __uint_as_float(found);
}
// The fragments as the PTX manual draws them: A[row][k], B[k][column], D[row][column].
template <int KIND> static void cpu_multiply(float* d, unsigned a0, unsigned a1, unsigned a2,
                                             unsigned a3, unsigned b0, unsigned b1) {
    const int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    const unsigned mine[6] = {a0, a1, a2, a3, b0, b1};
    memcpy(cpu_here->fragments[threadIdx.x], mine, sizeof mine);
    __syncwarp();
    for (int e = 0; e < 4; ++e) {
        const int row = lane / 4 + 8 * (e / 2), column = 2 * (lane % 4) + e % 2;
        for (int k = 0; k < 16; ++k) {
            const unsigned* a = cpu_here->fragments[first + row % 8 * 4 + k % 8 / 2];
            const unsigned* b = cpu_here->fragments[first + column * 4 + k % 8 / 2];
            d[e] += cpu_wide<KIND>(a[row / 8 + 2 * (k / 8)] >> 16 * (k % 2))
                  * cpu_wide<KIND>(b[4 + k / 8] >> 16 * (k % 2));
        }
    }
    __syncwarp();
}
"""

# Barriers of shared memory with bulk copies, and wgmma with its left operand in registers.
_HOPPER = r"""
struct CpuCounted {
    int count, pending, nbytes, generation;
    void check() {
        if (pending || nbytes) return;
        pending = count;
        ++generation;
    }
    void arrive(int expected) {
        nbytes += expected;
        --pending;
        check();
    }
    unsigned wait(int phase) {
        if ((generation & 1) == phase) {
            *cpu_wait = {&generation, generation};
            if (_setjmp(*cpu_turn) == 0) _longjmp(cpu_turns, 1);
        }
        return (generation & 1) != phase;
    }
};
static CpuCounted& cpu_barrier(unsigned at, int block = -1) {
    static CpuCounted all[8][64];
    return all[block < 0 ? cpu_here - cpu_cluster : block][at / 8 % 64];
}
// To `count` blocks of the cluster, from one on.
static void cpu_bulk_copy(unsigned to, unsigned long long from, unsigned nbytes, unsigned barrier,
                          int first, int count) {
    if (to % 16 || from % 16 || nbytes % 16) abort();
    for (int i = first; i < first + count; ++i) {
        memcpy(cpu_cluster[i].shared + to, (const char*)from, nbytes);
        cpu_barrier(barrier, i).nbytes -= (int)nbytes;
        cpu_barrier(barrier, i).check();
    }
}
// B is rows of 128 bytes, whose 16-byte pieces are exchanged by the number of the row mod 8.
template <int COLUMNS, int KIND>
static void cpu_wgmma(float* d, const unsigned* a, unsigned long long b) {
    const int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    memcpy(cpu_here->fragments[threadIdx.x], a, 16);
    __syncwarp();
    for (int i = 0; i < COLUMNS / 2; ++i) {
        const int row = lane / 4 + 8 * (i % 4 / 2), column = i / 4 * 8 + 2 * (lane % 4) + i % 2;
        for (int k = 0; k < 16; ++k) {
            const unsigned* from = cpu_here->fragments[first + row % 8 * 4 + k % 8 / 2];
            unsigned at = ((unsigned)b & 0x3fff) * 16 + k * 2;
            at += column / 8 * 1024 + column % 8 * 128;
            unsigned short right;
            at ^= (at >> 7 & 7) << 4;
            memcpy(&right, cpu_shared + at, 2);
            d[i] += cpu_wide<KIND>(from[row / 8 + 2 * (k / 8)] >> 16 * (k % 2))
                  * cpu_wide<KIND>(right);
        }
    }
    __syncwarp();
}
"""

_RUN = r"""
static const Parameters* cpu_parameters;
static bool cpu_done[8 * 1024];
static int cpu_current;
static void cpu_entry() {
    const int mine = cpu_current;
    kernel(*cpu_parameters);
    cpu_done[mine] = true;
    _longjmp(cpu_turns, 1);
}
extern "C" size_t parameters_nbytes() { return sizeof(Parameters); }
extern "C" void run(const unsigned* grid, const unsigned* block, const void* parameters) {
    static jmp_buf fibers[SPLITS * THREADS];
    static CpuWait waits[SPLITS * THREADS];
    static CpuStacks stacks(SPLITS * THREADS);
    static volatile int i;                  // outlives the jumps
    static volatile bool is_running, is_begun;
    static volatile unsigned first;
    const int count = SPLITS * THREADS;
    cpu_splits = SPLITS;
    cpu_parameters = static_cast<const Parameters*>(parameters);
    blockDim = {block[0], 1, 1};
    gridDim = {grid[0], 1, 1};
    if (block[0] != THREADS || grid[0] % SPLITS || grid[2] != 1) abort();
    for (first = 0; first < grid[0]; first += SPLITS) {
        for (int s = 0; s < SPLITS; ++s) {
            CpuBlock& here = cpu_cluster[s];
            memset(here.memory, 0xff, sizeof here.memory);
            here.shared = (char*)((size_t)(here.memory + 127) / 128 * 128);
        }
        is_begun = false;
        for (i = 0; i < count; ++i) cpu_done[i] = false, waits[i] = {};
        for (is_running = true; is_running; is_begun = true) {
            is_running = false;
            for (i = 0; i < count; ++i) {
                if (cpu_done[i]) continue;
                is_running = true;
                if (is_begun && *waits[i].generation == waits[i].last) continue;
                cpu_current = i;
                threadIdx = {(unsigned)i % THREADS, 0, 0};
                blockIdx = {first + i / THREADS, 0, 0};
                cpu_here = &cpu_cluster[i / THREADS];
                cpu_shared = cpu_here->shared;
                cpu_turn = &fibers[i];
                cpu_wait = &waits[i];
                if (_setjmp(cpu_turns)) continue;
                if (is_begun) _longjmp(fibers[i], 1);
                ucontext_t fiber, nobody;
                getcontext(&fiber);
                fiber.uc_stack.ss_sp = stacks.at(i);
                fiber.uc_stack.ss_size = CpuStacks::NBYTES;
                fiber.uc_link = nullptr;
                makecontext(&fiber, cpu_entry, 0);
                swapcontext(&nobody, &fiber);
            }
        }
    }
}
"""


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


def without_ptx(source, replacements):
    """Return the program with each asm statement replaced, by its beginning."""
    parts, done = [], 0
    for found in re.finditer(r'asm(?: volatile)?\("', source):
        end, operands = statement_end(source, found.start())
        text = source[found.end() :]
        statement = next((cpp for begin, cpp in replacements if text.startswith(begin)), "abort();")
        for number, operand in enumerate(operands):
            statement = statement.replace(f"%{number}", f"({operand})")
        parts += [source[done : found.start()], statement]
        done = end
    return "".join([*parts, source[done:]])


def cpu_source(source):
    """Return the program with its shim in front and its entry behind."""
    source = without_ptx(source, _REPLACEMENTS)
    source = source.replace("extern __shared__", "static").replace("memory[];", "memory[1];")
    return f'#include "{HEADER}"\n{_SHIM}{_HOPPER}{source}{_RUN}'


def compile_source(source, target, options=()):
    """Stand in for NVRTC; the image is for fake_gpu.cpp."""
    del target, options
    if "dequantize" in source:
        source = without_ptx(source, _REPLACEMENTS)
    is_ours = any(name in source for name in ("Skinny", "QuantizedTile", "few_rows.cuh"))
    text = cpu_source(source) if is_ours else kernel_compiler.cpu_source(source)
    return kernel_compiler.image_of(text, kernel_compiler.FAST)
