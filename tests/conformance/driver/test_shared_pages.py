"""Pages with a file descriptor: the same memory under another handle, and in another process."""

import os

import numpy as np
import pytest

INVALID_VALUE, NOT_SUPPORTED = 1, 801


@pytest.fixture
def unit(calls):
    if calls.granularity == 0:
        pytest.skip("this device has no virtual memory management")
    return calls.granularity


def shared(calls, nbytes):
    """A shared page: (handle, descriptor)."""
    status, page, descriptor = calls.page_create_shared(nbytes)
    if status == NOT_SUPPORTED:
        pytest.skip("this device shares no pages")
    assert status == 0
    return page, descriptor


def test_imported_page_is_the_same_memory_and_outlives_the_first(calls, unit, rng):
    data = rng.integers(0, 256, unit, dtype=np.uint8)
    page, descriptor = shared(calls, unit)
    other = calls.make("page_import", unit, descriptor)
    os.close(descriptor)
    va = calls.make("va_reserve", 4 * unit, 0)
    assert calls.page_map(va, unit, page) == 0
    assert calls.copy_async(va, data.ctypes.data, unit, 0) == 0
    assert calls.stream_synchronize(0) == 0
    assert calls.page_unmap(va, unit) == 0
    assert calls.page_destroy(page) == 0
    assert calls.page_map(va + 2 * unit, unit, other) == 0
    np.testing.assert_array_equal(calls.download(va + 2 * unit, np.empty_like(data)), data)
    assert calls.page_unmap(va + 2 * unit, unit) == 0
    assert calls.page_destroy(other) == 0
    assert calls.va_release(va, 4 * unit) == 0


def test_bad_sizes_and_descriptors_create_nothing(calls, unit):
    page, descriptor = shared(calls, unit)
    assert calls.page_create_shared(unit - 1)[0] == INVALID_VALUE
    assert calls.page_import(unit, 10_000)[0] != 0
    os.close(descriptor)
    assert calls.page_destroy(page) == 0
