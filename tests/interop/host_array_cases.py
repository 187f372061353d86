"""Host memory of others, true and lying: the buffer protocol, `__array__`, `__array_interface__`.

NumPy reads most of them, so the result of its `asarray` is the reference. Addresses in
`__array_interface__` with no memory behind them are left out: no consumer can detect them.
"""

import array
import ctypes
import sys

import numpy as np

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from gputensor.errors import DeviceError
from tests.interop.capsule_cases import check_values, check_writable, pick, random_view, view_of

CLEAR = (BufferError, TypeError, ValueError, OverflowError, DeviceError)
PLAIN = [row.numpy for row in DTYPES if row.kind != "small" and row.numpy.kind != "V"]
ARENA_ITEMS = 4096


def make_arena(rng):
    """Random bytes, and zeros and ones for bool."""
    return [rng.integers(0, high, ARENA_ITEMS).astype(np.uint8) for high in (256, 2)]


def random_array(rng, arena, kinds=PLAIN):
    dtype = pick(rng, kinds)
    shape, strides, first = random_view(rng, dtype)
    return view_of(arena[dtype.kind == "b"], dtype, shape, strides, first)


# ---- buffers


def new_buffer(rng, arena):
    """A buffer of a random kind: its kind, the object, and whether it can be read."""
    size = int(rng.integers(0, 40))
    values = bytes(arena[0][:size])
    kind = pick(rng, ("bytes", "bytearray", "array", "cast", "sliced", "ctypes", "view", "odd"))
    if kind == "array":
        code = pick(rng, "bBhHiIlLqQfd")
        return kind, array.array(code, [int(v) & 63 for v in values]), True
    if kind == "cast":
        format = pick(rng, "bBhHiIlLqQfd?")
        source = arena[format == "?"]
        nbytes = np.dtype(format).itemsize * 12
        shape = pick(rng, ([12], [3, 4], [2, 3, 2], [1, 12], [12, 1, 1]))
        return kind, memoryview(source[:nbytes]).cast("B").cast(format, shape), True
    if kind == "sliced":
        step = pick(rng, (-3, -2, -1, 2, 3, 7))
        return kind, memoryview(bytearray(values))[::step], True
    if kind == "ctypes":
        number = pick(rng, (ctypes.c_int8, ctypes.c_uint16, ctypes.c_int32, ctypes.c_double))
        return kind, (number * 3 * size)(), True
    if kind == "view":
        return kind, memoryview(random_array(rng, arena)), True
    if kind == "odd":
        return kind, odd_buffer(rng, values), False
    return kind, {"bytes": bytes, "bytearray": bytearray}[kind](values), True


class Pair(ctypes.Structure):
    """Defined once: of many such classes, ctypes keeps a varying number alive."""

    _fields_ = (("first", ctypes.c_int32), ("second", ctypes.c_float))


def odd_buffer(rng, values):
    """A buffer that no tensor can represent: of structures, characters or pointers, or released."""
    released = memoryview(values)
    released.release()
    return pick(
        rng,
        (
            (Pair * 3)(),
            (ctypes.c_char_p * 2)(),
            (ctypes.c_wchar * 2)(),
            (ctypes.c_int32.__ctype_be__ * 3)(),
            memoryview(bytes(8)).cast("c"),
            memoryview(bytes(8)).cast("P"),
            memoryview(np.zeros(3, "M8[s]").view("V8")),
            memoryview(np.array([1, "a"], dtype=object)),
            released,
        ),
    )


def one_buffer(rng, arena):
    """Read and share one buffer; returns its kind."""
    kind, buffer, is_readable = new_buffer(rng, arena)
    before = sys.getrefcount(buffer)
    if not is_readable:
        for copy in (None, False):
            try:
                expected = np.asarray(buffer)
                x = gt.asarray(buffer, copy=copy, device="host")
            except CLEAR as error:
                assert str(error), kind
            else:
                # NumPy converts some of them: from the other byte order, and from pointers to ints.
                assert copy is None, f"{kind}: {buffer!r} was shared"
                assert x.numpy().tolist() == expected.tolist()
                del x
            expected = None
        assert sys.getrefcount(buffer) == before, buffer
        return kind
    # NumPy reads bytes as one string; a tensor holds their numbers.
    expected = np.asarray(memoryview(buffer))
    x = gt.asarray(buffer, device="host")
    check_values(x, expected)
    check_writable(x, False)
    try:
        x = gt.asarray(buffer, copy=False)
    except ValueError as error:
        assert expected.ctypes.data % expected.itemsize or "multiple" in str(error), error
    else:
        check_values(x, expected)
        check_writable(x, not expected.flags.writeable)
        check_locked(buffer, expected)
    del x, expected
    assert sys.getrefcount(buffer) == before, kind
    if kind == "bytearray":
        buffer.append(1)  # no tensor holds it any more
    return kind


def check_locked(buffer, expected):
    """A bytearray cannot move while a tensor shares it."""
    if type(buffer) is not bytearray or not expected.size:
        return
    try:
        buffer.extend(bytes(4096))
    except BufferError:
        return
    raise AssertionError("a bytearray grew under its tensor")


# ---- objects that make arrays of themselves


class Maker:
    """An object with `__array__`."""

    def __init__(self, *answers):
        self.answers = answers
        self.calls = 0

    def __array__(self, dtype=None, copy=None):
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        if isinstance(answer, type):
            raise answer("planted")
        return answer


class Described:
    """An object with `__array_interface__` over a buffer, so that its extent is known."""

    def __init__(self, interface):
        self.__array_interface__ = interface


class Liar(np.ndarray):
    """An array whose attributes lie."""

    shape = property(lambda self: (1 << 40,) * 20)
    strides = property(lambda self: (1 << 50,))
    dtype = property(lambda self: np.dtype("complex128"))
    flags = property(lambda self: None)
    ndim = property(lambda self: -1)
    size = property(lambda self: 1 << 60)
    nbytes = property(lambda self: 1 << 60)
    __array_interface__ = property(lambda self: {"data": (64, False), "shape": (9,)})

    def __array__(self, *_, **__):
        raise AssertionError("__array__ of a subclass of ndarray was called")


def true_maker(rng, arena):
    """An object that makes an array of itself, and the array."""
    a = random_array(rng, arena)
    kind = pick(rng, ("maker", "other order", "read-only", "changing", "liar", "described"))
    if kind == "other order":
        return Maker(a.astype(a.dtype.newbyteorder())), a
    if kind == "read-only":
        a.flags.writeable = False
    if kind == "changing":
        return Maker(a, np.zeros(7), None), a
    if kind == "liar":
        return a.view(Liar), a
    if kind == "described":
        data = np.ascontiguousarray(a)
        interface = {"shape": a.shape, "typestr": a.dtype.str, "version": 3}
        if a.size:
            interface["data"] = memoryview(data.reshape(-1).view(np.uint8))
            return Described(interface), a
    return Maker(a), a


def false_maker(rng, arena):
    """An object from which no tensor can be made."""
    answers = (None, 5, [1, 2], "ab", np.array([None]), np.array([1, "a"], object), object())
    kind = int(rng.integers(4))
    if kind == 0:
        return Maker(pick(rng, answers))
    if kind == 1:
        other = (np.zeros(2, "M8[s]"), np.zeros(2, "U3"), np.zeros(2, "S3"), np.zeros(2, "V3"))
        structures = (np.zeros(2, [("a", "f4")]), np.zeros(2, "g"), np.zeros((1,) * 20, "f4"))
        return Maker(pick(rng, other + structures))
    if kind == 2:
        return Maker(pick(rng, (ValueError, TypeError, BufferError, OverflowError)))
    memory = memoryview(bytes(16))
    interface = {"shape": (2,), "typestr": "<f8", "data": memory, "version": 3}
    interface |= pick(
        rng,
        (
            {"shape": (3,)}, {"shape": (-1,)}, {"shape": None}, {"shape": 5}, {"shape": (1.5,)},
            {"shape": (1 << 40, 1 << 40)}, {"strides": (8, 8)}, {"strides": (16,)},
            {"strides": "ab"}, {"typestr": None}, {"typestr": "<f3"}, {"typestr": "<O8"},
            {"data": (None, True)}, {"data": ("a", True)}, {"data": (1, 2, 3)}, {"offset": 8},
            {"shape": (1 << 70,)}, {"offset": "a"}, {"offset": -8},
        ),
    )  # fmt: skip
    return Described(interface)


def one_array(rng, arena):
    """Make a tensor of one object; returns its kind."""
    if rng.random() < 0.5:
        maker, expected = true_maker(rng, arena)
        before = sys.getrefcount(maker)
        check_values(gt.asarray(maker, device="host"), expected)
        if type(maker) is Liar:
            aligned = expected.size == 0 or not expected.ctypes.data % expected.itemsize
            if aligned:
                check_values(gt.asarray(maker, copy=False), expected)
        kind = type(maker).__name__
    else:
        maker = false_maker(rng, arena)
        kind = f"lying {type(maker).__name__}"
        before = sys.getrefcount(maker)
        for copy in (None, False):
            try:
                gt.asarray(maker, copy=copy, device="host")
            except CLEAR as error:
                assert str(error), kind
            else:
                raise AssertionError(f"{kind}: accepted: {vars(maker)}")
    assert sys.getrefcount(maker) == before, kind
    return kind
