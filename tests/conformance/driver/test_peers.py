"""Two devices: waits for each other's events, and copies between their memories.

The pairs are host devices that run work at once or defer it, in several combinations, and two GPUs
if present. Work that did not wait for the other device would show as a wrong number.
"""

import ctypes
import threading

import numpy as np
import pytest

from gputensor._driver import registry
from tests.support.driver_calls import HOST_FUNCTION, Calls

INVALID_VALUE, INVALID_DEVICE, INVALID_HANDLE = 1, 101, 400
ILLEGAL_ADDRESS, CAPTURE_UNSUPPORTED = 700, 900
PAIRS = {
    "host": (None, None),
    "deferred": (1, 2),
    "deferred-same": (3, 3),
    "deferred-to-host": (4, None),
    "host-to-deferred": (None, 5),
}
SIZE = 3 * 4096 + 5


@pytest.fixture(params=[*PAIRS, "cuda"])
def pair(request):
    """The driver tables of two devices."""
    if request.param == "cuda":
        if registry.cuda_device_count() < 2:
            pytest.skip("needs two CUDA devices")
        for ordinal in (0, 1):
            registry.observe(ordinal)
        yield Calls(0), Calls(1)
        return
    numbers = [registry.open_host(capacity=64 << 20, seed=seed) for seed in PAIRS[request.param]]
    yield tuple(Calls(number) for number in numbers)
    for number in numbers:
        registry.host_run_all(number)
    left = [registry.leaks(number) for number in numbers]
    for number in numbers:
        registry.close_host(number)
    assert not any(count for leaks in left for count in leaks.values()), f"the test left {left}"


def bytes_of(rng, nbytes=SIZE):
    return rng.integers(0, 256, nbytes, dtype=np.uint8)


def pinned_of(calls, data):
    """Pinned memory with the bytes of `data`: copies from and to it are asynchronous."""
    ptr = calls.make("pinned_alloc", data.nbytes)
    ctypes.memmove(ptr, data.ctypes.data, data.nbytes)
    return ptr


def test_copies_reach_the_other_device_exactly(pair, rng):
    one, two = pair
    for here, there in ((one, two), (two, one), (one, one)):
        data = bytes_of(rng)
        source = here.upload(data)
        target = there.upload(np.full(SIZE + 32, 0xA5, np.uint8))
        assert here.copy_to_peer(target + 16, there.device, source, SIZE, 0) == 0
        assert here.stream_synchronize(0) == 0
        got = there.download(target, np.empty(SIZE + 32, np.uint8))
        np.testing.assert_array_equal(got[16:-16], data)
        assert set(got[:16]) | set(got[-16:]) == {0xA5}
        assert here.mem_free(source) == 0
        assert there.mem_free(target) == 0


def test_pages_are_copied_as_single_allocations_are(pair, rng):
    one, two = pair
    if not (one.granularity and two.granularity):
        pytest.skip("needs devices with virtual memory")
    places = []
    for calls in (one, two, one):
        nbytes = calls.granularity
        va = calls.make("va_reserve", nbytes, 0)
        page = calls.make("page_create", nbytes)
        assert calls.page_map(va, nbytes, page) == 0
        places.append((calls, va, page, nbytes))
        if len(places) == 2:
            # From here on the devices are set up as peers; the last page is made after that.
            assert one.copy_to_peer(va, two.device, places[0][1], 16, 0) == 0
            assert two.copy_to_peer(places[0][1], one.device, va, 16, 0) == 0
            assert [calls.synchronize() for calls in pair] == [0, 0]
    for here, there in ((0, 1), (1, 2), (1, 0)):
        data = bytes_of(rng)
        (source, va), (target, place) = places[here][:2], places[there][:2]
        assert source.copy_async(va, data.ctypes.data, SIZE, 0) == 0
        assert source.copy_to_peer(place, target.device, va, SIZE, 0) == 0
        assert source.stream_synchronize(0) == 0
        got = target.download(place, np.empty(SIZE, np.uint8))
        np.testing.assert_array_equal(got, data)
    for calls, va, page, nbytes in places:
        assert calls.page_unmap(va, nbytes) == 0
        assert calls.page_destroy(page) == 0
        assert calls.va_release(va, nbytes) == 0


def test_waits_order_the_streams_of_two_devices(pair, rng):
    """Bytes go back and forth between two buffers; each step waits for the one before it."""
    one, two = pair
    for _ in range(12):
        streams = [calls.make("stream_create", 0) for calls in pair]
        events = [calls.make("event_create", 0) for calls in pair]
        data = bytes_of(rng)
        staging, back = pinned_of(one, data), pinned_of(one, np.zeros_like(data))
        here, there = one.make("mem_alloc", SIZE), two.make("mem_alloc", SIZE)
        again = two.make("mem_alloc", SIZE)
        assert one.copy_async(here, staging, SIZE, streams[0]) == 0
        assert one.copy_to_peer(there, two.device, here, SIZE, streams[0]) == 0
        assert one.event_record(events[0], streams[0]) == 0
        assert two.wait_for_peer(streams[1], one.device, events[0]) == 0
        assert two.copy_async(again, there, SIZE, streams[1]) == 0
        assert two.fill_async(there, 0, 1, SIZE, streams[1]) == 0
        assert two.copy_to_peer(here, one.device, again, SIZE, streams[1]) == 0
        assert two.event_record(events[1], streams[1]) == 0
        assert one.wait_for_peer(streams[0], two.device, events[1]) == 0
        assert one.copy_async(back, here, SIZE, streams[0]) == 0
        # Recording the event again does not change the wait.
        assert two.event_record(events[1], streams[1]) == 0
        assert one.stream_synchronize(streams[0]) == 0
        np.testing.assert_array_equal(
            np.ctypeslib.as_array((ctypes.c_uint8 * SIZE).from_address(back)), data
        )
        assert [two.mem_free(ptr) for ptr in (there, again)] == [0, 0]
        assert one.mem_free(here) == 0
        assert [one.pinned_free(ptr) for ptr in (staging, back)] == [0, 0]
        for calls, stream, event in zip(pair, streams, events, strict=True):
            assert calls.stream_destroy(stream) == 0
            assert calls.event_destroy(event) == 0


def test_waiting_for_an_event_never_recorded_does_not_block(pair):
    one, two = pair
    event = two.make("event_create", 0)
    assert one.wait_for_peer(0, two.device, event) == 0
    assert one.stream_synchronize(0) == 0
    assert two.event_destroy(event) == 0


def test_unknown_peers_and_handles_are_refused(pair):
    one, two = pair
    ptr = one.make("mem_alloc", 64)
    missing = 31 if one.device >= 0 else -32
    other_kind = -1 if one.device >= 0 else 0
    for number in (missing, other_kind, 1000, -1000):
        assert one.copy_to_peer(ptr, number, ptr, 64, 0) == INVALID_DEVICE
        assert one.wait_for_peer(0, number, 1) == INVALID_DEVICE
    assert one.copy_to_peer(0, two.device, ptr, 64, 0) == INVALID_VALUE
    assert one.copy_to_peer(ptr, two.device, 0, 64, 0) == INVALID_VALUE
    assert one.copy_to_peer(0, two.device, 0, 0, 0) == 0
    assert one.wait_for_peer(0, two.device, 0) == INVALID_HANDLE
    assert one.mem_free(ptr) == 0


def test_calls_for_peers_are_refused_in_a_capture_which_continues(pair):
    one, two = pair
    source, target = one.make("mem_alloc", 64), two.make("mem_alloc", 64)
    stream, event = one.make("stream_create", 0), two.make("event_create", 0)
    assert two.event_record(event, 0) == 0
    assert one.capture_begin(stream, 2) == 0
    assert one.copy_to_peer(target, two.device, source, 64, stream) == CAPTURE_UNSUPPORTED
    assert one.wait_for_peer(stream, two.device, event) == CAPTURE_UNSUPPORTED
    assert one.fill_async(source, 1, 1, 64, stream) == 0
    status, graph = one.capture_end(stream)
    assert status == 0
    assert one.graph_destroy(graph) == 0
    assert one.stream_destroy(stream) == 0
    assert two.event_destroy(event) == 0
    assert one.mem_free(source) == 0
    assert two.mem_free(target) == 0


def test_the_target_must_be_memory_of_the_peer(pair):
    one, two = pair
    if one.device >= 0:
        pytest.skip("a bad address ends a CUDA context")
    ptr = one.make("mem_alloc", 64)
    freed = two.make("mem_alloc", 64)
    assert two.mem_free(freed) == 0
    status = one.copy_to_peer(freed, two.device, ptr, 64, 0)
    assert (status or one.stream_synchronize(0)) == ILLEGAL_ADDRESS
    assert one.mem_free(ptr) == 0


def test_host_functions_of_the_peer_run_before_work_that_waits_for_them(pair):
    one, two = pair
    seen = []
    first = HOST_FUNCTION(lambda argument: seen.append("peer"))
    second = HOST_FUNCTION(lambda argument: seen.append("waiter"))
    stream, event = one.make("stream_create", 0), two.make("event_create", 0)
    assert two.host_launch(first, None, 0) == 0
    assert two.event_record(event, 0) == 0
    assert one.wait_for_peer(stream, two.device, event) == 0
    assert one.host_launch(second, None, stream) == 0
    assert one.stream_synchronize(stream) == 0
    assert seen == ["peer", "waiter"]
    assert one.stream_destroy(stream) == 0
    assert two.event_destroy(event) == 0


def test_threads_that_wait_for_each_other_do_not_deadlock(pair, rng):
    """Two threads, each on its device, copy to the other and wait for the other's events."""
    streams = [calls.make("stream_create", 0) for calls in pair]
    sources = [calls.upload(bytes_of(rng)) for calls in pair]
    targets = [calls.make("mem_alloc", SIZE) for calls in pair]
    marks = [[calls.make("event_create", 0) for _ in range(50)] for calls in pair]
    failures = []

    def work(own):
        here, other = pair[own], pair[1 - own]
        for step in range(50):
            statuses = [
                here.copy_to_peer(targets[1 - own], other.device, sources[own], SIZE, streams[own]),
                here.event_record(marks[own][step], streams[own]),
                here.wait_for_peer(streams[own], other.device, marks[1 - own][step]),
                here.stream_synchronize(streams[own]) if step % 7 == own else 0,
            ]
            if any(statuses):
                failures.append(statuses)

    threads = [threading.Thread(target=work, args=(own,), daemon=True) for own in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []
    for own, calls in enumerate(pair):
        assert calls.stream_synchronize(streams[own]) == 0
    for own, calls in enumerate(pair):
        assert calls.stream_destroy(streams[own]) == 0
        assert [calls.event_destroy(event) for event in marks[own]] == [0] * 50
        assert [calls.mem_free(ptr) for ptr in (sources[own], targets[own])] == [0, 0]
