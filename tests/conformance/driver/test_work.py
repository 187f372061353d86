"""Copies, fills and host functions."""

import ctypes

import numpy as np
import pytest

from tests.support.driver_calls import HOST_FUNCTION

INVALID_VALUE, NOT_SUPPORTED = 1, 801


@pytest.mark.parametrize("width", [1, 2, 4])
def test_fill_writes_exactly_the_requested_elements(calls, rng, width):
    count, offset = int(rng.integers(1, 5000)), 8
    value = int(rng.integers(0, 2**32))
    poison = np.full(8 + (count + 8) * width, 0xA5, np.uint8)
    ptr = calls.upload(poison)
    assert calls.fill_async(ptr + offset, value, width, count, 0) == 0
    got = calls.download(ptr, np.empty_like(poison))
    expected = poison.copy()
    element = np.frombuffer(value.to_bytes(4, "little")[:width], np.uint8)
    expected[offset : offset + count * width] = np.tile(element, count)
    np.testing.assert_array_equal(got, expected)
    assert calls.mem_free(ptr) == 0


def test_fill_refuses_other_widths_and_misaligned_addresses(calls):
    ptr = calls.make("mem_alloc", 4096)
    for width in (0, 3, 8, -1):
        assert calls.fill_async(ptr, 0, width, 1, 0) == INVALID_VALUE
    assert calls.fill_async(ptr + 1, 0, 2, 1, 0) == INVALID_VALUE
    assert calls.fill_async(ptr + 2, 0, 4, 1, 0) == INVALID_VALUE
    assert calls.mem_free(ptr) == 0


def test_nothing_is_copied_or_filled_for_zero_elements(calls, rng):
    data = rng.integers(0, 256, 64, dtype=np.uint8)
    ptr = calls.upload(data)
    assert calls.copy_async(ptr, ptr + 32, 0, 0) == 0
    assert calls.fill_async(ptr, 1, 4, 0, 0) == 0
    np.testing.assert_array_equal(calls.download(ptr, np.empty_like(data)), data)
    assert calls.copy_async(0, ptr, 8, 0) == INVALID_VALUE
    assert calls.copy_async(ptr, 0, 8, 0) == INVALID_VALUE
    assert calls.mem_free(ptr) == 0


def test_copies_find_their_direction_themselves(calls, rng):
    data = rng.standard_normal(3000)
    stream = calls.make("stream_create", 0)
    one, two = calls.make("mem_alloc", data.nbytes), calls.make("mem_alloc", data.nbytes)
    pinned = calls.make("pinned_alloc", data.nbytes)
    steps = [(one, data.ctypes.data), (pinned, one), (two, pinned)]
    for dst, src in steps:
        assert calls.copy_async(dst, src, data.nbytes, stream) == 0
    np.testing.assert_array_equal(calls.download(two, np.empty_like(data), stream), data)
    assert calls.pinned_free(pinned) == 0
    assert [calls.mem_free(ptr) for ptr in (one, two)] == [0, 0]
    assert calls.stream_destroy(stream) == 0


def test_ordinary_memory_may_change_as_soon_as_a_copy_from_it_returned(calls, rng):
    data = rng.standard_normal(1000)
    kept = data.copy()
    stream = calls.make("stream_create", 0)
    ptr = calls.make("mem_alloc", data.nbytes)
    assert calls.copy_async(ptr, data.ctypes.data, data.nbytes, stream) == 0
    data[:] = np.nan
    np.testing.assert_array_equal(calls.download(ptr, np.empty_like(data), stream), kept)
    assert calls.mem_free(ptr) == 0
    assert calls.stream_destroy(stream) == 0


def test_a_host_function_sees_the_copies_before_it(calls, rng):
    data = rng.integers(0, 1000, 16).astype(np.int64)
    stream = calls.make("stream_create", 0)
    ptr, pinned = calls.upload(data), calls.make("pinned_alloc", data.nbytes)
    seen = []
    view = (ctypes.c_int64 * 16).from_address(pinned)
    function = HOST_FUNCTION(lambda argument: seen.append((argument, list(view))))
    assert calls.fill_async(pinned, 0, 1, data.nbytes, stream) == 0
    assert calls.copy_async(pinned, ptr, data.nbytes, stream) == 0
    assert calls.host_launch(function, 4711, stream) == 0
    assert calls.fill_async(pinned, 0xFF, 1, data.nbytes, stream) == 0
    assert calls.stream_synchronize(stream) == 0
    assert seen == [(4711, data.tolist())]
    assert calls.pinned_free(pinned) == 0
    assert calls.mem_free(ptr) == 0
    assert calls.stream_destroy(stream) == 0


def test_a_null_function_is_refused(calls):
    assert calls.host_launch(HOST_FUNCTION(0), None, 0) == INVALID_VALUE


def test_the_host_device_has_no_device_kernels(calls):
    if calls.device >= 0:
        pytest.skip("CUDA runs kernels; tests/gpu tests them")
    assert calls.kernel_launch(1, 1, 1, 1, 1, 1, 1, 0, 0, None, 0) == NOT_SUPPORTED
