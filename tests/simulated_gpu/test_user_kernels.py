"""Kernels that users write, launched on a simulated GPU, which runs kernels on the CPU."""

import pytest

import gputensor as gt
from tests.conformance.tensor import user_kernel_cases as cases


@pytest.mark.parametrize("check", cases.CHECKS, ids=lambda one: one.__name__)
def test_kernels_of_programs(check, rng):
    check("cuda", rng)


def test_an_index_out_of_range_raises_where_indices_are_checked(rng):
    x = gt.arange(5, device="cuda")
    high, low = gt.asarray([1, 5], device="cuda"), gt.asarray([-6], device="cuda")
    assert x[high].tolist() == [1, 4] and x[low].tolist() == [0]
    with gt.checked_indices():
        with pytest.raises(IndexError, match="index: got 5 for axis 0; expected an index within"):
            x[high]
        with pytest.raises(IndexError, match="index: got -6 for axis 0; expected an index within"):
            x[low] = 3
        assert x[gt.asarray([-5, 4], device="cuda")].tolist() == [0, 4]
    assert x[high].tolist() == [1, 4] and x.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.process(GPUTENSOR_CHECK_INDICES="1")
def test_the_variable_checks_indices_of_the_whole_process(rng):
    with pytest.raises(IndexError, match="index: got 5 for axis 0"):
        gt.take(gt.arange(5, device="cuda"), gt.asarray([5], device="cuda"))
