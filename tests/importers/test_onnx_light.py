"""The nine `light_*` models of the `onnx` package: whole networks with constant-filled weights."""

from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest

import gputensor as gt

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


@pytest.mark.parametrize(
    "name", [*QUICK, *[pytest.param(name, marks=pytest.mark.sweep) for name in LONG]]
)
def test_light_model(name):
    model = gt.load_onnx(FOLDER / f"light_{name}.onnx")
    found = model.run(image()).numpy()
    np.testing.assert_allclose(found, wanted(name), rtol=1e-3, atol=1e-7)


def test_light_model_as_a_program():
    model = gt.load_onnx(FOLDER / "light_squeezenet.onnx")
    with model.compile(target="host") as program:
        found = program(image()).numpy()
    np.testing.assert_allclose(found, wanted("squeezenet"), rtol=1e-3, atol=1e-7)


def test_all_light_models_are_here():
    names = {path.stem.removeprefix("light_") for path in FOLDER.glob("*.onnx")}
    assert names == {*QUICK, *LONG}
