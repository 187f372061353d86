"""Objects with `__cuda_array_interface__`, true and lying.

True ones describe views of a tensor on a CUDA device and are compared with NumPy's view of its
values. Without a CUDA device they have to fail for that reason alone, after all checks of their
fields; the programs of test_foreign_fuzz.py also run on a driver made for tests.
"""

import os
import sys

import numpy as np

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from gputensor._driver import registry
from gputensor.errors import DeviceError
from tests.interop.capsule_cases import (
    ARENA_NBYTES,
    check_values,
    check_writable,
    pick,
    random_view,
    view_of,
)

CLEAR = (BufferError, TypeError, ValueError)
KINDS = [row.numpy for row in DTYPES if row.kind != "small" or row.numpy.name == "bfloat16"]
# A driver made for tests compiles each kernel with g++, so there only these dtypes are computed on.
COMPUTED = {"float32"} if "GPUTENSOR_LIBCUDA" in os.environ else {dtype.name for dtype in KINDS}
MISSING = object()


class Foreign:
    """An object with only the interface, which may raise instead of returning it."""

    def __init__(self, interface):
        self.interface = interface

    @property
    def __cuda_array_interface__(self):
        if isinstance(self.interface, type):
            raise self.interface("planted")
        return self.interface


class Odd(dict):
    """A dict whose methods must not be called."""

    def get(self, *_):
        raise AssertionError("a method of the producer's dict was called")

    __getitem__ = __contains__ = __iter__ = keys = items = get


def make_arena(rng):
    """Random bytes, and zeros and ones for bool: values on the host, and their address."""
    found = []
    has_cuda = registry.cuda_device_count() > 0
    for high in (256, 2):
        values = rng.integers(0, high, ARENA_NBYTES).astype(np.uint8)
        tensor = gt.asarray(values, device="cuda" if has_cuda else "host")
        found.append((values, tensor, tensor.data_ptr()))
    return found


def typestr(rng, dtype):
    """One of the names of a dtype."""
    if dtype.name == "bfloat16":
        return "<V2"
    orders = "<|=" if dtype.itemsize == 1 else "<="
    return pick(rng, orders) + dtype.str[1:]


def true_interface(rng, arena, dtype):
    """The fields for a random view, and NumPy's view of the same memory."""
    values, _, address = arena[dtype.kind == "b"]
    shape, strides, first = random_view(rng, dtype)
    room = ARENA_NBYTES // dtype.itemsize - int(np.prod(shape, dtype=np.int64))
    if room >= 0 and rng.random() < 0.4:
        given = None
        first = int(rng.integers(0, room + 1))
        expected = np.ndarray(shape, dtype, values, first * dtype.itemsize)
    else:
        given = tuple(
            s * dtype.itemsize if n > 1 else int(rng.integers(-99, 99))
            for n, s in zip(shape, strides, strict=True)
        )
        expected = view_of(values, dtype, shape, strides, first)
    ptr = address + first * dtype.itemsize
    if expected.size == 0:
        ptr = pick(rng, (0, None, ptr, 1))
    interface = {
        "shape": pick(rng, (tuple, list))(pick(rng, (int, np.int64))(n) for n in shape),
        "typestr": typestr(rng, dtype),
        "data": (ptr, bool(rng.random() < 0.4)),
        "strides": given,
        "version": int(rng.integers(0, 4)),
        "stream": pick(rng, (None, 1)),
        "mask": None,
        "descr": [("", dtype.str)],
    }
    for optional in ("strides", "stream", "mask", "descr"):
        if interface[optional] is None and rng.random() < 0.3:
            del interface[optional]
    return interface, expected


def lies_about(rng, interface, expected):
    """Pairs of a field and an impossible value, for the fields of a true interface."""
    itemsize, shape = expected.itemsize, tuple(interface["shape"])
    ptr, is_read_only = interface["data"]
    wrong = (-(1 << 63), (1 << 63) - itemsize, 1 << 70, 1.5, "a", None)
    yield "shape", pick(rng, (None, 5, "ab", b"", {}, MISSING, (1,) * 17, (1 << 70,), (1.5,)))
    yield "shape", pick(rng, ((-1,), (2, -2), (1 << 40, 1 << 40), (0, 1 << 62, 1 << 62), (None,)))
    yield "typestr", pick(rng, (None, 5, "", "<", "f", "<f3", ">f4", "<x4", "float32", "<f4,<f4"))
    yield "typestr", pick(rng, ("<O8", "<M8[s]", b"<f4", "<V4", "|S4", "<U1", MISSING, "f4"))
    yield "data", pick(rng, (None, 5, (), (1,), (ptr, True, 3), ("a", False), (-1, False), MISSING))
    yield "data", pick(rng, ((1 << 64, False), (ptr, 5), (ptr, None), (1.5, False), "ab"))
    yield "version", pick(rng, (None, "3", -1, 4, 1 << 70, 1.0, True, MISSING))
    yield "mask", pick(rng, (0, False, Foreign({}), ()))
    yield "stream", pick(rng, (0, -1, "a", 1.5, 1 << 64, 1 << 70, ()))
    yield "strides", pick(rng, (5, "ab", 1.5, (1,) * (len(shape) + 1), (1,) * 40))
    if shape:
        strides = [itemsize] * len(shape)
        yield "strides", strides[1:]
        strides[int(rng.integers(len(shape)))] = pick(rng, wrong[2:])
        yield "strides", tuple(strides)
    if expected.size:
        yield "data", pick(rng, ((0, False), ((1 << 63), False), (None, True)))
        yield "data", ((1 << 64) - itemsize, is_read_only)
        long = [i for i, extent in enumerate(shape) if extent > 1]
        if long:
            strides = [itemsize] * len(shape)
            strides[pick(rng, long)] = pick(rng, wrong[:2])
            yield "strides", strides
        if long and itemsize > 1:
            strides = [itemsize] * len(shape)
            strides[pick(rng, long)] = itemsize + 1
            yield "strides", strides
        if itemsize > 1:
            yield "data", (ptr + 1, is_read_only)


def one_program(rng, arena):
    """Import one object, true or lying; returns the field that lies, or "true"."""
    dtype = pick(rng, KINDS)
    interface, expected = true_interface(rng, arena, dtype)
    way = "true"
    if rng.random() < 0.6:
        way, value = pick(rng, [*lies_about(rng, interface, expected), ("all", None)])
        if way == "all":
            interface = pick(rng, (None, {}, [], 5, "ab", ValueError, KeyError, [("shape", ())]))
        elif value is MISSING:
            del interface[way]
        else:
            interface[way] = value
    if isinstance(interface, dict) and rng.random() < 0.1:
        interface = Odd(interface)
    foreign = Foreign(interface)
    before = sys.getrefcount(foreign)
    if way != "true":
        try:
            gt.asarray(foreign)
        except (KeyError, *CLEAR) as error:
            assert str(error), way
            assert not isinstance(error, KeyError) or "planted" in str(error), way
        else:
            raise AssertionError(f"{way}: accepted: {interface}")
    elif registry.cuda_device_count() == 0:
        try:
            gt.asarray(foreign)
        except DeviceError as error:
            assert "no CUDA" in str(error)
    else:
        check_true(gt.asarray(foreign), interface, expected)
        gt.synchronize()
        # The next import releases the memory that finished work used.
        gt.from_dlpack(np.zeros(1))
    assert sys.getrefcount(foreign) == before, way
    return way


def check_true(x, interface, expected):
    """Check the values, that the memory is shared, and whether it may be written."""
    ptr, is_read_only = dict.get(interface, "data")
    assert x.shape == expected.shape and x.dtype == expected.dtype
    assert not expected.size or x.data_ptr() == ptr
    if x.is_contiguous or x.dtype.name in COMPUTED:
        check_values(x, expected)
    if x.dtype.name in COMPUTED:
        check_writable(x, is_read_only)
