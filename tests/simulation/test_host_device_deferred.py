"""The deferred host device: a seed chooses an order of work that streams and events allow.

An order that a GPU shows only sometimes occurs here for some seed: a missing wait shows as a wrong
number, and an access to freed memory shows as a status.
"""

import numpy as np
import pytest

from gputensor._driver import registry
from tests.support.driver_calls import HOST_FUNCTION, Calls

SEEDS = range(12)
NOT_READY, ILLEGAL_ADDRESS, NOT_PERMITTED = 600, 700, 800


@pytest.fixture
def open_calls():
    opened = []

    def open_device(seed):
        opened.append(registry.open_host(capacity=256 << 20, seed=seed))
        return Calls(opened[-1])

    yield open_device
    for number in opened:
        registry.close_host(number)


def order_of_run(calls):
    """Return the order in which the functions of 3 streams run, 12 on each."""
    ran = []
    streams = [calls.make("stream_create", 0) for _ in range(3)]
    functions = [
        (stream, HOST_FUNCTION(lambda _, i=i, s=s: ran.append((s, i))))
        for i in range(12)
        for s, stream in enumerate(streams)
    ]
    for stream, function in functions:
        assert calls.host_launch(function, None, stream) == 0
    registry.host_run_all(calls.device)
    return ran


def test_a_seed_gives_the_same_order_again_and_others_give_others(open_calls):
    orders = {seed: order_of_run(open_calls(seed)) for seed in SEEDS}
    for seed, order in orders.items():
        assert order_of_run(open_calls(seed)) == order
        for s in range(3):
            assert [i for stream, i in order if stream == s] == list(range(12))
    assert len({tuple(order) for order in orders.values()}) >= len(SEEDS) - 1


def test_work_is_pending_for_a_while(open_calls):
    pending = 0
    for seed in SEEDS:
        calls = open_calls(seed)
        stream = calls.make("stream_create", 0)
        ptr = calls.make("mem_alloc", 4096)
        for value in range(8):
            assert calls.fill_async(ptr, value, 4, 1024, stream) == 0
        pending += calls.stream_query(stream) == NOT_READY
    assert pending >= len(SEEDS) // 2


def last_value(calls, waits):
    """Fill on one stream and copy on another, with or without a wait between them."""
    one, two = calls.make("stream_create", 0), calls.make("stream_create", 0)
    event = calls.make("event_create", 0)
    src = calls.upload(np.zeros(256, np.int32))
    dst = calls.upload(np.zeros(256, np.int32))
    assert calls.fill_async(src, 7, 4, 256, one) == 0
    if waits:
        assert calls.event_record(event, one) == 0
        assert calls.stream_wait_event(two, event) == 0
    assert calls.copy_async(dst, src, 1024, two) == 0
    return set(calls.download(dst, np.empty(256, np.int32), two).tolist())


def test_a_missing_wait_shows_as_a_wrong_number_for_some_seed(open_calls):
    assert all(last_value(open_calls(seed), waits=True) == {7} for seed in SEEDS)
    assert any(last_value(open_calls(seed), waits=False) == {0} for seed in SEEDS)


def test_one_stream_may_starve_while_others_finish(open_calls):
    starved = 0
    for seed in range(20):
        calls = open_calls(seed)
        slow, fast = calls.make("stream_create", 0), calls.make("stream_create", 0)
        ptr = calls.make("mem_alloc", 4096)
        assert calls.fill_async(ptr, 1, 4, 16, slow) == 0
        for _ in range(60):
            assert calls.fill_async(ptr, 1, 4, 16, fast) == 0
        starved += calls.stream_query(slow) == NOT_READY
    assert 2 <= starved <= 18


def test_new_memory_is_poisoned(open_calls):
    calls = open_calls(3)
    ptr = calls.make("mem_alloc", 5000)
    assert (calls.download(ptr, np.zeros(5000, np.uint8)) == 0xCB).all()
    unit = calls.granularity
    va, page = calls.make("va_reserve", unit, 0), calls.make("page_create", unit)
    assert calls.page_map(va, unit, page) == 0
    assert (calls.download(va, np.zeros(unit, np.uint8)) == 0xCB).all()


def test_late_work_on_an_unmapped_page_is_a_sticky_illegal_address(open_calls):
    caught = 0
    for seed in SEEDS:
        calls = open_calls(seed)
        unit = calls.granularity
        stream = calls.make("stream_create", 0)
        va, page = calls.make("va_reserve", unit, 0), calls.make("page_create", unit)
        assert calls.page_map(va, unit, page) == 0
        for _ in range(6):
            assert calls.fill_async(va, 1, 4, 64, stream) == 0
        assert calls.page_unmap(va, unit) == 0
        status = calls.stream_synchronize(stream)
        assert status in (0, ILLEGAL_ADDRESS)
        if status:
            caught += 1
            assert calls.synchronize() == ILLEGAL_ADDRESS
            assert calls.stream_query(stream) == ILLEGAL_ADDRESS
        assert calls.page_destroy(page) == 0
        assert calls.va_release(va, unit) == 0
    assert caught >= len(SEEDS) // 2


def test_use_after_free_is_recognised_although_the_addresses_are_reused_elsewhere(open_calls):
    calls = open_calls(5)
    ptr = calls.make("mem_alloc", 1 << 16)
    assert calls.mem_free(ptr) == 0
    others = [calls.make("mem_alloc", 1 << 16) for _ in range(20)]
    assert ptr not in others
    assert calls.fill_async(ptr, 1, 1, 16, 0) == 0
    assert calls.synchronize() == ILLEGAL_ADDRESS


def test_a_host_function_may_call_the_driver_but_not_wait_for_pending_work(open_calls):
    calls = open_calls(2)
    stream, other = calls.make("stream_create", 0), calls.make("stream_create", 0)
    event = calls.make("event_create", 0)
    ptr = calls.make("mem_alloc", 4096)
    results = []

    def body(_):
        results.append(calls.fill_async(ptr, 9, 4, 1024, other))
        results.append(calls.event_record(event, other))
        results.append(calls.stream_synchronize(other))

    function = HOST_FUNCTION(body)
    assert calls.host_launch(function, None, stream) == 0
    assert calls.stream_synchronize(stream) == 0
    assert results == [0, 0, NOT_PERMITTED]
    assert (calls.download(ptr, np.zeros(1024, np.int32), other) == 9).all()


def test_independent_nodes_of_a_graph_run_in_more_than_one_order(open_calls):
    orders = set()
    for seed in SEEDS:
        calls = open_calls(seed)
        one, two = calls.make("stream_create", 0), calls.make("stream_create", 0)
        fork, join = calls.make("event_create", 0), calls.make("event_create", 0)
        ran = []
        functions = [HOST_FUNCTION(lambda _, i=i, ran=ran: ran.append(i)) for i in range(4)]
        assert calls.capture_begin(one, 0) == 0
        assert calls.event_record(fork, one) == 0
        assert calls.stream_wait_event(two, fork) == 0
        for i, function in enumerate(functions):
            assert calls.host_launch(function, None, (one, two)[i % 2]) == 0
        assert calls.event_record(join, two) == 0
        assert calls.stream_wait_event(one, join) == 0
        executable = calls.make("graph_instantiate", calls.make("capture_end", one))
        assert calls.graph_launch(executable, one) == 0
        assert calls.synchronize() == 0
        assert ran.index(0) < ran.index(2) and ran.index(1) < ran.index(3)
        orders.add(tuple(ran))
    assert len(orders) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_give_the_numbers_that_their_order_promises(open_calls, seed):
    """Random fills and copies of five buffers on three streams, with full ordering by events."""
    calls = open_calls(seed)
    random = np.random.default_rng(seed)
    streams = [calls.make("stream_create", 0) for _ in range(3)]
    event = calls.make("event_create", 0)
    shadow = random.integers(0, 1 << 20, (5, 64)).astype(np.int32)
    ptrs = [calls.upload(row) for row in shadow]
    previous = streams[0]
    for _ in range(150):
        stream = streams[random.integers(3)]
        if stream != previous:
            assert calls.event_record(event, previous) == 0
            assert calls.stream_wait_event(stream, event) == 0
        dst, src = random.integers(5, size=2)
        if random.random() < 0.5:
            value = int(random.integers(1 << 20))
            assert calls.fill_async(ptrs[dst], value, 4, 64, stream) == 0
            shadow[dst] = value
        else:
            assert calls.copy_async(ptrs[dst] + 64, ptrs[src], 128, stream) == 0
            shadow[dst, 16:48] = shadow[src, :32].copy()
        previous = stream
    assert calls.stream_synchronize(previous) == 0
    for ptr, row in zip(ptrs, shadow, strict=True):
        np.testing.assert_array_equal(calls.download(ptr, np.empty_like(row), previous), row)
