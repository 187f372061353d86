"""External events, which a graph records and waits for, and inspection of graphs."""

import warnings

import numpy as np
import pytest

import gputensor as gt
from gputensor.graphs import CUDAGraph, graph


@pytest.fixture(autouse=True)
def current(device):
    """The device, current during the test."""
    with gt.Device(device):
        yield
        gt.synchronize()


def test_each_replay_records_an_external_event():
    event = gt.Event(external=True, enable_timing=True)
    x, g = gt.zeros(1 << 16), CUDAGraph()
    with graph(g):
        x += 1
        event.record()
    assert event.query()
    side = gt.Stream()
    for turn in range(1, 4):
        g.replay()
        event.wait(side)
        with gt.ordering("manual"), gt.stream(side):
            y = x * 2
        side.synchronize()
        np.testing.assert_array_equal(y.numpy(), 2 * turn)
        assert event.query()


def test_a_graph_waits_for_the_record_before_its_replay():
    event = gt.Event(external=True)
    x, y, g = gt.zeros(1 << 16), gt.zeros(1 << 16), CUDAGraph()
    side = gt.Stream()
    event.record(side)
    with graph(g):
        event.wait()
        with gt.ordering("manual"):
            y[...] = x
    for turn in range(1, 4):
        with gt.ordering("manual"), gt.stream(side):
            x += 1
            event.record()
        g.replay()
        np.testing.assert_array_equal(y.numpy(), turn)


def test_two_graphs_are_ordered_by_an_event_in_both():
    event = gt.Event(external=True)
    x, y = gt.zeros(1 << 16), gt.zeros(1 << 16)
    first, second = CUDAGraph(), CUDAGraph()
    with graph(first):
        x += 1
        event.record()
    with graph(second):
        event.wait()
        with gt.ordering("manual"):
            y[...] = x
    one, other = gt.Stream(), gt.Stream()
    for turn in range(1, 5):
        with gt.ordering("manual"):
            with gt.stream(one):
                first.replay()
            with gt.stream(other):
                second.replay()
            one.wait_stream(other)
        other.synchronize()
        np.testing.assert_array_equal(y.numpy(), turn)


def test_an_external_event_outside_of_captures_is_an_ordinary_event():
    event, side = gt.Event(external=True), gt.Stream()
    with gt.stream(side):
        x = gt.ones(1000)
        event.record()
    event.synchronize()
    assert event.query()
    np.testing.assert_array_equal(x.numpy(), 1)


def test_debug_dump_writes_every_node(tmp_path):
    x, g = gt.zeros(4), CUDAGraph()
    with pytest.raises(RuntimeError, match="holds no graph"):
        g.debug_dump(tmp_path / "none.dot")
    with graph(g):
        x += 1
        x *= 2
    g.debug_dump(tmp_path / "graph.dot")
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph") and text.count("label") >= 2 and "->" in text
    g.debug_dump(str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text() == text
    for path, kind in ((tmp_path / "missing" / "graph.dot", FileNotFoundError),
                       (tmp_path, IsADirectoryError)):  # fmt: skip
        with pytest.raises(kind) as caught:
            g.debug_dump(path)
        assert str(caught.value.filename) == str(path)


def test_kept_graph_is_instantiated_on_demand_and_again():
    x, g = gt.zeros(4), CUDAGraph(keep_graph=True)
    with pytest.raises(RuntimeError, match="holds no graph"):
        g.raw_cuda_graph()
    with graph(g):
        x += 1
    assert g.raw_cuda_graph() > 0
    with pytest.raises(RuntimeError, match="not instantiated"):
        g.raw_cuda_graph_exec()
    g.instantiate()
    first = g.raw_cuda_graph_exec()
    g.replay()
    g.instantiate()
    assert first > 0 and g.raw_cuda_graph_exec() > 0
    g.replay()
    np.testing.assert_array_equal(x.numpy(), 2)
    plain = CUDAGraph()
    with graph(plain):
        x += 1
    assert plain.raw_cuda_graph_exec() > 0
    with pytest.raises(RuntimeError, match="keep_graph: got False"):
        plain.raw_cuda_graph()
    with pytest.raises(RuntimeError, match="keep_graph=True\\) can be instantiated again"):
        plain.instantiate()
    for empty in (CUDAGraph(), CUDAGraph(keep_graph=True)):
        with pytest.raises(RuntimeError, match="no captured graph to instantiate"):
            empty.instantiate()


def test_an_empty_graph_warns():
    with pytest.warns(UserWarning, match="The CUDA Graph is empty") as warned:
        with graph(CUDAGraph()):
            pass
    assert warned[0].filename == __file__
    with pytest.raises(RuntimeError, match="^this CUDAGraph has no captured graph"):
        CUDAGraph().instantiate()
    x = gt.zeros(4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with graph(CUDAGraph()):
            x += 1
    assert not caught


def test_a_stream_reports_whether_it_captures():
    side, g, x = gt.Stream(), CUDAGraph(), gt.zeros(4)
    assert not side.is_capturing() and not gt.default_stream().is_capturing()
    with graph(g, stream=side):
        assert side.is_capturing() and not gt.default_stream().is_capturing()
        joined = gt.Stream()
        joined.wait_stream(side)
        assert joined.is_capturing()
        side.wait_stream(joined)
        x += 1
    assert not side.is_capturing() and not joined.is_capturing()


def test_unused_sample_is_named_unless_allowed():
    sample = gt.ones(4)

    def first_of(a, b):
        return a + 1

    with pytest.raises(ValueError, match=r"^sample_args\[1\]: got a tensor that the callable does"):
        gt.graphs.make_graphed_callables(first_of, (sample, sample))
    graphed = gt.graphs.make_graphed_callables(first_of, (sample, sample), allow_unused_input=True)
    for value in (3.0, -7.0):
        got = graphed(gt.full(4, value), sample)
        np.testing.assert_array_equal(got.numpy(), value + 1)


def test_interprocess_events_are_refused_where_unsupported(device):
    with pytest.raises(ValueError, match="^interprocess: got False"):
        gt.Event().ipc_handle()
    with pytest.raises(ValueError, match="^interprocess: got True"):
        gt.Event(enable_timing=True, interprocess=True)
    with pytest.raises(ValueError, match="^handle: got b'short'; expected the 64 bytes"):
        gt.Event.from_ipc_handle(gt.Device(), b"short")
    if device < 0:
        with pytest.raises(gt.DriverError, match="not supported"):
            gt.Event(interprocess=True).ipc_handle()
