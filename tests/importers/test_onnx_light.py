"""The nine `light_*` models of the `onnx` package: whole networks with constant-filled weights."""

from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest

import gputensor as gt
from gputensor.importers.onnx_model import model_of

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"
QUICK = ("bvlc_alexnet", "densenet121", "inception_v1", "squeezenet", "zfnet512")
LONG = ("inception_v2", "resnet50", "shufflenet", "vgg19")  # run by make check-models

pytestmark = [pytest.mark.slow]


def image():
    """The input that the package's own test runner uses."""
    x = np.arange(3 * 224 * 224, dtype=np.float32).reshape(1, 3, 224, 224)
    return gt.asarray(x / x.size, device="host")


def wanted(name):
    path = FOLDER / f"light_{name}_output_0.pb"
    return onnx.numpy_helper.to_array(onnx.load_tensor(str(path)))


def without_softmax(name):
    """The Model of a network up to the softmax at its end, and whether there is one."""
    proto = onnx.load(FOLDER / f"light_{name}.onnx")
    last = proto.graph.node[-1]
    has_softmax = last.op_type == "Softmax"
    if has_softmax:
        proto.graph.output[0].name = last.input[0]
        del proto.graph.node[-1]
    return model_of(proto), has_softmax


def check(name, run, has_softmax):
    """Compare with the package's result: before a softmax, with its logarithm.

    Some scores are 1e10, whose roundings a softmax turns into any result. A result of 0 states no
    more than that the score is far below the greatest one.
    """
    found, want = run(image()).numpy().astype(np.float64), wanted(name).astype(np.float64)
    if not has_softmax:
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-7)
        return
    found, want = found.reshape(-1), want.reshape(-1)
    with np.errstate(divide="ignore"):
        want = np.log(want) - np.log(want.max())
    bound = max(1e-3, 1e-4 * np.abs(found).max())
    found = found - found.max()
    is_known = want > -80
    assert (np.abs(found - want)[is_known] <= bound).all()
    assert (found[~is_known] <= -80 + bound).all()


@pytest.mark.parametrize(
    "name", [*QUICK, *[pytest.param(name, marks=pytest.mark.sweep) for name in LONG]]
)
def test_light_model(name):
    model, has_softmax = without_softmax(name)
    check(name, model.run, has_softmax)
    if has_softmax:
        whole = gt.load_onnx(FOLDER / f"light_{name}.onnx").run(image()).numpy()
        assert whole.shape == wanted(name).shape and abs(whole.sum() - 1) < 1e-3


def test_light_model_as_a_program():
    model, has_softmax = without_softmax("squeezenet")
    with model.compile(target="host") as program:
        check("squeezenet", program, has_softmax)


def test_all_light_models_are_here():
    names = {path.stem.removeprefix("light_") for path in FOLDER.glob("*.onnx")}
    assert names == {*QUICK, *LONG}
