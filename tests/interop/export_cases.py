"""Consumers that call `Tensor.__dlpack__` with good or bad arguments, and read the capsule."""

import ctypes
import sys

import numpy as np

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from tests.interop.capsule_cases import (
    DLTensor,
    Plain,
    Versioned,
    name_of,
    pick,
    random_view,
    view_of,
)

CLEAR = (BufferError, TypeError, ValueError)
MISSING = object()
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


class Version(tuple):
    """A pair whose own methods lie about it."""

    def __getitem__(self, _):
        return 99

    def __len__(self):
        return 0


GOOD = {
    "max_version": (None, (0, 9), (1, 0), (1, 3), (2, 0), [1, 0], (np.int64(1), 0), (-1, 0)),
    "dl_device": (None, (1, 0), [1, 0], (np.int8(1), 0)),
    "copy": (None, True, False, np.True_),
    "stream": (None, -1, 1, 2, 0, 1 << 40),
}
BAD = {
    "max_version": ((), (1,), (1, 0, 0), 1, "10", (None, 0), (1, "a"), (1.5, 0), {1: 2}, object()),
    "dl_device": ((), (1,), 5, "cpu", (1, 0, 0), (1.5, 0), (2, 0), (1, 1), (1 << 70, 0), (-1, -1)),
    "copy": ("no", 1, 0, 1.5, (), object(), "yes"),
    "stream": ("a", 1.5, (), -2, 1 << 64, 1 << 70, object()),
}


def make_arena(rng):
    """Random bytes, and zeros and ones for bool."""
    return [rng.integers(0, high, 4096).astype(np.uint8) for high in (256, 2)]


def one_program(rng, arena):
    """Export one tensor; returns the bad argument, or "true"."""
    dtype = DTYPES[rng.integers(len(DTYPES))].numpy
    shape, strides, first = random_view(rng, dtype)
    expected = view_of(arena[dtype.kind == "b"], dtype, shape, strides, first)
    x = gt.asarray(expected, device="host")
    arguments = {name: pick(rng, values) for name, values in GOOD.items() if rng.random() < 0.5}
    if isinstance(arguments.get("max_version"), tuple) and rng.random() < 0.1:
        arguments["max_version"] = Version(arguments["max_version"])
    way = "true"
    if rng.random() < 0.5:
        way = pick(rng, [*BAD])
        arguments[way] = pick(rng, BAD[way])
    before = sys.getrefcount(x)
    try:
        capsule = x.__dlpack__(**arguments)
    except CLEAR as error:
        assert way != "true" and str(error), (arguments, error)
        assert sys.getrefcount(x) == before, arguments
        return way
    assert way == "true", f"accepted: {arguments}"
    check_capsule(capsule, x, expected, arguments)
    del capsule
    assert sys.getrefcount(x) == before, arguments
    return way


def check_capsule(capsule, x, expected, arguments):
    """The capsule has the requested form, and its address holds the values."""
    version = arguments.get("max_version")
    is_versioned = version is not None and tuple(version)[0] >= 1
    assert name_of(capsule) == (b"dltensor_versioned" if is_versioned else b"dltensor")
    address = pointer_of(capsule, name_of(capsule))
    managed = (Versioned if is_versioned else Plain).from_address(address)
    tensor: DLTensor = managed.tensor
    assert (tensor.device_type, tensor.device_id, tensor.lanes) == (1, 0, 1)
    assert tensor.ndim == expected.ndim and tensor.bits == 8 * expected.itemsize
    is_copy = bool(arguments.get("copy"))
    assert is_copy == (tensor.data != x.data_ptr()) or not expected.size
    if is_versioned:
        assert (managed.major, managed.flags) == (1, 2 * is_copy)
    shape = (ctypes.c_int64 * tensor.ndim).from_address(tensor.shape)[:] if tensor.ndim else []
    assert tuple(shape) == expected.shape
    if expected.size:
        # Row-major, as asarray made it.
        found = ctypes.string_at(tensor.data + tensor.byte_offset, expected.nbytes)
        assert found == expected.tobytes()
