"""A stand-in for NVRTC: compiles the generated CUDA C++ for the CPU (cuda_on_cpu.h).

`install` puts it where the library looks for NVRTC. Images work with fake_gpu.cpp only. The header
is taken precompiled from the folder that PRECOMPILED names, where there is one.
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
# For kernels whose threads are fibers: much of their time is in the text that stands for a warp.
FAST = ("-std=c++17", "-O1", "-w", "-fPIC")
PRECOMPILED = "FAKE_CUDA_HEADERS"
# Images are linked without libraries, which takes a third less time: a process loads these first.
LIBRARIES = ("libstdc++.so.6", "libm.so.6")
# The three conversions that are PTX text in types.cuh, and powers of row.cuh.
_REPLACEMENTS = (
    (r'asm\("cvt\.f32\.f16[^;]*;"[^;]*;', "y = cpu_half_to_float(x.bits);"),
    (r'asm\("cvt\.rn\.f16\.f32[^;]*;"[^;]*;', "y.bits = cpu_float_to_half(x);"),
    (r'asm\("cvt\.rn\.bf16\.f32[^;]*;"[^;]*;', "y.bits = cpu_float_to_bfloat(x);"),
    # Copies that a row kernel makes ahead are made at once; a block has no more shared memory.
    (r'asm volatile\("cp\.async\.c[ag][^"]*"[^;]*;', "memcpy(to, from, NBYTES);"),
    (r'asm volatile\("cp\.async\.wait[^"]*"[^;]*;', ";"),
    (r"extern __shared__ __align__\(16\) (char ahead)\[\];", r"alignas(16) static \1[1 << 18];"),
    (r'asm\("ex2\.approx[^;]*;"[^;]*;', "y = exp2f(x);"),
)


def cpu_source(source):
    """Return the program with the header in front and the entry behind."""
    for pattern, replacement in _REPLACEMENTS:
        source = re.sub(pattern, replacement, source)
    if "asm(" in source:
        raise ValueError("a kernel has PTX that the tests cannot run")
    return f'#include "{HEADER}"\n{source}\nCUDA_ON_CPU_RUN\n'


def image_of(text, options=OPTIONS):
    """Return the image of C++ text: 8 bytes of length, then a shared library.

    It is kept beside the precompiled header, where there is one, so that no process compiles a text
    that another has compiled before it.
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
    """Return the image of a kernel, in the place of NVRTC."""
    return image_of(cpu_source(source))


def install():
    """Compile for the CPU from now on."""
    nvrtc.compile_source = compile_source
    nvrtc.version = lambda: (0, 0)
    nvrtc.architecture = lambda capability: f"sm_{capability}"
