"""DLPack's C exchange table, called through ctypes as a C library would call it."""

import ctypes as c
import gc

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same, random_array


class Device(c.Structure):
    _fields_ = [("type", c.c_int32), ("id", c.c_int32)]


class DataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class DLTensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p), ("device", Device), ("ndim", c.c_int32), ("dtype", DataType),
        ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]  # fmt: skip


class Managed(c.Structure):
    pass


DELETER = c.PYFUNCTYPE(None, c.POINTER(Managed))
Managed._fields_ = [
    ("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p), ("deleter", DELETER),
    ("flags", c.c_uint64), ("tensor", DLTensor),
]  # fmt: skip
SET_ERROR = c.PYFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_char_p)


class Table(c.Structure):
    _fields_ = [
        ("major", c.c_uint32), ("minor", c.c_uint32), ("previous", c.c_void_p),
        ("allocate", c.PYFUNCTYPE(c.c_int, c.POINTER(DLTensor), c.POINTER(c.POINTER(Managed)),
                                  c.c_void_p, SET_ERROR)),
        ("export", c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(c.POINTER(Managed)))),
        ("adopt", c.PYFUNCTYPE(c.c_int, c.POINTER(Managed), c.POINTER(c.c_void_p))),
        ("borrow", c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(DLTensor))),
        ("stream", c.PYFUNCTYPE(c.c_int, c.c_int, c.c_int32, c.POINTER(c.c_void_p))),
    ]  # fmt: skip


@pytest.fixture
def table():
    pointer = c.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
    capsule = gt.Tensor.__dlpack_c_exchange_api__
    return Table.from_address(pointer(capsule, b"dlpack_exchange_api"))


def tensor_of(address):
    """The object whose new reference a function of the table has written."""
    found = c.cast(address, c.py_object).value
    c.pythonapi.Py_DecRef(c.py_object(found))
    return found


def test_table_is_of_version_1_3(table):
    assert (table.major, table.minor, table.previous) == (1, 3, None)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex128", "bool"])
def test_tensors_go_out_and_come_back(table, device, rng, dtype):
    array = random_array(rng, (3, 4), getattr(gt, dtype, dtype))
    with gt.Device(gt.zeros(1, device=device).device):
        x = gt.asarray(array)[:, ::2]
        out = c.POINTER(Managed)()
        assert table.export(x, c.byref(out)) == 0
        managed = out.contents
        assert managed.tensor.data == x.data_ptr() and managed.tensor.device.type == 1
        assert list(managed.tensor.shape[:2]) == [3, 2] and managed.flags == 0
        assert list(managed.tensor.strides[:2]) == [4, 2]
        address = c.c_void_p()
        assert table.adopt(out, c.byref(address)) == 0
        y = tensor_of(address)
        del x
        gc.collect()
        check_same(y, array[:, ::2])


def test_a_managed_tensor_keeps_the_memory_until_its_deleter(table, device):
    x = gt.full(1000, 7, device=device)
    out = c.POINTER(Managed)()
    table.export(x, c.byref(out))
    address = x.data_ptr()
    del x
    gc.collect()
    values = np.ctypeslib.as_array((c.c_int64 * 1000).from_address(address))
    assert (values == 7).all()
    out.contents.deleter(out)


def test_a_borrowed_description_sees_finished_work(table, device):
    x = gt.arange(5, device=device) * 3
    out = DLTensor()
    assert table.borrow(x, c.byref(out)) == 0
    assert out.ndim == 1 and out.shape[0] == 5 and out.strides[0] == 1
    assert list((c.c_int64 * 5).from_address(out.data)) == [0, 3, 6, 9, 12]


def test_memory_is_allocated_from_a_prototype(table):
    shape = (c.c_int64 * 2)(3, 5)
    prototype = DLTensor(None, Device(1, 0), 2, DataType(2, 32, 1), shape, None, 0)
    out, said = c.POINTER(Managed)(), []
    note = SET_ERROR(lambda context, kind, text: said.append((kind, text)))
    with gt.Device("host"):
        assert table.allocate(c.byref(prototype), c.byref(out), None, note) == 0
        address = c.c_void_p()
        assert table.adopt(out, c.byref(address)) == 0
        x = tensor_of(address)
        assert x.shape == (3, 5) and x.dtype == np.float32
        x[...] = 2
        assert x.sum() == 30
        prototype.dtype.lanes = 4
        assert table.allocate(c.byref(prototype), c.byref(out), None, note) == -1
        shape[0] = -1
        prototype.dtype.lanes = 1
        assert table.allocate(c.byref(prototype), c.byref(out), None, note) == -1
    assert [kind for kind, _ in said] == [b"BufferError", b"ValueError"]


def test_wrong_objects_raise_and_change_nothing(table, device):
    out = c.POINTER(Managed)()
    with pytest.raises(TypeError):
        table.export(np.zeros(3), c.byref(out))
    with pytest.raises(TypeError):
        table.borrow(3, c.byref(DLTensor()))
    x = gt.ones(3, device=device)
    table.export(x, c.byref(out))
    out.contents.major = 2
    with pytest.raises(BufferError, match="got version 2; expected 1"):
        table.adopt(out, c.byref(c.c_void_p()))
    out.contents.major = 1
    out.contents.deleter(out)
    stream = c.c_void_p(5)
    assert table.stream(1, 0, c.byref(stream)) == 0 and not stream.value


class Source:
    """A producer for C: its table exports the memory of a NumPy vector."""

    def __init__(self, dtype="float32", result=0):
        self.array = np.arange(6).astype(dtype)
        self.result = result
        self.by_table = self.by_method = self.deleted = 0
        code = {"f": 2, "c": 5}[self.array.dtype.kind]
        self.shape = (c.c_int64 * 1)(6)
        self.deleter = DELETER(self.delete)
        self.managed = Managed(1, 3, None, self.deleter, 0, DLTensor(
            self.array.ctypes.data, Device(1, 0), 1,
            DataType(code, self.array.itemsize * 8, 1), self.shape, None, 0))  # fmt: skip

    def delete(self, _managed):
        self.deleted += 1

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        self.by_method += 1
        return self.array.__dlpack__(**keywords)


def export(source, out):
    source.by_table += 1
    out[0] = c.pointer(source.managed)
    return source.result


EXPORT, STREAM = Table._fields_[4][1], Table._fields_[7][1]
SOURCES = Table(major=1, minor=3, export=EXPORT(export), stream=STREAM(lambda *_: 0))
LATER = Table(major=2, minor=0, previous=c.addressof(SOURCES))


def capsule_of(table):
    make = c.pythonapi.PyCapsule_New
    make.restype, make.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
    return make(c.addressof(table), b"dlpack_exchange_api", None)


Source.__dlpack_c_exchange_api__ = capsule_of(SOURCES)


class LaterSource(Source):
    __dlpack_c_exchange_api__ = capsule_of(LATER)


class OtherSource(Source):
    """A subclass, which may keep its memory elsewhere."""


def test_import_takes_memory_by_the_producers_table(device):
    for cls in (Source, LaterSource):
        source = cls()
        with gt.Device(gt.zeros(1, device=device).device):
            x = gt.from_dlpack(source)
            assert x.device == gt.zeros(1).device
            source.array[1] = 70
            assert x.tolist() == [0, 70, 2, 3, 4, 5]
            copy = gt.from_dlpack(source, copy=True)
            assert copy.data_ptr() != source.array.ctypes.data
        assert (source.by_table, source.by_method, source.deleted) == (2, 0, 1)
        del x
        gc.collect()
        assert source.deleted == 2
        assert copy.tolist() == [0, 70, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("source", "by_table"),
    [
        (OtherSource(), 0),
        (Source("complex64"), 1),  # may be conjugated, which a table cannot express
        (Source(result=-1), 1),
    ],
)
def test_import_calls_the_method_where_the_table_has_no_answer(source, by_table):
    x = gt.from_dlpack(source)
    assert (source.by_table, source.by_method) == (by_table, 1)
    assert source.deleted == (by_table and source.result == 0)
    assert np.array_equal(x.numpy(), source.array)


def test_an_object_that_records_gradients_exports_by_its_method():
    source = Source()
    source.requires_grad = True
    gt.from_dlpack(source)
    assert (source.by_table, source.by_method) == (0, 1)


def test_a_malformed_export_of_a_table_is_refused_and_given_back():
    for change in ({"ndim": 17}, {"dtype": DataType(9, 3, 1)}, {"data": 1}):
        source = Source()
        for name, value in change.items():
            setattr(source.managed.tensor, name, value)
        with pytest.raises((BufferError, ValueError), match=r"got .*; expected"):
            gt.from_dlpack(source)
        assert source.deleted == 1
