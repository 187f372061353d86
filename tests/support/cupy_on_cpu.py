"""A stand-in for CuPy on a simulated GPU, whose memory is that of the process: NumPy on views.

Before a call runs, the work that its stream has to wait for is finished, so that its results do not
depend on the order in which the simulated GPU runs queued work.
"""

import contextlib
import ctypes
import importlib
import sys
import types

import numpy as np

from tests.support.driver_calls import Calls

__all__ = ["allocations", "install"]

#: (device, bytes) of each allocation that the stand-in made through the allocator of a call.
allocations = []


class UnownedMemory:
    """An address with another owner."""

    def __init__(self, address, nbytes, owner, device):
        self.address, self.nbytes = address, nbytes


class MemoryPointer:
    """A place in memory."""

    def __init__(self, memory, offset):
        self.memory, self.offset = memory, offset


def ndarray(shape, dtype, place, strides):
    """Return a NumPy array over memory, whose bounds are checked."""
    raw = (ctypes.c_char * place.memory.nbytes).from_address(place.memory.address)
    return np.ndarray(shape, dtype, raw, place.offset, strides)


class ExternalStream:
    """A stream of the simulated GPU, by its handle."""

    def __init__(self, handle):
        self.handle = handle

    def __enter__(self):
        assert Calls(0).stream_synchronize(self.handle) == 0

    def __exit__(self, *error):
        return False


@contextlib.contextmanager
def using_allocator(allocator):
    """Take memory and give it back once, as a call would."""
    pointer = allocator(4096)
    allocations.append((0, 4096))
    yield
    del pointer


class PythonFunctionAllocator:
    """Allocates memory with functions."""

    def __init__(self, malloc, free):
        self.functions = malloc, free

    def malloc(self, nbytes):
        malloc, free = self.functions
        address = malloc(nbytes, 0)

        class Pointer:
            def __del__(self):
                free(address, 0)

        return Pointer()


def install(monkeypatch):
    """Put the stand-in in the place of CuPy until the test ends."""
    module = types.ModuleType("cupy")
    module.__getattr__ = lambda name: getattr(np, name)
    module.ndarray = ndarray
    module.asnumpy = np.asarray
    module.cuda = types.SimpleNamespace(
        Device=lambda number: contextlib.nullcontext(),
        ExternalStream=ExternalStream,
        MemoryPointer=MemoryPointer,
        PythonFunctionAllocator=PythonFunctionAllocator,
        Stream=types.SimpleNamespace(null=ExternalStream(0)),
        UnownedMemory=UnownedMemory,
        using_allocator=using_allocator,
    )
    extra = types.ModuleType("cupyx")
    extra.errstate = lambda **how: contextlib.nullcontext()
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setitem(sys.modules, "cupyx", extra)
    with contextlib.suppress(ImportError):
        monkeypatch.setitem(
            sys.modules, "cupyx.scipy.linalg", importlib.import_module("scipy.linalg")
        )
