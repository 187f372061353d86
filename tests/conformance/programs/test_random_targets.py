"""Random programs that are compiled for GPUs, saved and opened equal their functions."""

import warnings

import numpy as np
import pytest

import gputensor as gt
from gputensor.programs.formulas import steps
from tests.conformance.programs.random_targets import campaign, run_one

#: The seed of a function whose formula contains a number.
SEED = 5_000_060


def test_random_programs_from_files_equal_their_functions(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ran, refused, failures = campaign(10, seed % (1 << 20), show=lambda line: None)
    assert not failures
    assert ran >= 5, refused


def test_zeros_keep_their_signs_in_files(tmp_path):
    """A relu of -0, which is part of a formula in the file."""
    assert run_one(375_747_127_246, "host", tmp_path) == "ran"


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("function", [gt.relu, gt.relu6, lambda x: gt.maximum(x, 0)])
def test_products_that_round_to_zero_have_its_sign(dtype, function):
    """A product and its activation are one call; in float16 the product alone rounds to -0."""

    def model(inputs):
        return function(gt.matmul(*inputs))

    arrays = np.full((4, 2), 1e-4, dtype), np.full((2, 3), -1e-4, dtype)
    tensors = [gt.asarray(one, device="host") for one in arrays]
    with gt.Device("host"):
        wanted = model(tensors).numpy()
        program = gt.compile(model, [gt.spec(one.shape, dtype) for one in arrays])
    with program.session() as session:
        assert session.model(tensors).numpy().tobytes() == wanted.tobytes()
    assert not np.signbit(wanted).any()


@pytest.mark.parametrize("factor", [1, 1.001])
def test_a_number_that_is_a_little_off_is_found(factor, tmp_path, monkeypatch):
    number = steps._number

    def faulty(one):
        made = number(one)
        is_float = made is not None and type(made[1]) is float
        return ("number", made[1] * factor) if is_float else made

    monkeypatch.setattr(steps, "_number", faulty)
    found = run_one(SEED, "host", tmp_path)
    assert found == ("ran" if factor == 1 else "Python, once: differs in [0], turn 0")
