"""Replays in captures on a simulated GPU, whose branches run at once or in the order of a seed."""

import pytest

import gputensor as gt
from gputensor._driver import registry
from tests.conformance.streams import test_captured_replays as cases
from tests.unit.streams import test_graph_calls as calls

CASES = [name for name in vars(cases) if name.startswith("test_")]


@pytest.mark.parametrize("name", CASES)
def test_captured_replays_follow_the_order_of_the_calls(monkeypatch, name):
    monkeypatch.setattr(cases, "SIZE", 3000)
    with gt.Device(0):
        getattr(cases, name)((gt.Stream(), gt.Stream()))


def test_captured_replays_wait_only_for_streams_that_share_their_memory():
    registry.observe(0)
    with gt.Device(0):
        calls.test_a_replay_in_a_capture_waits_only_for_streams_that_share_its_memory(0)


@pytest.mark.orders("deferred")
def test_captured_replays_without_waits_go_wrong(monkeypatch):
    """The simulation detects missing waits."""
    monkeypatch.setattr(cases, "SIZE", 3000)
    wrong = 0
    with gt.Device(0), gt.ordering("manual"):
        for _ in range(10):
            for name in CASES:
                streams = gt.Stream(), gt.Stream()
                try:
                    getattr(cases, name)(streams)
                except AssertionError:
                    wrong += 1
                gt.synchronize()
    assert wrong >= 10


def test_a_capture_takes_a_graph_with_the_tensors_of_its_own_capture():
    with gt.Device(0):
        x, y, other = gt.full(3, 2.0), gt.zeros(3), gt.full(3, 5.0)
        inner, outer = gt.graphs.CUDAGraph(), gt.graphs.CUDAGraph()
        with gt.graphs.graph(inner):
            y[...] = x + 1
        inner.replay(inputs={x: other})
        assert y.tolist() == [6, 6, 6]
        with gt.graphs.graph(outer):
            with pytest.raises(RuntimeError, match="in a capture: got inputs; expected none"):
                inner.replay(inputs={x: other})
            inner.replay()
            y *= 10
        for _ in range(2):
            outer.replay()
            assert y.tolist() == [30, 30, 30]
        inner.replay(inputs={x: other})
        assert y.tolist() == [6, 6, 6]


def test_an_empty_graph_may_be_captured_and_work_follows_it():
    with gt.Device(0):
        x, inner, outer = gt.zeros(3), gt.graphs.CUDAGraph(), gt.graphs.CUDAGraph()
        with pytest.warns(UserWarning, match="empty"), gt.graphs.graph(inner):
            pass
        with gt.graphs.graph(outer):
            x += 1
            inner.replay()
            x *= 4
        outer.replay()
        assert x.tolist() == [4, 4, 4]
