"""Virtual memory: reserved addresses, pages, mapping and unmapping."""

import numpy as np
import pytest

from tests.support.driver_calls import UNTOUCHED, seen_once

INVALID_VALUE, OUT_OF_MEMORY = 1, 2


@pytest.fixture
def unit(calls):
    if calls.granularity == 0:
        pytest.skip("this device has no virtual memory management")
    return calls.granularity


def test_granularity_is_a_power_of_two_of_at_least_a_page(unit):
    assert unit >= 4096 and unit & (unit - 1) == 0


@pytest.mark.parametrize("alignment_units", [0, 1, 8])
def test_reserved_addresses_are_aligned_and_cost_no_memory(calls, unit, alignment_units):
    free = calls.mem_info()[1]
    va = calls.make("va_reserve", 64 * unit, alignment_units * unit)
    assert va % max(unit, alignment_units * unit) == 0
    assert abs(calls.mem_info()[1] - free) <= 16 << 20
    assert calls.va_release(va, 64 * unit) == 0


def test_a_page_keeps_its_content_when_it_is_mapped_elsewhere(calls, unit, rng):
    data = rng.integers(0, 256, unit, dtype=np.uint8)
    va = calls.make("va_reserve", 4 * unit, 0)
    page = calls.make("page_create", unit)
    assert calls.page_map(va, unit, page) == 0
    assert calls.copy_async(va, data.ctypes.data, unit, 0) == 0
    assert calls.stream_synchronize(0) == 0
    assert calls.page_unmap(va, unit) == 0
    assert calls.page_map(va + 2 * unit, unit, page) == 0
    np.testing.assert_array_equal(calls.download(va + 2 * unit, np.empty_like(data)), data)
    assert calls.page_unmap(va + 2 * unit, unit) == 0
    assert calls.page_destroy(page) == 0
    assert calls.va_release(va, 4 * unit) == 0


def test_pages_of_different_sizes_lie_side_by_side_and_are_unmapped_in_one_call(calls, unit, rng):
    sizes = [unit, 3 * unit, 2 * unit]
    total = sum(sizes)
    data = rng.integers(0, 256, total, dtype=np.uint8)
    va = calls.make("va_reserve", total, 0)
    pages, at = [], va
    for nbytes in sizes:
        pages.append(calls.make("page_create", nbytes))
        assert calls.page_map(at, nbytes, pages[-1]) == 0
        at += nbytes
    assert calls.copy_async(va, data.ctypes.data, total, 0) == 0
    np.testing.assert_array_equal(calls.download(va, np.empty_like(data)), data)
    assert calls.page_unmap(va, total) == 0
    assert [calls.page_destroy(page) for page in pages] == [0, 0, 0]
    assert calls.va_release(va, total) == 0


def test_a_destroyed_page_lives_while_it_is_mapped(calls, unit, rng):
    data = rng.integers(0, 256, unit, dtype=np.uint8)
    va = calls.make("va_reserve", unit, 0)
    page = calls.make("page_create", unit)
    assert calls.page_map(va, unit, page) == 0
    assert calls.page_destroy(page) == 0
    assert calls.copy_async(va, data.ctypes.data, unit, 0) == 0
    np.testing.assert_array_equal(calls.download(va, np.empty_like(data)), data)
    assert calls.page_unmap(va, unit) == 0
    assert calls.va_release(va, unit) == 0


def test_pages_count_as_device_memory_until_they_are_destroyed(calls, unit):
    nbytes = -(-(32 << 20) // unit) * unit

    def attempt():
        free = calls.mem_info()[1]
        page = calls.make("page_create", nbytes)
        during = calls.mem_info()[1]
        assert calls.page_destroy(page) == 0
        return during <= free - nbytes and calls.mem_info()[1] >= during + nbytes

    assert seen_once(attempt)


def test_sizes_off_the_granularity_are_refused(calls, unit):
    assert calls.page_create(unit // 2) == (INVALID_VALUE, UNTOUCHED)
    assert calls.page_create(0) == (INVALID_VALUE, UNTOUCHED)
    assert calls.va_reserve(0, 0) == (INVALID_VALUE, UNTOUCHED)


def test_more_pages_than_the_device_has_are_out_of_memory(calls, unit):
    total = calls.mem_info()[2]
    nbytes = -(-2 * total // unit) * unit
    assert calls.page_create(nbytes) == (OUT_OF_MEMORY, UNTOUCHED)


def test_mapping_mistakes_are_refused_and_change_nothing(calls, unit):
    va = calls.make("va_reserve", 2 * unit, 0)
    page = calls.make("page_create", unit)
    assert calls.page_map(va, unit, page) == 0
    other = calls.make("page_create", unit)
    assert calls.page_map(va, unit, other) != 0
    assert calls.fill_async(va, 7, 1, unit, 0) == 0
    assert (calls.download(va, np.empty(unit, np.uint8)) == 7).all()
    assert calls.page_unmap(va, unit) == 0
    assert calls.page_destroy(page) == 0
    assert calls.page_destroy(other) == 0
    assert calls.va_release(va, 2 * unit) == 0


def test_the_host_device_recognises_every_mapping_mistake(calls, unit):
    if calls.device >= 0:
        pytest.skip("CUDA does not define these mistakes' outcome; the host device refuses them")
    va = calls.make("va_reserve", 4 * unit, 0)
    page = calls.make("page_create", 2 * unit)
    assert calls.page_map(va, unit, page) == INVALID_VALUE
    assert calls.page_map(va + 1, 2 * unit, page) == INVALID_VALUE
    assert calls.page_map(va + 3 * unit, 2 * unit, page) == INVALID_VALUE
    assert calls.page_map(va, 2 * unit, page + 1) == INVALID_VALUE
    assert calls.page_map(va, 2 * unit, page) == 0
    assert calls.page_map(va + unit, 2 * unit, page) == INVALID_VALUE
    assert calls.page_unmap(va, unit) == INVALID_VALUE
    assert calls.page_unmap(va + unit, unit) == INVALID_VALUE
    assert calls.page_unmap(va, 3 * unit) == INVALID_VALUE
    assert calls.page_unmap(va, 0) == INVALID_VALUE
    assert calls.va_release(va, 4 * unit) == INVALID_VALUE
    assert calls.page_unmap(va, 2 * unit) == 0
    assert calls.va_release(va, unit) == INVALID_VALUE
    assert calls.va_release(va + unit, 3 * unit) == INVALID_VALUE
    assert calls.page_destroy(page) == 0
    assert calls.page_destroy(page) == INVALID_VALUE
    assert calls.va_release(va, 4 * unit) == 0
    assert calls.va_release(va, 4 * unit) == INVALID_VALUE
    assert calls.va_reserve(unit, 3 * unit) == (INVALID_VALUE, UNTOUCHED)
