"""Checks of ``CUDAGraph.replay(inputs=...)`` on a device."""

import numpy as np
import pytest

import gputensor as gt
from gputensor.graphs import CUDAGraph, graph


def check_inputs(device, rng):
    """Replay on other tensors, and on the captured ones again."""
    device = gt.Device(device)

    def given(*shape):
        array = rng.standard_normal(shape).astype(np.float32)
        return array, gt.asarray(array, device=device)

    (a, x), (b, y) = given(20, 30), given(30)
    captured = CUDAGraph()
    with device:
        total = gt.zeros((20, 30), device=device)
        gt.synchronize()
        with graph(captured):
            total += x * y[::-1]
            z = gt.copy(x[5:])
        want = np.zeros((20, 30), np.float32)
        for turn in range(6):
            c, other = given(20, 30)
            d, second = given(30)
            pairs = [{}, {x: other}, {x: other, y: second}][turn % 3]
            captured.replay(inputs=pairs or None)
            first = c if turn % 3 else a
            want += first * (d if turn % 3 == 2 else b)[::-1]
            np.testing.assert_allclose(total.numpy(), want, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(z.numpy(), first[5:])
            np.testing.assert_array_equal(x.numpy(), a)
            np.testing.assert_array_equal(other.numpy(), c)
        # Tensors that the graph writes may be replaced, too.
        sums = gt.zeros((20, 30), device=device)
        captured.replay(inputs={total: sums})
        np.testing.assert_allclose(sums.numpy(), a * b[::-1], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(total.numpy(), want, rtol=1e-5, atol=1e-5)


def check_order(device, rng):
    """Write and read the other tensor on other streams before and after the replay."""
    device = gt.Device(device)
    with device:
        x = gt.zeros(500, device=device)
        captured = CUDAGraph()
        gt.synchronize()
        with graph(captured):
            y = x * 2
        for turn in range(10):
            with gt.Stream(device):
                other = gt.full(500, 0.0, device=device) + turn
            captured.replay(inputs={x: other})
            with gt.Stream(device):
                other[...] = -1
                assert (y.numpy() == 2 * turn).all()


def check_refusals(device):
    device = gt.Device(device)
    with device:
        x, captured = gt.zeros((4, 5), device=device), CUDAGraph()
        gt.synchronize()
        with graph(captured):
            y = x + 1
        unused = gt.zeros((4, 5), device=device)
        for pairs, kind, message in [
            ({x: gt.zeros((4, 4), device=device)}, ValueError, "inputs: got float32"),
            ({x: gt.zeros((4, 5), dtype="int32", device=device)}, ValueError, "inputs: got int32"),
            ({x: gt.zeros((5, 4), device=device).T}, ValueError, "inputs: got a tensor of strides"),
            ({x: 5}, TypeError, "inputs: got int; expected tensors only"),
            ({x: unused, x[1:]: unused[1:]}, ValueError, "inputs: got tensors that overlap"),
            ([x], TypeError, "expected a dict of tensors"),
        ]:
            with pytest.raises(kind, match=message):
                captured.replay(inputs=pairs)
        if device.number >= 0:
            with pytest.raises(ValueError, match="expected tensors that the captured work uses"):
                captured.replay(inputs={unused: x})
        captured.replay()
        assert (y.numpy() == 1).all()
