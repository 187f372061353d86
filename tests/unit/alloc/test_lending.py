"""Free bytes of partly used large pages serve middle requests before the middle pool grows."""

import random

import pytest

from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from tests.support import internals
from tests.support.alloc_probe import MIB, opened

KIB = 1024


@pytest.mark.parametrize("conf", ["", "thread_cache:False"])
def test_a_middle_request_takes_free_bytes_of_a_partly_used_large_page(conf):
    with opened(conf, phantom=True) as probe:
        large = probe.malloc(3 * MIB)
        page = probe.reserved()
        probe.mark()
        small = [probe.malloc(nbytes) for nbytes in (192 * KIB, 300_000, MIB)]
        assert not probe.asked_for_memory()
        assert all(large + 3 * MIB <= ptr < large + page for ptr in small)
        stats = probe.stats()
        assert stats["allocation.large_pool.current"] == 4
        assert stats["reserved_bytes.small_pool.current"] == 0
        probe.free_all(small)
        assert probe.malloc(page - 3 * MIB) == large + 3 * MIB, "the bytes are one tile again"
        assert not probe.asked_for_memory()


@pytest.mark.parametrize("nbytes, whole", [(191 * KIB, False), (MIB, True)])
def test_smaller_requests_and_whole_pages_stay_with_their_pools(nbytes, whole):
    with opened(phantom=True) as probe:
        large = probe.malloc(3 * MIB)
        if whole:
            probe.free(large)
        probe.mark()
        probe.malloc(nbytes)
        assert probe.asked_for_memory() == {"page_create": 1, "page_map": 1}
        assert probe.stats()["reserved_bytes.small_pool.current"] == 2 * MIB


def test_bytes_of_another_stream_are_lent_once_its_work_is_done():
    with opened(seed=3) as probe:
        other = probe.stream()
        probe.malloc(3 * MIB, other)
        tail = probe.malloc(4 * MIB, other)
        probe.work(tail, other)
        probe.free(tail)
        ptr = probe.malloc(MIB)
        assert not tail <= ptr < tail + 4 * MIB
        probe.free(ptr)
        probe.calls.synchronize()
        found = [probe.malloc(MIB) for _ in range(3)]
        assert any(tail <= ptr < tail + 5 * MIB for ptr in found)


def test_plain_segments_and_private_pools_do_not_lend():
    with opened("expandable_segments:False", phantom=True) as probe:
        probe.malloc(3 * MIB)
        probe.malloc(MIB)
        assert probe.stats()["reserved_bytes.small_pool.current"] == 2 * MIB
    with opened(phantom=True) as probe:
        probe.malloc(3 * MIB)
        pool = raw_memory.new_pool_id()
        internals.retain_pool(probe.device, pool)
        internals.begin_pool(probe.device, pool)
        probe.malloc(3 * MIB)
        probe.malloc(MIB)
        internals.end_pool(probe.device, pool)
        assert probe.stats()["reserved_bytes.small_pool.current"] == 2 * MIB
        internals.release_pool(probe.device, pool)


@pytest.mark.parametrize("conf", ["", "page_size_mb:2", "memory_limit_mb:96"])
def test_lent_bytes_keep_the_accounting_exact(conf):
    rng = random.Random()
    seed = rng.randrange(1 << 30)
    print(f"seed {seed}")
    rng.seed(seed)
    with opened(conf, phantom=True) as probe:
        streams, lent = [0, probe.stream()], 0
        for step in range(1500):
            if len(probe.held) > 40 or (probe.held and rng.random() < 0.48):
                probe.free(rng.choice(probe.held))
            elif rng.random() < 0.5:
                probe.malloc(rng.randrange(192 * KIB, MIB), rng.choice(streams))
            else:
                probe.malloc(rng.randrange(MIB + 1, 3 * MIB), rng.choice(streams))
            if step % 10 == 0:
                assert checker.check(probe.device) == []
                segments, blocks = report.collect_segments(probe.device)
                large = segments["is_large"].repeat(segments["n_blocks"]).astype(bool)
                lent += int((large & (blocks["state"] == 1) & (blocks["nbytes"] <= MIB)).sum())
                used = int(blocks["nbytes"][blocks["state"] == 1].sum())
                assert used == probe.stats()["allocated_bytes.all.current"]
            if step % 300 == 299:
                report.empty_cache(probe.device)
        assert lent > 0
        probe.free_all()
        report.empty_cache(probe.device)
        assert probe.reserved() == 0
