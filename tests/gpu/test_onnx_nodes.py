"""The node cases of the `onnx` package on a GPU: all that pass on the host device pass there."""

import pytest

from tests.importers.onnx_cases import cases, eager_on_gpu, explained, fault

PARTS = 8
FLOOR = 1800

pytestmark = [pytest.mark.xdist_group("onnx_nodes"), pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def found():
    """{name of a case: its fault or None} for the cases that the tests below ran."""
    return {}


@pytest.mark.parametrize("part", range(PARTS))
def test_cases_pass_or_are_explained(cuda, found, part):
    new = {case.name: fault(case, eager_on_gpu) for case in cases()[part::PARTS]}
    found.update(new)
    surprises = [f"{name}: {text}" for name, text in new.items() if text and not explained(name)]
    assert not surprises, "\n" + "\n".join(surprises)


def test_enough_cases_pass(cuda, found):
    if len(found) < len(cases()):
        pytest.skip("needs the tests above")
    assert sum(text is None for text in found.values()) >= FLOOR
