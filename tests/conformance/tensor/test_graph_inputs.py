"""Replays of graphs with tensors other than those of the capture."""

import numpy as np
import pytest

from tests.support import graph_inputs as checks
from tests.support.tensor_devices import NAMES, device_of


@pytest.fixture(params=NAMES)
def device(request):
    number = device_of(request.param)
    if number is None:
        pytest.skip("needs a CUDA device: run this on a machine with an NVIDIA GPU and driver")
    return number


@pytest.fixture
def rng():
    return np.random.default_rng()


def test_replays_use_other_tensors(device, rng):
    checks.check_inputs(device, rng)


def test_replays_are_ordered_with_the_other_tensors(device, rng):
    checks.check_order(device, rng)


def test_wrong_pairs_are_refused(device):
    checks.check_refusals(device)
