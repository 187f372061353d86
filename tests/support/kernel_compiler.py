"""A replacement for NVRTC: compiles the generated CUDA C++ for the CPU (cuda_on_cpu.h).

`install` makes the library use it instead of NVRTC. Images work only with fake_gpu.cpp. If the
environment variable that PRECOMPILED names is set, the precompiled header of that folder is used.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

from gputensor._kernels.launch import nvrtc

FAKES = Path(__file__).resolve().parent / "fakes"
COMPILER = shutil.which("g++") or shutil.which("c++")
HEADER = "cuda_on_cpu.h"
OPTIONS = ("-std=c++17", "-O0", "-w", "-ffp-contract=off", "-fPIC")
# For kernels that spend much of their time in the code that simulates a warp. With -O1 they take
# half as long again to compile and run no faster.
FAST = ("-std=c++17", "-Og", "-w", "-fPIC")
PRECOMPILED = "FAKE_CUDA_HEADERS"
# Images are linked without libraries, which saves a third of the time: a process loads these first.
LIBRARIES = ("libstdc++.so.6", "libm.so.6")
# PTX text and its replacement: three conversions of types.cuh, products of
# pairs, and copies and powers of row.cuh.
_REPLACEMENTS = (
    (r'asm\("cvt\.f32\.f16[^;]*;"[^;]*;', "y = cpu_half_to_float(x.bits);"),
    (r'asm\("cvt\.rn\.f16\.f32[^;]*;"[^;]*;', "y.bits = cpu_float_to_half(x);"),
    (r'asm\("cvt\.rn\.bf16\.f32[^;]*;"[^;]*;', "y.bits = cpu_float_to_bfloat(x);"),
    (r'asm\("fma\.rn\.(b?f16)x2[^;]*;"[^;]*;', r"y = cpu_\1_pair_times(word, factor);"),
    (r'asm\("prmt\.b32[^;]*0xbb99;"[^;]*;', "negative = (word >> 15 & 0x10001) * 0xffff;"),
    # Asynchronous copies of a row kernel run at once, into a static array as shared memory.
    (r'asm volatile\("cp\.async\.c[ag][^"]*"[^;]*;', "memcpy(to, from, NBYTES);"),
    (r'asm volatile\("cp\.async\.wait[^"]*"[^;]*;', ";"),
    (r"extern __shared__ __align__\(16\) (char ahead)\[\];", r"alignas(16) static \1[1 << 18];"),
    (r"extern __shared__ uint32 (seen)\[\];", r"static uint32 \1[1 << 16];"),
    (r'asm\("ex2\.approx[^;]*;"[^;]*;', "y = exp2f(x);"),
    (r'asm\("rcp\.approx[^;]*;"[^;]*;', "y = 1 / x;"),
)
# The same for the blocks of a cluster, which have their shared variables in one array.
_CLUSTER_HEAD = """\
#define __cluster_dims__(...)
#define __cvta_generic_to_shared(x) ((unsigned long long)(x))
"""
_CLUSTER = (
    (r"__shared__ C (slots)(\[.*\]);", r"CPU_SHARED(0, C, \1, \2)"),
    (r"__shared__ uint64 (barriers)(\[.*\]);", r"CPU_SHARED(1, uint64, \1, \2)"),
    (r"static (char) (ahead)(\[1 << 18\]);", r"static char ahead_of[CPU_CLUSTER][1 << 16]; "
                                             r"char* ahead = ahead_of[cpu_rank];"),
    (r'asm volatile\("mov\.u32 %0, %%cluster_ctarank[^;]*;"[^;]*;', "rank = cpu_rank;"),
    (r'asm volatile\("barrier\.cluster[^)]*\);', "__syncthreads();"),
    (r'asm volatile\("fence[^;]*;"[^;]*;', ";"),
    (r'asm volatile\("mbarrier\.init[^;]*;"[^;]*;', "*barrier = 0;"),
    (r'asm volatile\("mbarrier\.arrive[^;]*;"[^;]*;', "cpu_barrier_count(barrier, nbytes, true);"),
    (r'asm volatile\("\{\\n\.reg \.pred p;[^}]*\}"[^;]*;',
     "done = cpu_barrier_wait(barrier, parity);"),
    (r'asm volatile\("mapa[^;]*;"[^;]*;', "there = here;"),
    (r'asm volatile\("st\.async[^;]*;"[^;]*;',
     "cpu_barrier_send((char*)slot + 4 * i, barrier, rank, u.words[i]);"),
    (r"\bfinite\(", "finite_value("),
)  # fmt: skip

# The same for boxes that a tensor map copies: they arrive at once.
_BOX_HEAD = """\
#include "tensor_map.h"
#define __grid_constant__
#define __cvta_generic_to_shared(x) ((unsigned long long)(x))
static void cpu_copy_box(char* box, const void* words, int nbytes, const int* first, bool stores) {
    const CpuTensorMap& map = *(const CpuTensorMap*)words;
    const int count = map.box[0] * map.box[1] * map.box[2] * map.box[3];
    if (!map.is_plain || (unsigned long)box % 128 || (!stores && nbytes != 2 * count)) abort();
    for (int i = 0; i < count; ++i, box += 2) {
        int64_t place[4];
        int rest = i;
        for (int axis = 0; axis < 4; rest /= map.box[axis++])
            place[axis] = first[axis] + rest % map.box[axis];
        char* const there = map.at(place);
        if (!stores && !there) memset(box, 0, 2);
        else if (there) memcpy(stores ? there : box, stores ? box : there, 2);
    }
}
"""
_BOXES = (
    (r"extern __shared__ __align__\(128\) (char box)\[\];", r"alignas(128) static \1[1 << 16];"),
    (r'asm volatile\("cp\.async\.bulk\.tensor\.4d\.shared[^;]*;"[^;]*;',
     "cpu_copy_box(box, p.x.words, p.nbytes, (const int*)&at, false);"),
    (r'asm volatile\("cp\.async\.bulk\.tensor\.4d\.global[^;]*;"[^;]*;',
     "cpu_copy_box((char*)box, p.out.words, 0, (const int*)&at, true);"),
    (r'asm volatile\("(cp\.async\.bulk|mbarrier|fence|prefetch)[^;]*;"[^;]*;', ";"),
    (r'asm volatile\("\{\\n\.reg \.pred p;[^}]*\}"[^;]*;', "done = 1;"),
)  # fmt: skip


def cpu_source(source):
    """Return the source between the header and the entry point, with its PTX replaced."""
    if '"gputensor/blas/kernels/narrow/' in source:  # any test may multiply a few rows
        from tests.support.products import tensor_cores_on_cpu

        return tensor_cores_on_cpu.cpu_source(source)
    for pattern, replacement in _REPLACEMENTS:
        source = re.sub(pattern, replacement, source)
    head = f'#include "{HEADER}"\n'
    if "depthwise_boxes.cuh" in source:
        head += _BOX_HEAD
        for pattern, replacement in _BOXES:
            source = re.sub(pattern, replacement, source)
    cluster = re.search(r"#define CLUSTER (\d+)", source)
    if cluster and cluster[1] != "1":
        head += f"#undef CPU_CLUSTER\n#define CPU_CLUSTER {cluster[1]}\n{_CLUSTER_HEAD}"
        for pattern, replacement in _CLUSTER:
            source = re.sub(pattern, replacement, source)
    if "asm(" in source:
        raise ValueError("a kernel has PTX that the tests cannot run")
    return f"{head}{source}\nCUDA_ON_CPU_RUN\n"


def image_of(text, options=OPTIONS):
    """Return the image of C++ text: 8 bytes of length, then a shared library.

    It is cached beside the precompiled header, if there is one, so that each text is compiled by
    only one process.
    """
    folder = os.environ.get(PRECOMPILED)
    key = hashlib.sha256("\0".join((*options, text)).encode()).hexdigest()
    kept = Path(folder or "", "images", key)
    if folder and kept.exists():
        library = kept.read_bytes()
    else:
        library = _compiled(text, options, [path for path in (folder, FAKES) if path])
        if folder:
            kept.parent.mkdir(exist_ok=True)
            part = kept.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            part.write_bytes(library)
            part.replace(kept)
    return len(library).to_bytes(8, "little") + library


def _compiled(text, options, includes):
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "kernel.so"
        subprocess.run(
            [COMPILER, *options, "-shared", *(f"-I{path}" for path in includes)]
            + ["-x", "c++", "-", "-o", str(output), "-nodefaultlibs", "-lgcc"],
            input=text,
            text=True,
            check=True,
        )
        return output.read_bytes()


def compile_source(source, target, options=()):
    """Return the image of a kernel; replaces the function of the same name in nvrtc."""
    return image_of(cpu_source(source))


def install():
    """Replace NVRTC: compile kernels for the CPU from now on."""
    nvrtc.compile_source = compile_source
    nvrtc.version = lambda: (0, 0)
    nvrtc.architecture = lambda capability: f"sm_{capability}"
