"""Descriptions of foreign memory are checked, and properties that they lack are not assumed."""

import ctypes

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry
from tests.interop.capsule_cases import Producer, deleted, make_arena
from tests.interop.interface_cases import Foreign


class Unversioned:
    """An array of a library whose DLPack is older than version 1."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return (1, 0)


def test_memory_that_cannot_be_declared_writable_is_read_only_as_in_numpy():
    a = np.zeros(3)
    assert not np.from_dlpack(Unversioned(a)).flags.writeable
    x = gt.from_dlpack(Unversioned(a))
    with pytest.raises(ValueError, match="read-only.*or see assume_writable of from_dlpack"):
        x += 1
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        gt.asarray(Unversioned(a), copy=False).fill(1)
    assert a.tolist() == [0, 0, 0]


def test_memory_is_writable_where_the_producer_or_the_caller_says_so():
    a = np.zeros(3)
    y = gt.from_dlpack(a)
    y += 1
    x = gt.from_dlpack(Unversioned(a), assume_writable=True)
    x += 1
    z = gt.asarray(Unversioned(a), device="host")
    z += 5
    assert a.tolist() == [2, 2, 2] and z.tolist() == [7, 7, 7]
    a.flags.writeable = False
    x = gt.from_dlpack(a, assume_writable=True)
    with pytest.raises(ValueError, match="read-only"):
        x += 1


@pytest.mark.parametrize("version", [(), (1,), (1, 0, 0), 1, "10", (None, 0), ("1", 0), (1.0, 0)])
def test_max_version_is_a_pair_of_ints(version):
    x = gt.ones(2, device="host")
    with pytest.raises(TypeError, match="max_version: got .*; expected a pair of ints"):
        x.__dlpack__(max_version=version)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"dl_device": ()}, TypeError),
        ({"dl_device": (1.5, 0)}, TypeError),
        ({"copy": "no"}, TypeError),
        ({"copy": 0}, TypeError),
        ({"stream": "a"}, TypeError),
        ({"stream": 1 << 64}, ValueError),
        ({"stream": -2}, ValueError),
    ],
    ids=str,
)
def test_arguments_of_an_export_are_checked_on_every_device(arguments, error):
    x = gt.ones(2, device="host")
    with pytest.raises(error, match=f"{next(iter(arguments))}: got"):
        x.__dlpack__(**arguments)


def good_interface(**changed):
    values = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3}
    return {name: value for name, value in (values | changed).items() if value != "missing"}


@pytest.mark.parametrize(
    ("interface", "message"),
    [
        (None, "got a NoneType; expected a dict"),
        ([], "got a list; expected a dict"),
        ({}, "got no 'shape'"),
        (good_interface(shape="missing"), "got no 'shape'"),
        (good_interface(typestr="missing"), "got no 'typestr'"),
        (good_interface(data="missing"), "got no 'data'"),
        (good_interface(version="missing"), "got no 'version'"),
        (good_interface(strides=(12, 4, 4, 4)), "strides: got 4 values; expected 2"),
        (good_interface(strides=(8,) * 40), "strides: got 40 values; expected 2"),
        (good_interface(strides=(4,)), "strides: got 1 values; expected 2"),
        (good_interface(strides=(12, 3)), "strides: got .*; expected multiples of the element"),
        (good_interface(strides=(1 << 63, 4)), "strides: got 0x.*; expected at most 63 bits"),
        (good_interface(strides=(-(1 << 63), 4)), "strides: got .* inside the address space"),
        (
            good_interface(strides=(-8192, 4)),
            "data: got .* expected memory inside the address space",
        ),
        (good_interface(shape=(-2, 2)), "shape: got .*; expected extents of 0 or more"),
        (good_interface(shape=(1 << 40, 1 << 40)), "shape: got .*; expected at most 2"),
        (good_interface(shape=(0, 1 << 62, 1 << 62)), "shape: got .*; expected at most 2"),
        (good_interface(shape=(1,) * 17), "shape: got 17 dimensions"),
        (good_interface(shape=None), "shape: got None; expected a tuple of ints"),
        (good_interface(shape=(2.0,)), "shape: got 2.0; expected ints"),
        (good_interface(typestr=">f4"), "typestr: got '>f4'; expected one of"),
        (good_interface(typestr=None), "typestr: got None; expected a str"),
        (good_interface(data=(4097, False)), "data: got address 0x1001; expected a multiple"),
        (good_interface(data=(0, False)), "data: got address 0 for 6 elements"),
        (
            good_interface(data=((1 << 64) - 4, False)),
            "data: got .* expected memory inside the address",
        ),
        (good_interface(data=(4096,)), "data: got .*; expected a pair"),
        (good_interface(data=(4096, "no")), "data: got 'no' as the read-only flag; expected True"),
        (good_interface(version=4), "version: got 0x4; expected 0 to 3"),
        (good_interface(mask=0), "mask: got a mask; expected None"),
        (good_interface(stream=0), "stream: got 0, which is ambiguous"),
        (good_interface(stream=-1), "stream: got -0x1"),
        (good_interface(stream="a"), "stream: got 'a'; expected an int or None"),
    ],
    ids=str,
)
def test_each_field_of_a_cuda_array_interface_is_checked(interface, message):
    with pytest.raises((TypeError, ValueError), match="__cuda_array_interface__: " + message):
        gt.asarray(Foreign(interface))


def lying_producer(tell):
    rng = np.random.default_rng(1)
    arena = make_arena(rng)
    while True:
        producer = Producer(rng, arena[0], np.dtype("float32"))
        if producer.expected.shape == (3, 2) and hasattr(producer, "strides"):
            tell(producer)
            return producer


def tensor_field(name, value):
    return lambda producer: setattr(producer.managed.tensor, name, value)


@pytest.mark.parametrize(
    ("tell", "message"),
    [
        (tensor_field("ndim", -1), "ndim: got -1; expected 0 to 16"),
        (tensor_field("shape", None), "shape: got NULL; expected 2 extents"),
        (tensor_field("data", None), "data: got address 0 for 6 elements"),
        (tensor_field("device_type", 2), "device: got type 2.* expected memory on host"),
        (tensor_field("byte_offset", (1 << 64) - 4), "byte_offset: got 0xf+c; expected memory"),
        (tensor_field("lanes", 4), "dtype: got DLPack type code 2 with 32 bits and 4 lanes"),
        (lambda p: p.shape.__setitem__(0, -3), "shape: got the extent -3; expected 0 or more"),
        (lambda p: p.shape.__setitem__(0, 1 << 62), "shape: got .*; expected at most 2"),
        (lambda p: p.strides.__setitem__(0, 1 << 60), "strides: got 1152921504606846976 elements"),
    ],
)
def test_capsules_that_lie_are_refused_and_left_to_their_producer(tell, message):
    producer = lying_producer(tell)
    with pytest.raises((BufferError, ValueError), match=message):
        gt.from_dlpack(producer)
    name = ctypes.pythonapi.PyCapsule_IsValid
    name.argtypes = (ctypes.py_object, ctypes.c_char_p)
    assert name(producer.capsule, producer.name) == 1


@pytest.mark.parametrize("device", [(2, -1), (2, 1 << 31), (1, -1), (1, 1 << 70)])
def test_a_producers_device_index_is_a_number_of_a_device(device):
    """(2, -1) must not be taken for the host device, whose number is -1."""
    producer = lying_producer(lambda producer: setattr(producer, "device", device))
    with pytest.raises(ValueError, match="__dlpack_device__: index: got"):
        gt.from_dlpack(producer)


def test_strides_of_an_array_interface_stay_inside_of_its_buffer():
    class Described:
        __array_interface__ = {  # noqa: RUF012
            "shape": (2,),
            "typestr": "<f8",
            "data": memoryview(bytes(16)),
            "strides": (4096,),
            "version": 3,
        }

    with pytest.raises(ValueError, match=r"strides: got \(4096,\) for shape \(2,\); expected elem"):
        gt.asarray(Described())


def test_shared_subclass_of_an_array_is_read_as_the_array_it_is():
    class Liar(np.ndarray):
        shape = property(lambda self: (1 << 30,))
        strides = property(lambda self: (8,))

    a = np.arange(6.0).reshape(2, 3)
    x = gt.asarray(a.view(Liar), copy=False)
    assert x.shape == (2, 3) and x.tolist() == a.tolist()
    x[0, 0] = 9
    assert a[0, 0] == 9


def test_empty_foreign_memory_may_be_anywhere():
    x = gt.from_dlpack(np.zeros((3, 0, 4))[::-1])
    assert x.shape == (3, 0, 4) and x.data_ptr() == 0 and x.sum().item() == 0
    if registry.cuda_device_count():
        y = gt.asarray(Foreign(good_interface(shape=(0, 3), data=(None, False))))
        assert y.shape == (0, 3) and y.data_ptr() == 0


def test_deleter_runs_once_when_the_copy_finds_no_memory():
    number = registry.open_host(capacity=64 << 20)
    try:
        producer = lying_producer(lambda producer: None)
        kept = []
        for nbytes in (1 << 20, 1 << 10):
            with pytest.raises(gt.OutOfMemoryError):
                while True:
                    kept.append(gt.empty(nbytes, dtype="uint8", device=number))
        deleted.clear()
        with pytest.raises(gt.OutOfMemoryError):
            gt.from_dlpack(producer, device=number, copy=True)
        assert deleted == [ctypes.addressof(producer.managed)]
    finally:
        kept.clear()
        registry.close_host(number)
