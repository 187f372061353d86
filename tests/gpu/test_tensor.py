"""Tensors on a real GPU: transfers through pinned memory, streams, threads, graphs, interop, size.

tests/conformance, which also runs on the GPU, tests what holds on every device; these tests are for
properties that only a GPU has.
"""

import threading

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver.registry import cuda_device_count
from tests.support.tensor_arrays import check_same, random_array

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")

STAGING_CHUNK = 4 << 20


@pytest.mark.parametrize(
    "nbytes",
    [
        1,
        STAGING_CHUNK - 1,
        STAGING_CHUNK,
        STAGING_CHUNK + 1,
        4 * STAGING_CHUNK,
        11 * STAGING_CHUNK + 7,
    ],
)
def test_transfer_of_any_number_of_chunks_is_exact(rng, nbytes):
    a = rng.integers(0, 256, nbytes, dtype=np.uint8)
    expected = a.copy()
    x = gt.asarray(a, device="cuda")
    a[...] = 0
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(x[::-1].numpy(), expected[::-1])


def test_transfers_on_several_streams_and_threads_do_not_mix(rng):
    arrays = [rng.integers(0, 1 << 30, 3_000_000 + i, dtype=np.int64) for i in range(4)]
    errors = []

    def work(a):
        try:
            with gt.stream(gt.Stream("cuda")):
                for _ in range(5):
                    x = gt.asarray(a, device="cuda")
                    np.testing.assert_array_equal((x + 1).numpy(), a + 1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_work_on_one_stream_is_seen_by_another_without_a_wait(rng):
    a = random_array(rng, (1 << 22,), "float32")
    streams = [gt.Stream("cuda") for _ in range(3)]
    x = gt.asarray(a, device="cuda")
    for i in range(60):
        with gt.stream(streams[i % 3]):
            x += 1
    check_same(x, a + 60, 1e-5)


def test_memory_freed_in_use_on_another_stream_is_not_overwritten(rng):
    side = gt.Stream("cuda")
    for _ in range(20):
        a = rng.integers(0, 1 << 20, 1 << 20, dtype=np.int64)
        x = gt.asarray(a, device="cuda")
        with gt.stream(side):
            for _ in range(10):
                y = x * 3
        del x
        poison = [gt.full(1 << 20, -1, dtype="int64", device="cuda") for _ in range(3)]
        np.testing.assert_array_equal(y.numpy(), a * 3)
        del poison


def test_cuda_array_interface_describes_the_memory():
    x = gt.zeros((3, 4), dtype="int32", device="cuda")
    interface = x.__cuda_array_interface__
    assert interface["version"] == 3
    assert interface["shape"] == (3, 4)
    assert interface["typestr"] == "<i4"
    assert interface["data"] == (x.data_ptr(), False)
    assert interface["strides"] is None
    assert interface["stream"] == 1
    assert x.T.__cuda_array_interface__["strides"] == (4, 16)
    with gt.stream(gt.Stream("cuda")) as stream:
        assert x.__cuda_array_interface__["stream"] == stream.cuda_stream


def test_object_with_cuda_array_interface_is_shared(rng):
    a = random_array(rng, (5, 6), "float64")
    source = gt.asarray(a, device="cuda")

    class Foreign:
        __cuda_array_interface__ = source[:, ::2].__cuda_array_interface__

    x = gt.asarray(Foreign())
    check_same(x, a[:, ::2])
    x[0, 0] = 99
    assert source[0, 0].item() == 99


def test_dlpack_between_tensors_and_to_the_cpu(rng):
    a = random_array(rng, (5, 6), "float32")
    x = gt.asarray(a, device="cuda")
    assert x.__dlpack_device__() == (2, 0)
    twin = gt.from_dlpack(x.T)
    assert twin.data_ptr() == x.data_ptr()
    check_same(twin, a.T)
    capsule = x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    with pytest.raises(BufferError, match=r"reaches dl_device \(1, 0\) only by a copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(ValueError, match="got 0, which is ambiguous"):
        x.__dlpack__(stream=0)
    del capsule

    class ToCpu:
        def __dlpack__(self, **arguments):
            return x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))

        def __dlpack_device__(self):
            return (1, 0)

    np.testing.assert_array_equal(np.from_dlpack(ToCpu()), a)


def test_tensor_of_more_than_2_to_31_elements(rng):
    count = (1 << 31) + 12_345
    x = gt.zeros(count, dtype="uint8", device="cuda")
    x[-3:] = gt.asarray([7, 8, 9], device="cuda")
    x[1 << 31] = 5
    assert gt.sum(x).item() == 29
    assert gt.argmax(x).item() == count - 1
    assert x[gt.asarray([1 << 31, count - 2], device="cuda")].tolist() == [5, 8]
    y = x + 1
    assert y[-4:].tolist() == [1, 8, 9, 10]
    assert gt.max(gt.reshape(x[: count // 5 * 5], (5, -1)), axis=1).tolist()[:4] == [0, 0, 0, 0]


def test_out_of_memory_leaves_the_device_usable(rng):
    a = random_array(rng, (100,), "float32")
    x = gt.asarray(a, device="cuda")
    for _ in range(3):
        with pytest.raises(gt.OutOfMemoryError):
            gt.empty(1 << 42, dtype="uint8", device="cuda")
        check_same(x + 1, a + 1)


def test_printing_a_large_tensor_is_short():
    text = repr(gt.zeros((4000, 4000), device="cuda"))
    assert len(text) < 2000 and "device='cuda:0'" in text
