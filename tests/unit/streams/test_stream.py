"""Streams and events of one device, on host devices that run work at once and that defer it."""

import copy
import ctypes
import pickle
import random
import re
import threading

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry
from gputensor.errors import DeviceError, DriverError
from gputensor.streams import (
    Event,
    ExternalStream,
    Stream,
    default_stream,
    get_stream_from_external,
    synchronize,
)
from gputensor.streams.queue import stream_handle
from tests.support.driver_calls import HOST_FUNCTION, Calls


@pytest.fixture
def deferred():
    number = registry.open_host(capacity=64 << 20, seed=random.SystemRandom().getrandbits(32))
    yield number
    registry.close_host(number)


def words(ptr, count):
    return np.frombuffer(ctypes.string_at(ptr, 4 * count), np.uint32)


def test_streams_never_share_a_queue(device):
    streams = [Stream(device) for _ in range(200)]
    assert len({s.cuda_stream for s in streams}) == 200
    assert 0 not in {s.cuda_stream for s in streams}


def test_dropped_stream_gives_its_handle_to_the_next_one(device):
    handle = Stream(device).cuda_stream
    assert Stream(device).cuda_stream == handle
    registry.reset_counts(device)
    for _ in range(50):
        Stream(device)
    assert registry.counts(device)["stream_create"] == 0


def test_reuse_keeps_priorities_apart(device):
    least, greatest = Stream.priority_range(device)
    assert greatest < least
    handle = Stream(device, greatest).cuda_stream
    assert Stream(device).cuda_stream != handle
    urgent = Stream(device, priority=greatest)
    assert urgent.cuda_stream == handle and urgent.priority == greatest


def test_a_priority_out_of_range_means_the_nearest(device):
    least, greatest = Stream.priority_range(device)
    assert Stream(device, greatest - 7).priority == greatest
    assert Stream(device, priority=least + 1000).priority == least


def test_handles_are_arguments_of_ctypes(device):
    stream, event = Stream(device), Event()
    event.record(stream)
    assert stream._as_parameter_.value == stream.cuda_stream
    assert event._as_parameter_.value == event.cuda_event


def test_streams_compare_by_device_and_handle(device):
    a, b = Stream(device), Stream(device)
    same = get_stream_from_external(a.cuda_stream, device)
    assert a == same and hash(a) == hash(same) and a != b
    assert a != "stream" and a != a.cuda_stream
    assert default_stream(device) != default_stream("host")
    assert default_stream(device).cuda_stream == 0
    assert hash(default_stream(device)) != hash(default_stream("host"))
    assert a.device.number == device


def test_stream_offers_the_cuda_stream_protocol(device):
    stream = Stream(device)
    assert stream.__cuda_stream__() == (0, stream.cuda_stream)


def test_external_stream_keeps_its_handle_when_dropped(device):
    owned = Stream(device)
    registry.reset_counts(device)
    del_me = ExternalStream(owned.cuda_stream, device)
    assert del_me.query() in (True, False)
    del del_me
    assert Stream(device).cuda_stream != owned.cuda_stream
    assert registry.counts(device)["stream_destroy"] == 0


def test_objects_with_the_protocol_are_streams_and_stay_alive(device):
    class Foreign:
        def __init__(self, stream):
            self.stream = stream

        def __cuda_stream__(self):
            return 0, self.stream.cuda_stream

    first, second = Stream(device), Stream(device)
    with first:
        second.wait_stream(Foreign(first))
        event = Event()
        event.record(Foreign(first))
        event.wait(Foreign(second))
    second.synchronize()
    assert event.query()


def test_wait_stream_orders_two_streams(deferred):
    calls = Calls(deferred)
    for _ in range(30):
        a, b = Stream(deferred), Stream(deferred)
        ptr = calls.make("mem_alloc", 1024)
        first, second = random.getrandbits(32), random.getrandbits(32)
        assert calls.fill_async(ptr, first, 4, 256, a.cuda_stream) == 0
        b.wait_stream(a)
        assert calls.fill_async(ptr, second, 4, 128, b.cuda_stream) == 0
        b.synchronize()
        assert set(words(ptr, 128)) == {second} and set(words(ptr + 512, 128)) == {first}
        assert calls.mem_free(ptr) == 0


def test_query_is_false_until_the_work_ran_and_synchronize_runs_it(deferred):
    calls = Calls(deferred)
    seen_pending = False
    for _ in range(40):
        stream, ptr = Stream(deferred), calls.make("mem_alloc", 1024)
        for value in range(20):
            assert calls.fill_async(ptr, value, 4, 256, stream.cuda_stream) == 0
        event = stream.record_event()
        done, stream_done = event.query(), stream.query()
        seen_pending |= not done
        assert not stream_done or event.query()
        if random.random() < 0.5:
            event.synchronize()
        else:
            stream.synchronize()
        assert event.query() and set(words(ptr, 256)) == {19}
        assert calls.mem_free(ptr) == 0
    assert seen_pending


def test_synchronize_waits_for_all_streams(deferred):
    calls = Calls(deferred)
    streams = [Stream(deferred) for _ in range(5)]
    ptr = calls.make("mem_alloc", 4 * len(streams))
    for at, stream in enumerate(streams):
        assert calls.fill_async(ptr + 4 * at, at + 1, 4, 1, stream.cuda_stream) == 0
    synchronize(deferred)
    assert list(words(ptr, len(streams))) == [1, 2, 3, 4, 5]
    assert all(stream.query() for stream in streams)


def test_waiting_lets_other_threads_run(device):
    """A host function needs the GIL; the thread that waits for it must not hold it."""
    ran = []
    function = HOST_FUNCTION(lambda _: ran.append(threading.get_ident()))
    calls, stream = Calls(device), Stream(device)
    assert calls.host_launch(function, None, stream.cuda_stream) == 0
    waiters = [threading.Thread(target=stream.synchronize) for _ in range(4)]
    for waiter in waiters:
        waiter.start()
    for waiter in waiters:
        waiter.join(timeout=20)
    assert not any(waiter.is_alive() for waiter in waiters) and len(ran) == 1


# ---- events ----


def test_unrecorded_event_counts_as_done_and_makes_no_driver_event(device):
    registry.reset_counts(device)
    event = Event()
    assert event.query() and event.device is None and event.cuda_event == 0
    event.synchronize()
    event.wait(Stream(device))
    counts = registry.counts(device)
    assert counts["event_create"] == counts["stream_wait_event"] == 0


def test_recording_again_does_not_move_waits_that_are_queued(deferred):
    calls = Calls(deferred)
    for _ in range(30):
        a, b = Stream(deferred), Stream(deferred)
        ptr = calls.make("mem_alloc", 8)
        event = Event()
        assert calls.fill_async(ptr, 1, 4, 1, a.cuda_stream) == 0
        event.record(a)
        event.wait(b)
        event.record(b)
        assert calls.copy_async(ptr + 4, ptr, 4, b.cuda_stream) == 0
        event.record(b)
        event.synchronize()
        assert words(ptr, 2)[1] == 1
        assert calls.mem_free(ptr) == 0


def test_events_without_time_stamps_are_reused(device):
    stream = Stream(device)
    stream.record_event()
    registry.reset_counts(device)
    for _ in range(20):
        stream.record_event().synchronize()
    assert registry.counts(device)["event_create"] == 0


def test_timed_events_are_destroyed_with_their_object(device):
    live = registry.leaks(device)["events"]
    events = [Event(enable_timing=True) for _ in range(5)]
    for event in events:
        event.record(Stream(device))
    assert registry.leaks(device)["events"] == live + 5
    del events, event
    assert registry.leaks(device)["events"] == live


def test_elapsed_time_is_not_negative_and_grows(device):
    stream = Stream(device)
    marks = [Event(enable_timing=True) for _ in range(3)]
    for mark in marks:
        mark.record(stream)
    stream.synchronize()
    first, second, third = marks
    assert 0 <= first.elapsed_time(second) <= first.elapsed_time(third)
    assert first.elapsed_time(third) == pytest.approx(
        first.elapsed_time(second) + second.elapsed_time(third), rel=1e-6, abs=1e-3
    )


def test_elapsed_time_says_what_is_missing(deferred):
    timed, plain = Event(enable_timing=True), Event()
    with pytest.raises(ValueError, match="^end_event: got .*; expected .* enable_timing=True$"):
        timed.elapsed_time(plain)
    with pytest.raises(ValueError, match="^end_event: .*; expected two events that are recorded$"):
        timed.elapsed_time(Event(enable_timing=True))
    with pytest.raises(TypeError, match="end_event: got int; expected an Event"):
        timed.elapsed_time(3)
    calls, stream = Calls(deferred), Stream(deferred)
    ptr = calls.make("mem_alloc", 1024)
    for _ in range(50):
        timed.record(stream)
        for _ in range(20):
            assert calls.fill_async(ptr, 1, 4, 256, stream.cuda_stream) == 0
        end = Event(enable_timing=True)
        end.record(stream)
        if not end.query():
            try:
                timed.elapsed_time(end)
            except DriverError as error:
                assert "synchronize first" in str(error)
                break
    else:
        pytest.fail("no event was ever pending")


def test_blocking_event_waits_like_another(device):
    event = Event(blocking=True)
    event.record(Stream(device))
    event.synchronize()
    assert event.query()


# ---- mistakes, each in one sentence ----


def test_wrong_types_are_named(device):
    stream = Stream(device)
    with pytest.raises(TypeError, match="stream: got int; expected a Stream or an object with"):
        stream.wait_stream(7)
    with pytest.raises(TypeError, match="event: got str; expected an Event"):
        stream.wait_event("event")
    with pytest.raises(TypeError, match="event: got Stream; expected an Event"):
        stream.record_event(stream)
    with pytest.raises(TypeError, match="stream_ptr: got str; expected an int"):
        ExternalStream("7", device)
    with pytest.raises(TypeError, match="priority: got float; expected an int"):
        Stream(device, priority=1.5)


def test_wrong_values_are_named(device):
    with pytest.raises(ValueError, match="^stream_ptr: got -1; expected a stream handle"):
        ExternalStream(-1, device)

    class Newer:
        def __cuda_stream__(self):
            return 1, 0

    with pytest.raises(ValueError, match=r"^stream.__cuda_stream__\(\): got version 1; expected"):
        Stream(device).wait_stream(Newer())


@pytest.mark.parametrize("given", [5, None, (0,), (0, 1, 2)])
def test_object_with_a_malformed_cuda_stream_is_named(given):
    class Odd:
        def __cuda_stream__(self):
            return given

    message = re.escape(f"stream.__cuda_stream__(): got {given!r}; expected (0, handle)")
    for call in (gt.stream, gt.zeros(1, device="host").record_stream):
        with pytest.raises(TypeError, match=message):
            call(Odd())
    with pytest.raises(TypeError, match=message):
        stream_handle(-1, Odd())


def test_queueing_on_an_invalid_handle_names_device_and_stream():
    with ExternalStream(12345, "host"), pytest.raises(gt.DriverError, match="0x3039 of host$"):
        gt.ones(3, device="host")


def test_event_stays_on_its_device(device):
    event = Event()
    event.record(Stream(device))
    with pytest.raises(ValueError, match="^stream: got a stream on host; expected one on host:"):
        event.record(Stream("host"))


def test_streams_of_different_host_devices_wait_in_the_calling_thread(device):
    calls, producer = Calls(device), Stream(device)
    ptr = calls.make("mem_alloc", 1024)
    assert calls.fill_async(ptr, 77, 4, 256, producer.cuda_stream) == 0
    Stream("host").wait_stream(producer)
    assert set(words(ptr, 256)) == {77}


def test_stream_of_a_closed_device_says_so():
    number = registry.open_host(capacity=16 << 20)
    stream, event = Stream(number), Event()
    event.record(stream)
    registry.close_host(number)
    for action in (stream.query, stream.synchronize, event.query, stream.__enter__):
        with pytest.raises(DeviceError, match="of this (stream|event) is closed"):
            action()
    # The number is reused; objects made before stay closed and do not affect the new device.
    again = registry.open_host(capacity=16 << 20)
    try:
        assert again == number
        with pytest.raises(DeviceError, match="closed"):
            stream.query()
        del stream, event
        Stream(again).record_event().synchronize()
    finally:
        registry.close_host(again)


def test_failed_stream_creation_creates_nothing(device):
    registry.fail_call(device, 1, status=2, name="stream_create")
    live = registry.leaks(device)["streams"]
    with pytest.raises(DriverError, match="stream_create failed: CUDA_ERROR_OUT_OF_MEMORY"):
        Stream(device)
    assert registry.leaks(device)["streams"] == live
    assert Stream(device).query()


def test_failed_first_record_leaves_the_event_unrecorded(device):
    event, stream = Event(enable_timing=True), Stream(device)
    live = registry.leaks(device)["events"]
    registry.fail_call(device, 1, status=999, name="event_record")
    with pytest.raises(DriverError, match="event_record failed"):
        event.record(stream)
    assert event.device is None and event.query()
    assert registry.leaks(device)["events"] == live


@pytest.mark.parametrize("copy_of", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("kind", ["stream", "external", "event", "graph", "pool"])
def test_objects_that_own_a_driver_handle_cannot_be_copied(kind, copy_of):
    """Two owners of one handle would both release it."""
    stream = gt.Stream("host")
    owner = {
        "stream": lambda: stream,
        "external": lambda: gt.ExternalStream(stream.cuda_stream, "host"),
        "event": gt.Event,
        "graph": gt.graphs.CUDAGraph,
        "pool": lambda: gt.memory.MemPool("host"),
    }[kind]()
    if kind == "event":
        owner.record(stream)
    with pytest.raises(TypeError, match="cannot (copy or )?pickle"):
        copy_of(owner)
    if kind == "pool":
        assert owner.use_count() == 1
