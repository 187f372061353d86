"""Random programs from files on the simulated GPU, from Python and from C."""

import warnings

import pytest

from tests.conformance.programs.random_targets import SHARED, campaign

pytestmark = pytest.mark.process(FAKE_CUDA_SHARED=SHARED)


@pytest.mark.orders("at-once")
def test_random_programs_from_files_equal_their_functions():
    """Two fixed seeds, so that a second run finds the kernels cached; more: random_targets.py."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ran, _refused, failures = campaign(2, 1, show=lambda line: None, home="cuda")
    assert (ran, failures) == (2, [])
