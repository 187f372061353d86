"""Foreign streams: once their owner has destroyed one, no driver call names it."""

import random

import pytest

from gputensor import memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor._driver import registry
from gputensor.streams import Device, Stream
from tests.support.alloc_probe import MIB, opened

INVALID_HANDLE = 400
# Driver calls that take a stream -> the index of that argument.
STREAM_ARGUMENT = {
    "stream_query": 0, "stream_synchronize": 0, "stream_wait_event": 0, "event_record": 1,
    "capture_info": 0, "async_alloc": 2, "async_free": 1,
}  # fmt: skip


def calls_naming(device, stream):
    """The calls since start_trace that named the stream, with their statuses."""
    return [
        (name, status)
        for name, status, arguments in registry.take_trace(device)
        if name in STREAM_ARGUMENT and arguments[STREAM_ARGUMENT[name]] == stream
    ]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("conf", ["", "expandable_segments:False", "thread_cache:False"])
def test_a_destroyed_stream_is_never_named_again(conf, seed):
    with opened(conf, capacity=128 * MIB, seed=seed) as probe:
        gone = probe.foreign_stream()
        others = [0, probe.stream()]
        for nbytes in (1000, 3 * MIB, 20 * MIB):
            probe.free(probe.malloc(nbytes, gone))
        held = probe.malloc(4 * MIB, gone)
        used = probe.malloc(5 * MIB)
        raw_memory.raw_record_stream(used, gone)
        probe.work(used, gone)
        probe.free(used)
        assert probe.calls.stream_destroy(gone) == 0
        registry.start_trace(probe.device)
        probe.free(held)
        for stream in others:
            blocks = [probe.malloc(nbytes, stream) for nbytes in (700, 2 * MIB, 9 * MIB, 11 * MIB)]
            probe.free_all(blocks[::2])
            probe.malloc(22 * MIB, stream)
            memory.snapshot(probe.device)
            probe.free_all()
        probe.malloc(120 * MIB)  # more than the other streams have free: takes every step of a miss
        report.empty_cache(probe.device)
        probe.free_all()
        assert calls_naming(probe.device, gone) == []


def test_memory_of_a_destroyed_stream_serves_others_after_a_device_synchronize():
    with opened(capacity=64 * MIB, seed=5) as probe:
        gone = probe.foreign_stream()
        ptr = probe.malloc(60 * MIB, gone)
        probe.work(ptr, gone)
        probe.free(ptr)
        assert probe.calls.stream_destroy(gone) == 0
        probe.mark()
        probe.malloc(60 * MIB)
        assert probe.made()["synchronize"] == 1
        assert probe.stats()["num_ooms"] == 0


def test_a_request_on_a_foreign_stream_shows_that_its_earlier_frees_are_done():
    """Its own requests prove that it exists: they record an event, which is queried later."""
    with opened(capacity=256 * MIB) as probe:
        foreign = probe.foreign_stream()
        ptr, _ = probe.malloc(20 * MIB, foreign), probe.malloc(MIB + 512, foreign)
        probe.free(ptr)
        probe.malloc(1000, foreign)  # a miss: finds that earlier frees are done
        probe.mark()
        probe.malloc(20 * MIB)
        assert not probe.asked_for_memory()
        probe.free_all()
        assert probe.calls.stream_destroy(foreign) == 0


def test_a_failed_event_waits_for_the_device_and_not_for_the_stream():
    with opened(capacity=128 * MIB, seed=7) as probe:
        gone = probe.foreign_stream()
        ptr = probe.malloc(20 * MIB)
        raw_memory.raw_record_stream(ptr, gone)
        probe.work(ptr, gone)
        registry.fail_call(probe.device, 1, status=999, name="event_record")
        probe.free(ptr)
        assert probe.calls.stream_destroy(gone) == 0
        registry.start_trace(probe.device)
        probe.malloc(512)
        assert probe.stats()["active_bytes.large_pool.current"] == 20 * MIB, "it still waits"
        report.empty_cache(probe.device)
        assert probe.stats()["active_bytes.large_pool.current"] == 0
        assert calls_naming(probe.device, gone) == []
        assert checker.check(probe.device) == []


def test_streams_of_the_library_can_be_queried_at_any_time():
    """They are never destroyed, so blocks of idle ones can be reused."""
    with opened(capacity=256 * MIB) as probe, Device(probe.device):
        ours = Stream().cuda_stream
        ptr = probe.malloc(20 * MIB, ours)
        probe.free(ptr)
        probe.mark()
        assert probe.malloc(20 * MIB) == ptr
        assert not probe.asked_for_memory()


def test_streams_that_come_and_go_leave_nothing_behind():
    rng = random.Random()
    with opened(capacity=64 * MIB, seed=rng.randrange(1 << 30)) as probe:
        for _ in range(40):
            stream = probe.foreign_stream()
            blocks = [probe.malloc(rng.randrange(1, 8 * MIB), stream) for _ in range(3)]
            for ptr in blocks:
                probe.work(ptr, stream, 3)
            probe.free_all(blocks)
            assert probe.calls.stream_destroy(stream) == 0
        probe.malloc(60 * MIB)
