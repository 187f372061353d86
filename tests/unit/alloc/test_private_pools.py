"""Private pools: which requests they serve, their holders, and frees during a capture."""

import threading

import pytest

from gputensor import graphs, memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor.errors import DriverError, OutOfMemoryError
from gputensor.streams import Device
from tests.support import internals
from tests.support.alloc_probe import MIB, opened


@pytest.fixture(params=["", "expandable_segments:False"])
def probe(request):
    with opened(request.param, capacity=128 * MIB) as probe:
        yield probe


def inside(probe, pool, nbytes):
    internals.begin_pool(probe.device, pool)
    try:
        return probe.malloc(nbytes)
    finally:
        internals.end_pool(probe.device, pool)


def test_holders_are_counted(probe):
    pool = raw_memory.new_pool_id()
    assert raw_memory.count_pool_uses(probe.device, pool) == 0
    for count in (1, 2):
        internals.retain_pool(probe.device, pool)
        assert raw_memory.count_pool_uses(probe.device, pool) == count
    for count in (1, 0):
        internals.release_pool(probe.device, pool)
        assert raw_memory.count_pool_uses(probe.device, pool) == count
    internals.release_pool(probe.device, pool)
    assert raw_memory.count_pool_uses(probe.device, pool) == 0


def test_a_scope_that_was_not_opened_cannot_be_ended(probe):
    probe.malloc(512)
    with pytest.raises(DriverError, match="pool_end"):
        internals.end_pool(probe.device, raw_memory.new_pool_id())


def test_scopes_nest_and_the_innermost_serves(probe):
    first, second = raw_memory.new_pool_id(), raw_memory.new_pool_id()
    internals.begin_pool(probe.device, first)
    outer = probe.malloc(3 * MIB)
    nested = inside(probe, second, 3 * MIB)
    again = probe.malloc(3 * MIB)
    internals.end_pool(probe.device, first)
    pools = {}
    segments, blocks = report.collect_segments(probe.device)
    place = 0
    for segment in segments:
        for block in blocks[place : place + segment["n_blocks"]]:
            pools[int(block["address"])] = int(segment["pool_id"])
        place += segment["n_blocks"]
    assert [pools[ptr] for ptr in (outer, nested, again)] == [first, second, first]


def test_free_memory_of_a_held_pool_serves_no_other_pool(probe):
    pool = raw_memory.new_pool_id()
    internals.retain_pool(probe.device, pool)
    probe.free(inside(probe, pool, 100 * MIB))
    with pytest.raises(OutOfMemoryError) as caught:
        probe.malloc(60 * MIB)
    assert caught.value.reason == "idle private pool"
    report.empty_cache(probe.device)
    inside(probe, pool, 100 * MIB)
    probe.free_all()
    internals.release_pool(probe.device, pool)
    probe.malloc(120 * MIB)


def test_a_block_returns_to_the_pool_it_came_from(probe):
    pool = raw_memory.new_pool_id()
    internals.retain_pool(probe.device, pool)
    ptr = inside(probe, pool, 5000)
    other = probe.malloc(5000)
    probe.free(ptr)
    probe.free(other)
    assert probe.malloc(5000) != ptr
    assert inside(probe, pool, 5000) == ptr
    assert checker.check(probe.device) == []
    internals.release_pool(probe.device, pool)


def test_other_threads_are_not_in_the_scope(probe):
    pool = raw_memory.new_pool_id()
    probe.malloc(512)
    internals.begin_pool(probe.device, pool)
    found = []
    thread = threading.Thread(target=lambda: found.append(probe.malloc(9 * MIB)))
    thread.start()
    thread.join()
    internals.end_pool(probe.device, pool)
    assert pool not in report.all_values(probe.device)[1], "it has no holder and no memory"
    assert found[0] in probe.held


def test_blocks_freed_in_a_capture_wait_for_its_end():
    with opened(capacity=128 * MIB) as probe, Device(probe.device):
        other = probe.stream()
        before = probe.malloc(20 * MIB)
        graph = graphs.CUDAGraph()
        with graphs.graph(graph):
            stream = memory.control.stream_handle(probe.device, None)
            raw_memory.raw_record_stream(before, other)
            probe.mark()
            probe.free(before)
            captured = probe.malloc(6 * MIB, stream)
            made = probe.made()
            assert "event_record" not in made and "event_query" not in made
            assert probe.stats()["active_bytes.all.current"] == 26 * MIB
            assert checker.check(probe.device) == []
        probe.free(captured)
        probe.malloc(512)
        assert probe.stats()["active_bytes.all.current"] == 512
        graph.reset()


def test_a_graph_keeps_its_memory_until_it_is_reset():
    with opened(capacity=128 * MIB) as probe, Device(probe.device):
        graph = graphs.CUDAGraph()
        with graphs.graph(graph):
            stream = memory.control.stream_handle(probe.device, None)
            probe.free(probe.malloc(100 * MIB, stream))
        with pytest.raises(OutOfMemoryError):
            probe.malloc(60 * MIB)
        graph.reset()
        probe.malloc(60 * MIB)
