"""The record of an open device: what its number keeps, and what the next device with it finds."""

import pytest

import gputensor as gt
from gputensor._driver import registry
from gputensor.errors import DeviceError

CAPACITY = 64 << 20


def use_everything(number):
    """Leave something in every slot: streams, events, a graph, work, memory. Returns a stream."""
    stream, other = gt.Stream(number), gt.Stream(number)
    with stream:
        a = gt.ones((100,), device=number)
    with other:
        b = a + a
    graph = gt.graphs.CUDAGraph()
    with gt.Device(number), gt.graphs.graph(graph):
        a + b
    graph.replay()
    gt.synchronize(number)
    assert float(gt.sum(b)) == 200
    return stream, graph


@pytest.mark.parametrize("seed", [None, 5], ids=["immediate", "deferred"])
def test_next_device_of_a_number_begins_anew(seed):
    for _ in range(3):
        number = registry.open_host(capacity=CAPACITY, seed=seed)
        assert registry.leaks(number)["events"] == 0
        stream, graph = use_everything(number)
        registry.close_host(number)
        again = registry.open_host(capacity=CAPACITY, seed=seed)
        try:
            assert again == number
            for use in (stream.synchronize, stream.query, graph.replay):
                with pytest.raises(DeviceError, match="closed"):
                    use()
            assert not any(registry.leaks(again).values())
            use_everything(again)
        finally:
            registry.close_host(again)
