"""Small programs of NumPy and CuPy users give the same results here as with NumPy.

They are in examples/numpy_programs; each is one function over ``xp``.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import gputensor as gt

FOLDER = Path(__file__).parents[3] / "examples" / "numpy_programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))


def program(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_twelve_programs():
    assert len(PROGRAMS) == 12


@pytest.mark.filterwarnings("ignore:divide by zero|invalid value")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_gives_numpys_results(name, where):
    if name == "softmax_regression":
        pytest.importorskip("sklearn", reason="needs scikit-learn")
    compute = program(name).compute
    with gt.Device(where):
        ours = compute(gt)
    if name == "option_pricing":  # the numbers are this library's own
        price, formula = (float(one) for one in ours)
        assert abs(price - formula) < 0.15
        return
    theirs = compute(np)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert isinstance(one, gt.Tensor) and one.shape == np.shape(other)
        np.testing.assert_allclose(one.numpy(), other, rtol=2e-5, atol=2e-5)
