"""The allocator's promises on every device: the embedded host device, deferred or not, and CUDA.

Values are written and read in stream order through the driver table; `Shadow` compares them. On
CUDA other tests share the allocator of device 0, so amounts are compared before and after.
"""

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
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from tests.conformance.conftest import cuda_or_skip
from tests.support.driver_calls import Calls
from tests.support.models.allocator_shadow import MIB, Shadow, fragment, random_step

CAPACITY = 256 * MIB
SEEDS = {"host": None, "deferred-1": 1, "deferred-2": 2}


@pytest.fixture(params=[*SEEDS, "cuda"])
def number(request):
    """A device whose allocator may reserve CAPACITY bytes beyond what it holds."""
    if request.param == "cuda":
        ordinal = cuda_or_skip()
        device_allocator.open_allocator(ordinal)
        report.empty_cache(ordinal)
        total = raw_memory.device_memory(ordinal)[1]
        held = report.reserved_nbytes(ordinal)
        memory.set_per_process_memory_fraction((CAPACITY + held) / total, ordinal)
        yield ordinal
        memory.set_per_process_memory_fraction(1.0, ordinal)
        report.empty_cache(ordinal)
        assert report.reserved_nbytes(ordinal) <= held
        return
    opened = registry.open_host(capacity=CAPACITY, seed=SEEDS[request.param])
    yield opened
    device_allocator.close_allocator(opened)
    left = registry.leaks(opened)
    registry.close_host(opened)
    assert not any(left.values()), left


@pytest.fixture
def shadow(number):
    shadow = Shadow(number, streams=3, rng=random.Random(5))
    yield shadow
    for block in list(shadow.held):
        shadow.free(block)
    shadow.compare()
    assert shadow.calls.pinned_free(shadow.slots) == 0
    report.empty_cache(number)
    if number < 0:
        # The allocator of a CUDA device stays open and queries these streams: they are kept.
        device_allocator.close_allocator(number)
        for stream in shadow.streams[1:]:
            shadow.succeed("stream_destroy", stream)


def test_blocks_are_apart_aligned_and_hold_their_values(shadow):
    for nbytes in (1, 511, 512, 513, 4096, 100_000, MIB, MIB + 1, 5 * MIB, 21 * MIB):
        block = shadow.malloc(nbytes)
        assert block.ptr % 512 == 0
    spans = sorted((b.ptr, b.ptr + b.nbytes) for b in shadow.held)
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:], strict=False))
    for block in list(shadow.held):
        shadow.free(block)
    shadow.compare()


def test_memory_is_reused_in_the_order_of_its_stream_without_a_wait(shadow):
    for stream in (0, 1):
        first = shadow.malloc(3 * MIB, stream)
        shadow.free(first)
        assert shadow.malloc(3 * MIB, stream).ptr == first.ptr
    shadow.compare()


@pytest.mark.parametrize("nbytes", [2000, 5 * MIB, 60 * MIB])
def test_a_block_used_on_other_streams_is_not_overwritten(shadow, nbytes):
    for turn in range(12):
        block = shadow.malloc(nbytes, turn % 2)
        shadow.use(block, 2, early=turn % 2)
        shadow.use(block, 3)
        if turn % 3:
            shadow.free(block)
        else:
            shadow.free_on(block, 2)
    shadow.compare()


def test_views_share_no_values_with_other_blocks(shadow):
    """Views map pages that have another address too; neither side may see the other's values."""
    views = 0
    for _ in range(12):
        fragment(shadow, shadow.rng)
        views += shadow.views() if shadow.device < 0 else 1
        for block in list(shadow.held):
            if shadow.rng.random() < 0.5:
                shadow.use(block, shadow.rng.randrange(4))
            if shadow.rng.random() < 0.6:
                shadow.free(block)
    shadow.compare()
    assert views > 0


def test_a_view_and_its_home_tiles_follow_each_other_in_stream_order(shadow):
    """The same pages are used in turn through the view's addresses and through their own."""
    blocks = [shadow.malloc(20 * MIB, 1) for _ in range(8)]
    for turn in range(6):
        for block in blocks[::2]:
            shadow.free(block)
        large = shadow.malloc(40 * MIB, 1)
        shadow.use(large, 2)
        shadow.free(large)
        blocks[::2] = [shadow.malloc(20 * MIB, 1) for _ in blocks[::2]]
        shadow.use(blocks[turn], 3)
    shadow.compare()


def test_random_programs_hold(shadow):
    for step in range(200):
        random_step(shadow, shadow.rng, 100 * MIB)
        if step % 20 == 0:
            assert checker.check(shadow.device) == []
    shadow.compare()


def test_a_limit_refuses_and_the_next_request_is_served(shadow):
    blocks = [shadow.malloc(60 * MIB) for _ in range(4)]
    assert all(blocks)
    with pytest.raises(OutOfMemoryError) as caught:
        raw_memory.raw_alloc(shadow.device, 100 * MIB, 0)
    assert caught.value.facts["requested"] == 100 * MIB
    assert caught.value.facts["allocated"] >= 240 * MIB
    shadow.free(blocks.pop())
    assert shadow.malloc(50 * MIB) is not None
    shadow.compare()


def test_statistics_count_allocations(shadow):
    device = shadow.device
    before = memory.memory_stats(device)
    blocks = [shadow.malloc(nbytes) for nbytes in (1000, 3 * MIB, 30 * MIB)]
    stats = memory.memory_stats(device)
    for name, amount in (
        ("allocation.all.current", 3),
        ("requested_bytes.all.current", 1000 + 33 * MIB),
        ("allocated_bytes.all.current", 1024 + 33 * MIB),
        ("allocation.large_pool.allocated", 2),
    ):
        assert stats[name] - before[name] == amount, name
    for block in blocks:
        shadow.free(block)
    assert memory.memory_allocated(device) == before["allocated_bytes.all.current"]


def test_empty_cache_returns_all_free_memory(shadow):
    held = report.reserved_nbytes(shadow.device)
    kept = shadow.malloc(3 * MIB)
    for nbytes in (1000, 30 * MIB, 70 * MIB):
        shadow.free(shadow.malloc(nbytes, 1))
    report.empty_cache(shadow.device)
    assert report.reserved_nbytes(shadow.device) - held <= 24 * MIB
    assert kept in shadow.held


def test_without_caching_memory_comes_from_the_driver(number):
    calls = Calls(number)
    device_allocator.open_allocator(number)
    device_allocator.set_caching(number, False)
    try:
        reserved = report.reserved_nbytes(number)
        ptr = raw_memory.raw_alloc(number, 5 * MIB, 0)
        assert report.reserved_nbytes(number) == reserved + 5 * MIB
        expected = np.full(16, 0xABCD, np.uint32)
        assert calls.fill_async(ptr + 5 * MIB - 64, 0xABCD, 4, 16, 0) == 0
        got = calls.download(ptr + 5 * MIB - 64, np.zeros(16, np.uint32))
        np.testing.assert_array_equal(got, expected)
        raw_memory.raw_delete(ptr)
        assert report.reserved_nbytes(number) == reserved
    finally:
        device_allocator.set_caching(number, True)
