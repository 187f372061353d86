"""The driver calls of replays of many graphs that use the same memory."""

import pytest

import gputensor as gt
from gputensor._driver import registry
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Stream, current_stream


@pytest.fixture
def device(device):
    """The device, current during the test."""
    with Device(device):
        yield device


def captured(count, x):
    """Return graphs that read one tensor."""
    graphs = [CUDAGraph() for _ in range(count)]
    for one in graphs:
        with graph(one):
            _ = x + 1
    return graphs


def calls_of(device, graphs, streams):
    """Return the driver calls of one replay of each graph, on the streams in turn.

    The replays before them leave the records as every later round leaves them.
    """
    for _ in range(3):
        before = registry.counts(device)
        for i, one in enumerate(graphs):
            with streams[i % len(streams)]:
                one.replay()
    after = registry.counts(device)
    return {name: after[name] - before[name] for name in after if after[name] > before[name]}


@pytest.mark.parametrize("count", [2, 80])
def test_replays_on_one_stream_make_three_driver_calls_each(device, count):
    graphs = captured(count, gt.ones(100))
    assert calls_of(device, graphs, [Stream()]) == dict.fromkeys(
        ("capture_info", "graph_launch", "event_record"), count
    )


@pytest.mark.parametrize("count", [2, 80])
def test_replays_on_two_streams_in_turn_wait_once_for_each_other(device, count):
    graphs = captured(count, gt.ones(100))
    assert calls_of(device, graphs, [Stream(), Stream()]) == dict.fromkeys(
        ("capture_info", "graph_launch", "event_record", "stream_wait_event"), count
    )


def test_replays_of_unrelated_graphs_do_not_wait_for_each_other(device):
    graphs = [captured(1, gt.ones(100))[0] for _ in range(10)]
    calls = calls_of(device, graphs, [Stream(), Stream()])
    assert "stream_wait_event" not in calls


def test_a_replay_does_not_wait_for_work_that_another_stream_got_after_its_replay(device):
    first, second = Stream(), Stream()
    with first:
        y = gt.ones(100)
    graphs = captured(2, gt.ones(100))
    with first:
        graphs[0].replay()
    registry.start_trace(device)
    with first:
        y += 1
    with second:
        graphs[1].replay()
    names = [name for name, *_ in registry.take_trace(device)]
    # The only record is that of the second replay: the wait is for the mark of the first one.
    assert names.count("stream_wait_event") == names.count("event_record") == 1
    assert names.index("stream_wait_event") < names.index("event_record")


def test_the_stream_of_a_capture_comes_after_replays_when_a_program_uses_it(device):
    x, other = gt.ones(100), Stream()
    captured_graph = CUDAGraph()
    with graph(captured_graph):
        x += 1
        kept = current_stream()
        assert kept.cuda_stream and kept.is_capturing()
    for _ in range(3):
        with other:
            captured_graph.replay()
        with kept:
            x *= 2
    kept.synchronize()
    assert (x.numpy() == 22).all()
    with other:
        captured_graph.replay()
    kept.wait_stream(other)
    kept.synchronize()
    assert kept.query() and (x.numpy() == 23).all()


def test_a_replay_in_a_capture_waits_only_for_streams_that_share_its_memory(device):
    x, y, z = gt.ones(100), gt.ones(100), gt.zeros(100)
    inner, outer, first, second = CUDAGraph(), CUDAGraph(), Stream(), Stream()
    with graph(inner):
        z[...] = x
    with second:
        _ = x + z  # a user of the graph's stream, outside of the capture

    def waits_of(stream, function):
        before = registry.counts(device)["stream_wait_event"]
        with stream:
            function()
        return registry.counts(device)["stream_wait_event"] - before

    with graph(outer):
        origin = current_stream()
        for side in (first, second):
            side.wait_stream(origin)
        assert waits_of(first, inner.replay) == 0
        assert waits_of(second, lambda: gt.add(x, y, out=y)) == 0  # both only read x
        assert waits_of(origin, inner.replay) == 1
        assert waits_of(second, lambda: gt.add(y, 1, out=y)) == 0
        assert waits_of(second, lambda: gt.add(x, 1, out=x)) == 1
        assert waits_of(second, lambda: gt.add(z, 1, out=z)) == 0  # it comes after the replay
        assert waits_of(first, inner.replay) == 2
        for side in (first, second):
            origin.wait_stream(side)
    outer.replay()
    assert (z.numpy() == 2).all() and (y.numpy() == 3).all()


def test_a_device_closes_while_records_hold_marks():
    for _ in range(3):
        number = registry.open_host(capacity=64 << 20, seed=1)
        with Device(number):
            graphs = captured(3, gt.ones(100))
            for one in graphs:
                with Stream(number):
                    one.replay()
        registry.close_host(number)
        graphs.clear()
    assert registry.counts(-1)
