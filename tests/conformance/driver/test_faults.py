"""Injected failures: a call that fails creates nothing and leaves its outputs alone."""

import numpy as np
import pytest

from gputensor._driver import registry
from tests.support.driver_calls import HOST_FUNCTION, SIGNATURES, UNTOUCHED

OUT_OF_MEMORY, UNKNOWN = 2, 999


def arguments_of(name):
    kinds = [kind for kind in SIGNATURES[name] if not isinstance(kind, list)]
    return [HOST_FUNCTION(0) if kind is HOST_FUNCTION else 0 for kind in kinds]


@pytest.mark.parametrize("name", SIGNATURES)
def test_an_injected_failure_touches_no_output(calls, name):
    registry.fail_call(calls.device, 1, status=UNKNOWN, name=name)
    result = getattr(calls, name)(*arguments_of(name))
    result = result if isinstance(result, tuple) else (result,)
    assert result[0] == UNKNOWN
    assert all(output == UNTOUCHED for output in result[1:])


def test_the_kth_call_fails_once_and_only_that_one(calls):
    registry.fail_call(calls.device, 3)
    assert [calls.stream_query(0) for _ in range(5)] == [0, 0, OUT_OF_MEMORY, 0, 0]


def test_failures_can_be_counted_by_entry_and_turned_off(calls):
    registry.fail_call(calls.device, 2, name="mem_info")
    assert calls.stream_query(0) == 0
    assert calls.mem_info()[0] == 0
    assert calls.stream_query(0) == 0
    assert calls.mem_info()[0] == OUT_OF_MEMORY
    registry.fail_call(calls.device, 1)
    registry.fail_call(calls.device, 0)
    assert calls.stream_query(0) == 0


def test_each_call_of_a_scenario_can_fail_without_a_leak(calls):
    """Fail call 1, 2, 3, ... until the scenario completes; undo its work after each run."""

    def scenario():
        undo = []
        try:
            for entry, arguments, release in [
                ("stream_create", (0,), "stream_destroy"),
                ("event_create", (0,), "event_destroy"),
                ("mem_alloc", (1 << 16,), "mem_free"),
                ("pinned_alloc", (1 << 16,), "pinned_free"),
            ]:
                status, made = getattr(calls, entry)(*arguments)
                if status:
                    assert made == UNTOUCHED
                    return False
                undo.append((release, made))
            stream, event, ptr, _ = (made for _, made in undo)
            return not (
                calls.fill_async(ptr, 9, 1, 1 << 16, stream)
                or calls.event_record(event, stream)
                or calls.event_synchronize(event)
                or (calls.download(ptr, np.zeros(1 << 16, np.uint8), stream) != 9).any()
            )
        except AssertionError:
            return False
        finally:
            registry.fail_call(calls.device, 0)
            for release, made in reversed(undo):
                assert getattr(calls, release)(made) == 0

    for k in range(1, 100):
        registry.fail_call(calls.device, k)
        if scenario():
            break
    else:
        pytest.fail("the scenario never completed")
    assert k > 8


def test_counts_count_every_call_by_name(calls):
    registry.reset_counts(calls.device)
    stream = calls.make("stream_create", 0)
    for _ in range(3):
        assert calls.stream_query(stream) == 0
    assert calls.stream_destroy(stream) == 0
    counted = {name: n for name, n in registry.counts(calls.device).items() if n}
    assert counted == {"stream_create": 1, "stream_query": 3, "stream_destroy": 1}


def test_a_trace_holds_the_calls_in_order_with_their_results(calls):
    registry.start_trace(calls.device)
    stream = calls.make("stream_create", 0)
    registry.fail_call(calls.device, 1, status=UNKNOWN)
    assert calls.mem_alloc(64) == (UNKNOWN, UNTOUCHED)
    assert calls.stream_destroy(stream) == 0
    assert registry.take_trace(calls.device) == [
        ("stream_create", 0, (stream, 0)),
        ("mem_alloc", UNKNOWN, (0, 64)),
        ("stream_destroy", 0, (stream,)),
    ]
    assert calls.stream_query(0) == 0
    assert registry.take_trace(calls.device) == []
