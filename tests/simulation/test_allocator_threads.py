"""Threads on one allocator: no block has two holders, statistics are exact, no memory is left."""

import pytest

from tests.simulation.stress_threads import COMPILER, DEVICES, native_library, stress


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("needs a C++ compiler on the path")
    return native_library(tmp_path_factory.mktemp("native"))


@pytest.mark.parametrize("name", DEVICES)
def test_sixteen_threads_share_one_allocator(native, name):
    stress(name, 1.0, native)
