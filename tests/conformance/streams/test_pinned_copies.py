"""Captured copies from pinned memory read it at each replay."""

import numpy as np
import pytest

import gputensor as gt
from gputensor.graphs import CUDAGraph, graph


@pytest.fixture(params=["buffer", "registered"])
def pinned(request, device):
    """Floats in pinned memory; the device is current."""
    with gt.Device(device):
        if request.param == "buffer":
            yield np.frombuffer(gt.memory.pinned_buffer(4 << 12), np.float32)
        else:
            array = np.empty(1 << 12, np.float32)
            with gt.memory.register_pinned(array) as region:
                assert (region.ptr, region.nbytes) == (array.ctypes.data, array.nbytes)
                yield array
                gt.synchronize()


def test_each_replay_reads_the_memory(pinned, rng):
    x, g = gt.zeros(1 << 12), CUDAGraph()
    pinned[:] = 5
    with graph(g):
        x[...] = pinned
        x *= 2
    for _ in range(3):
        pinned[:] = rng.random(1 << 12)
        g.replay()
        np.testing.assert_array_equal(x.numpy(), 2 * pinned)


def test_a_part_is_read_and_a_converted_copy_is_not(pinned):
    x, y, g = gt.zeros(100), gt.zeros(100, dtype="float64"), CUDAGraph()
    pinned[:] = 1
    with graph(g):
        x[...] = pinned[50:150]
        y[...] = pinned[50:150].astype("f8")
    pinned[:] = np.arange(1 << 12)
    g.replay()
    np.testing.assert_array_equal(x.numpy(), np.arange(50, 150))
    np.testing.assert_array_equal(y.numpy(), 1)


def test_other_memory_is_read_by_the_capture(device):
    with gt.Device(device):
        x, g, array = gt.zeros(8), CUDAGraph(), np.full(8, 3, np.float32)
        with graph(g):
            x[...] = array
        array[:] = 9
        g.replay()
        np.testing.assert_array_equal(x.numpy(), 3)


def test_memory_is_registered_once_at_a_time(device):
    with gt.Device(device):
        array = np.zeros(1 << 14)
        region = gt.memory.register_pinned(array)
        with pytest.raises(gt.DriverError, match="registered already"):
            gt.memory.register_pinned(array)
        region.unregister()
        region.unregister()
        with gt.memory.register_pinned(array):
            x = gt.asarray(array)
        np.testing.assert_array_equal(x.numpy(), array)
        with pytest.raises(TypeError, match="^buffer: got int; expected an object with a contig"):
            gt.memory.register_pinned(3)
        constant = array.copy()
        constant.flags.writeable = False
        for wrong in (bytes(4096), constant, array[::2], array[:0]):
            with pytest.raises(ValueError, match="^buffer: got .* expected .* writable buffer"):
                gt.memory.register_pinned(wrong)
