"""Requests that bypass the cache: the driver's pool, caching off, and private pools in both.

Captures and MemPools take memory from private pools, whatever serves the other requests. The
driver's pool never serves memory that could become part of a graph.
"""

import contextlib
import random
import threading

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor.errors import OutOfMemoryError
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Stream
from tests.support.alloc_probe import MIB, opened

ASYNC = "backend:cudaMallocAsync"


@contextlib.contextmanager
def uncached(mode, **options):
    """A device whose requests go to its driver, in one of the two modes."""
    with opened(ASYNC if mode == "driver's pool" else "", **options) as probe, Device(probe.device):
        memory.caching_allocator_enable(mode == "driver's pool", probe.device)
        yield probe


@pytest.fixture(params=["driver's pool", "caching off"])
def mode(request):
    return request.param


def called(probe):
    return {
        name: count
        for name, count in probe.made().items()
        if name.startswith(("async_", "mem_alloc", "mem_free"))
    }


def test_a_graph_keeps_the_memory_of_its_capture(mode):
    seed = random.SystemRandom().getrandbits(32)
    rng = np.random.default_rng(seed)
    with uncached(mode, seed=seed) as probe:
        value = gt.asarray(rng.standard_normal((64, 64)))
        g = CUDAGraph()
        with graph(g):
            probe.mark()
            doubled = value + value
            total = gt.sum(doubled, axis=0)
            del doubled
            assert called(probe) == {}, seed
        for _ in range(5):
            value[...] = gt.asarray(rng.standard_normal((64, 64)))
            others = [gt.ones((64, 64)) for _ in range(3)]
            g.replay()
            expected = 2 * value.numpy().sum(axis=0)
            np.testing.assert_allclose(total.numpy(), expected, atol=1e-12, err_msg=str(seed))
            assert all((other.numpy() == 1).all() for other in others), seed
        del total, value, others
        g.reset()


def test_a_stream_that_joins_a_capture_allocates_from_its_pool(mode):
    with uncached(mode, seed=random.SystemRandom().getrandbits(32)) as probe:
        g, side = CUDAGraph(), Stream()
        with graph(g):
            first = gt.ones(1000)
            probe.mark()
            side.wait_stream(gt.current_stream())
            with gt.stream(side):
                second = first + first
            gt.current_stream().wait_stream(side)
            third = second + first
            assert called(probe) == {}
        g.replay()
        assert (third.numpy() == 3).all()
        del first, second, third
        g.reset()


def test_a_mempool_serves_its_block_and_other_requests_go_to_the_driver(mode):
    with uncached(mode) as probe:
        pool = memory.MemPool(probe.device)
        outside = probe.malloc(MIB)
        with memory.use_mem_pool(pool, probe.device):
            probe.mark()
            inside = probe.malloc(3 * MIB)
            assert called(probe) == {}
        after = probe.malloc(MIB)
        owners = {
            block["address"]: segment["segment_pool_id"]
            for segment in memory.memory_snapshot(device=probe.device)
            for block in segment["blocks"]
        }
        assert owners[inside] == pool.id
        assert owners[outside] == owners[after] == (0, 0)
        assert sum(called(probe).values()) == 1
        held = probe.reserved()
        probe.free(inside)
        assert probe.reserved() == held
        probe.free(after)
        assert probe.reserved() == held - MIB
        assert checker.check(probe.device) == []
        del pool


def test_memory_freed_in_a_capture_returns_to_the_driver_when_the_capture_ends():
    with opened(ASYNC, seed=random.SystemRandom().getrandbits(32)) as probe, Device(probe.device):
        stream = Stream()
        inputs = [probe.malloc(MIB, stream.cuda_stream), probe.malloc(MIB)]
        raw_memory.raw_record_stream(inputs[1], stream.cuda_stream)
        g = CUDAGraph()
        with graph(g, stream=stream):
            probe.mark()
            probe.free_all(inputs)
            assert called(probe) == {}
            assert probe.stats()["allocated_bytes.all.current"] == 0
            assert probe.reserved() == 2 * MIB
            memory.empty_cache(probe.device)
            assert probe.reserved() == 2 * MIB
            assert "async_free" not in called(probe)
            assert checker.check(probe.device) == []
        assert called(probe)["async_free"] == 2
        assert probe.reserved() == 0
        g.reset()


def test_frees_of_other_threads_come_before_a_capture_or_after_it():
    with opened(ASYNC, phantom=True) as probe, Device(probe.device):
        stream = Stream()
        blocks = [probe.malloc(512, stream.cuda_stream) for _ in range(2000)]
        thread = threading.Thread(target=probe.free_all, args=(blocks[::-1],))
        thread.start()
        while thread.is_alive():
            g = CUDAGraph()
            with graph(g, stream=stream):
                pass
            g.reset()
        thread.join()
        assert probe.reserved() == 0
        assert probe.made()["async_free"] == len(blocks)


def test_the_drivers_pool_gives_back_what_it_keeps(mode):
    with uncached(mode, phantom=True) as probe:
        probe.free(probe.malloc(MIB))
        probe.mark()
        memory.empty_cache(probe.device)
        assert probe.made().get("async_trim", 0) == (mode == "driver's pool")
        pool = memory.MemPool(probe.device)
        with memory.use_mem_pool(pool, probe.device):
            probe.malloc(100 * MIB)
            probe.mark()
            with pytest.raises(OutOfMemoryError) as caught:
                probe.malloc(200 * MIB)
        assert caught.value.facts["is_private"] and caught.value.facts["is_pooled"]
        assert (probe.made().get("async_trim", 0) > 0) == (mode == "driver's pool")
        del pool
