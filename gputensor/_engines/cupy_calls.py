"""Engines on CUDA: CuPy works on our memory and stream, and allocates from our allocator.

CuPy is imported at the first call. Its arrays are views of operands and own nothing. Memory that it
allocates during a call comes from the pool of the stream that the call runs on, so that both
libraries share one pool, and goes back to it in stream order.
"""

import functools
import importlib

from gputensor._alloc.foreign import raw_alloc, raw_delete
from gputensor._arrays.element_types import DTYPES
from gputensor.errors import GpuTensorError

__all__ = ["MissingEngineError", "run", "view"]

_NUMPY = {row.name: row.numpy for row in DTYPES}


class MissingEngineError(GpuTensorError, ImportError):
    """A function needs CuPy on CUDA devices, and CuPy cannot be imported."""


@functools.cache
def library(name):
    """Return CuPy; MissingEngineError says that function `name` needs it and how to install it."""
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise MissingEngineError(
            f"{name}: CUDA devices need CuPy: pip install 'gputensor[cuda12]', or "
            f"'gputensor[cuda13]' with CUDA 13 ({error})"
        ) from error


def view(cupy, operand, device):
    """Return a CuPy array over the memory of a `CallOperand`.

    Parameters
    ----------
    cupy : module
    operand : CallOperand
    device : int
    """
    dtype = _NUMPY[operand.dtype]
    if 0 in operand.shape:
        return cupy.empty(operand.shape, dtype)
    strides = [step * dtype.itemsize for step in operand.strides]
    reach = [(n - 1) * step for n, step in zip(operand.shape, strides, strict=True)]
    low = sum(one for one in reach if one < 0)
    nbytes = sum(one for one in reach if one > 0) - low + dtype.itemsize
    memory = cupy.cuda.UnownedMemory(operand.address + low, nbytes, None, device)
    place = cupy.cuda.MemoryPointer(memory, -low)
    return cupy.ndarray(operand.shape, dtype, place, tuple(strides))


def _free(address, _device):
    """Give memory back. A function of the module, which no garbage collection clears.

    Arrays that a traceback keeps are freed by the garbage collector. A function that is garbage
    together with them has lost its globals when CuPy calls it, and the process would crash.
    """
    raw_delete(address)


def _allocator(cupy, stream):
    """Return an allocator for CuPy that takes memory from ours, on `stream`."""

    def malloc(nbytes, device):
        return raw_alloc(device, nbytes, stream)

    return cupy.cuda.PythonFunctionAllocator(malloc, _free).malloc


def run(engine, device, stream, attributes, operands):
    """Queue an engine on a CUDA stream; CuPy waits for the device where its algorithm has to.

    Parameters
    ----------
    engine : Engine
    device, stream : int
        The number of the device and the handle of the stream.
    attributes : tuple
    operands : sequence of CallOperand or None
        The operands that are written, then those that are read.
    """
    cupy = library(engine.title(attributes))
    errstate = importlib.import_module("cupyx").errstate
    on_stream = cupy.cuda.ExternalStream(stream) if stream else cupy.cuda.Stream.null
    with (
        cupy.cuda.Device(device),
        on_stream,
        cupy.cuda.using_allocator(_allocator(cupy, stream)),
        errstate(linalg="raise"),
    ):
        arrays = [one and view(cupy, one, device) for one in operands]
        engine.function(cupy, *attributes, *arrays)
