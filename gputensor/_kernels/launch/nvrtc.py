"""Compiling CUDA C++ to a cubin with NVRTC, through cuda-python's bindings.

``cuda.bindings`` is imported at the first compilation, not before; it finds libnvrtc itself (in
wheels, the loader's path, ``CUDA_HOME``). This module creates no CUDA context and needs no GPU.
"""

import functools
import importlib

from gputensor.errors import DeviceError, GpuTensorError

__all__ = ["CompileError", "architecture", "compile_source", "version"]

_MISSING = (
    "NVRTC is not available and is needed to compile kernels: install gputensor[cuda12] or "
    "gputensor[cuda13] ({error})"
)


class CompileError(GpuTensorError, RuntimeError):
    """NVRTC rejected a kernel; the message holds its log."""


@functools.cache
def _bindings():
    try:
        return importlib.import_module("cuda.bindings.nvrtc")
    except ImportError as error:
        raise DeviceError(_MISSING.format(error=error)) from error


def _check(result, call):
    """Return the results of an NVRTC call after its status; raise if the status is not 0."""
    status, *values = result
    if int(status) != 0:
        raise DeviceError(f"{call} failed: {status.name}")
    return values


@functools.cache
def version():
    """Return NVRTC's version as ``(major, minor)``.

    Raises
    ------
    DeviceError
        cuda-python or libnvrtc is missing.
    """
    try:
        return tuple(_check(_bindings().nvrtcVersion(), "nvrtcVersion"))
    except DeviceError:
        raise
    except RuntimeError as error:  # cuda-python's own error for a library that it cannot find
        raise DeviceError(_MISSING.format(error=" ".join(str(error).split()))) from error


@functools.cache
def _known_architectures():
    (known,) = _check(_bindings().nvrtcGetSupportedArchs(), "nvrtcGetSupportedArchs")
    return tuple(known)


@functools.cache
def architecture(capability):
    """Return the architecture to compile for: the device's own, or PTX of the newest older one.

    Parameters
    ----------
    capability : int
        Ten times the compute capability: 90 for sm_90.

    Returns
    -------
    str
        ``"sm_90"``; or ``"compute_90"`` for a device newer than this NVRTC, whose driver then
        compiles the PTX.
    """
    version()
    known = _known_architectures()
    if not known or capability in known:
        return f"sm_{capability}"
    older = [arch for arch in known if arch < capability]
    if not older:
        raise DeviceError(
            f"this NVRTC compiles for sm_{min(known)} and newer; the device is sm_{capability}"
        )
    return f"compute_{max(older)}"


def compile_source(source, target, options=()):
    """Compile CUDA C++ text and return the image: a cubin for ``sm_*``, PTX for ``compute_*``.

    Parameters
    ----------
    source : str
        The whole program.
    target : str
        A result of `architecture`.
    options : sequence of str
        Further NVRTC options. One that names an architecture replaces `target`: features of a
        single generation of devices are compiled for that one (``sm_90a``).

    Raises
    ------
    CompileError
        NVRTC rejects the program.
    DeviceError
        NVRTC is missing.
    """
    nvrtc = _bindings()
    flags = ["--std=c++17", *options]
    if not any(option.startswith("--gpu-architecture=") for option in options):
        flags.append(f"--gpu-architecture={target}")
    flags = [flag.encode() for flag in flags]
    made = nvrtc.nvrtcCreateProgram(source.encode(), b"gputensor.cu", 0, [], [])
    (program,) = _check(made, "nvrtcCreateProgram")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        if int(status) != 0:
            raise CompileError(f"NVRTC: {status.name}\n{_log(nvrtc, program)}")
        return _image(nvrtc, program, "CUBIN" if target.startswith("sm_") else "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _image(nvrtc, program, form):
    (nbytes,) = _check(getattr(nvrtc, f"nvrtcGet{form}Size")(program), f"nvrtcGet{form}Size")
    image = bytes(nbytes)
    _check(getattr(nvrtc, f"nvrtcGet{form}")(program, image), f"nvrtcGet{form}")
    return image


def _log(nvrtc, program):
    (nbytes,) = _check(nvrtc.nvrtcGetProgramLogSize(program), "nvrtcGetProgramLogSize")
    log = bytes(nbytes)
    _check(nvrtc.nvrtcGetProgramLog(program, log), "nvrtcGetProgramLog")
    return log.decode(errors="replace").rstrip("\0\n ")
