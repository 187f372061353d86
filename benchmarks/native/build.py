"""Compiles and loads the C++ files in this folder."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import gputensor as gt

NATIVE = Path(__file__).parent


def load(name, *flags):
    """Compile ``NAME.cpp`` and return the library."""
    target = Path(tempfile.mkdtemp()) / f"{name}.so"
    command = ["c++", "-O2", "-std=c++17", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, NATIVE / f"{name}.cpp", "-o", target, *flags], check=True)
    return ctypes.CDLL(str(target))


def own_functions():
    """Return the addresses of ``gputensor_malloc`` and ``gputensor_free``."""
    library = ctypes.CDLL(gt.memory.c_library())
    return [
        ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        for name in ("gputensor_malloc", "gputensor_free")
    ]
