"""DLPack producers in ctypes, true and lying, that count how often their deleter runs.

Each program of `one_program` makes a producer, imports from it, and checks a consumer's duties:
values as in NumPy's view of the same memory and one call of the deleter, or one clear exception and
an unused capsule; shape and strides read only during the import; no reference kept.
"""

import ctypes
import sys

import numpy as np

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from gputensor.errors import DeviceError

ARENA_NBYTES = 4096
CODES = {"bool": 6, "int": 0, "uint": 1, "float": 2, "complex": 5}
SPECIAL = {"bfloat16": (4, 16), "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8)}
CLEAR = (BufferError, TypeError, ValueError, DeviceError)
HUGE = (1 << 40, 1 << 62, (1 << 63) - 1)


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Plain(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)

deleted: list[int] = []
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda address: deleted.append(address))
DELETER_ADDRESS = ctypes.cast(DELETER, ctypes.c_void_p).value


def random_view(rng, dtype):
    """A shape, strides in elements, and the first element, inside the arena."""
    room = ARENA_NBYTES // dtype.itemsize
    shape, strides, below, above = [], [], 0, 0
    for _ in range(rng.integers(0, 6)):
        extent = int(rng.choice([0, 1, 1, 2, 3, 4]))
        stride = int(rng.integers(-12, 13))
        reach = max(extent - 1, 0) * stride
        if above - below + abs(reach) >= room:
            continue
        below, above = below + min(reach, 0), above + max(reach, 0)
        if extent < 2 and rng.random() < 0.3:
            stride = int(rng.choice([-(1 << 63), (1 << 63) - 1, 12345678901]))
        shape.append(extent)
        strides.append(stride)
    return shape, strides, int(rng.integers(-below, room - above))


def view_of(arena, dtype, shape, strides, first):
    """NumPy's view of the arena; strides of axes below two elements are arbitrary and replaced."""
    used = [s * dtype.itemsize if n > 1 else 0 for n, s in zip(shape, strides, strict=True)]
    return np.ndarray(shape, dtype, arena, first * dtype.itemsize, used)


class Producer:
    """An array whose capsule has no destructor, so that only a consumer calls the deleter."""

    def __init__(self, rng, memory, dtype):
        self.dtype = dtype
        arena, address, self.device = memory
        shape, strides, first = random_view(rng, dtype)
        self.expected = view_of(arena, dtype, shape, strides, first)
        if self.expected.nbytes <= ARENA_NBYTES and rng.random() < 0.3:
            strides = None
            first = int(rng.integers(0, ARENA_NBYTES // dtype.itemsize - self.expected.size + 1))
            self.expected = np.ndarray(shape, dtype, arena, first * dtype.itemsize)
        self.is_versioned = bool(rng.random() < 0.5)
        self.managed = Versioned() if self.is_versioned else Plain()
        self.managed.deleter = DELETER_ADDRESS
        self.is_read_only = not self.is_versioned
        if self.is_versioned:
            self.managed.major, self.managed.minor = 1, int(rng.integers(0, 9))
            self.is_read_only = bool(rng.random() < 0.5)
            self.managed.flags = int(self.is_read_only) + 2 * int(rng.integers(0, 2))
        tensor = self.managed.tensor
        (tensor.device_type, tensor.device_id), tensor.ndim = self.device, len(shape)
        kind = next(row.kind for row in DTYPES if row.numpy == dtype)
        pair = SPECIAL.get(dtype.name) or (CODES[kind], dtype.itemsize * 8)
        tensor.code, tensor.bits, tensor.lanes = *pair, 1
        self.set_shape(shape)
        if strides is not None:
            self.strides = (ctypes.c_int64 * max(len(strides), 1))(*strides)
            tensor.strides = ctypes.addressof(self.strides)
        # Part of the way to the first element is in the address, part in the offset.
        whole = first * dtype.itemsize
        offset = int(rng.integers(0, whole + 1)) if rng.random() < 0.5 else 0
        tensor.data, tensor.byte_offset = address + whole - offset, offset
        self.name = b"dltensor_versioned" if self.is_versioned else b"dltensor"
        self.answer = None
        self.error = None

    def set_shape(self, shape):
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.managed.tensor.shape = ctypes.addressof(self.shape)

    def make_capsule(self):
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)
        return self.capsule

    def __dlpack__(self, **arguments):
        if self.error is not None:
            raise self.error("planted")
        return self.make_capsule() if self.answer is None else self.answer[0]

    def __dlpack_device__(self):
        if isinstance(self.device, type):
            raise self.device("planted")
        return self.device

    def forget_description(self):
        """Overwrite the fields that a consumer may read only during the import."""
        for numbers in (self.shape, getattr(self, "strides", ())):
            for i in range(len(numbers)):
                numbers[i] = -(1 << 63)
        self.managed.tensor.ndim = -1


def spoil(rng, producer):
    """Make a true producer lie in one way; returns the name of the lie."""
    ways = [way for way in LIES if LIES[way](rng, producer, True)]
    way = ways[rng.integers(len(ways))]
    LIES[way](rng, producer, False)
    return way


def lie(is_possible, tell):
    return lambda rng, producer, ask: is_possible(producer) if ask else tell(rng, producer)


def pick(rng, values):
    return values[rng.integers(len(values))]


def set_field(name, values):
    def tell(rng, producer):
        setattr(producer.managed.tensor, name, pick(rng, values))

    return tell


def always(_):
    return True


def is_full(producer):
    return producer.expected.size > 0


def has_strides(producer):
    return hasattr(producer, "strides") and is_full(producer) and producer.expected.size > 1


def has_axes(producer):
    return producer.expected.ndim > 0


def bad_extent(rng, producer):
    producer.shape[rng.integers(producer.expected.ndim)] = pick(rng, (-1, -2, -(1 << 63), HUGE[2]))


def bad_product(rng, producer):
    count = int(rng.integers(2, 17))
    producer.managed.tensor.ndim = count
    producer.managed.tensor.strides = None
    producer.set_shape([pick(rng, HUGE) for _ in range(count)])
    if rng.random() < 0.3:
        producer.shape[rng.integers(count)] = 0
        if count < 3:
            producer.managed.tensor.ndim = -1


def bad_stride(rng, producer):
    axes = [i for i, extent in enumerate(producer.expected.shape) if extent > 1]
    value = pick(rng, (*HUGE, *(-value for value in HUGE), -(1 << 63)))
    # 2**40 elements may lie in the address space.
    producer.strides[pick(rng, axes)] = value if abs(value) > 1 << 60 else value << 20


def bad_offset(rng, producer):
    tensor = producer.managed.tensor
    tensor.byte_offset = pick(rng, ((1 << 64) - tensor.data, (1 << 64) - 16, 1 << 63))


def bad_version(rng, producer):
    producer.managed.major = pick(rng, (0, 2, 3, (1 << 32) - 1))


def bad_name(rng, producer):
    used = b"used_" + producer.name
    producer.name = pick(rng, (None, b"", b"dl", b"DLTENSOR", used, b"dltensor_versione"))


def bad_answer(rng, producer):
    producer.answer = (pick(rng, (None, 3, "dltensor", b"", object(), (), {}, np.zeros(2))),)


def bad_error(rng, producer):
    producer.error = pick(rng, (ValueError, TypeError, BufferError))


def bad_device_type(rng, producer):
    other = 3 - producer.device[0]  # a CPU's memory on a GPU, and a GPU's on the CPU
    producer.managed.tensor.device_type = pick(rng, (0, other, 4, 10, 13, -1, 1 << 30))


def bad_device(rng, producer):
    producer.device = pick(
        rng,
        (None, (), (1,), (1, 0, 0), "ab", (1.5, 0), 7, (None, None), (2, -1), (2, -2), (2, 1 << 40),
         (1, -1), (1 << 70, 0), (0, 0), (4, 0), (-1, 0), (1, 1 << 70), ("a", 0), [object(), 1],
         ValueError, TypeError, {1: 2}),
    )  # fmt: skip


LIES = {
    "ndim": lie(always, set_field("ndim", (-1, -(1 << 31), 17, 1000, (1 << 31) - 1))),
    "no shape": lie(has_axes, set_field("shape", (None,))),
    "no data": lie(is_full, set_field("data", (None,))),
    "data": lie(is_full, set_field("data", ((1 << 64) - 16, 1 << 63, (1 << 63) + 64))),
    "alignment": lie(
        lambda producer: is_full(producer) and producer.dtype.itemsize > 1,
        lambda rng, producer: setattr(
            producer.managed.tensor, "data", producer.managed.tensor.data + 1
        ),
    ),
    "code": lie(always, set_field("code", (3, 7, 8, 9, 11, 13, 14, 17, 255))),
    "bits": lie(always, set_field("bits", (0, 1, 4, 6, 7, 12, 15, 63, 65, 255))),
    "lanes": lie(always, set_field("lanes", (0, 2, 4, 65535))),
    "device type": lie(always, bad_device_type),
    "extent": lie(has_axes, bad_extent),
    "product": lie(always, bad_product),
    "stride": lie(has_strides, bad_stride),
    "offset": lie(is_full, bad_offset),
    "version": lie(lambda producer: producer.is_versioned, bad_version),
    "name": lie(always, bad_name),
    "answer": lie(always, bad_answer),
    "error": lie(always, bad_error),
    "device": lie(always, bad_device),
}


def one_program(rng, arena):
    """Import from one producer, true or lying; returns the lie, or "true"."""
    dtype = DTYPES[rng.integers(len(DTYPES))].numpy
    producer = Producer(rng, arena[dtype.kind == "b"], dtype)
    is_lying = rng.random() < 0.6
    way = spoil(rng, producer) if is_lying else "true"
    before = sys.getrefcount(producer)
    deleted.clear()
    if is_lying:
        try:
            pick(rng, (gt.from_dlpack, gt.asarray, shared))(producer)
        except CLEAR as error:
            assert str(error), way
        else:
            raise AssertionError(f"{way}: accepted")
        assert not deleted, f"{way}: deleted what was not taken"
        if producer.name and hasattr(producer, "capsule"):
            assert name_of(producer.capsule) == producer.name, f"{way}: the capsule was used up"
        assert sys.getrefcount(producer) == before, way
        return way
    is_copy = bool(rng.random() < 0.2)
    assume = bool(rng.random() < 0.3)
    if rng.random() < 0.3:
        assume = False
        x = gt.asarray(producer, copy=True) if is_copy else shared(producer)
    else:
        x = gt.from_dlpack(producer, copy=True if is_copy else None, assume_writable=assume)
    producer.forget_description()
    check_values(x, producer.expected)
    settle(producer)
    assert len(deleted) == int(is_copy)
    if not is_copy:
        check_writable(x, producer.is_read_only and not (assume and not producer.is_versioned))
        try:
            gt.from_dlpack(Again(producer))
        except BufferError as error:
            assert "unused" in str(error)
        else:
            raise AssertionError("a used capsule was taken again")
    kept = x[..., None] if rng.random() < 0.3 else None
    del x
    if kept is not None and not is_copy:
        assert not deleted
    del kept
    settle(producer)
    assert deleted == [ctypes.addressof(producer.managed)]
    assert sys.getrefcount(producer) == before
    return way


def shared(producer):
    return gt.asarray(producer, copy=False)


class Again:
    """A producer that returns the same capsule each time."""

    def __init__(self, producer):
        self.capsule, self.device = producer.capsule, producer.device

    def __dlpack__(self, **arguments):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


def settle(producer):
    """Wait for work on a GPU; the next import releases the memory that finished work used."""
    if producer.device[0] == 2:
        gt.synchronize("cuda")
        gt.from_dlpack(np.zeros(1))


def check_values(x, expected):
    """Shape, dtype and each byte, NaN payloads too."""
    assert x.shape == expected.shape and x.dtype == expected.dtype, (x.shape, expected.shape)
    assert x.numpy().tobytes() == expected.tobytes()


def check_writable(x, is_read_only):
    """Write the present elements again, and check whether that is allowed."""
    if any(s == 0 and n > 1 for n, s in zip(x.shape, x.strides, strict=True)):
        return  # refused because elements overlap
    try:
        x[...] = x.copy()
    except ValueError as error:
        assert is_read_only and "read-only" in str(error), error
    else:
        assert not is_read_only


def make_arena(rng):
    """Random bytes, and zeros and ones for bool: values on the host, an address, a device."""
    found = []
    for high in (256, 2):
        memory = np.empty(ARENA_NBYTES + 64, np.uint8)
        start = -memory.ctypes.data % 64
        memory[:] = rng.integers(0, high, memory.size)
        values = memory[start : start + ARENA_NBYTES]
        found.append((values, values.ctypes.data, (1, 0)))
    return found


def make_cuda_arena(rng):
    """The same on a CUDA device; the last entry keeps the tensors alive."""
    found = make_arena(rng)
    kept = [gt.asarray(values, device="cuda") for values, _, _ in found]
    pairs = zip(found, kept, strict=True)
    return [(values, x.data_ptr(), x.__dlpack_device__()) for (values, _, _), x in pairs] + [kept]
