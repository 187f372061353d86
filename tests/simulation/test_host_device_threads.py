"""Sixteen threads on one host device: exact results, no deadlock of its lock with the GIL."""

import threading

import numpy as np
import pytest

from gputensor._driver import registry
from tests.support.driver_calls import HOST_FUNCTION, Calls

THREADS = 16


@pytest.fixture(params=[None, 1, 2], ids=["at-once", "deferred-1", "deferred-2"])
def calls(request):
    number = registry.open_host(capacity=1 << 30, seed=request.param)
    yield Calls(number)
    left = registry.leaks(number)
    registry.close_host(number)
    assert not any(left.values())


def run_threads(body):
    errors = []

    def guarded(i):
        try:
            body(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


def test_threads_on_their_own_streams_do_not_disturb_each_other(calls):
    def body(i):
        stream, event = calls.make("stream_create", 0), calls.make("event_create", 0)
        for round_number in range(30):
            value = i * 1000 + round_number
            ptr = calls.make("mem_alloc", 4096)
            assert calls.fill_async(ptr, value, 4, 1024, stream) == 0
            assert calls.event_record(event, stream) == 0
            assert calls.event_synchronize(event) == 0
            got = calls.download(ptr, np.zeros(1024, np.int32), stream)
            assert (got == value).all()
            assert calls.mem_free(ptr) == 0
        assert calls.event_destroy(event) == 0
        assert calls.stream_destroy(stream) == 0

    run_threads(body)


@pytest.mark.parametrize("keep_gil", [False, True])
def test_host_functions_that_need_the_gil_run_from_any_thread(calls, keep_gil):
    shared = calls.make("stream_create", 0)
    held, free = Calls(calls.device, keep_gil), calls
    ran = []
    functions = [HOST_FUNCTION(lambda _, i=i: ran.append(i)) for i in range(THREADS)]

    def body(i):
        for _ in range(25):
            mine = (held, free)[i % 2]
            assert mine.host_launch(functions[i], None, shared) == 0
            assert mine.stream_synchronize(shared) == 0

    run_threads(body)
    assert sorted(ran) == sorted(list(range(THREADS)) * 25)
    assert calls.stream_destroy(shared) == 0


def test_calls_under_the_gil_that_do_not_wait_run_no_host_function(calls):
    """Python code inside such a call could switch threads, which holding the GIL must exclude."""
    held = Calls(calls.device, keep_gil=True)
    first, second = (calls.make("stream_create", 0) for _ in range(2))
    event, ptr = calls.make("event_create", 0), calls.make("mem_alloc", 64)
    ran = []
    function = HOST_FUNCTION(lambda _: ran.append(threading.get_ident()))
    for _ in range(20):
        assert calls.host_launch(function, None, first) == 0
    before = len(ran)
    for _ in range(200):
        assert held.event_record(event, second) == 0
        assert held.stream_wait_event(first, event) == 0
        assert held.fill_async(ptr, 1, 4, 4, second) == 0
        held.stream_query(first)
        held.event_query(event)
    assert len(ran) == before
    assert held.stream_synchronize(first) == 0
    assert len(ran) == 20
    assert calls.synchronize() == calls.mem_free(ptr) == calls.event_destroy(event) == 0
    assert calls.stream_destroy(first) == calls.stream_destroy(second) == 0


def test_threads_map_and_unmap_pages_of_one_range(calls):
    unit = calls.granularity
    va = calls.make("va_reserve", THREADS * unit, 0)

    def body(i):
        stream = calls.make("stream_create", 0)
        for round_number in range(4):
            page = calls.make("page_create", unit)
            at = va + i * unit
            assert calls.page_map(at, unit, page) == 0
            assert calls.fill_async(at, i + 100 * round_number, 4, 256, stream) == 0
            got = calls.download(at, np.zeros(256, np.int32), stream)
            assert (got == i + 100 * round_number).all()
            assert calls.page_unmap(at, unit) == 0
            assert calls.page_destroy(page) == 0
        assert calls.stream_destroy(stream) == 0

    run_threads(body)
    assert calls.va_release(va, THREADS * unit) == 0


def test_counts_stay_exact(calls):
    registry.reset_counts(calls.device)

    def body(_):
        for _ in range(200):
            assert calls.mem_info()[0] == 0

    run_threads(body)
    assert registry.counts(calls.device)["mem_info"] == THREADS * 200
