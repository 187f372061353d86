"""What users see of a package when they ask for its names is what they may use, and no more."""

import inspect

import pytest

import gputensor as gt

# The array API standard and packaging ask for these at the top.
PROTOCOL = {"__array_api_version__", "__array_namespace_info__", "__version__"}
PACKAGES = {
    "gt": gt,
    "blas": gt.blas,
    "memory": gt.memory,
    "graphs": gt.graphs,
    "device": gt.device,
}


@pytest.mark.parametrize("name", PACKAGES)
def test_dir_lists_public_names_only(name):
    package = PACKAGES[name]
    listed = dir(package)
    assert set(listed) >= set(package.__all__)
    assert {entry for entry in listed if entry.startswith("_")} <= PROTOCOL
    for entry in listed:
        value = getattr(package, entry)
        if inspect.ismodule(value):
            assert entry in ("blas", "device", "graphs", "memory", "tunable"), entry


@pytest.mark.parametrize("name", PACKAGES)
def test_public_names_have_a_docstring(name):
    package = PACKAGES[name]
    missing = [
        entry
        for entry in dir(package)
        if callable(getattr(package, entry)) and not getattr(package, entry).__doc__
    ]
    assert not missing
