"""Control flow in programs, on every device."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.programs import control_checks as checks
from tests.support.tensor_devices import NAMES, device_of


@pytest.fixture(params=NAMES)
def device(request):
    number = device_of(request.param)
    if number is None:
        pytest.skip("needs a CUDA device: run this on a machine with an NVIDIA GPU and driver")
    return gt.Device(number)


@pytest.fixture
def rng():
    return np.random.default_rng()


def test_while_loop(device, rng):
    checks.check_while_loop(device, rng)


def test_cond(device, rng):
    checks.check_cond(device, rng)


@pytest.mark.parametrize("bounds", checks.BOUNDS)
def test_fori_loop(device, rng, bounds):
    checks.check_fori_loop(device, rng, bounds)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", checks.LENGTHS)
def test_scan(device, rng, length, reverse):
    checks.check_scan(device, rng, length, reverse)
