"""The node cases of the `onnx` package on a GPU: all that pass on the host device pass there."""

import pytest

from tests.importers.onnx_cases import cases, eager_on_gpu, explained, fault

PARTS = 16
LEAST = 0.95

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("part", range(PARTS))
def test_cases_pass_or_are_explained(cuda, part):
    found = {case.name: fault(case, eager_on_gpu) for case in cases()[part::PARTS]}
    surprises = [f"{name}: {text}" for name, text in found.items() if text and not explained(name)]
    assert not surprises, "\n" + "\n".join(surprises)
    assert sum(text is None for text in found.values()) >= LEAST * len(found)
