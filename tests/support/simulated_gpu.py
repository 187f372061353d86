"""A simulated GPU: a driver and BLAS libraries for tests, and the environment that selects them.

fake_gpu.cpp is a driver whose kernels run on the CPU, at once or deferred in an order given by a
seed; fake_cublas.cpp is both BLAS libraries. gputensor finds them at run time like the real ones,
so they need a process that starts with this environment.
"""

import contextlib
import fcntl
import functools
import hashlib
import os
import subprocess
import sysconfig
from pathlib import Path

from tests.support import kernel_compiler
from tests.support.kernel_compiler import COMPILER, FAKES, FAST, HEADER, OPTIONS, PRECOMPILED

ROOT = Path(__file__).resolve().parents[2]
OURS = ("CUDA_", "FAKE_", "GPUTENSOR_", "CUBLAS_", "PYTEST_XDIST_")
DRIVER = "libcuda-fake.so"
SOURCES = {
    DRIVER: "fake_gpu.cpp",
    "libcublasLt.so.13": "fake_cublas.cpp",
    "libcublas.so.13": "fake_cublas.cpp",
}


@functools.cache
def libraries():
    """Return the folder of the libraries and of the kernels compiled so far.

    It stays in build/ under a name made from all sources, so that a second run compiles nothing.
    """
    digest = hashlib.sha256(subprocess.check_output([COMPILER, "--version"]))
    headers = sorted((ROOT / "gputensor/_driver").rglob("*.h"))
    compilers = [Path(kernel_compiler.__file__), *sorted(FAKES.parent.rglob("*_on_cpu.py"))]
    for path in [*sorted(FAKES.iterdir()), *headers, *compilers]:
        digest.update(path.read_bytes())
    folder = ROOT / "build/simulated_gpu" / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if not (folder / "complete").exists():
            build(folder)
            (folder / "complete").touch()
    return folder


@contextlib.contextmanager
def locked(path, kind=fcntl.LOCK_EX):
    """Hold a lock among processes."""
    with open(path, "w") as file:
        fcntl.flock(file, kind)
        yield


def build(folder):
    """Compile the driver, the libraries of BLAS, and the header of all kernels."""
    includes = [f"-I{ROOT}", f"-I{sysconfig.get_paths()['include']}"]
    options = [COMPILER, "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", *includes]
    for name, source in SOURCES.items():
        # Products take most of the time of their tests; the driver takes little.
        level = "-O2" if source == "fake_cublas.cpp" else "-O0"
        subprocess.run([*options, level, "-o", folder / name, FAKES / source, "-ldl"], check=True)
    # The compiler uses the precompiled header of this folder that has the same options.
    precompiled = folder / f"{HEADER}.gch"
    precompiled.mkdir(exist_ok=True)
    for options in (OPTIONS, FAST):
        output = precompiled / options[1]
        subprocess.run(
            [COMPILER, *options, "-x", "c++-header", FAKES / HEADER, "-o", output], check=True
        )


def environment(seed=None, **variables):
    """Return the environment of a process that uses the simulated GPU.

    Parameters
    ----------
    seed : int, optional
        Defer work, in the order that follows from this seed.
    **variables : str
        Further variables.
    """
    folder = libraries()
    found = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
    found |= {
        "GPUTENSOR_LIBCUDA": str(folder / DRIVER),
        "LD_LIBRARY_PATH": str(folder),
        "GPUTENSOR_KERNEL_CACHE": str(folder / "kernels"),
        PRECOMPILED: str(folder),
        "PYTHONPATH": str(ROOT),
    }
    if seed is not None:
        found["FAKE_CUDA_SEED"] = str(seed)
    return found | variables
