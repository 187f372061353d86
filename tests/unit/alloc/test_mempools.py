"""MemPool: statistics, pools that lend memory before a request fails, and unsplit blocks."""

import random
import threading

import pytest

from gputensor import memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor.errors import OutOfMemoryError
from tests.support import internals
from tests.support.alloc_probe import MIB, opened

FIELDS = ("current", "peak", "allocated", "freed")
POOLS = ("all", "large_pool", "small_pool")


@pytest.fixture(params=["", "expandable_segments:False"], ids=["expandable", "plain"])
def probe(request):
    with opened(request.param, capacity=128 * MIB) as probe:
        yield probe


def inside(probe, pool, nbytes):
    with memory.use_mem_pool(pool, probe.device):
        return probe.malloc(nbytes)


def private_stats(device, pool):
    first, second = pool.id
    stats = memory.memory_stats(device)
    name = f"reserved_bytes_by_private_pools.{first}_{second}"
    return {where: {field: stats[f"{name}.{where}.{field}"] for field in FIELDS} for where in POOLS}


def reserved_by(pool, segment_type=None):
    return sum(
        part["total_size"]
        for part in pool.snapshot()
        if segment_type in (None, part["segment_type"])
    )


def test_the_reserved_bytes_of_a_pool_are_counted_like_all_others(probe):
    """Compare with the pool's segments after each step of a random program."""
    rng = random.Random()
    pool = memory.MemPool(probe.device)
    expected = {where: dict.fromkeys(FIELDS, 0) for where in POOLS}

    def step_done():
        for where, kind in (("all", None), ("large_pool", "large"), ("small_pool", "small")):
            counts, now = expected[where], reserved_by(pool, kind)
            if where != "all":
                counts["allocated"] += max(now - counts["current"], 0)
                counts["freed"] += max(counts["current"] - now, 0)
            counts["current"] = now
            counts["peak"] = max(counts["peak"], now)
        for field in ("allocated", "freed"):
            expected["all"][field] = sum(expected[where][field] for where in POOLS[1:])

    for step in range(120):
        held = list(probe.held)
        if held and rng.random() < 0.45:
            probe.free(rng.choice(held))
        else:
            nbytes = rng.choice([600, 70_000, MIB, 3 * MIB, 11 * MIB])
            if report.allocated_nbytes(probe.device) < 50 * MIB:
                inside(probe, pool, nbytes)
        step_done()
        if rng.random() < 0.1:
            probe.free_all()
            del held
        if step == 40:
            memory.reset_peak_memory_stats(probe.device)
            for counts in expected.values():
                counts["peak"] = counts["current"]
        if step == 80:
            memory.reset_accumulated_memory_stats(probe.device)
            for counts in expected.values():
                counts["allocated"] = counts["freed"] = 0
        found = private_stats(probe.device, pool)
        assert {w: f["current"] for w, f in found.items()} == {
            w: f["current"] for w, f in expected.items()
        }
        for where in POOLS:
            assert found[where]["peak"] == expected[where]["peak"], where
            grown = found[where]["allocated"] - found[where]["freed"]
            assert grown == expected[where]["allocated"] - expected[where]["freed"], where
        assert checker.check(probe.device) == []


def test_a_pool_that_gives_its_memory_back_counts_it_as_freed(probe):
    pool = memory.MemPool(probe.device)
    probe.free(inside(probe, pool, 30 * MIB))
    inside(probe, pool, 1000)  # keeps the pool's counts alive
    before = private_stats(probe.device, pool)["large_pool"]
    assert before["current"] == before["allocated"] == before["peak"] >= 30 * MIB
    internals.release_pool(probe.device, pool._number)  # without a holder for a moment
    report.empty_cache(probe.device)
    internals.retain_pool(probe.device, pool._number)
    after = private_stats(probe.device, pool)["large_pool"]
    assert after == {**before, "current": 0, "freed": before["allocated"]}


def test_a_pool_that_is_gone_is_in_no_statistics(probe):
    pool = memory.MemPool(probe.device)
    name = f"reserved_bytes_by_private_pools.0_{pool.id[1]}"
    probe.free(inside(probe, pool, 30 * MIB))
    assert f"{name}.all.peak" in memory.memory_stats(probe.device)
    nested = memory.memory_stats_as_nested_dict(probe.device)
    assert set(nested["reserved_bytes_by_private_pools"][pool.id]) == set(POOLS)
    del pool
    assert f"{name}.all.current" in memory.memory_stats(probe.device), "it still holds memory"
    report.empty_cache(probe.device)
    assert not any(key.startswith(name) for key in memory.memory_stats(probe.device))


def test_a_lending_pool_serves_requests_that_would_fail(probe):
    pool = memory.MemPool(probe.device, use_on_oom=True)
    lent = inside(probe, pool, 100 * MIB)
    probe.free(lent)
    report.empty_cache(probe.device)
    probe.mark()
    ptr = probe.malloc(60 * MIB)
    assert ptr == lent, "the pool's free block"
    assert "synchronize" not in probe.made() and probe.stats()["num_ooms"] == 0
    with pytest.raises(OutOfMemoryError):
        probe.malloc(90 * MIB)
    probe.free(ptr)
    assert inside(probe, pool, 100 * MIB) == lent, "it came back"
    assert checker.check(probe.device) == []


def test_a_pool_does_not_lend_while_the_device_has_memory_left(probe):
    pool = memory.MemPool(probe.device, use_on_oom=True)
    probe.free(inside(probe, pool, 40 * MIB))
    mine = {(part["address"], part["address"] + part["total_size"]) for part in pool.snapshot()}
    ptr = probe.malloc(40 * MIB)
    assert not any(start <= ptr < end for start, end in mine)


def test_a_pool_that_does_not_lend_keeps_its_memory(probe):
    pool = memory.MemPool(probe.device)
    probe.free(inside(probe, pool, 100 * MIB))
    with pytest.raises(OutOfMemoryError, match="reason: idle private pool"):
        probe.malloc(60 * MIB)


def test_a_pool_does_not_lend_to_requests_of_another_pool(probe):
    lender, other = memory.MemPool(probe.device, use_on_oom=True), memory.MemPool(probe.device)
    probe.free(inside(probe, lender, 100 * MIB))
    with pytest.raises(OutOfMemoryError):
        inside(probe, other, 60 * MIB)


def blocks_of(pool):
    return [block for part in pool.snapshot() for block in part["blocks"]]


def test_blocks_of_an_unsplit_pool_are_neither_cut_nor_joined(probe):
    pool = memory.MemPool(probe.device, no_split=True)
    sizes = (5 * MIB, 12 * MIB, 3 * MIB)
    held = [inside(probe, pool, nbytes) for nbytes in sizes]
    whole = {block["address"]: block["size"] for block in blocks_of(pool)}
    assert set(held) <= set(whole)
    assert all(whole[ptr] >= nbytes for ptr, nbytes in zip(held, sizes, strict=True))
    for _ in range(3):
        probe.free_all()
        assert {block["address"]: block["size"] for block in blocks_of(pool)} == whole
        assert checker.check(probe.device) == []
        smaller = inside(probe, pool, 2 * MIB)
        assert {block["address"]: block["size"] for block in blocks_of(pool)} == whole
        held = [ptr for ptr, block in ((b["address"], b) for b in blocks_of(pool))
                if block["state"] == "active_allocated"]  # fmt: skip
        assert held == [smaller]
        stats = memory.memory_stats(probe.device)
        assert stats["allocated_bytes.all.current"] == whole[smaller]
        assert stats["requested_bytes.all.current"] == 2 * MIB


def test_other_pools_are_cut_beside_an_unsplit_one(probe):
    unsplit = memory.MemPool(probe.device, no_split=True)
    usual = memory.MemPool(probe.device)
    for pool, count in ((unsplit, 1), (usual, 2)):
        probe.free(inside(probe, pool, 20 * MIB))
        inside(probe, pool, 6 * MIB)
        assert len(blocks_of(pool)) == count


@pytest.mark.parametrize("name", ["use_on_oom", "no_split"])
def test_the_kinds_of_a_pool_are_booleans(probe, name):
    with pytest.raises(TypeError, match=f"^{name}: got int; expected bool"):
        memory.MemPool(probe.device, **{name: 1})


def test_a_scope_of_a_pool_may_end_in_another_thread(probe):
    pool = memory.MemPool(probe.device)
    scope = memory.use_mem_pool(pool, probe.device)
    scope.__enter__()
    probe.malloc(MIB)
    held = pool.snapshot()
    thread = threading.Thread(target=scope.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    assert pool.use_count() == 1
    probe.malloc(MIB)
    assert len(held) == 1 and pool.snapshot() == held


def test_a_pool_is_held_again_on_a_device_that_has_the_number_of_a_closed_one():
    pool = memory.MemPool("host")
    for _ in range(2):
        with opened(capacity=32 * MIB) as probe:
            with memory.use_mem_pool(pool, probe.device):
                assert raw_memory.count_pool_uses(probe.device, pool.id[1]) == 2
            assert raw_memory.count_pool_uses(probe.device, pool.id[1]) == 1
