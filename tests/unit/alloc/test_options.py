"""Every option of the allocator does what its line of documentation says, and only that."""

import pytest

from gputensor import memory
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor.errors import OutOfMemoryError
from gputensor.graphs import CUDAGraph
from gputensor.streams import Device, Stream
from tests.support.alloc_probe import MIB, opened

PLAIN = "expandable_segments:False,thread_cache:False"


def allocated(probe, nbytes):
    before = report.allocated_nbytes(probe.device)
    ptr = probe.malloc(nbytes)
    taken = report.allocated_nbytes(probe.device) - before
    probe.free(ptr)
    return taken


def test_expandable_segments_choose_between_pages_and_plain_segments():
    with opened(phantom=True) as probe:
        probe.malloc(5 * MIB)
        assert "mem_alloc" not in probe.made() and probe.made()["page_map"] == 1
    with opened("expandable_segments:False", phantom=True) as probe:
        probe.malloc(5 * MIB)
        assert "page_map" not in probe.made() and probe.made()["mem_alloc"] == 1


def test_max_split_size_keeps_large_blocks_whole():
    with opened(PLAIN + ",max_split_size_mb:32", capacity=512 * MIB, phantom=True) as probe:
        whole = probe.malloc(64 * MIB)
        probe.free(whole)
        assert probe.malloc(20 * MIB) != whole, "a small request must not take a large block"
        assert probe.malloc(50 * MIB) == whole
        assert report.allocated_nbytes(probe.device) == (20 + 64) * MIB
    with opened(PLAIN, capacity=512 * MIB, phantom=True) as probe:
        whole = probe.malloc(64 * MIB)
        probe.free(whole)
        assert probe.malloc(20 * MIB) == whole


def test_max_non_split_rounding_bounds_what_an_unsplit_block_wastes():
    conf = PLAIN + ",max_split_size_mb:32,max_non_split_rounding_mb:{}"
    for rounding, served in ((40, True), (21, False)):
        with opened(conf.format(rounding), capacity=512 * MIB, phantom=True) as probe:
            whole = probe.malloc(80 * MIB)
            probe.free(whole)
            assert (probe.malloc(50 * MIB) == whole) == served


@pytest.mark.parametrize(
    "conf, nbytes, expected",
    [
        ("", 1200, 1536),
        ("roundup_power2_divisions:4", 1200, 1536),
        ("roundup_power2_divisions:4", 5000, 5120),
        ("roundup_power2_divisions:4", 5121, 6144),
        ("roundup_power2_divisions:2", 5 * MIB, 6 * MIB),
        ("roundup_power2_divisions:[4:2,8:8,>:1]", 5 * MIB, 6 * MIB),
        ("roundup_power2_divisions:[4:2,8:8,>:1]", 8 * MIB + 1, 9 * MIB),
        ("roundup_power2_divisions:[4:2,8:8,>:1]", 17 * MIB + 1, 17 * MIB + 512),
    ],
)
def test_sizes_are_rounded_to_divisions_of_a_power_of_two(conf, nbytes, expected):
    with opened(conf, phantom=True) as probe:
        assert allocated(probe, nbytes) == expected


def test_garbage_collection_gives_cached_memory_back_before_growing():
    for threshold, kept in (("", 120), (",garbage_collection_threshold:0.5", 30)):
        conf = PLAIN + ",memory_limit_mb:200" + threshold
        with opened(conf, capacity=512 * MIB, phantom=True) as probe:
            probe.free_all([probe.malloc(30 * MIB) for _ in range(4)])
            probe.malloc(60 * MIB)
            assert probe.reserved() == (kept + 60) * MIB
            assert probe.stats()["num_alloc_retries"] == 0


@pytest.mark.parametrize("hot", [[0, 1], [1, 2], [0, 3], [2, 3]])
def test_garbage_collection_takes_the_memory_unused_for_longest(hot):
    conf = PLAIN + ",memory_limit_mb:200,garbage_collection_threshold:0.6"
    with opened(conf, capacity=512 * MIB, phantom=True) as probe:
        blocks = [probe.malloc((30 if i in hot else 32) * MIB) for i in range(4)]
        probe.free_all([blocks[i] for i in range(4) if i not in hot])
        for _ in range(5):
            probe.free_all([blocks[i] for i in hot])
            assert {probe.malloc(30 * MIB) for _ in hot} == {blocks[i] for i in hot}
        probe.free_all()
        # All four change stream for a request that none of them serves; that is not a use.
        probe.malloc(45 * MIB, probe.stream())
        left = {int(address) for address in report.collect_segments(probe.device)[0]["address"]}
        assert {blocks[i] for i in hot} <= left
        assert not {blocks[i] for i in range(4) if i not in hot} & left


def test_garbage_is_not_collected_during_a_capture_because_driver_frees_break_it():
    conf = PLAIN + ",memory_limit_mb:200,garbage_collection_threshold:0.5"
    with opened(conf, phantom=True) as probe, Device(probe.device):
        probe.free_all([probe.malloc(30 * MIB) for _ in range(4)])
        graph, stream = CUDAGraph(), Stream()
        with stream:
            graph.capture_begin()
            try:
                probe.mark()
                ptr = probe.malloc(60 * MIB, stream.cuda_stream)
                assert "mem_free" not in probe.made()
                probe.free(ptr)
            finally:
                graph.capture_end()
        graph.reset()


@pytest.mark.parametrize(
    "conf", ["memory_limit_mb:100", "per_process_memory_fraction:0.390625"]
)  # fmt: skip
def test_limits_hold_and_can_be_used_up(conf):
    with opened(conf, phantom=True) as probe:
        probe.malloc(60 * MIB)
        with pytest.raises(OutOfMemoryError, match="limit 100.0 MiB"):
            probe.malloc(41 * MIB)
        probe.malloc(40 * MIB)
        assert probe.reserved() <= 100 * MIB


def test_a_limit_that_is_raised_at_run_time_holds_at_once():
    with opened("memory_limit_mb:50", phantom=True) as probe:
        with pytest.raises(OutOfMemoryError):
            probe.malloc(60 * MIB)
        memory.set_allocator_settings("memory_limit_mb:80")
        probe.malloc(60 * MIB)


def test_large_segment_size_is_the_segment_size_of_medium_requests():
    for size in (20, 12, 64):
        with opened(f"{PLAIN},large_segment_size_mb:{size}", phantom=True) as probe:
            probe.malloc(3 * MIB)
            assert probe.reserved() == size * MIB
            probe.malloc(30 * MIB)
            assert probe.reserved() <= (size + 30) * MIB


def test_page_size_bounds_the_pages_of_a_growing_pool():
    made = []
    for size in (2, 40):
        with opened(f"page_size_mb:{size}", phantom=True) as probe:
            for _ in range(20):
                probe.malloc(5 * MIB)
            made.append(probe.made()["page_create"])
    assert made[0] > made[1]


def test_without_page_reuse_pages_stay_with_their_pool():
    for conf, works in (("", True), ("page_reuse:False", False)):
        with opened(conf, capacity=64 * MIB, phantom=True) as probe:
            probe.free_all([probe.malloc(MIB) for _ in range(40)])
            kept = probe.malloc(512)
            probe.mark()
            probe.malloc(50 * MIB)
            assert ("page_destroy" not in probe.made()) == works
            assert kept in probe.held


def test_without_thread_cache_neighbours_join_at_once():
    counts = []
    for conf in ("thread_cache:True", "thread_cache:False"):
        with opened(conf, phantom=True) as probe:
            probe.free_all([probe.malloc(4096) for _ in range(10)])
            counts.append(len(report.collect_segments(probe.device)[1]))
    assert counts[0] >= 10 and counts[1] == 1


def test_the_async_backend_allocates_from_the_drivers_pool():
    with opened("backend:cudaMallocAsync", phantom=True) as probe:
        assert memory.get_allocator_backend() == "cudaMallocAsync"
        ptr = probe.malloc(5 * MIB)
        assert probe.reserved() == 5 * MIB
        other = probe.stream()
        raw_memory.raw_record_stream(ptr, other)
        probe.free(ptr)
        made = probe.made()
        assert (made["async_alloc"], made["async_free"]) == (1, 1)
        assert "mem_alloc" not in made and "page_create" not in made
        assert probe.reserved() == 0
        with pytest.raises(OutOfMemoryError):
            probe.malloc(300 * MIB)
        probe.malloc(200 * MIB)


def test_a_request_beyond_the_limit_is_refused_before_anything_is_released():
    conf = PLAIN + ",memory_limit_mb:100,throw_on_cudamalloc_oom:True"
    with opened(conf, phantom=True) as probe:
        probe.free(probe.malloc(60 * MIB))
        with pytest.raises(OutOfMemoryError):
            probe.malloc(90 * MIB)
        assert probe.reserved() == 60 * MIB
        assert probe.stats()["num_oom_rejections"] == 1
        assert "mem_free" not in probe.made()


@pytest.mark.parametrize("limit", ["memory_limit_mb:160", "memory_limit_mb:190"])
def test_a_request_that_reserved_memory_can_serve_is_not_refused(limit):
    """Free pages from several places in one view, and free pages that move to another pool."""
    with opened(f"{limit},throw_on_cudamalloc_oom:True", phantom=True) as probe:
        blocks = [probe.malloc(20 * MIB) for _ in range(8)]
        probe.free_all(blocks[::2])
        reserved = probe.reserved()
        assert probe.lies_in_a_view(probe.malloc(40 * MIB))
        assert probe.reserved() == reserved
        probe.free_all()
        report.empty_cache(probe.device)
        probe.free_all([probe.malloc(MIB) for _ in range(150)])
        probe.malloc(140 * MIB)
        probe.free_all()
        for _ in range(2):
            with pytest.raises(OutOfMemoryError, match="throw_on_cudamalloc_oom refuses at once"):
                probe.malloc(200 * MIB)
        stats = probe.stats()
        assert (stats["num_oom_rejections"], stats["num_ooms"]) == (2, 0)
        assert stats["num_sync_all_streams"] == 1  # empty_cache()


@pytest.mark.parametrize("conf", ["", "," + PLAIN])
def test_without_a_limit_the_size_of_the_device_limits_a_request(conf):
    with opened(f"throw_on_cudamalloc_oom:True{conf}", phantom=True) as probe:
        probe.free(probe.malloc(60 * MIB))
        reserved = probe.reserved()
        probe.mark()
        with pytest.raises(OutOfMemoryError, match="at most 256.0 MiB may be reserved") as caught:
            probe.malloc(300 * MIB)
        assert caught.value.reason == "limit"
        assert probe.reserved() == reserved
        stats = probe.stats()
        assert (stats["num_oom_rejections"], stats["num_ooms"]) == (1, 0)
        calls = {"synchronize", "mem_alloc", "mem_free", "page_create", "page_destroy"}
        assert not calls & set(probe.made())
        probe.malloc(100 * MIB)


def test_a_changed_setting_changes_only_itself():
    with opened("memory_limit_mb:64,page_size_mb:4", phantom=True) as probe:
        memory.set_allocator_settings("roundup_power2_divisions:2")
        assert allocated(probe, 5 * MIB) == 6 * MIB
        with pytest.raises(OutOfMemoryError):
            probe.malloc(65 * MIB)
