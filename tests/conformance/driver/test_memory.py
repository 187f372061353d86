"""Allocation, pinned memory, and the driver's own pool: what the table promises on every device."""

import mmap

import numpy as np
import pytest

from tests.support.driver_calls import UNTOUCHED, seen_once

INVALID_VALUE, OUT_OF_MEMORY, INVALID_HANDLE = 1, 2, 400


def test_allocation_is_aligned_distinct_and_holds_what_is_written(calls, rng):
    data = [rng.integers(0, 256, int(n), dtype=np.uint8) for n in rng.integers(1, 3 << 20, 6)]
    ptrs = [calls.upload(array) for array in data]
    spans = sorted((ptr, ptr + array.nbytes) for ptr, array in zip(ptrs, data, strict=True))
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    for ptr, array in zip(ptrs, data, strict=True):
        assert ptr % 512 == 0
        np.testing.assert_array_equal(calls.download(ptr, np.empty_like(array)), array)
        assert calls.mem_free(ptr) == 0


def test_zero_bytes_are_refused(calls):
    assert calls.mem_alloc(0) == (INVALID_VALUE, UNTOUCHED)


def test_more_than_the_device_has_is_out_of_memory_and_creates_nothing(calls):
    total = calls.mem_info()[2]

    def attempt():
        free = calls.mem_info()[1]
        assert calls.mem_alloc(2 * total) == (OUT_OF_MEMORY, UNTOUCHED)
        ptr = calls.make("mem_alloc", 1 << 20)
        assert calls.mem_free(ptr) == 0
        return abs(calls.mem_info()[1] - free) <= 64 << 20

    assert seen_once(attempt)


def test_mem_info_follows_allocation(calls):
    nbytes = 64 << 20
    status, free, total = calls.mem_info()
    assert status == 0 and 0 < free <= total

    def attempt():
        before = calls.mem_info()[1]
        ptr = calls.make("mem_alloc", nbytes)
        during = calls.mem_info()[1]
        assert calls.mem_free(ptr) == 0
        return during <= before - nbytes and calls.mem_info()[1] >= during + nbytes

    assert seen_once(attempt)


def test_freeing_what_was_not_allocated_is_refused(calls):
    ptr = calls.make("mem_alloc", 4096)
    assert calls.mem_free(0) == INVALID_VALUE
    assert calls.mem_free(ptr + 512) == INVALID_VALUE
    assert calls.mem_free(ptr) == 0
    assert calls.mem_free(ptr) == INVALID_VALUE


def test_freeing_waits_for_the_work_that_uses_the_memory(calls, rng):
    data = rng.standard_normal(4096)
    src, dst = calls.upload(data), calls.make("mem_alloc", data.nbytes)
    stream = calls.make("stream_create", 0)
    assert calls.copy_async(dst, src, data.nbytes, stream) == 0
    assert calls.mem_free(src) == 0
    np.testing.assert_array_equal(calls.download(dst, np.empty_like(data), stream), data)
    assert calls.mem_free(dst) == 0
    assert calls.stream_destroy(stream) == 0


def test_pinned_memory_is_host_memory_that_copies_reach(calls, rng):
    data = rng.integers(0, 256, 1 << 16, dtype=np.uint8)
    pinned = calls.make("pinned_alloc", data.nbytes)
    ptr = calls.upload(data)
    assert calls.copy_async(pinned, ptr, data.nbytes, 0) == 0
    assert calls.stream_synchronize(0) == 0
    assert bytes((np.ctypeslib.ctypes.c_uint8 * data.nbytes).from_address(pinned)) == data.tobytes()
    assert calls.pinned_free(pinned) == 0
    assert calls.mem_free(ptr) == 0


def test_pinned_and_device_memory_are_freed_by_their_own_entries(calls):
    pinned, ptr = calls.make("pinned_alloc", 4096), calls.make("mem_alloc", 4096)
    assert calls.pinned_free(0) == INVALID_VALUE
    assert calls.pinned_free(ptr) != 0
    assert calls.pinned_free(pinned) == 0
    assert calls.mem_free(ptr) == 0


def test_registered_memory_copies_and_is_registered_once(calls, rng):
    # In pages of its own, because a copy may not begin in registered memory and end outside it.
    array = np.frombuffer(mmap.mmap(-1, 8 << 14))
    array[:] = rng.standard_normal(1 << 14)
    address, nbytes = array.ctypes.data, array.nbytes
    assert calls.pinned_register(address, nbytes) == 0
    assert calls.pinned_register(address, nbytes) == 712
    ptr = calls.upload(array)
    np.testing.assert_array_equal(calls.download(ptr, np.empty_like(array)), array)
    assert calls.pinned_unregister(address) == 0
    assert calls.pinned_unregister(address) == 713
    assert calls.mem_free(ptr) == 0


def test_stream_ordered_pool_allocates_uses_and_frees(calls, rng):
    data = rng.standard_normal(4096)
    stream = calls.make("stream_create", 0)
    src = calls.upload(data)
    ptr = calls.make("async_alloc", data.nbytes, stream)
    assert calls.copy_async(ptr, src, data.nbytes, stream) == 0
    out = calls.download(ptr, np.empty_like(data), stream)
    assert calls.async_free(ptr, stream) == 0
    assert calls.stream_synchronize(stream) == 0
    assert calls.async_trim(0) == 0
    np.testing.assert_array_equal(out, data)
    assert calls.mem_free(src) == 0
    assert calls.stream_destroy(stream) == 0


@pytest.mark.parametrize("entry", ["mem_alloc", "pinned_alloc"])
def test_a_request_near_the_address_limit_does_not_wrap_around(calls, entry):
    status, ptr = getattr(calls, entry)(2**64 - 1)
    assert status in (INVALID_VALUE, OUT_OF_MEMORY) and ptr == UNTOUCHED
