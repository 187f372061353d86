"""Requests that fail or come close to failing while another thread is in the middle of a call."""

import contextlib
import threading
import time

import pytest

from gputensor import memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor.errors import OutOfMemoryError
from gputensor.streams import Device, current_stream
from gputensor.streams.capture import CUDAGraph, graph, graph_pool_handle
from tests.support import internals
from tests.support.alloc_probe import MIB, held_up, opened


def test_a_pool_that_is_captured_into_again_keeps_its_memory():
    """A capture retains the pool while its segments go back, one driver call for each."""
    with opened("expandable_segments:False") as probe, Device(probe.device):
        pool, second, ptrs, kept = graph_pool_handle(), CUDAGraph(), [], []
        first = CUDAGraph()
        with graph(first, pool=pool):
            stream = current_stream().cuda_stream
            ptrs += [raw_memory.raw_alloc(probe.device, 20 * MIB, stream) for _ in range(2)]

        def capture_again():
            if kept:
                return
            kept.append(second)
            with graph(second, pool=pool):
                stream = current_stream().cuda_stream
                ptr = raw_memory.raw_alloc(probe.device, 30 * MIB, stream)
                probe.calls.fill_async(ptr, 7, 4, 64, stream)
                raw_memory.raw_delete(ptr)

        for ptr in ptrs:
            raw_memory.raw_delete(ptr)
        first.reset()
        with held_up(probe, "mem_free", capture_again):
            report.empty_cache(probe.device)
        assert raw_memory.count_pool_uses(probe.device, max(pool)) == 1
        assert probe.reserved() >= 30 * MIB
        assert checker.check(probe.device) == []
        second.reset()


def test_requests_that_fail_together_do_not_make_each_other_retry_for_ever():
    with opened("expandable_segments:False", capacity=1024 * MIB, phantom=True) as probe:
        probe.malloc(600 * MIB)
        together = threading.Barrier(2)
        failures = []

        def fail():
            together.wait()
            try:
                probe.malloc(700 * MIB)
            except OutOfMemoryError as error:
                failures.append(error)

        probe.mark()
        with held_up(probe, "mem_alloc", lambda: time.sleep(1e-3)):
            threads = [threading.Thread(target=fail) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(failures) == 2
        assert probe.made()["mem_alloc"] <= 12 and probe.stats()["num_alloc_retries"] <= 4


@pytest.mark.parametrize("backend", ["native", "cudaMallocAsync"])
@pytest.mark.parametrize("beside", ["a request", "empty_cache"])
def test_a_request_past_the_pools_waits_for_memory_that_another_thread_gives_back(backend, beside):
    with opened(f"memory_limit_mb:100,backend:{backend}", phantom=True) as probe:
        pool = raw_memory.new_pool_id()
        internals.begin_pool(probe.device, pool)
        cached = probe.malloc(60 * MIB)
        internals.end_pool(probe.device, pool)
        probe.free(cached)
        memory.caching_allocator_enable(backend != "native", probe.device)
        is_held, failures = threading.Event(), []

        def hold():
            is_held.set()
            time.sleep(0.02)

        def other():
            try:
                if beside == "a request":
                    probe.malloc(45 * MIB)
                else:
                    report.empty_cache(probe.device)
            except OutOfMemoryError as error:
                failures.append(error)

        with held_up(probe, "page_destroy", hold):
            thread = threading.Thread(target=other)
            thread.start()
            is_held.wait()
            probe.malloc(45 * MIB)
            thread.join()
        assert failures == []
        assert probe.reserved() <= 100 * MIB


@pytest.mark.parametrize(
    "conf, entry", [("", "page_create"), (",expandable_segments:False", "mem_alloc")]
)
def test_a_request_that_is_refused_counts_what_another_thread_makes(conf, entry):
    text = "throw_on_cudamalloc_oom:True,memory_limit_mb:100" + conf
    with opened(text, phantom=True) as probe:
        probe.free(probe.malloc(30 * MIB, probe.stream()))
        is_held, go_on = threading.Event(), threading.Event()

        def hold():
            is_held.set()
            go_on.wait(10)

        with held_up(probe, entry, hold):
            thread = threading.Thread(target=probe.malloc, args=(45 * MIB,))
            thread.start()
            is_held.wait()
            probe.mark()
            reserved = probe.reserved()
            try:
                with pytest.raises(OutOfMemoryError):
                    probe.malloc(60 * MIB)
                made = probe.made()
                assert probe.reserved() == reserved
            finally:
                go_on.set()
                thread.join()
        assert not {"mem_free", "page_destroy", "synchronize", "event_synchronize"} & set(made)
        assert probe.stats()["num_oom_rejections"] == 1


def test_a_request_finds_blocks_that_another_request_took_out_of_a_cache():
    """They were in a cache while the request searched, and no later free announces them."""
    with opened("page_size_mb:2", phantom=True) as probe:
        kept = [probe.malloc(8 * MIB) for _ in range(32)]
        served = []

        def request_block():
            with contextlib.suppress(OutOfMemoryError):
                served.append(probe.malloc(6 * MIB))

        def free_and_request():
            probe.free(kept.pop())  # into the cache of the allocating thread
            probe.malloc(2 * MIB)  # empties all caches and leaves 6 MiB free

        def request_while(action, at_call):
            calls = []

            def count():
                calls.append(1)
                if len(calls) == at_call:
                    beside(action)

            with held_up(probe, "page_create", count):
                beside(request_block)
            return len(calls)

        last = request_while(None, 0)
        assert last and not served
        request_while(free_and_request, last)
        assert served


def test_a_request_waits_for_a_block_whose_free_is_under_way():
    """While its events are recorded, the block is in no list and in no queue."""
    with opened(capacity=64 * MIB, phantom=True) as probe:
        used = probe.malloc(60 * MIB)
        raw_memory.raw_record_stream(used, probe.stream())
        served = []
        inside, go_on = threading.Event(), threading.Event()

        def hold():
            if not inside.is_set():
                inside.set()
                go_on.wait(10)

        with held_up(probe, "event_record", hold):
            freeing = threading.Thread(target=probe.free, args=(used,))
            freeing.start()
            inside.wait()
            asking = threading.Thread(target=lambda: served.append(probe.malloc(60 * MIB)))
            asking.start()
            asking.join(0.1)
            go_on.set()
            for thread in (freeing, asking):
                thread.join()
        assert served


def beside(action):
    """Run an action in another thread and join it."""
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()
