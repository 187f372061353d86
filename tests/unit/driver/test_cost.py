"""The cost model: each call charges the time measured on a GPU, by size where size matters."""

import pytest

from gputensor._driver import registry
from tests.support.driver_calls import Calls

MIB = 1 << 20


@pytest.fixture
def calls():
    number = registry.open_host(capacity=1 << 50, phantom=True)
    yield Calls(number)
    registry.close_host(number)


def charged(calls, function):
    registry.reset_counts(calls.device)
    function()
    return registry.modelled_seconds(calls.device) * 1e6


@pytest.mark.parametrize(
    ("nbytes", "microseconds"),
    [(512, 125), (2 * MIB, 125), (129 * MIB, 172.5), (256 * MIB, 220), (2048 * MIB, 1000)],
)
def test_allocating_and_freeing_costs_the_measured_pair(calls, nbytes, microseconds):
    def pair():
        assert calls.mem_free(calls.make("mem_alloc", nbytes)) == 0

    assert charged(calls, pair) == pytest.approx(microseconds, abs=0.01)


@pytest.mark.parametrize(
    ("nbytes", "create", "release"),
    [(2 * MIB, 14, 24), (20 * MIB, 9, 33), (128 * MIB, 35, 90), (1024 * MIB, 250.704, 680)],
)
def test_pages_cost_by_size_to_create_and_release(calls, nbytes, create, release):
    pages = []
    assert charged(calls, lambda: pages.append(calls.make("page_create", nbytes))) == pytest.approx(
        create, abs=0.01
    )
    assert charged(calls, lambda: calls.page_destroy(pages[0])) == pytest.approx(release, abs=0.01)


def test_mapping_costs_for_each_handle_and_unmapping_too(calls):
    unit = calls.granularity
    va = calls.make("va_reserve", 8 * unit, 0)
    pages = [calls.make("page_create", unit) for _ in range(5)]

    def map_all():
        for i, page in enumerate(pages):
            assert calls.page_map(va + i * unit, unit, page) == 0

    assert charged(calls, map_all) == pytest.approx(5 * 31.5)
    assert charged(calls, lambda: calls.page_unmap(va, 2 * unit)) == pytest.approx(2 * 18.5)
    assert charged(calls, lambda: calls.page_unmap(va + 2 * unit, 3 * unit)) == pytest.approx(
        3 * 18.5
    )


def test_events_and_work_cost_their_flat_time(calls):
    stream, event = calls.make("stream_create", 0), calls.make("event_create", 0)
    ptr = calls.make("mem_alloc", 4096)
    for function, microseconds in [
        (lambda: calls.event_record(event, stream), 0.27),
        (lambda: calls.event_query(event), 0.29),
        (lambda: calls.stream_wait_event(stream, event), 0.08),
        (lambda: calls.fill_async(ptr, 0, 1, 64, stream), 3.4),
        (lambda: calls.copy_async(ptr, ptr + 64, 64, stream), 3.4),
        (lambda: calls.make("va_reserve", calls.granularity, 0), 5),
        (lambda: calls.synchronize(), 0),
    ]:
        assert charged(calls, function) == pytest.approx(microseconds, abs=0.002)


def test_a_failed_call_costs_nothing(calls):
    registry.fail_call(calls.device, 1)
    assert charged(calls, lambda: calls.mem_alloc(MIB)) == 0
    assert charged(calls, lambda: calls.mem_free(12345)) == 0
    assert charged(calls, lambda: calls.page_create(7)) == 0
