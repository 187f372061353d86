"""DFT and STFT of any length, also of one that is free in a program, against NumPy's transforms."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import gputensor as gt
from gputensor.importers.onnx_model import model_of

MOST = 40


@pytest.fixture(autouse=True)
def host():
    with gt.device("host"):
        yield


def both(node, weights, n_parts, least):
    """The model of one node, and its program for signals of `least` to MOST elements."""
    value = helper.make_tensor_value_info
    x = value("x", TensorProto.FLOAT, [2, "n", n_parts])
    y = value("y", TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items()]
    graph = helper.make_graph([node], "signal", [x], [y], constants)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    model = model_of(proto, dims={"n": gt.Dim("n", least, MOST)})
    return model.run, model.compile(target="host")


def check(found, wanted, x, terms):
    """A sum of products in float32 is off by at most this; sines and cosines are rounded once."""
    bound = (terms + 4) * 2.0**-24 * np.abs(x).sum(axis=1).max() + 1e-30
    found = found.numpy().astype(np.float64)
    found = found[..., 0] + 1j * found[..., 1] if found.shape[-1] == 2 else found[..., 0]
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 2 * bound


@pytest.mark.parametrize("kind", ["whole", "first half", "inverse", "complex", "real inverse"])
def test_transforms_of_a_free_length(kind, rng):
    n_parts = 1 if kind in ("whole", "first half") else 2
    how = {"onesided": int(kind in ("first half", "real inverse")), "inverse": int("inv" in kind)}
    node = helper.make_node("DFT", ["x", "", "axis"], ["y"], **how)
    for run in both(node, {"axis": np.int64(1)}, n_parts, 2):
        for n in (2, 3, 17, MOST):
            x = rng.standard_normal((2, n, n_parts)).astype(np.float32)
            if kind == "real inverse":
                x[:, [0, -1], 1] = 0  # the two elements that are real
            wide = x[..., 0] + (1j * x[..., 1] if n_parts == 2 else 0)
            wanted = {
                "whole": lambda x: np.fft.fft(x), "first half": lambda x: np.fft.rfft(x.real),
                "complex": lambda x: np.fft.fft(x), "inverse": lambda x: np.fft.ifft(x),
                "real inverse": lambda x: np.fft.irfft(x, 2 * (x.shape[1] - 1)),
            }[kind](wide.astype(complex))  # fmt: skip
            check(run(gt.asarray(x)), wanted, x, 2 * n)


def test_frames_of_a_signal_of_free_length(rng):
    size, step = 8, 3
    window = rng.random(size, np.float32)
    weights = {"step": np.int64(step), "window": window, "size": np.int64(size)}
    node = helper.make_node("STFT", ["x", "step", "window", "size"], ["y"], onesided=1)
    for run in both(node, weights, 1, size):
        for n in (size, 19, MOST):
            x = rng.standard_normal((2, n, 1)).astype(np.float32)
            starts = range(0, n - size + 1, step)
            frames = np.stack([x[:, at : at + size, 0] * window for at in starts], 1)
            check(run(gt.asarray(x)), np.fft.rfft(frames.astype(float)), x, size)
