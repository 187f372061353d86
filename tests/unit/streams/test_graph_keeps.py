"""Objects and pool memory that a graph keeps alive."""

import weakref

import pytest

import gputensor as gt
from gputensor.graphs import CUDAGraph, graph
from gputensor.memory import MemPool, use_mem_pool
from gputensor.streams import Device


@pytest.fixture
def device(device):
    """The device, current during the test."""
    with Device(device):
        yield device


def test_a_graph_keeps_an_object_until_the_graph_is_released(device):
    class Thing:
        pass

    thing, g, x = Thing(), CUDAGraph(), gt.zeros(10, device=device)
    alive = weakref.ref(thing)
    with pytest.raises(RuntimeError, match="no capture"):
        g.retain_object(thing)
    with graph(g):
        x += 1
    g.retain_object(thing)
    del thing
    assert alive() is not None
    g.replay()
    g.reset()
    assert alive() is None


def test_a_graph_names_the_pools_whose_memory_it_keeps(device):
    g, pool = CUDAGraph(), MemPool(device)
    with graph(g):
        inside = gt.ones(1000, device=device)
        with use_mem_pool(pool):
            other = inside + 1
    assert g.pools()[0] == g.pool()
    assert pool.id in g.pools() and len(g.pools()) == 2
    del inside, other
    g.reset()
    with pytest.raises(RuntimeError, match="no pool"):
        g.pools()
