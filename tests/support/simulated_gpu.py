"""A GPU that is none: the libraries made for tests, and programs that run on them.

fake_gpu.cpp is a driver whose kernels run on the CPU, at once or deferred in an order that a seed
gives; fake_cublas.cpp is both libraries of BLAS. They are found at run time like the real ones, so
a program that shall use them needs a process of its own.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from tests.support import nvrtc_library
from tests.support.kernel_compiler import COMPILER

ROOT = Path(__file__).resolve().parents[2]
OURS = ("CUDA_", "FAKE_", "GPUTENSOR_", "CUBLAS_")
DRIVER = "libcuda-fake.so"
SOURCES = {
    DRIVER: "fake_gpu.cpp",
    "libcublasLt.so.13": "fake_cublas.cpp",
    "libcublas.so.13": "fake_cublas.cpp",
}


why_no_nvrtc = nvrtc_library.install()
needs_nvrtc = pytest.mark.skipif(bool(why_no_nvrtc), reason=why_no_nvrtc)


def build_libraries(folder):
    """Compile the driver and the libraries of BLAS into a folder."""
    if COMPILER is None:
        pytest.skip("needs g++ on the path")
    includes = [f"-I{ROOT}", f"-I{sysconfig.get_paths()['include']}"]
    options = [COMPILER, "-std=c++17", "-O0", "-shared", "-fPIC", "-fvisibility=hidden", *includes]
    for name, text in SOURCES.items():
        source = str(ROOT / "tests/support/fakes" / text)
        subprocess.run([*options, "-o", str(folder / name), source, "-ldl"], check=True)
    return folder


def fresh_seed():
    """A seed for a driver that defers, which decides the order of the work."""
    return str(np.random.default_rng().integers(1, 1 << 31))


def run_program(libraries, program, *arguments, seed=None, **settings):
    """Run a program of tests/ on the libraries in a folder; it has to print "ok".

    Parameters
    ----------
    seed : str, optional
        Defer work, in the order that follows from this seed.
    **settings : str
        Further variables of the environment.
    """
    environment = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
    environment |= {
        "GPUTENSOR_LIBCUDA": str(libraries / DRIVER),
        "LD_LIBRARY_PATH": str(libraries),
        "GPUTENSOR_KERNEL_CACHE": str(libraries / "kernels"),
        "PYTHONPATH": str(ROOT),
        **settings,
    }
    if seed is not None:
        environment["FAKE_CUDA_SEED"] = seed
    command = [sys.executable, str(ROOT / "tests" / program), *arguments]
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, f"{program} {arguments}, seed {seed}\n{result.stderr}"
    assert result.stdout.strip() == "ok"
