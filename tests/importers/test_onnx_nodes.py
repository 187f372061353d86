"""All node cases of the `onnx` package: each passes, or has a reason in `EXPLAINED`."""

import pytest

from tests.importers.onnx_cases import cases, explained, fault, traced
from tests.importers.onnx_explained import EXPLAINED
from tests.importers.operator_list import PAGE, operator_list, page_with

PARTS = 8
FLOOR = 1800
FLOOR_OF_PROGRAMS = 1650

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("onnx_nodes")]


@pytest.fixture(scope="module")
def found():
    """{name of a case: its fault or None} for the cases that the tests below ran."""
    return {}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("default")
def test_cases_pass_or_are_explained(found, part):
    new = {case.name: fault(case) for case in cases()[part::PARTS]}
    found.update(new)
    surprises = [f"{name}: {text}" for name, text in new.items() if text and not explained(name)]
    assert not surprises, "\n" + "\n".join(surprises)


def test_no_explanation_is_obsolete(found):
    """Each entry matches a case, and all cases that it matches fail."""
    if len(found) < len(cases()):
        pytest.skip("needs the tests above")
    for pattern in EXPLAINED:
        fitting = [name for name in found if pattern in explained(name)]
        assert fitting, pattern
        assert all(found[name] for name in fitting), (pattern, fitting)


def test_enough_cases_pass(found):
    if len(found) < len(cases()):
        pytest.skip("needs the tests above")
    assert sum(text is None for text in found.values()) >= FLOOR


@pytest.mark.sweep
@pytest.mark.filterwarnings("default")
def test_enough_cases_run_as_programs():
    """The other cases need values: computed shapes, lists, types that tensors lack."""
    passed = sum(fault(case, traced) is None for case in cases())
    assert passed >= FLOOR_OF_PROGRAMS


def test_page_lists_all_operators():
    rule = "docs/onnx.md is old: python -m tests.importers.operator_list writes the list"
    assert PAGE.read_text() == page_with(operator_list()), rule
