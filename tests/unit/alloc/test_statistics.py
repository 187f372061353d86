"""Statistics with PyTorch's meaning, exact at every moment, compared with independent counters."""

import random

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
    foreign as raw_memory,
)
from gputensor._alloc import (
    observe as report,
)
from gputensor.errors import OutOfMemoryError
from tests.support.alloc_probe import MIB, opened

POOLS = ("all", "large_pool", "small_pool")


class Count:
    def __init__(self):
        self.current = self.peak = self.allocated = self.freed = 0

    def add(self, amount):
        self.current += amount
        self.allocated += amount
        self.peak = max(self.peak, self.current)

    def take(self, amount):
        self.current -= amount
        self.freed += amount


class Accounting:
    """The accounting of a caller: allocations, their sizes and the requested bytes, by pool."""

    NAMES = ("allocation", "allocated_bytes", "requested_bytes", "active", "active_bytes")

    def __init__(self):
        self.counts = {(name, pool): Count() for name in self.NAMES for pool in POOLS}

    def amounts(self, nbytes):
        rounded = max(512, (nbytes + 511) // 512 * 512)
        pool = "small_pool" if rounded <= MIB else "large_pool"
        each = (1, rounded, nbytes, 1, rounded)
        return [(self.counts[name, where], amount)
                for name, amount in zip(self.NAMES, each, strict=True)
                for where in ("all", pool)]  # fmt: skip

    def malloc(self, nbytes):
        for count, amount in self.amounts(nbytes):
            count.add(amount)

    def free(self, nbytes):
        for count, amount in self.amounts(nbytes):
            count.take(amount)

    def compare(self, stats, shown, lends=False):
        """Compare with the statistics, and with what a snapshot shows (None: the rounded sizes).

        Where the large pool `lends` to small requests, each pool may serve them: the sum is exact.
        """
        for (name, pool), count in self.counts.items():
            if lends and pool != "all":
                for field in ("current", "allocated", "freed"):
                    parts = [stats[f"{name}.{kind}.{field}"] for kind in POOLS]
                    assert parts[0] == parts[1] + parts[2], (name, field)
                continue
            if shown is not None and name in ("allocated_bytes", "active_bytes"):
                # In plain segments a remainder of up to 1 MiB stays with its block, as in PyTorch.
                found = stats[f"{name}.{pool}.current"]
                blocks = self.counts["allocation", pool].current
                assert found == shown[pool]
                assert count.current <= found <= count.current + blocks * MIB
                continue
            for field in ("current", "peak", "allocated", "freed"):
                key = f"{name}.{pool}.{field}"
                assert stats[key] == getattr(count, field), key


def shown_by_a_snapshot(device):
    segments, blocks = report.collect_segments(device)
    held = np.where(blocks["state"] == 1, blocks["nbytes"], 0)
    is_large = np.repeat(segments["is_large"], segments["n_blocks"]).astype(bool)
    sums = {"large_pool": int(held[is_large].sum()), "small_pool": int(held[~is_large].sum())}
    return {**sums, "all": sum(sums.values())}


@pytest.mark.parametrize(
    "conf, lends",
    [("", False), ("", True), ("thread_cache:False", False), ("thread_cache:False", True),
     ("expandable_segments:False", False)],
)  # fmt: skip
def test_counters_and_peaks_are_exact_over_random_programs(conf, lends):
    # Virtual memory of the large pool may serve middle requests.
    is_plain = "segments:False" in conf
    small = [100_000, MIB] if lends or is_plain else [90_000, 191 * 1024]
    rng = random.Random()
    seed = rng.randrange(1 << 30)
    print(f"seed {seed}")
    rng.seed(seed)
    accounting, sizes = Accounting(), {}
    with opened(conf, capacity=4096 * MIB, phantom=True) as probe:
        for step in range(3000):
            if probe.held and rng.random() < 0.5:
                ptr = rng.choice(probe.held)
                probe.free(ptr)
                accounting.free(sizes.pop(ptr))
            else:
                nbytes = rng.choice([1, 512, 513, 4096, *small, MIB + 1, 7 * MIB])
                ptr = probe.malloc(nbytes)
                sizes[ptr] = nbytes
                accounting.malloc(nbytes)
            if step % 7 == 0 or step < 50:
                shown = shown_by_a_snapshot(probe.device)
                assert shown["all"] == report.allocated_nbytes(probe.device)
                accounting.compare(probe.stats(), shown if is_plain else None, lends)
            if step == 1000:
                report.reset_peak(probe.device)
                for count in accounting.counts.values():
                    count.peak = count.current
            if step % 500 == 499:
                report.empty_cache(probe.device)
        shown = shown_by_a_snapshot(probe.device)
        accounting.compare(probe.stats(), shown if is_plain else None, lends)


def test_reserved_and_segments_follow_the_driver():
    with opened("expandable_segments:False", phantom=True) as probe:
        probe.malloc(100)
        probe.malloc(3 * MIB)
        large = probe.malloc(31 * MIB)
        stats = probe.stats()
        assert stats["segment.small_pool.current"] == 1
        assert stats["segment.large_pool.current"] == 2
        assert stats["reserved_bytes.small_pool.current"] == 2 * MIB
        assert stats["reserved_bytes.large_pool.current"] == 20 * MIB + 32 * MIB
        assert stats["num_device_alloc"] == 3
        probe.free(large)
        report.empty_cache(probe.device)
        stats = probe.stats()
        assert stats["num_device_free"] == 1
        assert stats["reserved_bytes.all.current"] == 22 * MIB
        assert stats["reserved_bytes.all.peak"] == 54 * MIB
        assert stats["reserved_bytes.all.freed"] == 32 * MIB


def test_the_remainder_of_a_segment_is_inactive_split():
    with opened("expandable_segments:False,thread_cache:False", phantom=True) as probe:
        first, second = probe.malloc(3 * MIB), probe.malloc(4 * MIB)
        assert probe.stats()["inactive_split_bytes.all.current"] == 13 * MIB
        assert probe.stats()["inactive_split.all.current"] == 1
        probe.free(first)
        assert probe.stats()["inactive_split_bytes.all.current"] == 16 * MIB
        assert probe.stats()["inactive_split.all.current"] == 2
        probe.free(second)
        assert probe.stats()["inactive_split_bytes.all.current"] == 0, "the segment is whole"


@pytest.mark.parametrize("conf", ["", "thread_cache:False", "page_size_mb:2"])
def test_free_memory_of_a_virtual_segment_is_not_inactive_split(conf):
    """Its pages go back one by one: as in PyTorch, a block in use holds back only its own pages."""
    with opened(conf, phantom=True) as probe:
        for nbytes in (512, 4096, MIB, 3 * MIB, 20 * MIB):
            blocks = [probe.malloc(nbytes) for _ in range(6)]
            probe.free_all(blocks[::2])
        probe.malloc(40 * MIB)  # a view, if views are in use
        report.empty_cache(probe.device)
        stats = probe.stats()
        assert stats["segment.all.peak"] == 0
        for name in ("inactive_split", "inactive_split_bytes"):
            for pool in POOLS:
                assert stats[f"{name}.{pool}.allocated"] == 0


def test_a_block_that_waits_is_active_and_not_allocated():
    with opened(seed=11) as probe:
        other = probe.stream()
        ptr = probe.malloc(5 * MIB)
        probe.work(ptr, other, 200)
        raw_memory.raw_record_stream(ptr, other)
        probe.free(ptr)
        stats = probe.stats()
        assert stats["allocated_bytes.all.current"] == 0
        assert stats["active_bytes.all.current"] == 5 * MIB
        assert stats["active.large_pool.current"] == 1
        probe.calls.synchronize()
        probe.malloc(100)
        stats = probe.stats()
        assert stats["active_bytes.all.current"] == 512
        assert stats["active.large_pool.freed"] == 1


def test_oversize_blocks_are_counted():
    conf = "expandable_segments:False,max_split_size_mb:32"
    with opened(conf, capacity=512 * MIB, phantom=True) as probe:
        ptr = probe.malloc(40 * MIB)
        probe.malloc(30 * MIB)
        stats = probe.stats()
        assert stats["oversize_allocations.current"] == 1
        assert stats["oversize_segments.current"] == 1
        assert stats["max_split_size"] == 32 * MIB
        probe.free(ptr)
        report.empty_cache(probe.device)
        stats = probe.stats()
        assert stats["oversize_allocations.current"] == stats["oversize_segments.current"] == 0
        assert stats["oversize_allocations.freed"] == 1


@pytest.mark.parametrize("before, after", [("none", "32"), ("32", "100"), ("32", "40")])
@pytest.mark.parametrize("expandable", [True, False])
def test_a_block_counted_as_oversize_is_subtracted_after_the_option_changes(
    expandable, before, after
):
    conf = f"expandable_segments:{expandable}"
    if before != "none":
        conf += f",max_split_size_mb:{before}"
    with opened(conf, capacity=512 * MIB, phantom=True) as probe:
        probe.malloc(64 * MIB)
        waiting = probe.malloc(70 * MIB)
        probe.work(waiting, probe.stream(), 1)
        raw_memory.raw_record_stream(waiting, probe.streams[-1])
        counted = 2 if before != "none" else 0
        assert probe.stats()["oversize_allocations.current"] == counted
        memory.set_allocator_settings(f"max_split_size_mb:{after}")
        probe.free_all()
        assert checker.check(probe.device) == []
        report.empty_cache(probe.device)
        stats = probe.stats()
        assert stats["oversize_allocations.current"] == stats["oversize_segments.current"] == 0
        assert stats["oversize_allocations.freed"] == counted
        assert stats["oversize_segments.freed"] == counted * (not expandable)


@pytest.mark.parametrize("limit", ["", ",memory_limit_mb:210"])
@pytest.mark.parametrize("conf", ["expandable_segments:True", "expandable_segments:False"])
@pytest.mark.parametrize("seed", [None, 1])
def test_cached_memory_makes_room_for_blocks_that_bypass_the_pools(conf, limit, seed):
    with opened(conf + limit, seed=seed) as probe:
        kept, cached = probe.malloc(3 * MIB), probe.malloc(180 * MIB)
        waiting = probe.malloc(10 * MIB)
        probe.work(cached, probe.stream())
        probe.work(waiting, 0)
        raw_memory.raw_record_stream(cached, probe.streams[-1])
        probe.free_all([cached, waiting])
        with memory.caching_allocator_disabled(probe.device):
            direct = probe.malloc(150 * MIB)
            assert checker.check(probe.device) == []
            with pytest.raises(OutOfMemoryError):
                probe.malloc(150 * MIB)
        stats = probe.stats()
        assert stats["num_alloc_retries"] == stats["num_sync_all_streams"] == 2
        assert stats["num_ooms"] == 1
        probe.free_all([direct, kept])


@pytest.mark.parametrize("conf", ["", "backend:cudaMallocAsync"])
def test_blocks_that_bypass_the_pools_are_in_snapshots_and_history_as_well(conf):
    rng = random.Random()
    with opened(conf, phantom=True) as probe:
        probe.malloc(5000)  # allocated before the history began, and kept
        device_allocator.set_caching(probe.device, False)
        memory.record_memory_history()
        try:
            for _ in range(60):
                if len(probe.held) > 1 and rng.random() < 0.5:
                    probe.free(rng.choice(probe.held[1:]))
                else:
                    probe.malloc(rng.choice([1, 700, 5000, 3 * MIB]))
                parts = memory.snapshot(probe.device)["segments"]
                stats = probe.stats()
                assert sum(p["total_size"] for p in parts) == stats["reserved_bytes.all.current"]
                assert sum(p["active_size"] for p in parts) == stats["active_bytes.all.current"]
                held = {b["address"] for p in parts for b in p["blocks"]
                        if b["state"] == "active_allocated"}  # fmt: skip
                assert held == set(probe.held)
                assert checker.check(probe.device) == []
            last = memory.snapshot(probe.device)["device_traces"][-1]
        finally:
            memory.record_memory_history(None)
        alive = set()
        for event in last:
            if event["action"] == "segment_alloc":
                alive.add(event["addr"])
            elif event["action"] == "segment_free":
                alive.remove(event["addr"])
            elif event["action"] == "alloc":
                assert event["addr"] in alive
        assert alive == set(probe.held[1:])


def test_no_peak_is_missed_while_freed_blocks_wait_for_streams():
    """A freed block that waits is active and not allocated, so the two have peaks of their own."""
    seeds = random.Random().sample(range(1 << 30), 40)
    for seed in seeds:
        rng = random.Random(seed)
        with opened(rng.choice(["", "thread_cache:False"]), seed=seed) as probe:
            other = probe.stream()
            held, count, nbytes = [], Count(), Count()
            for _ in range(300):
                if held and rng.random() < 0.5:
                    ptr, size = held.pop(rng.randrange(len(held)))
                    if rng.random() < 0.5:
                        probe.work(ptr, other, 1)
                        raw_memory.raw_record_stream(ptr, other)
                    probe.free(ptr)
                    count.take(1)
                    nbytes.take(size)
                else:
                    size = rng.choice([1, 100, 512, 1024, 2048])
                    held.append((probe.malloc(size), max(512, size // 512 * 512)))
                    count.add(1)
                    nbytes.add(held[-1][1])
                if rng.random() < 0.1:
                    assert probe.calls.synchronize() == 0
                if rng.random() < 0.02:
                    probe.stats()
            stats = probe.stats()
            assert stats["allocation.all.peak"] == count.peak, seed
            assert stats["allocated_bytes.all.peak"] == nbytes.peak, seed
