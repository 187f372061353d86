"""Free pages of one pool serve another pool before the driver creates new pages."""

import pytest

from gputensor import graphs, memory
from gputensor._alloc import check as checker
from gputensor._driver import registry
from gputensor.streams import Device
from tests.support.alloc_probe import MIB, opened

MAKE_US, MOVE_US = 42, 50  # microseconds a page: create and map; unmap and map


def in_small_blocks(probe, nbytes):
    return [probe.malloc(MIB) for _ in range(nbytes // MIB)]


@pytest.mark.parametrize("conf", ["", "page_size_mb:2"])
def test_free_memory_of_the_small_pool_serves_large_requests(conf):
    with opened(conf, capacity=1 << 30, phantom=True) as probe:
        probe.free_all(in_small_blocks(probe, 200 * MIB))
        reserved = probe.reserved()
        probe.mark()
        probe.malloc(200 * MIB)
        assert probe.reserved() == reserved
        assert "page_create" not in probe.made() and "synchronize" not in probe.made()
        assert probe.stats()["num_alloc_retries"] == 0
        assert checker.check(probe.device) == []


def test_free_memory_of_the_default_pool_serves_a_private_pool():
    with opened("", capacity=1 << 30, phantom=True) as probe:
        probe.free(probe.malloc(200 * MIB))
        reserved = probe.reserved()
        pool = memory.MemPool(probe.device)
        with memory.use_mem_pool(pool, probe.device):
            probe.malloc(180 * MIB)
        assert probe.reserved() == reserved, "a page that is too large is better than a new one"
        assert checker.check(probe.device) == []
        probe.free_all()
        del pool


def test_a_held_pool_keeps_its_free_pages():
    with opened("", capacity=1 << 30, phantom=True) as probe:
        pool = memory.MemPool(probe.device)
        with memory.use_mem_pool(pool, probe.device):
            probe.free(probe.malloc(200 * MIB))
        probe.mark()
        probe.malloc(200 * MIB)
        assert "page_unmap" not in probe.made()
        del pool


def test_pages_that_the_device_still_uses_stay():
    with opened("", capacity=1 << 30, seed=5) as probe:
        stream = probe.stream()
        pool = memory.MemPool(probe.device)
        ptr = probe.malloc(20 * MIB, stream)
        probe.work(ptr, stream, 400)
        probe.free(ptr)
        with memory.use_mem_pool(pool, probe.device):
            probe.mark()
            probe.malloc(20 * MIB)
        assert "page_unmap" not in probe.made() and "synchronize" not in probe.made()
        probe.calls.synchronize()
        probe.free_all()
        del pool


def test_nothing_is_moved_while_a_capture_is_under_way():
    with opened("", capacity=1 << 30, phantom=True) as probe, Device(probe.device):
        probe.malloc(512)
        graph = graphs.CUDAGraph()
        with graphs.graph(graph):
            probe.free(probe.malloc(100 * MIB))  # on the default stream, so not part of the capture
            probe.mark()
            probe.malloc(100 * MIB, memory.control.stream_handle(probe.device, None))
            assert "page_unmap" not in probe.made()
        probe.free_all()
        graph.reset()


@pytest.mark.parametrize("conf", ["", "page_size_mb:2"])
def test_pools_that_alternate_stop_moving_pages(conf):
    """Each pool could use the pages that the other frees, but each move costs time."""
    with opened(conf, capacity=1 << 30, phantom=True) as probe:
        made = moved = 0
        for _ in range(40):
            for blocks in (in_small_blocks, lambda probe, nbytes: [probe.malloc(nbytes)]):
                probe.mark()
                probe.free_all(blocks(probe, 100 * MIB))
                counts = probe.made()
                made += counts.get("page_create", 0)
                moved += counts.get("page_map", 0) - counts.get("page_create", 0)
        assert moved * MOVE_US <= 1000 + 2 * made * MAKE_US
        assert not probe.asked_for_memory() and "page_unmap" not in probe.made()
        assert probe.reserved() <= 240 * MIB
        assert registry.leaks(probe.device)["used_bytes"] == probe.reserved()
        assert checker.check(probe.device) == []
