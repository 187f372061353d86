"""Memory of captures, and of pools used one after the other, on a real GPU.

Each program runs under a memory limit that suffices only if free memory is reused, and compares the
values that the kernels of a replay wrote.
"""

import contextlib
import random

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor._alloc import check as checker
from gputensor.graphs import CUDAGraph, graph
from tests.support.alloc_probe import MIB

LIMIT = 512 * MIB


@pytest.fixture(params=["", "expandable_segments:False", "page_reuse:False", "page_size_mb:2"])
def limited(cuda, request, conf):
    """CUDA device 0 with an empty cache and LIMIT bytes to reserve beyond what is in use."""
    memory.caching_allocator_delete(memory.caching_allocator_alloc(512, cuda))
    memory.empty_cache(cuda)
    held = memory.memory_reserved(cuda)
    conf(request.param)
    memory.set_per_process_memory_fraction((LIMIT + held) / memory.mem_get_info(cuda)[1], cuda)
    yield cuda
    memory.set_per_process_memory_fraction(1.0, cuda)
    memory.empty_cache(cuda)
    assert memory.memory_reserved(cuda) <= held


def captured_sum(value, nbytes):
    """Return a graph whose capture temporarily needs `nbytes`, and its result."""
    g = CUDAGraph()
    with graph(g):
        large = gt.full((nbytes // 4,), 1.0, dtype="float32", device="cuda")
        total = gt.sum(large * value)
        del large
    return g, total


def test_a_capture_uses_memory_freed_by_the_warm_up(limited):
    rng = np.random.default_rng(random.SystemRandom().getrandbits(32))
    value = gt.ones((), dtype="float32", device="cuda")
    for _ in range(2):
        warm = gt.ones((LIMIT * 3 // 16,), dtype="float32", device="cuda")  # 3/4 of the limit
        assert float(warm[-1]) == 1
        del warm
    g, total = captured_sum(value, LIMIT // 4)
    for _ in range(5):
        factor = float(rng.integers(1, 100))
        value[...] = factor
        g.replay()
        assert float(total) == factor * (LIMIT // 16)
    assert checker.check(limited) == []
    del total
    g.reset()


def test_captures_in_a_loop_use_the_same_memory(limited):
    value = gt.ones((), dtype="float32", device="cuda")
    for turn in range(12):
        g, total = captured_sum(value, LIMIT // 8)
        value[...] = float(turn)
        g.replay()
        assert float(total) == turn * (LIMIT // 32)
        del total
        g.reset()
        if turn % 3 == 0:
            gt.synchronize()
    assert checker.check(limited) == []


def test_pools_in_a_loop_use_the_same_memory(limited):
    for turn in range(12):
        pool = memory.MemPool(limited)
        with memory.use_mem_pool(pool, limited):
            x = gt.full((LIMIT // 16,), float(turn), dtype="float32", device="cuda")
            y = x + x
            assert float(gt.max(y)) == 2 * turn == float(gt.max(y[::-1]))
        del x, y, pool
    assert checker.check(limited) == []


def test_pools_that_take_turns_have_right_values(limited):
    """Free pages of the default pool serve a private one, and the other way round."""
    for turn in range(12):
        with contextlib.ExitStack() as scope:
            if turn % 2:
                scope.enter_context(memory.use_mem_pool(memory.MemPool(limited), limited))
            x = gt.arange(LIMIT // 20, dtype="int32", device="cuda")
            y = x + turn
            del x
        assert int(y[0]) == turn and int(y[-1]) == turn + LIMIT // 20 - 1
        del y
    assert checker.check(limited) == []
