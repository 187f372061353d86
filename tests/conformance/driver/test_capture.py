"""Captures and graphs: what is recorded, in which order it runs, and which mistakes are refused."""

import ctypes

import numpy as np
import pytest

from tests.support.driver_calls import HOST_FUNCTION, UNTOUCHED

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
ILLEGAL_STATE = 401
UNSUPPORTED, INVALIDATED, UNJOINED, ISOLATION, CAPTURED_EVENT = 900, 901, 904, 905, 907


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


def instantiate(calls, stream):
    graph = calls.make("capture_end", stream)
    executable = calls.make("graph_instantiate", graph)
    assert calls.graph_destroy(graph) == 0
    return executable


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
def test_captured_work_runs_at_each_launch_and_not_before(calls, streams, mode):
    stream = streams[0]
    ptr = calls.upload(np.zeros(1000, np.int32))
    assert calls.capture_begin(stream, mode) == 0
    assert calls.fill_async(ptr, 7, 4, 1000, stream) == 0
    executable = instantiate(calls, stream)
    assert (calls.download(ptr, np.ones(1000, np.int32)) == 0).all()
    for _ in range(2):
        assert calls.graph_launch(executable, stream) == 0
        assert (calls.download(ptr, np.ones(1000, np.int32), stream) == 7).all()
        assert calls.fill_async(ptr, 1, 4, 1000, stream) == 0
    assert calls.stream_synchronize(stream) == 0
    assert calls.graph_executable_destroy(executable) == 0
    assert calls.mem_free(ptr) == 0


def test_capture_info_names_the_capture(calls, streams):
    stream = streams[0]
    assert calls.capture_info(stream) == (0, 0, 0)
    assert calls.capture_info(0) == (0, 0, 0)
    ids = set()
    for _ in range(2):
        assert calls.capture_begin(stream, RELAXED) == 0
        status, active, capture = calls.capture_info(stream)
        assert (status, active) == (0, 1) and capture
        ids.add(capture)
        assert calls.graph_destroy(calls.make("capture_end", stream)) == 0
    assert len(ids) == 2
    assert calls.capture_info(stream) == (0, 0, 0)


def test_streams_join_a_capture_through_events_and_keep_its_order(calls, streams, event):
    first, second, _ = streams
    ran = []
    functions = [HOST_FUNCTION(lambda _, i=i: ran.append(i)) for i in range(5)]
    join = calls.make("event_create", 0)
    assert calls.capture_begin(first, GLOBAL) == 0
    capture = calls.capture_info(first)[2]
    assert calls.host_launch(functions[0], None, first) == 0
    assert calls.event_record(event, first) == 0
    assert calls.stream_wait_event(second, event) == 0
    assert calls.capture_info(second) == (0, 1, capture)
    assert calls.host_launch(functions[1], None, second) == 0
    assert calls.host_launch(functions[2], None, first) == 0
    assert calls.host_launch(functions[3], None, second) == 0
    assert calls.event_record(join, second) == 0
    assert calls.stream_wait_event(first, join) == 0
    assert calls.host_launch(functions[4], None, first) == 0
    executable = instantiate(calls, first)
    assert calls.capture_info(second) == (0, 0, 0)
    assert ran == []
    for _ in range(4):
        ran.clear()
        assert calls.graph_launch(executable, first) == 0
        assert calls.stream_synchronize(first) == 0
        assert sorted(ran) == [0, 1, 2, 3, 4]
        assert ran[0] == 0 and ran[-1] == 4 and ran.index(1) < ran.index(3)
    assert calls.graph_executable_destroy(executable) == 0
    assert calls.event_destroy(join) == 0


def test_launches_of_one_executable_do_not_overlap(calls, streams):
    one, two, _ = streams
    ran = []
    functions = [HOST_FUNCTION(lambda _, i=i: ran.append(i)) for i in range(4)]
    assert calls.capture_begin(one, GLOBAL) == 0
    for function in functions:
        assert calls.host_launch(function, None, one) == 0
    executable = instantiate(calls, one)
    for stream in (one, two, one):
        assert calls.graph_launch(executable, stream) == 0
    assert calls.synchronize() == 0
    assert ran == [0, 1, 2, 3] * 3
    assert calls.graph_executable_destroy(executable) == 0


def test_memory_entries_are_allowed_while_capturing(calls, streams, event):
    stream = streams[0]
    assert calls.event_record(event, streams[1]) == 0
    assert calls.capture_begin(stream, GLOBAL) == 0
    ptr = calls.make("mem_alloc", 4096)
    if calls.granularity:
        va = calls.make("va_reserve", calls.granularity, 0)
        page = calls.make("page_create", calls.granularity)
        assert calls.page_map(va, calls.granularity, page) == 0
        assert calls.page_unmap(va, calls.granularity) == 0
        assert calls.page_destroy(page) == 0
        assert calls.va_release(va, calls.granularity) == 0
    assert calls.event_query(event) in (0, 600)
    pinned = calls.make("pinned_alloc", 4096)
    assert calls.fill_async(ptr, 5, 4, 1024, stream) == 0
    executable = instantiate(calls, stream)
    assert calls.graph_launch(executable, stream) == 0
    assert (calls.download(ptr, np.zeros(1024, np.int32), stream) == 5).all()
    assert calls.graph_executable_destroy(executable) == 0
    assert calls.pinned_free(pinned) == 0
    assert calls.mem_free(ptr) == 0


@pytest.mark.parametrize("entry", ["stream_query", "stream_synchronize"])
def test_waiting_for_a_capturing_stream_is_refused_and_ends_the_capture(calls, streams, entry):
    stream = streams[0]
    assert calls.capture_begin(stream, GLOBAL) == 0
    assert getattr(calls, entry)(stream) == UNSUPPORTED
    assert calls.capture_end(stream) == (INVALIDATED, UNTOUCHED)
    assert calls.capture_info(stream) == (0, 0, 0)
    assert getattr(calls, entry)(stream) == 0


def test_waiting_for_a_captured_event_is_refused(calls, streams, event):
    stream = streams[0]
    assert calls.capture_begin(stream, GLOBAL) == 0
    assert calls.event_record(event, stream) == 0
    assert calls.event_query(event) == CAPTURED_EVENT
    status, graph = calls.capture_end(stream)
    assert status in (0, INVALIDATED)
    assert status or calls.graph_destroy(graph) == 0


def test_a_capture_does_not_wait_for_work_outside_it(calls, streams, event):
    inside, outside, _ = streams
    ptr = calls.make("mem_alloc", 4096)
    assert calls.fill_async(ptr, 1, 4, 1024, outside) == 0
    assert calls.event_record(event, outside) == 0
    assert calls.capture_begin(inside, GLOBAL) == 0
    assert calls.stream_wait_event(inside, event) == ISOLATION
    assert calls.capture_end(inside) == (INVALIDATED, UNTOUCHED)
    assert calls.synchronize() == 0
    assert calls.mem_free(ptr) == 0


def test_a_forked_stream_must_join_before_the_end(calls, streams, event):
    first, second, _ = streams
    ptr = calls.make("mem_alloc", 4096)
    assert calls.capture_begin(first, GLOBAL) == 0
    assert calls.fill_async(ptr, 1, 4, 1024, first) == 0
    assert calls.event_record(event, first) == 0
    assert calls.stream_wait_event(second, event) == 0
    assert calls.fill_async(ptr, 2, 4, 1024, second) == 0
    assert calls.capture_end(first) == (UNJOINED, UNTOUCHED)
    assert calls.capture_info(first) == (0, 0, 0)
    assert calls.capture_info(second) == (0, 0, 0)
    assert calls.mem_free(ptr) == 0


def test_the_default_stream_does_not_capture(calls):
    assert calls.capture_begin(0, GLOBAL) == UNSUPPORTED


def test_a_graph_outlives_its_handle_while_an_executable_needs_it(calls, streams):
    stream = streams[0]
    ptr = calls.upload(np.zeros(16, np.int32))
    assert calls.capture_begin(stream, GLOBAL) == 0
    assert calls.fill_async(ptr, 3, 4, 16, stream) == 0
    graph = calls.make("capture_end", stream)
    executables = [calls.make("graph_instantiate", graph) for _ in range(2)]
    assert calls.graph_destroy(graph) == 0
    assert calls.graph_launch(executables[0], stream) == 0
    assert calls.graph_executable_destroy(executables[0]) == 0
    assert calls.graph_launch(executables[1], stream) == 0
    assert (calls.download(ptr, np.zeros(16, np.int32), stream) == 3).all()
    assert calls.graph_executable_destroy(executables[1]) == 0
    assert calls.mem_free(ptr) == 0


def nodes_of(calls, stream):
    nodes = (ctypes.c_uint64 * 8)()
    status, count = calls.capture_nodes(stream, ctypes.addressof(nodes), 8)
    assert status == 0
    return list(nodes)[:count]


def follows(calls, stream, wanted):
    nodes, found = (ctypes.c_uint64 * 8)(*wanted), (ctypes.c_uint8 * 8)()
    arguments = ctypes.addressof(nodes), len(wanted), ctypes.addressof(found)
    assert calls.capture_follows(stream, *arguments) == 0
    return [bool(flag) for flag in list(found)[: len(wanted)]]


def test_the_order_of_a_capture_can_be_queried(calls, streams, event):
    first, second, third = streams
    ptr = calls.upload(np.zeros(1000, np.int32))
    assert calls.capture_nodes(first, 0, 0)[0] == ILLEGAL_STATE
    assert calls.capture_begin(first, RELAXED) == 0
    assert nodes_of(calls, first) == []
    assert calls.fill_async(ptr, 1, 4, 10, first) == 0
    head = nodes_of(calls, first)
    assert len(head) == 1 and follows(calls, first, head) == [True]
    assert calls.event_record(event, first) == 0
    assert calls.stream_wait_event(second, event) == 0
    assert nodes_of(calls, second) == head
    assert calls.fill_async(ptr, 2, 4, 10, second) == 0
    side = nodes_of(calls, second)
    assert calls.fill_async(ptr + 400, 3, 4, 10, first) == 0
    assert follows(calls, second, head + side) == [True, True]
    assert follows(calls, first, head + side) == [True, False]
    assert calls.capture_nodes(third, 0, 0)[0] == ILLEGAL_STATE
    assert calls.event_record(event, second) == 0
    assert calls.stream_wait_event(first, event) == 0
    assert sorted(nodes_of(calls, first))[:1] and len(nodes_of(calls, first)) == 2
    assert follows(calls, first, head + side) == [True, True]
    assert calls.capture_nodes(first, 0, 0) == (0, 2)
    executable = instantiate(calls, first)
    assert calls.capture_nodes(first, 0, 0)[0] == ILLEGAL_STATE
    assert calls.graph_executable_destroy(executable) == 0
    assert calls.mem_free(ptr) == 0
