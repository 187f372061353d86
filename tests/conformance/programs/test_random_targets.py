"""Random programs that are compiled for GPUs, saved and opened equal their functions."""

import warnings

import pytest

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
