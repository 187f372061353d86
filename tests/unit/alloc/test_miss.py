"""Each step of a miss serves a request that earlier steps cannot, and skips the later steps."""

import threading

import pytest

from gputensor import memory
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor.errors import OutOfMemoryError
from tests.support.alloc_probe import MIB, opened


def test_blocks_cached_by_another_thread_are_merged_before_the_pool_grows():
    with opened() as probe:
        is_cached, done = threading.Event(), threading.Event()

        def body():
            blocks = [raw_memory.raw_alloc(probe.device, 128 << 10, 0) for _ in range(16)]
            for ptr in blocks:
                raw_memory.raw_delete(ptr)
            is_cached.set()
            done.wait()

        thread = threading.Thread(target=body)
        thread.start()
        is_cached.wait()
        probe.mark()
        for _ in range(10):
            probe.malloc(190 << 10)
        assert not probe.asked_for_memory()
        done.set()
        thread.join()


def test_a_block_of_an_idle_stream_changes_its_stream():
    with opened() as probe:
        other = probe.stream()
        ptr = probe.malloc(20 * MIB, other)
        probe.free(ptr)
        probe.mark()
        assert probe.malloc(20 * MIB) == ptr
        assert not probe.asked_for_memory()


def test_free_neighbours_of_several_streams_join_for_one_request():
    with opened("page_size_mb:40", capacity=48 * MIB) as probe:
        streams = [0, probe.stream(), probe.stream(), probe.stream()]
        blocks = [probe.malloc(10 * MIB, 0) for _ in range(4)]
        probe.free_all()
        probe.mark()
        for stream in streams:
            blocks.append(probe.malloc(10 * MIB, stream))
        assert sorted(blocks[:4]) == sorted(blocks[4:])
        probe.free_all()
        assert probe.malloc(40 * MIB, streams[2]) == min(blocks)
        assert not probe.asked_for_memory()


def test_free_pages_of_several_places_are_mapped_side_by_side():
    with opened() as probe:
        blocks = [probe.malloc(20 * MIB) for _ in range(8)]
        probe.free_all(blocks[::2])
        reserved = probe.reserved()
        probe.mark()
        ptr = probe.malloc(40 * MIB)
        made = probe.made()
        assert probe.lies_in_a_view(ptr)
        assert made["page_map"] >= 2 and "page_create" not in made and "page_unmap" not in made
        assert probe.reserved() == reserved
        probe.free(ptr)
        probe.mark()
        assert probe.malloc(40 * MIB) == ptr
        assert not probe.asked_for_memory(), "the mappings are kept for the next request"


def test_a_pool_grows_by_new_pages():
    with opened() as probe:
        probe.malloc(20 * MIB)
        probe.mark()
        probe.malloc(20 * MIB)
        assert probe.made()["page_create"] >= 1
        assert "synchronize" not in probe.made()


def test_free_pages_move_from_one_pool_to_another():
    with opened(capacity=64 * MIB) as probe:
        small = [probe.malloc(MIB) for _ in range(48)]
        probe.free_all(small)
        probe.mark()
        probe.malloc(60 * MIB)
        assert probe.made()["page_unmap"] >= 1
        assert probe.reserved() <= 64 * MIB


@pytest.mark.parametrize("mib", [2, 8])
def test_only_small_pages_move_to_a_small_pool(mib):
    with opened(f"page_size_mb:{mib}", capacity=2048 * MIB, phantom=True) as probe:
        large = [probe.malloc(mib * MIB) for _ in range(2048 // mib - 1)]
        probe.free(large[-1])
        probe.mark()
        probe.malloc(512)
        assert ("page_unmap" in probe.made()) == (mib == 2)
        assert ("page_create" in probe.made()) == (mib != 2)


def test_free_pages_of_a_pool_that_lends_come_before_anything_is_moved_or_waited_for():
    with opened(capacity=64 * MIB, seed=1) as probe:
        pool, other = memory.MemPool(probe.device, use_on_oom=True), probe.stream()
        with memory.use_mem_pool(pool, probe.device):
            lent = probe.malloc(30 * MIB)
        busy = probe.malloc(30 * MIB)
        probe.work(busy, other)
        raw_memory.raw_record_stream(busy, other)
        probe.free_all([lent, busy])
        probe.mark()
        assert probe.malloc(20 * MIB) == lent
        assert not {"synchronize", "event_synchronize", "page_unmap"} & set(probe.made())
        probe.calls.synchronize()
        del pool


def test_a_full_device_makes_views_that_cost_too_much_otherwise():
    """Creating 200 pages of 2 MiB costs more than a program with 40 MiB pages spends on views."""
    for capacity, is_worth in ((400 * MIB, True), (800 * MIB, False)):
        with opened("page_size_mb:2", capacity=capacity) as probe:
            blocks = [probe.malloc(2 * MIB) for _ in range(200)]
            probe.free_all([blocks[40], blocks[80]])
            memory.set_allocator_settings("page_size_mb:40")
            assert probe.lies_in_a_view(probe.malloc(4 * MIB)) == is_worth
            assert (probe.reserved() == 400 * MIB) == is_worth
            assert probe.stats()["num_alloc_retries"] == 0, "cached memory was given back"


def test_an_idle_stream_is_queried_again_after_a_free_on_it():
    with opened() as probe:
        other = probe.stream()
        queries = []
        for is_freed in (True, False, False, True):
            if is_freed:
                probe.free(probe.malloc(20 * MIB, other))
            probe.mark()
            probe.malloc(60 * MIB)
            queries.append(probe.made().get("stream_query", 0))
        assert queries[0] > 0 and queries[1:] == [0, 0, 1]


def queries_of_lent_requests(probe):
    """Return the queries of a request that grows, and of some that take a rest of its memory."""
    probe.mark()
    probe.malloc(21 * MIB)
    first = probe.made().get("stream_query", 0)
    probe.mark()
    for _ in range(3):
        probe.free(probe.malloc(256 << 10))
    assert not probe.asked_for_memory()
    return first, probe.made().get("stream_query", 0)


def test_the_only_stream_is_not_queried_by_requests_that_find_memory():
    with opened() as probe:
        probe.free(probe.malloc(4 * MIB))
        assert queries_of_lent_requests(probe) == (1, 0)


def test_the_only_stream_is_queried_by_every_miss_while_it_is_busy():
    with opened(seed=1) as probe:
        ptr = probe.malloc(4 * MIB)
        probe.work(ptr, 0, count=1000)
        probe.free(ptr)
        assert queries_of_lent_requests(probe) == (1, 3)


def test_two_streams_are_queried_before_a_request_searches_their_tiles():
    with opened() as probe:
        probe.free(probe.malloc(3 * MIB, probe.stream()))
        assert queries_of_lent_requests(probe) == (2, 2)


@pytest.mark.parametrize("seed", range(5))
def test_a_full_device_waits_for_the_event_of_a_freed_block(seed):
    with opened(capacity=64 * MIB, seed=seed) as probe:
        other = probe.stream()
        kept, ptr = probe.malloc(30 * MIB), probe.malloc(30 * MIB)
        probe.work(ptr, other)
        raw_memory.raw_record_stream(ptr, other)
        probe.free(ptr)
        probe.mark()
        probe.malloc(30 * MIB)
        assert probe.calls.stream_query(other) == 0, "reused before the work was done"
        assert kept in probe.held
        assert probe.stats()["num_alloc_retries"] == 0, "cached memory was given back"


@pytest.mark.parametrize("seed", range(5))
def test_a_full_device_waits_for_its_streams(seed):
    with opened(capacity=64 * MIB, seed=seed) as probe:
        other = probe.stream()
        ptr = probe.malloc(60 * MIB, other)
        probe.work(ptr, other)
        probe.free(ptr)
        probe.mark()
        probe.malloc(60 * MIB)
        assert probe.calls.stream_query(other) == 0, "reused before the work was done"
        assert probe.stats()["num_sync_all_streams"] <= 2


def test_cached_segments_go_back_when_nothing_else_helps():
    with opened("expandable_segments:False", capacity=64 * MIB) as probe:
        probe.free(probe.malloc(40 * MIB))
        assert probe.reserved() == 40 * MIB
        probe.mark()
        probe.malloc(50 * MIB)
        assert probe.made()["mem_free"] == 1
        assert probe.stats()["num_alloc_retries"] == 1
        assert probe.reserved() == 50 * MIB


def test_the_last_step_refuses_and_the_next_request_is_served():
    with opened(capacity=64 * MIB) as probe:
        probe.malloc(40 * MIB)
        for _ in range(3):
            with pytest.raises(OutOfMemoryError):
                probe.malloc(30 * MIB)
        probe.malloc(20 * MIB)
        assert probe.stats()["num_ooms"] == 3


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_hit_makes_no_driver_call(seed):
    with opened(seed=seed) as probe:
        for nbytes in (512, 100_000, 300_000, MIB, 20 * MIB):
            probe.free(probe.malloc(nbytes))
        probe.mark()
        for nbytes in (512, 100_000, 300_000, MIB, 20 * MIB):
            for _ in range(10):
                probe.free(probe.malloc(nbytes))
        assert probe.made() == {}


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_host_functions_that_free_may_run_inside_the_allocator(seed):
    """A deferring device runs host functions in any driver call: no lock may be held then."""
    from tests.support.driver_calls import HOST_FUNCTION

    with opened(capacity=128 * MIB, seed=seed) as probe:
        other = probe.stream()
        for _ in range(30):
            ptr, later = probe.malloc(30 * MIB, other), probe.malloc(3 * MIB)
            function = HOST_FUNCTION(lambda _, later=later: probe.free(later))
            raw_memory.raw_record_stream(later, other)
            assert probe.calls.host_launch(function, None, other) == 0
            raw_memory.raw_record_stream(ptr, 0)
            probe.free(ptr)
            probe.malloc(25 * MIB)
            probe.free(probe.held[-1])
            probe.calls.synchronize()
        report.empty_cache(probe.device)


def test_requests_of_more_pages_than_a_plan_holds_are_served():
    """Thousands of small pages, stitched into views that grow: a plan has room for 512."""
    with opened("page_size_mb:2", capacity=16 << 30, phantom=True) as probe:
        for turn in range(12):
            blocks = [probe.malloc((2 + turn % 3) * MIB) for _ in range(1500)]
            probe.free_all(blocks[::2])
            large = [probe.malloc(nbytes * MIB) for nbytes in (700, 1100, 300)]
            probe.free_all(large + blocks[1::2])
            probe.malloc(1500 * MIB)
            probe.free_all()
