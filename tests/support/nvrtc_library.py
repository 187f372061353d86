"""NVRTC without cuda-python: the functions of ``cuda.bindings.nvrtc`` that the library calls.

The wheel nvidia-cuda-nvrtc-cu12 has only the compiler and needs no GPU; with it every kernel is
compiled for every architecture on a machine that has neither a GPU nor cuda-python. `install` puts
these functions where `gputensor._kernels.launch.nvrtc` looks for the bindings, unless
those are there.
"""

import ctypes
import functools
import importlib.util
import sys
import types
from pathlib import Path

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.errors import DeviceError


class Status(int):
    """A status with its name in the bindings' enumeration."""

    @property
    def name(self):
        return "NVRTC_SUCCESS" if self == 0 else f"NVRTC_ERROR_{int(self)}"


@functools.cache
def library_path():
    """Return the path of libnvrtc in an installed wheel, or None."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return None
    folders = list(found.submodule_search_locations) if found else []
    for folder in folders:
        for path in sorted(Path(folder, "lib").glob("libnvrtc.so.*")):
            return path
    return None


def _module(library):
    """Return a module with the functions, over a loaded library."""
    module = types.ModuleType("cuda.bindings.nvrtc")
    module.nvrtcVersion = lambda: _call(library.nvrtcVersion, ctypes.c_int(), ctypes.c_int())

    def supported():
        status, count = _call(library.nvrtcGetNumSupportedArchs, ctypes.c_int())
        found = (ctypes.c_int * count)()
        return Status(status or library.nvrtcGetSupportedArchs(found)), list(found)

    def create(source, name, count, headers, names):
        program = ctypes.c_void_p()
        status = library.nvrtcCreateProgram(ctypes.byref(program), source, name, count, None, None)
        return Status(status), program

    def compile_program(program, count, options):
        return (Status(library.nvrtcCompileProgram(program, count, (ctypes.c_char_p * count)(
            *options
        ))),)  # fmt: skip

    def size_of(function):
        return lambda program: _call(functools.partial(function, program), ctypes.c_size_t())

    def text_of(function):
        return lambda program, buffer: (Status(function(program, buffer)),)

    module.nvrtcGetSupportedArchs = supported
    module.nvrtcCreateProgram = create
    module.nvrtcCompileProgram = compile_program
    module.nvrtcDestroyProgram = lambda program: library.nvrtcDestroyProgram(ctypes.byref(program))
    for what in ("CUBIN", "PTX", "ProgramLog"):
        size = getattr(library, f"nvrtcGet{what}Size")
        setattr(module, f"nvrtcGet{what}Size", size_of(size))
        setattr(module, f"nvrtcGet{what}", text_of(getattr(library, f"nvrtcGet{what}")))
    return module


def _call(function, *outputs):
    """Call a function whose last arguments are outputs; return its status and their values."""
    status = function(*map(ctypes.byref, outputs))
    return (Status(status), *(output.value for output in outputs))


@functools.cache
def install():
    """Make NVRTC callable if it is installed; return an empty text, or the reason why it is not."""
    try:
        nvrtc.version()
        return ""
    except DeviceError as error:
        path = library_path()
        if path is None:
            return f"needs NVRTC (pip install nvidia-cuda-nvrtc-cu12): {error}"
    sys.modules["cuda.bindings.nvrtc"] = _module(ctypes.CDLL(str(path)))
    nvrtc._bindings.cache_clear()
    nvrtc.version()
    return ""


why_no_nvrtc = install()
needs_nvrtc = pytest.mark.skipif(bool(why_no_nvrtc), reason=why_no_nvrtc)


@functools.cache
def quick_options():
    """Return options with which NVRTC compiles in a fifth of the time; none before 12.8.

    The code is slower but the faults found are the same: for tests that only compile. No kernel
    uses what the second option leaves out, textures and calls of the CUDA runtime.
    """
    options = ("--Ofast-compile=max", "--minimal")
    try:
        nvrtc.compile_source('extern "C" __global__ void kernel() {}', "sm_90", options)
    except nvrtc.CompileError:
        return ()
    return options
