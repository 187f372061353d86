"""Fixtures for tests that need a real GPU; without one the tests are skipped, with the reason."""

import pytest

from gputensor._driver import registry
from gputensor.streams import Device


@pytest.fixture
def cuda():
    """The number of a CUDA device, current during the test."""
    if registry.cuda_device_count() == 0:
        pytest.skip("needs an NVIDIA GPU and its driver library")
    with Device("cuda:0"):
        yield 0
