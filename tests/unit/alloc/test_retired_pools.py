"""Private pools in a loop: memory of one serves the next, and no trace of a pool remains."""

import pytest

from gputensor import graphs, memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from gputensor.streams import Device, synchronize
from tests.support import internals
from tests.support.alloc_probe import MIB, opened
from tests.support.failing_requests import refusing

CONFIGURATIONS = ["", "expandable_segments:False", "page_reuse:False", "page_size_mb:2"]


def use_a_pool(probe, nbytes):
    pool = memory.MemPool(probe.device)
    with memory.use_mem_pool(pool, probe.device):
        probe.free(probe.malloc(nbytes))


@pytest.mark.parametrize("wait", [True, False])
def test_captures_in_a_loop_use_the_same_memory(wait):
    with opened("", capacity=256 * MIB, phantom=True) as probe, Device(probe.device):
        for _ in range(12):
            graph = graphs.CUDAGraph()
            with graphs.graph(graph):
                stream = memory.control.stream_handle(probe.device, None)
                ptr = probe.malloc(100 * MIB, stream)
            graph.replay()
            probe.free(ptr)
            graph.reset()
            if wait:
                synchronize(probe.device)
            assert probe.reserved() <= 140 * MIB
            assert checker.check(probe.device) == []
        probe.malloc(200 * MIB)


@pytest.mark.parametrize("conf", CONFIGURATIONS)
@pytest.mark.parametrize("nbytes", [1000, 20 * MIB])
def test_pools_in_a_loop_use_the_same_memory(conf, nbytes):
    with opened(conf, capacity=256 * MIB, phantom=True) as probe:
        use_a_pool(probe, nbytes)
        first = probe.reserved()
        for _ in range(40):
            use_a_pool(probe, nbytes)
            assert probe.reserved() <= first
            assert checker.check(probe.device) == []
        probe.malloc(nbytes)
        assert probe.reserved() <= first
        ranges = registry.leaks(probe.device)["va_ranges"]
        assert ranges <= 2, "address space of pools that are gone"


def test_pages_of_a_retired_pool_wait_until_the_device_is_done_with_them():
    with opened("", capacity=256 * MIB, seed=1) as probe:
        pool, stream = memory.MemPool(probe.device), probe.stream()
        with memory.use_mem_pool(pool, probe.device):
            ptr = probe.malloc(20 * MIB, stream)
        probe.work(ptr, stream, 400)
        probe.free(ptr)
        del pool
        probe.mark()
        probe.malloc(20 * MIB)
        assert "page_unmap" not in probe.made() and "synchronize" not in probe.made()
        synchronize(probe.device)
        reserved = probe.reserved()
        probe.malloc(20 * MIB)
        assert probe.made()["page_unmap"] >= 1
        assert probe.reserved() == reserved


def test_a_block_may_outlive_its_pool():
    for conf in CONFIGURATIONS:
        with opened(conf, capacity=256 * MIB, phantom=True) as probe:
            pool = memory.MemPool(probe.device)
            with memory.use_mem_pool(pool, probe.device):
                held = probe.malloc(100 * MIB)
            del pool
            probe.malloc(30 * MIB)
            assert checker.check(probe.device) == []
            probe.free(held)
            probe.malloc(200 * MIB)
            report.empty_cache(probe.device)
            assert len(report.all_values(probe.device)[1]) == 0


def test_a_pool_is_as_new_when_its_id_is_used_again():
    with opened("", capacity=256 * MIB) as probe:
        pool = raw_memory.new_pool_id()
        for count in range(3):
            internals.retain_pool(probe.device, pool)
            internals.begin_pool(probe.device, pool)
            ptr = probe.malloc(20 * MIB)
            internals.end_pool(probe.device, pool)
            assert raw_memory.count_pool_uses(probe.device, pool) == 1
            assert report.all_values(probe.device)[1][pool][0] >= 20 * MIB
            probe.free(ptr)
            internals.release_pool(probe.device, pool)
            assert raw_memory.count_pool_uses(probe.device, pool) == 0
            if count:
                probe.malloc(512)
                report.empty_cache(probe.device)


def test_address_space_of_retired_pools_serves_others():
    """Each pool reserves more than the device has, and addresses have 47 bits."""
    with opened("", capacity=141 << 30, phantom=True) as probe, Device(probe.device):
        for _ in range(900):
            use_a_pool(probe, 4 * MIB)
        probe.malloc(4 * MIB)
        for _ in range(900):
            graph = graphs.CUDAGraph()
            with graphs.graph(graph):
                stream = memory.control.stream_handle(probe.device, None)
                probe.free(probe.malloc(512, stream))
            graph.reset()
        probe.malloc(64 * MIB)


def test_unmapped_address_ranges_are_released_before_a_request_fails_for_lack_of_addresses():
    with opened("", capacity=256 * MIB, phantom=True) as probe, Device(probe.device):
        probe.free(probe.malloc(20 * MIB))
        graph = graphs.CUDAGraph()
        with graphs.graph(graph):  # moves the pages, so their old addresses map nothing
            stream = memory.control.stream_handle(probe.device, None)
            probe.mark()
            with refusing(probe.device, 2, "va_reserve"), pytest.raises(OutOfMemoryError):
                probe.malloc(20 * MIB, stream)
            assert probe.made()["va_release"] == 1
            probe.free(probe.malloc(20 * MIB, stream))
        graph.reset()
