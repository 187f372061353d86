"""Free memory serves any request that fits in it, up to the last byte of the device.

While no page is partly used, no free memory is fragmented, whatever the history and the streams.
"""

import random

import pytest

from gputensor import memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor.errors import OutOfMemoryError
from tests.support import internals
from tests.support.alloc_probe import MIB, opened
from tests.support.internals import view_blocks

PAGE = 2 * MIB


def sizes(rng, free):
    """A size of a few or many whole pages; sometimes all pages that are left."""
    left = free // PAGE
    return PAGE * min(left, rng.choice([1, 1, 2, 3, 5, 8, 13, 21, left]))


@pytest.mark.parametrize("first", range(0, 400, 100))
@pytest.mark.parametrize("kind", ["one stream", "streams", "uses on other streams"])
def test_a_request_that_fits_in_the_free_bytes_is_served(first, kind):
    total = 128 * MIB
    for seed in range(first, first + 100):
        rng = random.Random(seed)
        with opened("page_size_mb:2", capacity=total, seed=seed, phantom=True) as probe:
            streams = [0] if kind == "one stream" else [0, probe.stream(), probe.stream()]
            held, free = [], total
            for _ in range(400):
                if held and (free == 0 or rng.random() < 0.5):
                    ptr, nbytes = held.pop(rng.randrange(len(held)))
                    if kind == "uses on other streams" and rng.random() < 0.3:
                        raw_memory.raw_record_stream(ptr, rng.choice(streams))
                    raw_memory.raw_delete(ptr)
                    free += nbytes
                else:
                    nbytes, stream = sizes(rng, free), rng.choice(streams)
                    ptr = raw_memory.raw_alloc(probe.device, nbytes, stream)
                    assert probe.calls.fill_async(ptr, 7, 4, 64, stream) == 0
                    held.append((ptr, nbytes))
                    free -= nbytes
            assert not checker.check(probe.device)
            for ptr, _ in held:
                raw_memory.raw_delete(ptr)
            assert probe.stats()["num_ooms"] == 0


def in_pool(probe, pool, nbytes):
    internals.begin_pool(probe.device, pool)
    try:
        return probe.malloc(nbytes)
    finally:
        internals.end_pool(probe.device, pool)


@pytest.mark.parametrize("refuses", [False, True])
def test_a_limit_below_reserved_memory_refuses_no_request_that_reserves_nothing(refuses):
    with opened("page_size_mb:2", capacity=128 * MIB, phantom=True) as probe:
        pool = raw_memory.new_pool_id()
        internals.retain_pool(probe.device, pool)
        probe.free(probe.malloc(100 * MIB))
        memory.set_allocator_settings(f"memory_limit_mb:60,throw_on_cudamalloc_oom:{refuses}")
        in_pool(probe, pool, 90 * MIB)
        probe.malloc(MIB)
        assert probe.reserved() == 100 * MIB
        with pytest.raises(OutOfMemoryError):
            probe.malloc(20 * MIB)
        internals.release_pool(probe.device, pool)


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_a_request_that_fits_is_served_while_limits_change(first):
    """From the large, the small and a held pool, also with throw_on_cudamalloc_oom."""
    total = 128 * MIB
    for seed in range(first, first + 40):
        rng = random.Random(seed)
        with opened("page_size_mb:2", capacity=total, phantom=True) as probe:
            pool, limit, held = raw_memory.new_pool_id(), total, {}
            internals.retain_pool(probe.device, pool)
            for _ in range(150):
                if rng.random() < 0.1:
                    limit = MIB * rng.choice([128, 96, 40, 10])
                    memory.set_allocator_settings(
                        f"memory_limit_mb:{limit // MIB},"
                        f"throw_on_cudamalloc_oom:{rng.random() < 0.5}"
                    )
                if held and rng.random() < 0.5:
                    ptr = rng.choice(list(held))
                    del held[ptr]
                    probe.free(ptr)
                    continue
                reserved = probe.reserved()
                used = sum(held.values())
                for private in report.all_values(probe.device)[1].values():
                    used += private[0]  # a held pool keeps its free memory
                free = max(limit, reserved) - used
                if free < PAGE:
                    continue
                # Pages that a view in use shows cannot move to another pool.
                kind = 1.0 if view_blocks(probe.device) else rng.random()
                if kind < 0.25:
                    held[probe.malloc(MIB)] = PAGE  # at most: it takes a part of one page
                elif kind < 0.35:
                    probe.free(in_pool(probe, pool, sizes(rng, free)))
                else:
                    nbytes = sizes(rng, free)
                    held[probe.malloc(nbytes)] = nbytes
                assert probe.reserved() <= max(limit, reserved)
                if kind < 0.02:
                    internals.release_pool(probe.device, pool)
                    internals.retain_pool(probe.device, pool)
            assert not checker.check(probe.device)
            internals.release_pool(probe.device, pool)
