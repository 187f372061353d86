"""Views: how snapshots show them, and which one is dropped when there are too many."""

import random

import pytest

from gputensor import memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor._driver import registry
from tests.support.alloc_probe import MIB, opened
from tests.support.internals import limit_views, view_sizes
from tests.support.models.allocator_shadow import Shadow


def stitch(probe, nbytes, pieces=4, stream=0):
    """Serve a request by a view over every second of some blocks; return (view, other blocks)."""
    blocks = [probe.malloc(nbytes, stream) for _ in range(2 * pieces)]
    probe.free_all(blocks[::2])
    ptr = probe.malloc(2 * nbytes, stream)
    assert probe.lies_in_a_view(ptr)
    return ptr, blocks[1::2]


def shown(device, state="active_allocated"):
    return {
        block["address"]: (block["size"], block["requested_size"], segment["total_size"])
        for segment in memory.snapshot(device)["segments"]
        for block in segment["blocks"]
        if block["state"] == state
    }


def test_a_block_in_a_view_is_one_block_of_the_snapshot_where_its_caller_has_it():
    with opened() as probe:
        ptr, _ = stitch(probe, 20 * MIB)
        found = shown(probe.device)
        assert found[ptr] == (40 * MIB, 40 * MIB, 40 * MIB)
        stats = memory.memory_stats(probe.device)
        assert set(found) == set(probe.held)
        assert len(found) == stats["allocation.all.current"] == stats["active.all.current"]
        segments = memory.snapshot(probe.device)["segments"]
        assert sum(part["total_size"] for part in segments) == probe.reserved()
        ends = [(part["address"], part["address"] + part["total_size"]) for part in segments]
        assert all(end <= start for (_, end), (start, _) in zip(ends, ends[1:], strict=False))
        probe.free(ptr)
        assert ptr not in shown(probe.device)
        assert sum(p["total_size"] for p in memory.snapshot(probe.device)["segments"]) == (
            probe.reserved()
        )


def test_a_block_in_a_view_that_waits_for_a_stream_is_shown_as_waiting():
    with opened(seed=3) as probe:
        other = probe.stream()
        ptr, _ = stitch(probe, 20 * MIB)
        probe.work(ptr, other, 200)
        raw_memory.raw_record_stream(ptr, other)
        probe.free(ptr)
        assert shown(probe.device, "active_pending_free") == {ptr: (40 * MIB, 0, 40 * MIB)}
        assert checker.check(probe.device) == []
        probe.calls.synchronize()


def test_the_history_moves_the_memory_of_a_view_and_back():
    with opened() as probe:
        memory.record_memory_history()
        try:
            ptr, _ = stitch(probe, 20 * MIB)
            probe.free(ptr)
            trace = memory.snapshot(probe.device)["device_traces"][-1]
        finally:
            memory.record_memory_history(None)
        mine = [event["action"] for event in trace if event.get("addr") == ptr]
        assert mine == ["segment_map", "alloc", "free_requested", "free_completed",
                        "segment_unmap"]  # fmt: skip
        mapped = sum(
            event["size"] * (1 if event["action"] == "segment_map" else -1)
            for event in trace
            if event["action"] in ("segment_map", "segment_unmap")
        )
        assert mapped == probe.reserved()


def test_a_full_table_of_views_drops_the_one_unused_for_longest():
    with opened(capacity=1024 * MIB) as probe:
        sizes = [20 * MIB, 24 * MIB, 28 * MIB]
        report.empty_cache(probe.device)
        limit_views(probe.device, 2)
        first, _ = stitch(probe, sizes[0])
        second, _ = stitch(probe, sizes[1])
        before = view_sizes(probe.device)
        assert len(before) == 2
        probe.free(first)
        for _ in range(2):
            probe.malloc(20 * MIB)  # its pages are in use in place
        probe.mark()
        stitch(probe, sizes[2])
        after = view_sizes(probe.device)
        assert len(after) == 2
        assert second in probe.held and probe.lies_in_a_view(second)
        assert probe.made().get("page_unmap", 0) >= 1 and "page_destroy" not in probe.made()
        assert checker.check(probe.device) == []


def test_a_full_table_whose_views_are_all_in_use_grows_instead():
    with opened(capacity=1024 * MIB) as probe:
        limit_views(probe.device, 1)
        first, _ = stitch(probe, 20 * MIB)
        blocks = [probe.malloc(24 * MIB) for _ in range(8)]
        probe.free_all(blocks[::2])
        probe.malloc(48 * MIB)
        assert len(view_sizes(probe.device)) == 1
        assert probe.lies_in_a_view(first)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("mode", ["deferred", "immediate"])
def test_values_survive_the_eviction_of_views(limit, mode):
    """Combs of changing sizes fill the device and need other views; each value is read back."""
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}, mode {mode}")
    number = registry.open_host(capacity=192 * MIB, seed=seed if mode == "deferred" else None)
    rng = random.Random(seed)
    try:
        shadow = Shadow(number, rng=rng)
        shadow.malloc(512)
        limit_views(number, limit)
        registry.reset_counts(number)
        views = 0
        for turn in range(15):
            nbytes = rng.choice([8, 12, 16, 24]) * MIB
            blocks = [shadow.malloc(nbytes, turn % 2) for _ in range(192 * MIB // nbytes)]
            for block in blocks[::2]:
                if block is not None:
                    shadow.free(block)
            for _ in range(2):
                large = shadow.malloc(2 * nbytes, turn % 2)
                shadow.check()
                if large is not None:
                    shadow.use(large, 2)
            views += shadow.views()
            for block in list(shadow.held):
                if rng.random() < 0.9:
                    shadow.free(block)
            shadow.compare()
            shadow.check()
            assert len(view_sizes(number)) <= limit
        assert views > 5 and registry.counts(number)["page_unmap"] > 0
        shadow.finish()
    finally:
        registry.close_host(number)


def test_a_call_site_that_holds_a_block_in_a_view_holds_one_block():
    with opened() as probe:
        memory.record_memory_history()
        try:
            blocks = [probe.malloc(20 * MIB) for _ in range(8)]
            probe.free_all(blocks[::2])
            in_view = probe.malloc(40 * MIB)
            assert probe.lies_in_a_view(in_view)
            sites = memory.top_call_sites(probe.device)
        finally:
            memory.record_memory_history(None)
        assert sum(site.n_blocks for site in sites) == len(probe.held) == 5
        assert sum(site.nbytes for site in sites) == (4 * 20 + 40) * MIB


def test_new_pages_lie_between_the_free_ends_of_two_pages():
    with opened(capacity=4 << 30, phantom=True) as probe:
        pages = [probe.malloc(40 * MIB) for _ in range(3)]
        probe.free_all()
        parts = [probe.malloc(nbytes * MIB) for nbytes in (25, 15, 40, 15, 25)]
        assert parts[::2] == [pages[0], pages[1], pages[2] + 15 * MIB]
        probe.free_all(parts[1::2])
        ptr = probe.malloc(50 * MIB)
        assert probe.lies_in_a_view(ptr)
        assert probe.reserved() == (120 + 20) * MIB
        probe.free(ptr)
        probe.mark()
        assert probe.malloc(50 * MIB) == ptr
        assert not probe.asked_for_memory()


@pytest.mark.parametrize("pages", [1, 2])
def test_a_view_costs_no_more_than_the_memory_that_it_spares(pages):
    """It would spare 2 MiB, with the free end of one page, or that and a whole page.

    Mapping two pages costs 22.5 µs more than growing does, mapping three 54 µs; a MiB is worth 20.
    """
    with opened("page_size_mb:40", capacity=2**40, phantom=True) as probe:
        apart = probe.malloc(38 * MIB)
        probe.malloc(2 * MIB)
        lead = probe.malloc((40 * pages - 2) * MIB)
        assert probe.reserved() == (38 + 40 * pages) * MIB
        probe.free_all([apart, lead])
        assert probe.lies_in_a_view(probe.malloc(40 * pages * MIB)) == (pages == 1)
