"""An OutOfMemoryError states its reason: one situation for each class of reason."""

import pytest

from gputensor import graphs, memory
from gputensor._alloc import allocator as device_allocator
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc.explain import out_of_memory
from gputensor._driver import registry
from gputensor.errors import DriverError, OutOfMemoryError
from gputensor.streams import Device
from tests.support import internals
from tests.support.alloc_probe import MIB, opened


def refused(probe, nbytes, stream=0):
    with pytest.raises(OutOfMemoryError) as caught:
        probe.malloc(nbytes, stream)
    return caught.value


def test_a_device_that_is_full_is_exhausted():
    with opened(capacity=64 * MIB) as probe:
        probe.malloc(60 * MIB)
        assert refused(probe, 20 * MIB).reason == "exhausted"


def test_a_request_larger_than_the_device_is_exhausted():
    with opened(capacity=64 * MIB) as probe:
        assert refused(probe, 65 * MIB).reason == "exhausted"
        assert refused(probe, 1 << 60).reason == "exhausted"
        probe.malloc(64 * MIB)


@pytest.mark.parametrize("conf", ["memory_limit_mb:40", "per_process_memory_fraction:0.4"])
def test_a_limit_is_named(conf):
    with opened(conf, capacity=100 * MIB) as probe:
        probe.malloc(20 * MIB)
        error = refused(probe, 30 * MIB)
        assert error.reason == "limit"
        assert error.facts["limit"] == 40 * MIB
        assert "limit 40.0 MiB" in str(error)
        probe.malloc(20 * MIB)


def test_free_memory_in_pieces_is_fragmented():
    with opened("expandable_segments:False", capacity=60 * MIB) as probe:
        blocks = [probe.malloc(5 * MIB) for _ in range(12)]
        probe.free_all(blocks[::2])
        error = refused(probe, 15 * MIB)
        assert error.reason == "fragmented"
        assert error.facts["largest_free_block"] == 5 * MIB


def test_memory_of_other_processes_is_named():
    with opened(capacity=128 * MIB) as probe:
        elsewhere = probe.calls.make("mem_alloc", 100 * MIB)
        error = refused(probe, 40 * MIB)
        assert error.reason == "other processes"
        assert error.facts["free"] == 28 * MIB
        assert probe.calls.mem_free(elsewhere) == 0
        probe.malloc(40 * MIB)


def test_a_pool_that_holds_enough_is_named():
    with opened(capacity=64 * MIB) as probe:
        pool = raw_memory.new_pool_id()
        internals.retain_pool(probe.device, pool)
        internals.begin_pool(probe.device, pool)
        probe.free(probe.malloc(40 * MIB))
        internals.end_pool(probe.device, pool)
        assert refused(probe, 30 * MIB).reason == "idle private pool"
        internals.release_pool(probe.device, pool)
        probe.malloc(30 * MIB)


def test_memory_that_a_capture_may_not_wait_for_is_named():
    with opened(capacity=64 * MIB) as probe, Device(probe.device):
        graph = graphs.CUDAGraph()
        with graphs.graph(graph):
            stream = memory.control.stream_handle(probe.device, None)
            ptr = probe.malloc(40 * MIB, stream)
            raw_memory.raw_record_stream(ptr, 0)
            probe.free(ptr)
            assert refused(probe, 30 * MIB, stream).reason == "waiting on streams"
        graph.reset()
        probe.malloc(30 * MIB)


def test_the_message_has_the_amounts():
    with opened(capacity=64 * MIB) as probe:
        probe.malloc(30 * MIB - 100)
        error = refused(probe, 40 * MIB + 5)
        facts = error.facts
        assert facts["requested"] == 40 * MIB + 5
        assert facts["rounded"] == 40 * MIB + 512
        assert facts["allocated"] == 30 * MIB
        assert facts["reserved"] == probe.reserved()
        assert facts["total"] == 64 * MIB
        assert facts["free"] == 64 * MIB - facts["reserved"]
        for text in ("40.0 MiB requested", "allocated 30.0 MiB", "of 64.0 MiB",
                     "reason: exhausted"):  # fmt: skip
            assert text in str(error)


def test_observers_may_use_the_allocator():
    seen = []

    def observer(device, nbytes, limit, free):
        seen.append((device, nbytes, limit, free, memory.memory_allocated(device)))
        raw_memory.raw_delete(raw_memory.raw_alloc(device, 4096, 0))

    out_of_memory.attach_observer(observer)
    try:
        with opened(capacity=64 * MIB) as probe:
            refused(probe, 100 * MIB)
            assert seen == [(probe.device, 100 * MIB, 64 * MIB, 64 * MIB, 0)]
    finally:
        out_of_memory.detach_observer(observer)


def test_a_failed_request_changes_nothing_and_the_next_is_served():
    with opened(capacity=64 * MIB) as probe:
        probe.malloc(30 * MIB)
        before = probe.stats()
        for _ in range(5):
            refused(probe, 50 * MIB)
            probe.free(probe.malloc(20 * MIB))
        after = probe.stats()
        assert after["num_ooms"] == 5
        assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]


def test_a_driver_that_fails_otherwise_is_not_out_of_memory():
    with opened() as probe:
        probe.malloc(512)
        device_allocator.set_caching(probe.device, False)
        registry.fail_call(probe.device, 1, 999, "mem_alloc")
        with pytest.raises(DriverError, match="CUDA_ERROR_UNKNOWN"):
            probe.malloc(20 * MIB)
        probe.malloc(20 * MIB)
