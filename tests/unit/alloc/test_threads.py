"""Thread caches and C symbols: exact totals, blocks return to their pool, hits call no driver."""

import ctypes
import functools
import queue
import random
import sys
import threading
import time

import numpy as np
import pytest

from gputensor import memory
from gputensor._alloc import (
    allocator as device_allocator,
)
from gputensor._alloc import (
    check as checker,
)
from gputensor._alloc import (
    config,
)
from gputensor._alloc import (
    foreign as raw_memory,
)
from gputensor._alloc import (
    observe as report,
)
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from tests.support import internals
from tests.support.alloc_probe import MIB, held_up, opened
from tests.support.internals import contend
from tests.support.models.allocator_shadow import c_symbols


def run(bodies):
    """Run each body in a thread of its own and raise the first error."""
    errors = []

    def guarded(body):
        try:
            body()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


@pytest.fixture(scope="module")
def library():
    return c_symbols()


def test_totals_are_exact_after_threads_that_allocate_and_free():
    rounds, sizes = 300, (512, 4096, 70_000, 3 * MIB)
    with opened(capacity=1024 * MIB, phantom=True) as probe:

        def body():
            for i in range(rounds):
                ptr = raw_memory.raw_alloc(probe.device, sizes[i % 4] - 5, 0)
                raw_memory.raw_delete(ptr)

        run([body] * 8)
        stats = probe.stats()
        assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] == 8 * rounds
        total = 8 * rounds // 4 * sum((size - 5 + 511) // 512 * 512 for size in sizes)
        assert stats["allocated_bytes.all.allocated"] == total
        assert stats["requested_bytes.all.allocated"] == 8 * rounds // 4 * sum(
            size - 5 for size in sizes
        )
        assert stats["allocated_bytes.all.current"] == report.allocated_nbytes(probe.device) == 0


def test_the_peak_over_threads_is_the_peak_of_the_sum():
    with opened(phantom=True) as probe:
        held = queue.Queue()

        def body():
            for _ in range(100):
                held.put(raw_memory.raw_alloc(probe.device, 4096, 0))

        run([body] * 6)
        assert probe.stats()["allocated_bytes.all.peak"] == 600 * 4096
        run([lambda: [raw_memory.raw_delete(held.get()) for _ in range(100)]] * 6)
        run([body] * 3)
        stats = probe.stats()
        assert stats["allocated_bytes.all.peak"] == 600 * 4096
        assert stats["allocated_bytes.all.current"] == 300 * 4096
        run([body] * 4)
        assert probe.stats()["allocated_bytes.all.peak"] == 700 * 4096
        while not held.empty():
            raw_memory.raw_delete(held.get())


def test_snapshots_and_statistics_are_consistent_while_threads_allocate():
    """Room for the result is allocated without the lock; blocks made meanwhile may need more."""
    with opened() as probe:
        done = threading.Event()

        def churn():
            while not done.is_set():
                pool = raw_memory.new_pool_id()
                internals.retain_pool(probe.device, pool)
                blocks = [raw_memory.raw_alloc(probe.device, 512, 0) for _ in range(3000)]
                for ptr in blocks:
                    raw_memory.raw_delete(ptr)

        def look():
            try:
                last = 0
                for _ in range(300):
                    segments, blocks = report.collect_segments(probe.device)
                    assert segments["n_blocks"].sum() == len(blocks)
                    ends = np.cumsum(segments["n_blocks"].astype(int))
                    sums = [part["nbytes"].sum() for part in np.split(blocks, ends[:-1])]
                    assert (segments["nbytes"] == sums).all()
                    _, pools = report.all_values(probe.device)
                    assert len(pools) >= last
                    last = len(pools)
            finally:
                done.set()

        # Threads switch often, so many blocks appear between the count and the allocation.
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            run([churn, look])
        finally:
            sys.setswitchinterval(before)


@pytest.mark.parametrize("conf, counted", [("", 0), ("expandable_segments:False", 5)])
def test_large_cached_block_beside_others_in_a_plain_segment_is_an_inactive_split(conf, counted):
    with opened(conf) as probe:
        begun, go = threading.Event(), threading.Event()

        def other():
            raw_memory.raw_delete(raw_memory.raw_alloc(probe.device, 512, 0))
            begun.set()
            assert go.wait(60)

        def measure():
            held = [probe.malloc(20 * MIB) for _ in range(8)]
            ptr = probe.malloc(5 * MIB)
            before = probe.stats()["inactive_split_bytes.large_pool.current"]
            probe.free(ptr)
            after = probe.stats()["inactive_split_bytes.large_pool.current"]
            assert checker.check(probe.device) == []
            assert after - before == counted * MIB
            probe.free_all(held)

        def measure_with_company():  # large blocks are cached while several threads wait
            try:
                assert begun.wait(60)
                contend(probe.device)
                measure()
            finally:
                go.set()

        run([other, measure_with_company])


def test_a_block_that_another_thread_frees_returns_to_its_owner():
    with opened(phantom=True) as probe:
        first = probe.malloc(8192)
        run([lambda: raw_memory.raw_delete(first)])
        probe.held.remove(first)
        probe.mark()
        assert probe.malloc(8192) == first
        assert probe.made() == {}


def test_a_hit_calls_no_driver_in_any_thread():
    with opened(phantom=True) as probe:
        barrier = threading.Barrier(6)

        def body():
            ptr = raw_memory.raw_alloc(probe.device, 30_000, 0)
            raw_memory.raw_delete(ptr)
            if barrier.wait() == 0:
                registry.reset_counts(probe.device)
            barrier.wait()
            for _ in range(200):
                raw_memory.raw_delete(raw_memory.raw_alloc(probe.device, 30_000, 0))
            barrier.wait()

        run([body] * 6)
        assert probe.made() == {}


def test_the_cache_of_a_thread_that_ended_serves_others():
    with opened(phantom=True) as probe:
        run([lambda: raw_memory.raw_delete(raw_memory.raw_alloc(probe.device, 2 * MIB, 0))])
        before = probe.reserved()
        probe.malloc(2 * MIB)
        assert probe.reserved() == before


def test_a_thread_may_end_after_its_device_was_closed():
    ready, closed = threading.Event(), threading.Event()
    with opened(phantom=True) as probe:

        def body():
            raw_memory.raw_delete(raw_memory.raw_alloc(probe.device, 4096, 0))
            ready.set()
            closed.wait()

        thread = threading.Thread(target=body)
        thread.start()
        ready.wait()
    closed.set()
    thread.join()


@pytest.mark.parametrize("seed", range(4))
def test_c_free_on_another_stream_waits_for_it(library, seed):
    with opened(capacity=64 * MIB, seed=seed) as probe:
        other = probe.stream()
        ptr = library.gputensor_malloc(60 * MIB, probe.device, None)
        probe.work(ptr, other)
        library.gputensor_free(ptr, 60 * MIB, probe.device, other)
        assert probe.stats()["active_bytes.all.current"] in (0, 60 * MIB)
        probe.malloc(60 * MIB)
        assert probe.calls.stream_query(other) == 0, "reused before the work was done"


def test_c_malloc_gives_null_when_there_is_no_memory(library):
    with opened(capacity=64 * MIB) as probe:
        assert library.gputensor_malloc(65 * MIB, probe.device, None) is None
        assert library.gputensor_malloc(0, probe.device, None) is None
        assert library.gputensor_malloc(1 << 62, probe.device, None) is None
        ptr = library.gputensor_malloc(64 * MIB, probe.device, None)
        assert ptr
        library.gputensor_free(ptr, 64 * MIB, probe.device, None)
    assert library.gputensor_malloc(512, probe.device, None) is None, "no longer an open device"


def test_c_free_of_anything_else_does_nothing(library):
    with opened() as probe:
        ptr = library.gputensor_malloc(4096, probe.device, None)
        kept = library.gputensor_malloc(4096, probe.device, None)
        for wrong in (None, ptr + 512, 1 << 40, ptr + 1):
            library.gputensor_free(wrong, 4096, probe.device, None)
        library.gputensor_free(ptr, 4096, probe.device, None)
        library.gputensor_free(ptr, 4096, probe.device, None)
        assert probe.stats()["allocation.all.current"] == 1
        assert library.gputensor_malloc(4096, probe.device, None) == ptr
        assert library.gputensor_malloc(4096, probe.device, None) not in (ptr, kept)
        assert library.gputensor_record_stream(ptr + 512, None) == 1
        assert library.gputensor_record_stream(ptr, None) == 0
        probe.held += [raw for raw in (ptr, kept)]
        stats = probe.stats()
        assert stats["allocation.all.current"] == 3
        segments, blocks = report.collect_segments(probe.device)
        third = [int(a) for a, s in zip(blocks["address"], blocks["state"], strict=True) if s == 1]
        probe.held += [a for a in third if a not in probe.held]


def test_c_symbols_and_python_share_the_blocks(library):
    with opened() as probe:
        ptr = library.gputensor_malloc(5000, probe.device, None)
        raw_memory.raw_delete(ptr)
        again = probe.malloc(5000)
        assert again == ptr
        library.gputensor_free(again, 5000, probe.device, None)
        probe.held.remove(again)
        assert probe.stats()["allocation.all.freed"] == 2


def test_c_symbols_need_no_gil(library):
    """Threads call without the GIL while another thread keeps it."""
    with opened(capacity=1024 * MIB) as probe:
        keeping = ctypes.PyDLL(library._name)
        keeping.gputensor_malloc.restype = ctypes.c_void_p
        keeping.gputensor_malloc.argtypes = library.gputensor_malloc.argtypes
        keeping.gputensor_free.argtypes = library.gputensor_free.argtypes
        keeping.gputensor_free.restype = None

        def body(used):
            for i in range(400):
                nbytes = (700, 50_000, 2 * MIB, 30 * MIB)[i % 4]
                ptr = used.gputensor_malloc(nbytes, probe.device, None)
                assert ptr
                used.gputensor_free(ptr, nbytes, probe.device, None)

        run([lambda: body(library)] * 4 + [lambda: body(keeping)] * 2)
        assert probe.stats()["allocation.all.freed"] == 2400


@pytest.mark.parametrize(
    ("conf", "entry", "caching"),
    [
        ("", "page_create", True),
        ("expandable_segments:False", "mem_alloc", True),
        ("", "mem_alloc", False),
    ],
)
def test_concurrent_requests_do_not_pass_the_limit(conf, entry, caching):
    with opened(f"memory_limit_mb:100,{conf}".strip(","), phantom=True) as probe:
        probe.free(probe.malloc(512))
        report.empty_cache(probe.device)
        device_allocator.set_caching(probe.device, caching)
        failed = []

        def body():
            try:
                probe.malloc(40 * MIB)
            except OutOfMemoryError:
                failed.append(1)

        with held_up(probe, entry, lambda: time.sleep(0.02)):
            threads = [threading.Thread(target=body) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(probe.held) == 2 and len(failed) == 2
        assert probe.stats()["reserved_bytes.all.peak"] <= 100 * MIB
        probe.free_all()
        device_allocator.set_caching(probe.device, True)


def test_threads_that_use_a_device_first_at_once_open_one_allocator(monkeypatch):
    """Python code reads the settings, and threads may switch in it."""
    fraction_of = config.fraction_of

    def slow(device):
        time.sleep(0.01)
        return fraction_of(device)

    monkeypatch.setattr(config, "fraction_of", slow)
    with opened(phantom=True) as probe:
        run([lambda: probe.malloc(2 * MIB)] * 4)
        assert probe.stats()["allocation.all.current"] == 4


@pytest.mark.parametrize("name", ["per_process_memory_fraction", "memory_limit_mb"])
def test_a_device_that_opens_during_a_change_of_settings_gets_the_change(monkeypatch, name):
    fraction_of, reading = config.fraction_of, threading.Event()

    def slow(device):
        fraction = fraction_of(device)
        reading.set()
        time.sleep(0.02)
        return fraction

    with opened(phantom=True) as probe:
        monkeypatch.setattr(config, "fraction_of", slow)
        value = 0.125 if name.endswith("fraction") else 32

        def change():
            assert reading.wait(20)
            memory.set_allocator_settings(f"{name}:{value}")

        run([lambda: probe.malloc(MIB), change])
        with pytest.raises(OutOfMemoryError, match="limit"):
            probe.malloc(40 * MIB)


def test_threads_that_open_host_devices_at_once_open_different_ones(monkeypatch):
    def slow():
        time.sleep(0.01)
        return 64 * MIB

    monkeypatch.setattr(registry, "host_capacity", slow)
    numbers = []
    run([lambda: numbers.append(registry.open_host(phantom=True))] * 4)
    assert len(set(numbers)) == 4
    for number in numbers:
        registry.close_host(number)


def test_a_request_waits_for_free_memory_in_flight_in_another_thread():
    """A failing growth takes the free block next to the gap, and then gives it back."""
    with opened("page_size_mb:2", capacity=64 * MIB, phantom=True) as probe:
        probe.malloc(30 * MIB)
        probe.free(probe.malloc(28 * MIB))
        inside, go_on = threading.Event(), threading.Event()

        def hold_up():
            if not inside.is_set():
                inside.set()
                go_on.wait(20)

        def request_too_much():
            with pytest.raises(OutOfMemoryError):
                probe.malloc(40 * MIB)

        served = []
        with held_up(probe, "page_create", hold_up):
            threads = [threading.Thread(target=request_too_much)]
            threads[0].start()
            assert inside.wait(20)
            threads.append(threading.Thread(target=lambda: served.append(probe.malloc(20 * MIB))))
            threads[1].start()
            threads[1].join(0.1)
            assert threads[1].is_alive(), "the request must wait: neither fail nor be served"
            go_on.set()
            for thread in threads:
                thread.join()
        assert len(served) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one stream", "uses on other streams"])
def test_threads_that_together_fit_are_never_refused(kind):
    """With 2 MiB pages and sizes in multiples of that, free memory is never fragmented.

    Together the four threads may hold the whole device.
    """
    threads, most = 4, 64 * MIB
    seed = None if kind == "one stream" else 1
    with opened("page_size_mb:2", phantom=True, seed=seed) as probe:
        streams = [0] if seed is None else [0, probe.stream(), probe.stream()]
        stop = time.monotonic() + 4

        def body(number):
            rng = random.Random(number)
            while time.monotonic() < stop:
                left, held = most, []
                for _ in range(rng.randint(1, 5)):
                    nbytes = rng.randint(1, max(1, left // (2 * MIB))) * 2 * MIB
                    if nbytes <= left:
                        left -= nbytes
                        ptr = raw_memory.raw_alloc(probe.device, nbytes, rng.choice(streams))
                        held.append(ptr)
                        if seed is not None and rng.random() < 0.3:
                            raw_memory.raw_record_stream(ptr, rng.choice(streams))
                for ptr in held:
                    raw_memory.raw_delete(ptr)

        run([functools.partial(body, number) for number in range(threads)])
        assert probe.stats()["num_ooms"] == 0
