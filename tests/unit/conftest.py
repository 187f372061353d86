"""Fixtures of the unit tests."""

import pytest

from tests.support.simulated_gpu import build_libraries


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """A folder with the simulated driver and its two libraries of BLAS."""
    return build_libraries(tmp_path_factory.mktemp("gpu"))
