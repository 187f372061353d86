"""Thread caches cost no memory: threads that alternate reserve no more than the pools alone."""

import threading
from pathlib import Path

import numpy as np
import pytest

from gputensor import memory
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc.replay import replay_trace
from gputensor._alloc.replay.trace_file import read_trace
from gputensor._driver.registry import close_host, open_host
from tests.support.alloc_probe import MIB, opened
from tests.support.internals import cached_large_nbytes, contend

TRACES = Path(__file__).parents[3] / "benchmarks" / "traces"


def reserved(arrays, thread, cached=True):
    """Peak reserved bytes of a replay on a device of its own."""
    memory.set_allocator_settings(f"thread_cache:{cached}")
    device = open_host(capacity=2**38, phantom=True)
    try:
        return replay_trace(*arrays, device, thread)["peak_reserved_bytes"]
    finally:
        close_host(device)
        memory.set_allocator_settings("thread_cache:True")


def alternating_trace(rng, events=4000):
    """Two threads take turns to allocate 1 to 60 MiB; one of them frees all, in random order."""
    op, ids, sizes, threads, live = [], [], [], [], {}
    for number in range(events):
        if live and (rng.random() < 0.5 or len(live) > 40):
            chosen = rng.choice(list(live))
            op, ids, sizes = [*op, -1], [*ids, chosen], [*sizes, live.pop(chosen)]
            threads.append(1)
        else:
            live[number] = int(rng.integers(MIB + 1, 60 * MIB))
            op, ids, sizes = [*op, 1], [*ids, number], [*sizes, live[number]]
            threads.append(number // 50 % 2)
    arrays = np.int8(op), np.int32(ids), np.int64(sizes), np.zeros(len(op), np.int16)
    return arrays, np.int16(threads)


@pytest.mark.parametrize("name", ["pair_threads", "gpt_threads"])
def test_recorded_threads_reserve_what_one_thread_reserves(name):
    trace = read_trace(TRACES / f"{name}.npz")
    assert trace.thread.max() > 0
    arrays = trace.op, trace.id, trace.size, trace.stream
    with_threads, alone = reserved(arrays, trace.thread), reserved(arrays, None)
    # Blocks in a thread cache may shift a view or a page slightly.
    assert abs(with_threads - alone) <= 0.01 * alone


def test_threads_that_alternate_reserve_what_the_pools_alone_reserve(rng):
    arrays, thread = alternating_trace(rng)
    assert reserved(arrays, thread) == reserved(arrays, thread, cached=False)


def test_large_request_returns_blocks_cached_by_other_threads_to_the_pools():
    with opened(capacity=1024 * MIB, phantom=True) as probe:
        cached, done = threading.Event(), threading.Event()

        def other():
            ptrs = [raw_memory.raw_alloc(probe.device, 5 * MIB, 0) for _ in range(20)]
            contend(probe.device)
            for ptr in ptrs:
                raw_memory.raw_delete(ptr)
            cached.set()
            assert done.wait(60)

        keep = probe.malloc(512)  # gives this thread a cache as well
        thread = threading.Thread(target=other)
        thread.start()
        assert cached.wait(60)
        before = probe.reserved()
        try:
            assert cached_large_nbytes(probe.device) > 0
            probe.malloc(100 * MIB)
            assert cached_large_nbytes(probe.device) == 0
            assert probe.reserved() == before
        finally:
            done.set()
            thread.join()
        probe.free(keep)


@pytest.fixture
def company():
    """Return a function of the device that starts another thread with a cache of its own."""
    done = threading.Event()
    threads = []

    def start(device):
        begun = threading.Event()

        def other():
            raw_memory.raw_delete(raw_memory.raw_alloc(device, 512, 0))
            begun.set()
            assert done.wait(60)

        threads.append(threading.Thread(target=other))
        threads[-1].start()
        assert begun.wait(60)

    yield start
    done.set()
    for thread in threads:
        thread.join()


def test_thread_keeps_one_large_block_of_its_own_until_the_next_free(company):
    with opened(capacity=1024 * MIB, phantom=True) as probe:
        blocks = [probe.malloc(30 * MIB) for _ in range(5)]
        company(probe.device)
        thread = threading.Thread(target=raw_memory.raw_delete, args=(blocks[3],))
        thread.start()
        thread.join()
        probe.held.remove(blocks[3])
        assert cached_large_nbytes(probe.device) == 0
        probe.free(blocks[0])
        assert cached_large_nbytes(probe.device) == 30 * MIB
        assert probe.malloc(30 * MIB) == blocks[0]
        probe.free(blocks[0])
        probe.free(blocks[1])
        assert cached_large_nbytes(probe.device) == 0
        assert probe.malloc(60 * MIB) == blocks[0]  # the two are one block


def test_thread_that_is_alone_keeps_no_large_block():
    with opened(capacity=1024 * MIB, phantom=True) as probe:
        probe.free(probe.malloc(30 * MIB))
        assert cached_large_nbytes(probe.device) == 0
