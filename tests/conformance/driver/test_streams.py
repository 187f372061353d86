"""Streams and events: order, queries, and what waiting means."""

import numpy as np
import pytest

from tests.support.driver_calls import HOST_FUNCTION, UNTOUCHED

INVALID_VALUE, INVALID_HANDLE, NOT_READY = 1, 400, 600
TIMING = 1


@pytest.fixture
def streams(calls):
    made = [calls.make("stream_create", 0) for _ in range(3)]
    yield made
    for stream in made:
        assert calls.stream_destroy(stream) == 0


@pytest.fixture
def event(calls):
    made = calls.make("event_create", 0)
    yield made
    assert calls.event_destroy(made) == 0


def test_work_of_one_stream_runs_in_call_order(calls, streams, rng):
    ran = []
    functions = [HOST_FUNCTION(lambda _, i=i: ran.append(i)) for i in range(40)]
    for function in functions:
        assert calls.host_launch(function, None, streams[0]) == 0
    assert calls.stream_synchronize(streams[0]) == 0
    assert ran == list(range(40))


def test_a_stream_waits_for_the_recording_that_was_latest_at_the_call(calls, streams, event):
    first, second, _ = streams
    ran = []
    one = HOST_FUNCTION(lambda _: ran.append("before"))
    two = HOST_FUNCTION(lambda _: ran.append("after"))
    late = HOST_FUNCTION(lambda _: ran.append("late"))
    assert calls.host_launch(one, None, first) == 0
    assert calls.event_record(event, first) == 0
    assert calls.stream_wait_event(second, event) == 0
    assert calls.host_launch(two, None, second) == 0
    assert calls.host_launch(late, None, first) == 0
    assert calls.event_record(event, first) == 0
    assert calls.stream_synchronize(second) == 0
    assert ran.index("before") < ran.index("after")
    assert calls.synchronize() == 0
    assert sorted(ran) == ["after", "before", "late"]


def test_values_cross_streams_along_events(calls, streams, event, rng):
    data = rng.standard_normal(5000)
    src = calls.upload(data)
    buffers = [calls.make("mem_alloc", data.nbytes) for _ in streams]
    previous = src
    for stream, buffer in zip(streams, buffers, strict=True):
        assert calls.stream_wait_event(stream, event) == 0
        assert calls.copy_async(buffer, previous, data.nbytes, stream) == 0
        assert calls.event_record(event, stream) == 0
        previous = buffer
    out = calls.download(buffers[-1], np.empty_like(data), streams[-1])
    np.testing.assert_array_equal(out, data)
    for ptr in [src, *buffers]:
        assert calls.mem_free(ptr) == 0


def test_an_event_never_recorded_is_complete(calls, streams, event):
    assert calls.event_query(event) == 0
    assert calls.event_synchronize(event) == 0
    assert calls.stream_wait_event(streams[0], event) == 0


def test_queries_say_ready_after_synchronizing(calls, streams, event):
    ptr = calls.make("mem_alloc", 1 << 20)
    assert calls.fill_async(ptr, 1, 4, 1 << 18, streams[0]) == 0
    assert calls.event_record(event, streams[0]) == 0
    assert calls.stream_query(streams[0]) in (0, NOT_READY)
    assert calls.event_query(event) in (0, NOT_READY)
    assert calls.event_synchronize(event) == 0
    assert calls.event_query(event) == 0
    assert calls.stream_synchronize(streams[0]) == 0
    assert calls.stream_query(streams[0]) == 0
    assert calls.mem_free(ptr) == 0


def test_a_query_that_says_not_ready_says_ready_in_the_end(calls, streams, event):
    ptr = calls.make("mem_alloc", 1 << 20)
    for value in range(20):
        assert calls.fill_async(ptr, value, 4, 1 << 18, streams[0]) == 0
    assert calls.event_record(event, streams[0]) == 0
    for _ in range(10_000_000):
        status = calls.event_query(event)
        assert status in (0, NOT_READY)
        if status == 0:
            break
    assert status == 0
    assert calls.mem_free(ptr) == 0


def test_timed_events_measure_forward(calls, streams):
    start, end = calls.make("event_create", TIMING), calls.make("event_create", TIMING)
    ptr = calls.make("mem_alloc", 1 << 22)
    assert calls.event_record(start, streams[0]) == 0
    assert calls.fill_async(ptr, 3, 4, 1 << 20, streams[0]) == 0
    assert calls.event_record(end, streams[0]) == 0
    assert calls.event_synchronize(end) == 0
    status, milliseconds = calls.event_elapsed(start, end)
    assert status == 0 and 0 <= milliseconds < 60_000
    for made in (start, end):
        assert calls.event_destroy(made) == 0
    assert calls.mem_free(ptr) == 0


def test_elapsed_needs_timed_and_recorded_events(calls, streams, event):
    timed = calls.make("event_create", TIMING)
    assert calls.event_elapsed(timed, timed)[0] == INVALID_HANDLE
    assert calls.event_record(timed, streams[0]) == 0
    assert calls.event_record(event, streams[0]) == 0
    assert calls.stream_synchronize(streams[0]) == 0
    assert calls.event_elapsed(timed, event) == (INVALID_HANDLE, float(UNTOUCHED))
    assert calls.event_destroy(timed) == 0


def test_destroying_a_stream_lets_its_work_finish(calls, rng):
    data = rng.standard_normal(1000)
    src, dst = calls.upload(data), calls.make("mem_alloc", data.nbytes)
    stream = calls.make("stream_create", 0)
    assert calls.copy_async(dst, src, data.nbytes, stream) == 0
    assert calls.stream_destroy(stream) == 0
    assert calls.synchronize() == 0
    np.testing.assert_array_equal(calls.download(dst, np.empty_like(data)), data)
    assert calls.mem_free(src) == 0
    assert calls.mem_free(dst) == 0


def test_destroying_an_event_keeps_the_waits_on_it(calls, streams):
    event = calls.make("event_create", 0)
    ran = []
    one, two = (HOST_FUNCTION(lambda _, i=i: ran.append(i)) for i in (1, 2))
    assert calls.host_launch(one, None, streams[0]) == 0
    assert calls.event_record(event, streams[0]) == 0
    assert calls.stream_wait_event(streams[1], event) == 0
    assert calls.event_destroy(event) == 0
    assert calls.host_launch(two, None, streams[1]) == 0
    assert calls.stream_synchronize(streams[1]) == 0
    assert ran == [1, 2]


def test_priorities_have_a_range_and_every_value_makes_a_stream(calls):
    status, least, greatest = calls.stream_priority_range()
    assert status == 0 and greatest <= least
    for priority in {least, greatest, greatest - 100, least + 100}:
        assert calls.stream_destroy(calls.make("stream_create", priority)) == 0


def test_flags_that_do_not_exist_are_refused(calls):
    assert calls.event_create(0x80) == (INVALID_VALUE, UNTOUCHED)


def test_none_is_not_an_event_and_stream_0_cannot_be_destroyed(calls, streams):
    assert calls.event_query(0) == INVALID_HANDLE
    assert calls.event_record(0, streams[0]) == INVALID_HANDLE
    assert calls.stream_wait_event(streams[0], 0) == INVALID_HANDLE
    assert calls.event_destroy(0) == INVALID_HANDLE
    assert calls.stream_destroy(0) == INVALID_HANDLE


def test_handles_that_were_destroyed_or_never_made_are_refused(calls):
    if calls.device >= 0:
        pytest.skip("CUDA does not promise to recognise stale handles; the host device does")
    stream, event = calls.make("stream_create", 0), calls.make("event_create", 0)
    assert calls.stream_destroy(stream) == 0
    assert calls.event_destroy(event) == 0
    for handle in (stream, 987654321):
        assert calls.stream_query(handle) == INVALID_HANDLE
        assert calls.stream_synchronize(handle) == INVALID_HANDLE
        assert calls.stream_destroy(handle) == INVALID_HANDLE
        assert calls.fill_async(1 << 20, 0, 1, 1, handle) == INVALID_HANDLE
        assert calls.copy_async(1 << 20, 1 << 21, 1, handle) == INVALID_HANDLE
        assert calls.capture_begin(handle, 0) == INVALID_HANDLE
        assert calls.capture_info(handle) == (INVALID_HANDLE, UNTOUCHED, UNTOUCHED)
    for handle in (event, 987654321):
        assert calls.event_query(handle) == INVALID_HANDLE
        assert calls.event_record(handle, 0) == INVALID_HANDLE
        assert calls.event_synchronize(handle) == INVALID_HANDLE
        assert calls.event_destroy(handle) == INVALID_HANDLE
