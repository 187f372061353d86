"""Memory shared with other libraries through DLPack: values, lifetime and stream order."""

import ctypes
import gc
import struct
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import DTYPES, check_same, random_array

NUMPY_DTYPES = [dtype for dtype in DTYPES if dtype.kind != "V"]


def home():
    """The device of tensors over memory of the host: the current one, if it is a host device."""
    return gt.Device() if gt.Device().type == "host" else gt.Device("host")


def views(tensor, array):
    """Return the same views of a tensor and of an array, in pairs."""
    places = [(), (slice(None, None, -1), slice(1, None, 2)), (1, 2)]
    return [
        (tensor.T, array.T),
        *((tensor[(*place, ...)], array[(*place, ...)]) for place in places),
    ]


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=lambda dtype: dtype.name)
def test_numpy_sees_the_tensors_own_memory(rng, dtype):
    a = random_array(rng, (3, 4), dtype)
    x = gt.asarray(a, device="host")
    for tensor, expected in views(x, a):
        shared = np.from_dlpack(tensor)
        assert shared.dtype == dtype
        np.testing.assert_array_equal(shared, expected)
        assert shared.ctypes.data == tensor.data_ptr()
    shared = np.from_dlpack(x)
    x[0, 0] = 1
    assert shared[0, 0] == 1


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=lambda dtype: dtype.name)
def test_memoryview_shares_the_memory_on_the_host(rng, dtype):
    a = random_array(rng, (3, 4), dtype)
    x = gt.asarray(a, device="host")
    for tensor, expected in [*views(x, a), (x[:0], a[:0])]:
        view, other = tensor.memoryview(), memoryview(expected)
        assert (view.format, view.shape, view.nbytes) == (other.format, other.shape, other.nbytes)
        assert not view.readonly and view.tobytes() == expected.tobytes()
        assert view.contiguous == np.asarray(expected).flags.forc
    whole = x.memoryview()
    np.frombuffer(whole, dtype)[0] = 1
    assert x[0, 0].item() == 1
    x[0, 1] = 0
    assert np.frombuffer(whole, dtype)[1] == 0
    del x
    gc.collect()
    assert whole.tobytes()[2 * a.itemsize :] == a.tobytes()[2 * a.itemsize :]


def test_memoryview_goes_to_files_and_struct(tmp_path, deferred):
    side = gt.Stream(deferred)
    x = gt.arange(6, dtype="float32", device=deferred)
    with gt.stream(side):
        x *= 2
    with open(tmp_path / "x", "wb+") as file:
        file.write(x.memoryview())
        assert struct.unpack_from("6f", x.memoryview()) == (0, 2, 4, 6, 8, 10)
        with gt.stream(side):
            x += 1
        x.memoryview()  # waits for that sum
        file.seek(0)
        file.readinto(x.memoryview())
    assert x.tolist() == [0, 2, 4, 6, 8, 10]


def test_memoryview_of_what_buffers_lack_is_refused():
    for dtype in ("bfloat16", gt.float8_e5m2, gt.float8_e4m3):
        with pytest.raises(BufferError, match="memoryview: got dtype .* expected one that Pyth"):
            gt.ones(3, device="host").astype(dtype).memoryview()
    fixed = gt.asarray(b"abc", device="host", copy=False).memoryview()
    assert fixed.readonly and fixed.tobytes() == b"abc"


@pytest.mark.parametrize("dtype", NUMPY_DTYPES, ids=lambda dtype: dtype.name)
def test_tensor_sees_numpys_own_memory(rng, dtype):
    a = random_array(rng, (4, 6), dtype)
    for view in (a, a.T, a[::2, ::-1], a[2], a[1:1]):
        x = gt.from_dlpack(view)
        assert x.device == home()
        check_same(x, view)
    x = gt.from_dlpack(a)
    a[1, 1] = 1
    assert x[1, 1].item() == 1
    x[0, 0] = 1
    assert a[0, 0] == 1


def test_numpy_waits_for_queued_work(rng, deferred):
    for _ in range(10):
        a = random_array(rng, (500,), "float32")
        side = gt.Stream(deferred)
        x = gt.asarray(a, device=deferred)
        with gt.stream(side):
            x *= 2
        np.testing.assert_array_equal(np.from_dlpack(x), a * 2)


def test_shared_memory_outlives_the_tensor(rng):
    a = random_array(rng, (1000,), "float64")
    x = gt.asarray(a, device="host")
    shared = np.from_dlpack(x)
    del x
    gc.collect()
    others = [gt.full(1000, np.nan, dtype="float64", device="host") for _ in range(4)]
    np.testing.assert_array_equal(shared, a)
    del others


def test_imported_memory_outlives_the_array(rng):
    class Owner(np.ndarray):
        pass

    a = random_array(rng, (100,), "float32").view(Owner)
    gone = weakref.ref(a)
    x = gt.from_dlpack(a)
    expected = np.array(a)
    del a
    gc.collect()
    assert gone() is not None
    check_same(x, expected)
    del x
    gc.collect()
    assert gone() is None


def test_unused_capsule_releases_the_tensor():
    x = gt.ones(3, device="host")
    before = sys.getrefcount(x)
    for version in (None, (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        assert sys.getrefcount(x) == before + 1
        del capsule
        assert sys.getrefcount(x) == before


def test_capsule_is_used_up_once():
    class Once:
        def __init__(self, tensor, version):
            self.capsule = tensor.__dlpack__(max_version=version)

        def __dlpack__(self, **_):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    for version in (None, (1, 0)):
        source = gt.arange(4, device="host")
        once = Once(source, version)
        twin = gt.from_dlpack(once)
        assert twin.data_ptr() == source.data_ptr()
        with pytest.raises(BufferError, match="no unused DLPack capsule"):
            gt.from_dlpack(once)
        before = sys.getrefcount(source)
        del twin
        assert sys.getrefcount(source) == before - 1


def test_read_only_memory_stays_read_only():
    a = np.arange(4.0)
    a.flags.writeable = False
    x = gt.from_dlpack(a)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    assert not np.from_dlpack(x).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    assert a.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_copy_and_device_arguments():
    x = gt.arange(3, device="host")
    assert x.__dlpack_device__() == (1, 0)
    copied = np.from_dlpack(x, copy=True)
    copied[0] = 9
    assert x[0].item() == 0
    assert gt.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert gt.from_dlpack(x, device="host").data_ptr() == x.data_ptr()
    message = r"dl_device: got \(2, 0\); expected \(1, 0\) for a tensor on host"
    with pytest.raises(BufferError, match=message):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="dl_device: got 5; expected a pair"):
        x.__dlpack__(dl_device=5)


def test_import_to_a_named_host_device_shares(deferred):
    a = np.arange(4.0)
    x = gt.from_dlpack(a, device=deferred)
    assert x.device == gt.Device(deferred)
    assert x.data_ptr() == a.ctypes.data


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
)
def test_dtypes_that_numpy_lacks_cross_between_tensors(rng, dtype):
    a = rng.uniform(-5, 5, (3, 4)).astype(dtype)
    x = gt.asarray(a, device="host")
    check_same(gt.from_dlpack(CpuArray(x)), a)


def test_import_of_a_tensor_is_a_view_that_is_ordered_with_it(rng, deferred):
    """Writes through one are seen through the other, whatever streams they are queued on."""
    streams = [gt.Stream(deferred) for _ in range(3)]
    a = rng.integers(0, 100, 1000).astype("int32")
    x = gt.asarray(a, device=deferred)
    y = gt.from_dlpack(x)
    assert y.data_ptr() == x.data_ptr() and y.device == x.device
    for _ in range(30):
        into, other = (x, y) if rng.random() < 0.5 else (y, x)
        with streams[rng.integers(3)]:
            into[...] = other[::-1] * 3 + 1
        a = a[::-1] * 3 + 1
    check_same(x, a)
    check_same(y, a)


def test_cpu_array_of_another_library_is_copied_by_asarray(rng, deferred):
    class Library:
        """A library's CPU array: DLPack and nothing else."""

        def __init__(self, tensor):
            self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__

    for dtype in DTYPES:
        a = random_array(rng, (3, 4), dtype)
        source = gt.asarray(a, device="host")
        x = gt.asarray(Library(source.T), device=deferred)
        source.fill(0)
        check_same(x, a.T)


class CpuArray:
    """A library's CPU array: DLPack and nothing else."""

    def __init__(self, array):
        self.array = array
        self.received = {}

    def __dlpack__(self, **arguments):
        self.received = arguments
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("device", [None, "host", "deferred"])
def test_asarray_without_a_copy_shares_a_cpu_array_of_another_library(rng, deferred, device):
    device = deferred if device == "deferred" else device
    for a in (random_array(rng, (3, 4), "float32"), random_array(rng, (5,), "int16")[::-2]):
        array = CpuArray(a)
        x = gt.asarray(array, device=device, copy=False)
        assert x.data_ptr() == a.ctypes.data
        assert x.device == (home() if device is None else gt.Device(device))
        assert array.received["copy"] is False
        check_same(x, a)
        x[0] = 9
        gt.synchronize(x.device)
        assert np.all(a[0] == 9)
        if device is not None:
            assert gt.asarray(array, device=device).data_ptr() != a.ctypes.data
        with pytest.raises(ValueError, match="got False; expected True or None, because dtype"):
            gt.asarray(array, dtype="float64", device=device, copy=False)


def test_asarray_without_a_copy_says_why_an_array_cannot_be_shared():
    class Copying(CpuArray):
        def __dlpack__(self, copy=None, **arguments):
            if copy is False:
                raise BufferError("it lies in a file")
            return self.array.copy().__dlpack__(**arguments)

    array = Copying(np.arange(3.0))
    check_same(gt.asarray(array, device="host"), array.array)
    with pytest.raises(ValueError, match="the memory of a Copying cannot be shared: it lies in a"):
        gt.asarray(array, copy=False)


def test_producer_with_an_old_dlpack_is_shared_too():
    class Old(CpuArray):
        def __dlpack__(self, stream=None):
            return self.array.__dlpack__(stream=stream)

    a = np.arange(3.0)
    assert gt.asarray(Old(a), copy=False).data_ptr() == a.ctypes.data
    assert gt.from_dlpack(Old(a), copy=False).data_ptr() == a.ctypes.data


def test_asarray_without_a_copy_shares_buffers(rng):
    a = random_array(rng, (3, 4), "int32")
    data = bytearray(a.tobytes())
    x = gt.asarray(data, copy=False)
    check_same(x, a.view("uint8").reshape(-1))
    data[0] ^= 255
    assert x[0].item() == data[0]
    view = gt.asarray(memoryview(data).cast("i", (3, 4)), copy=False)
    assert view.shape == (3, 4) and view.dtype == gt.int32 and view.data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="read-only"):
        gt.asarray(b"abc", copy=False)[0] = 1
    for value in ([1, 2], 3, 2.5, np.float32(3)):
        with pytest.raises(ValueError, match=f"memory of a {type(value).__name__} cannot be"):
            gt.asarray(value, copy=False)


def test_objects_without_dlpack_are_refused():
    with pytest.raises(TypeError, match="x: got int; expected an object with __dlpack__ and"):
        gt.from_dlpack(3)

    class Elsewhere:
        def __dlpack__(self, **_):
            return None

        def __dlpack_device__(self):
            return (10, 0)

    with pytest.raises(BufferError, match=r"device type: got 10; expected 1 \(CPU\), 2 \(CUDA\)"):
        gt.from_dlpack(Elsewhere())

    class Nowhere(Elsewhere):
        def __dlpack_device__(self):
            return None

    for function in (gt.from_dlpack, gt.asarray):
        with pytest.raises(TypeError, match="__dlpack_device__: got None from a Nowhere"):
            function(Nowhere())


def test_versioned_capsule_has_the_layout_of_the_standard():
    """The bytes behind a capsule, read field by field at the offsets that DLPack 1.0 fixes."""
    x = gt.zeros((2, 3), dtype="int16", device="host")[:, ::2]
    capsule = x.__dlpack__(max_version=(1, 0))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = get(capsule, b"dltensor_versioned")

    def word(offset, kind=ctypes.c_int64):
        return kind.from_address(address + offset).value

    assert (word(0, ctypes.c_uint32), word(4, ctypes.c_uint32)) == (1, 0)
    assert word(24) == 0  # flags
    assert word(32) == x.data_ptr()
    assert (word(40, ctypes.c_int32), word(44, ctypes.c_int32)) == (1, 0)
    assert word(48, ctypes.c_int32) == 2
    assert (word(52, ctypes.c_uint8), word(53, ctypes.c_uint8), word(54, ctypes.c_uint16)) == (
        0,
        16,
        1,
    )
    shape, strides = word(56), word(64)
    assert list((ctypes.c_int64 * 2).from_address(shape)) == [2, 2]
    assert list((ctypes.c_int64 * 2).from_address(strides)) == [3, 2]
    assert word(72) == 0


def test_cuda_array_interface_is_absent_on_the_host():
    x = gt.zeros(3, device="host")
    assert not hasattr(x, "__cuda_array_interface__")
