"""Replays in captures with branches: the order of all uses of memory is that of the calls."""

import pytest

import gputensor as gt
from gputensor.graphs import CUDAGraph, graph

SIZE = 1 << 20
STEPS = 20


@pytest.fixture
def branches(place):
    """Two streams of the device, which is current."""
    with gt.Device(place):
        yield gt.Stream(), gt.Stream()
        gt.synchronize()


def slow_graph(x, y, pool=None):
    """A graph that writes y = x + STEPS, in many steps."""
    made = CUDAGraph()
    with graph(made, pool=pool):
        y[...] = x
        for _ in range(STEPS):
            y += 1
    return made


def captured_on(streams, function):
    """Capture `function(origin, *streams)` with these streams as branches."""
    made = CUDAGraph()
    with graph(made):
        origin = gt.current_stream()
        for side in streams:
            side.wait_stream(origin)
        function(origin, *streams)
        for side in streams:
            origin.wait_stream(side)
    return made


def test_the_result_of_a_captured_replay_is_read_on_another_stream(branches):
    x, y, z = gt.zeros(SIZE), gt.zeros(SIZE), gt.zeros(SIZE)
    inner = slow_graph(x, y)

    def steps(_, one, other):
        with one:
            inner.replay()
        with other:
            z[...] = y * 2

    outer = captured_on(branches, steps)
    for value in (3, 8):
        x[...] = value
        outer.replay()
        assert (z.numpy() == 2 * (value + STEPS)).all()


def test_a_captured_replay_waits_for_uses_on_other_streams(branches):
    x, y, z = gt.zeros(SIZE), gt.zeros(SIZE), gt.zeros(SIZE)
    inner = slow_graph(x, y)

    def steps(origin, one, other):
        with one:
            for _ in range(STEPS):
                gt.add(x, 1, out=x)
        with other:
            z[...] = y
        inner.replay()
        with one:
            x[...] = 0

    outer = captured_on(branches, steps)
    for value in (3, 8):
        former = y.numpy()
        x[...] = value
        outer.replay()
        assert (z.numpy() == former).all()
        assert (y.numpy() == value + 2 * STEPS).all()


def test_captured_replays_on_two_streams_follow_each_other(branches):
    x, y, z = gt.zeros(SIZE), gt.zeros(SIZE), gt.zeros(SIZE)
    first, second = slow_graph(x, y), slow_graph(y, z)

    def steps(_, one, other):
        for stream, replayed in ((one, first), (other, second), (one, second), (other, first)):
            with stream:
                replayed.replay()
        with other:
            x[...] = z

    outer = captured_on(branches, steps)
    for value in (3, 8):
        x[...] = value
        outer.replay()
        assert (x.numpy() == value + 2 * STEPS).all()


def test_a_graph_around_a_captured_replay_is_ordered_in_a_third_one(branches):
    x, y, z = gt.zeros(SIZE), gt.zeros(SIZE), gt.zeros(SIZE)
    inner = slow_graph(x, y)
    middle = captured_on(branches, lambda *_: inner.replay())

    def steps(_, one, other):
        with one:
            middle.replay()
        with other:
            z[...] = y
            y[...] = 0

    outer = captured_on(branches, steps)
    for value in (3, 8):
        x[...] = value
        outer.replay()
        assert (z.numpy() == value + STEPS).all() and (y.numpy() == 0).all()
