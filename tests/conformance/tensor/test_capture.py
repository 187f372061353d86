"""Tensor operations are captured into a graph and replayed on new values, on every device."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same, random_array


def test_captured_operations_replay_on_new_values(place, rng):
    a = random_array(rng, (1000,), "float32")
    x = gt.asarray(a, device=place)
    y = gt.empty(1000, device=place)
    gt.add(x * 2, 1, out=y)  # compiled before the capture
    gt.synchronize(place)
    graph = gt.graphs.CUDAGraph()
    with gt.Device(place), gt.graphs.graph(graph):
        gt.add(x * 2, 1, out=y)
    for _ in range(3):
        b = random_array(rng, (1000,), "float32")
        x[...] = gt.asarray(b, device=place)
        graph.replay()
        check_same(y, b * 2 + 1)


def test_host_array_in_a_capture_is_copied_at_every_replay(place):
    values = np.arange(10, dtype=np.float32)
    x = gt.ones(10, device=place)
    gt.multiply(x, gt.asarray(values, device=place), out=x)
    gt.synchronize(place)
    graph = gt.graphs.CUDAGraph()
    with gt.Device(place), gt.graphs.graph(graph):
        gt.asarray(values, device=place).copy()
        x[...] = gt.asarray(values, device=place)
    values[:] = -1
    for _ in range(3):
        x.fill(-5)
        pinned = [gt.asarray(np.full(10, 9.0, np.float32), device=place) for _ in range(5)]
        graph.replay()
        assert x.tolist() == list(range(10))
        del pinned


def test_value_cannot_be_read_in_a_capture(place):
    x = gt.ones(10, device=place)
    gt.synchronize(place)
    with gt.Device(place), gt.graphs.graph(gt.graphs.CUDAGraph()):
        with pytest.raises(RuntimeError, match="cannot be read while"):
            x.numpy()
        x.fill(1)
