"""Checkpoints of a pool: its blocks in use are recorded, and restored at their addresses."""

import random

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor.graphs import CUDAGraph, graph


@pytest.fixture(autouse=True)
def current(device):
    """The device, current during the test."""
    with gt.Device(device):
        yield
        gt.synchronize()


def test_blocks_are_restored_at_their_addresses():
    pool, rng = memory.MemPool(), random.Random(3)
    with memory.use_mem_pool(pool):
        tensors = [gt.empty(rng.randrange(1, 1 << 20)) for _ in range(40)]
    addresses = {x.data_ptr() for x in tensors}
    state = memory.checkpoint_pool(pool)
    assert {address for address, _, _ in state.blocks} == addresses
    rng.shuffle(tensors)
    kept = tensors[:10]
    stay = {x.data_ptr() for x in kept}
    del tensors
    gt.synchronize()
    taken = memory.restore_pool(state)
    assert set(taken) == addresses - stay
    assert set(memory.checkpoint_pool(pool).blocks) == set(state.blocks)
    with memory.use_mem_pool(pool):
        others = [gt.empty(rng.randrange(1, 1 << 20)) for _ in range(40)]
    assert not {x.data_ptr() for x in others} & addresses
    for ptr in taken:
        memory.caching_allocator_delete(ptr)
    del others, kept
    assert memory.checkpoint_pool(pool).blocks == ()


def test_restored_results_of_a_graph_survive_a_later_capture():
    x, first, second = gt.zeros(5000), CUDAGraph(), CUDAGraph()
    with graph(first):
        y = x + 1
        state = memory.checkpoint_pool(first.pool())
        place = y.data_ptr()
        layout = y.__class__
        del y
    assert layout is gt.Tensor
    taken = memory.restore_pool(state)
    assert taken == [place]
    with graph(second, pool=first.pool()):
        z = x * 3
    assert z.data_ptr() != place
    x += 4
    first.replay()
    second.replay()
    np.testing.assert_array_equal(z.numpy(), 12)
    memory.caching_allocator_delete(place)


def test_an_impossible_state_is_refused_and_changes_nothing():
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        a, b = gt.empty(1000), gt.empty(3000)
        state = memory.checkpoint_pool(pool)
        c = gt.empty(500)
        with pytest.raises(RuntimeError, match="1 blocks are in use that were not"):
            memory.restore_pool(state)
        del b, c
        gt.synchronize()
        before = memory.checkpoint_pool(pool)
        wide = state._replace(blocks=(*state.blocks, (a.data_ptr() + (1 << 40), 512, 0)))
        with pytest.raises(RuntimeError, match="is not free"):
            memory.restore_pool(wide)
        assert memory.checkpoint_pool(pool) == before
        with pytest.raises(TypeError, match="^pool: got int; expected a MemPool"):
            memory.checkpoint_pool(5)


def test_another_block_at_an_old_address_is_not_taken_for_the_old_one():
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        first = gt.empty(1 << 18)
        state, place = memory.checkpoint_pool(pool), first.data_ptr()
        del first
        gt.synchronize()
        second = gt.empty(100)
    assert second.data_ptr() == place
    before = memory.checkpoint_pool(pool)
    with pytest.raises(RuntimeError, match=f"1 blocks are in use .* first at {place:#x}"):
        memory.restore_pool(state)
    assert memory.checkpoint_pool(pool) == before
    del second
    gt.synchronize()
    assert memory.restore_pool(state) == [place]
    assert memory.restore_pool(state) == []
    memory.caching_allocator_delete(place)


def test_what_is_no_checkpoint_is_refused(device):
    with pytest.raises(ValueError, match=r"^pool: got \(0, 0\); expected the id of a private"):
        memory.checkpoint_pool((0, 0))
    with pytest.raises(ValueError, match=r"^pool: got \(0, -1\)"):
        memory.checkpoint_pool((0, -1))
    with pytest.raises(TypeError, match="^pool: got tuple"):
        memory.checkpoint_pool(("a", "b"))
    good = memory.checkpoint_pool(memory.MemPool())
    wrong = [((5,),), ((-512, 8, 0),), ((513, 8, 0),), ((512, 0, 0),), 7]
    for value in (None, (1, 2, 3), *(good._replace(blocks=blocks) for blocks in wrong)):
        with pytest.raises(TypeError, match="^checkpoint: got .*; expected a result of"):
            memory.restore_pool(value)
