"""Waits for the whole device: what the allocator learns, and the memory captures gain by it."""

import threading

import pytest

from gputensor import graphs, memory
from gputensor._alloc import check as checker
from gputensor.errors import OutOfMemoryError
from gputensor.streams import Device, synchronize
from tests.support.alloc_probe import MIB, held_up, opened

CONFIGURATIONS = ["", "expandable_segments:False", "page_reuse:False"]


def malloc_in_capture(probe, graph, nbytes):
    with graphs.graph(graph):
        return probe.malloc(nbytes, memory.control.stream_handle(probe.device, None))


@pytest.mark.parametrize("conf", CONFIGURATIONS)
@pytest.mark.parametrize("on_side_stream", [False, True])
def test_memory_freed_before_a_capture_serves_it(conf, on_side_stream):
    with opened(conf, capacity=256 * MIB, phantom=True) as probe, Device(probe.device):
        stream = probe.stream() if on_side_stream else 0
        for _ in range(3):
            probe.free(probe.malloc(192 * MIB, stream))
        graph = graphs.CUDAGraph()
        malloc_in_capture(probe, graph, 160 * MIB)
        assert probe.stats()["num_ooms"] == 0
        assert probe.reserved() <= 200 * MIB
        assert checker.check(probe.device) == []
        probe.free_all()
        graph.reset()


def test_pages_that_views_show_serve_a_capture_when_the_device_is_full():
    with opened("", capacity=256 * MIB, phantom=True) as probe, Device(probe.device):
        blocks = [probe.malloc(20 * MIB) for _ in range(8)]
        probe.free_all(blocks[::2])
        view = probe.malloc(40 * MIB)
        assert probe.lies_in_a_view(view)
        probe.free_all()
        graph = graphs.CUDAGraph()
        malloc_in_capture(probe, graph, 240 * MIB)
        probe.free_all()
        graph.reset()


@pytest.mark.parametrize("conf", CONFIGURATIONS)
def test_a_request_that_fails_in_a_capture_leaves_reserved_as_it_was(conf):
    with opened(conf, capacity=256 * MIB, phantom=True) as probe, Device(probe.device):
        probe.malloc(64 * MIB)
        graph = graphs.CUDAGraph()
        reserved = probe.reserved()
        with pytest.raises(OutOfMemoryError):
            malloc_in_capture(probe, graph, 220 * MIB)
        assert probe.reserved() == reserved
        assert checker.check(probe.device) == []


@pytest.mark.parametrize("conf", ["", "thread_cache:False"])
def test_a_users_wait_for_the_device_shows_that_foreign_streams_are_done(conf):
    """They cannot be queried later, because their owner may have destroyed them."""
    with opened(conf, capacity=256 * MIB, seed=3) as probe:
        gone = probe.foreign_stream()
        ptr = probe.malloc(20 * MIB, gone)
        probe.work(ptr, gone)
        probe.free(ptr)
        synchronize(probe.device)
        assert probe.calls.stream_destroy(gone) == 0
        probe.mark()
        assert probe.malloc(20 * MIB) == ptr
        assert not probe.asked_for_memory() and "synchronize" not in probe.made()


def test_a_wait_does_not_cover_work_queued_after_it_began():
    """Two waits overlap: each covers the work queued before it, independent of the other."""
    with opened("thread_cache:False", capacity=256 * MIB) as probe:
        foreign = probe.foreign_stream()
        early, _, late, _ = (probe.malloc(nbytes * MIB, foreign) for nbytes in (20, 2, 20, 2))
        begun, go_on = threading.Semaphore(0), [threading.Event(), threading.Event()]
        names = iter(go_on)

        def hold_up():
            mine = next(names)
            begun.release()
            mine.wait(20)

        threads = [threading.Thread(target=synchronize, args=(probe.device,)) for _ in range(2)]
        with held_up(probe, "synchronize", hold_up):
            probe.free(early)
            threads[0].start()
            begun.acquire()
            probe.free(late)
            threads[1].start()
            begun.acquire()
            go_on[0].set()
            threads[0].join()
            probe.mark()
            assert probe.malloc(20 * MIB) == early
            assert not probe.asked_for_memory()
            assert probe.malloc(20 * MIB) != late, "the wait that covers it is not over"
            go_on[1].set()
            threads[1].join()
        probe.mark()
        assert probe.malloc(20 * MIB) == late
        assert not probe.asked_for_memory()
