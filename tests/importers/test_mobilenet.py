"""A MobileNet v2 from ONNX, run only by the commands, equals ONNX's own evaluator."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from gputensor import Device
from gputensor.cli.main import main

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture
def model(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "models"))
    import make_mobilenet

    yield make_mobilenet.mobilenet
    sys.modules.pop("make_mobilenet")


def command(*words):
    assert main(list(words)) == 0, words


@pytest.mark.parametrize(("dtype", "bound"), [("f32", 1e-4), ("f16", 2e-2)])
def test_program_equals_the_reference(model, tmp_path, monkeypatch, rng, dtype, bound):
    monkeypatch.chdir(tmp_path)
    made = model(width=0.25, size=64, classes=40, seed=int(rng.integers(1 << 30)))
    onnx.checker.check_model(made)
    onnx.save(made, "m.onnx")
    image = rng.standard_normal((2, 3, 64, 64), np.float32)
    (want,) = ReferenceEvaluator(made).run(None, {"image": image})
    command("compile", "m.onnx", "-o", "m.gtp", "--dim=batch=1:4", f"--dtype={dtype}")
    np.save("image.npy", image.astype({"f32": np.float32, "f16": np.float16}[dtype]))
    words = ("--module=m.gtp", "--input=@image.npy", "--output=@scores.npy")
    with Device("host"):
        command("run", *words)
    found = np.load("scores.npy").astype(np.float64)
    assert np.abs(want).max() > 0.5
    np.testing.assert_allclose(found, want, rtol=bound, atol=bound * np.abs(want).max())


def test_layers_and_weights_are_those_of_the_paper(model):
    """torchvision's 3,504,872 weights include 2 x 17,056 numbers of normalization; folding it into
    the convolutions leaves half of those, as biases."""
    made = model()
    count = sum(int(np.prod(one.dims)) for one in made.graph.initializer if one.dims)
    assert count == 3_504_872 - 17_056
    assert sum(node.op_type == "Conv" for node in made.graph.node) == 52
