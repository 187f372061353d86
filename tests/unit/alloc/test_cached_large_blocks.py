"""Thread caches cost no memory: threads that alternate reserve no more than the pools alone."""

import importlib.util
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


def alternating_trace(rng, sizes, owner_frees, events=4000):
    """Two threads take turns to allocate blocks of random `sizes`, freed in random order.

    Each thread frees its own blocks in its turn; or one thread frees all.
    """
    op, ids, nbytes, threads, live = [], [], [], [], ({}, {})
    for number in range(events):
        thread = number // 50 % 2
        mine = live[thread] if owner_frees else {**live[0], **live[1]}
        if mine and (rng.random() < 0.5 or len(mine) > 40):
            chosen = int(rng.choice(list(mine)))
            owner = live[0] if chosen in live[0] else live[1]
            op, ids, nbytes = [*op, -1], [*ids, chosen], [*nbytes, owner.pop(chosen)]
            threads.append(thread if owner_frees else 1)
        else:
            live[thread][number] = int(rng.choice(sizes))
            op, ids, nbytes = [*op, 1], [*ids, number], [*nbytes, live[thread][number]]
            threads.append(thread)
    arrays = np.int8(op), np.int32(ids), np.int64(nbytes), np.zeros(len(op), np.int16)
    return arrays, np.int16(threads)


@pytest.mark.parametrize("name", ["pair_threads", "gpt_threads"])
def test_recorded_threads_reserve_what_one_thread_reserves(name):
    trace = read_trace(TRACES / f"{name}.npz")
    assert trace.thread.max() > 0
    arrays = trace.op, trace.id, trace.size, trace.stream
    with_threads, alone = reserved(arrays, trace.thread), reserved(arrays, None)
    # Blocks in a thread cache may shift a view or a page slightly.
    assert abs(with_threads - alone) <= 0.01 * alone


def variants_of(names):
    """Yield the variants of recorded traces: their arrays, and a thread for each event."""
    spec = importlib.util.spec_from_file_location("variants", TRACES / "variants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for _, *arrays in module.variants({n: read_trace(TRACES / f"{n}.npz") for n in names}):
        for threads in (1, 3):
            yield arrays, np.int16(np.arange(len(arrays[0])) // 70 % threads)


@pytest.mark.parametrize("page_reuse", [True, False])
def test_variants_on_threads_reserve_what_the_pools_reserve(page_reuse):
    # Small requests make the only difference: a page of 2 MiB, rarely two.
    memory.set_allocator_settings(f"page_reuse:{page_reuse}")
    try:
        for arrays, thread in variants_of(path.stem for path in sorted(TRACES.glob("*.npz"))):
            alone = reserved(arrays, None, cached=False)
            assert abs(reserved(arrays, thread) - alone) <= max(0.01 * alone, 2 * MIB)
    finally:
        memory.set_allocator_settings("page_reuse:True")


@pytest.mark.parametrize("kinds", [6, 4000])
@pytest.mark.parametrize("owner_frees", [True, False])
@pytest.mark.parametrize("low, high", [(MIB + 1, 60 * MIB), (192 << 10, 3 * MIB)])
def test_threads_that_alternate_reserve_what_the_pools_reserve(rng, kinds, owner_frees, low, high):
    sizes = rng.integers(low, high, kinds)
    arrays, thread = alternating_trace(rng, sizes, owner_frees)
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


def test_requests_get_the_block_that_the_pools_would_choose(company):
    with opened(capacity=1024 * MIB, phantom=True) as probe:
        blocks = [probe.malloc(30 * MIB) for _ in range(6)]
        company(probe.device)
        probe.free(blocks[4])
        assert probe.malloc(30 * MIB) == blocks[4]
        thread = threading.Thread(target=probe.free, args=(blocks[2],))
        thread.start()
        thread.join()
        probe.free(blocks[4])  # of two blocks of one size the pools choose the lower
        assert probe.malloc(30 * MIB) == blocks[2]
        assert probe.malloc(30 * MIB) == blocks[4]


def reserved_after_reuse(conf, company):
    """Return the reserved bytes after one block was used three times and another was allocated."""
    with opened(f"page_reuse:False,{conf}", capacity=2**40, phantom=True) as probe:
        block = probe.malloc(200 * MIB)
        company(probe.device)
        for _ in range(2):
            probe.free(block)
            assert cached_large_nbytes(probe.device) == (0 if conf else 200 * MIB)
            block = probe.malloc(200 * MIB)
        probe.malloc(20 * MIB)
        return probe.reserved()


def test_uses_of_a_cached_block_count_for_the_size_of_pages(company):
    assert reserved_after_reuse("", company) == reserved_after_reuse("thread_cache:False", company)


def test_small_and_middle_requests_share_no_page():
    with opened(phantom=True) as probe:
        probe.malloc(191 << 10)
        assert probe.reserved() == 2 * MIB
        middle = [probe.malloc(nbytes) for nbytes in (192 << 10, MIB)]
        assert probe.stats()["reserved_bytes.small_pool.current"] == 4 * MIB
        probe.free_all(middle)
        assert probe.malloc(2 * MIB - 512) not in middle  # a large request
        probe.malloc(MIB)
        assert probe.stats()["reserved_bytes.small_pool.current"] == 4 * MIB


def test_thread_that_is_alone_keeps_no_large_block():
    with opened(capacity=1024 * MIB, phantom=True) as probe:
        probe.free(probe.malloc(30 * MIB))
        assert cached_large_nbytes(probe.device) == 0
