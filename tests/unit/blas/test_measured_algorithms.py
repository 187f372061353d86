"""Rows of measured algorithms: which products they serve, and errors of a damaged file.

tests/simulated_gpu/test_measured_algorithms.py tests the plans made from them.
"""

import json

import pytest

from gputensor.blas.plan import (
    FIELDS,
    KINDS,
    fill_measured,
    forget_plans,
    measured_algorithm,
    signature_of_shape,
)
from gputensor.blas.tuning import measured_algorithms

REDUCTION = 3  # its index in a configuration: CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME
REDUCTION_COMPUTE_TYPE = 2
AT = {name: number for number, name in enumerate(FIELDS)}


@pytest.fixture
def rows():
    """One row, for 16 x 4096 x 8192 in bfloat16 with transposed weights."""
    signature = signature_of_shape(16, 4096, 8192, "bf16", "NT")
    row = [*(signature[AT[name]] for name in measured_algorithms.KEY), list(range(9))]
    text = json.dumps({"sections": [{"device": "GPU X", "library": 13, "rows": [row]}]})
    fill_measured(0, measured_algorithms.read_rows(text, "GPU X", 130200))
    yield text
    forget_plans()


def algorithm_for(signature):
    return measured_algorithm(signature, 0)


def test_the_row_serves_its_product_only(rows):
    assert algorithm_for(signature_of_shape(16, 4096, 8192, "bf16", "NT")) == tuple(range(9))
    assert algorithm_for(signature_of_shape(16, 4096, 8192, "bf16", "NN")) is None
    assert algorithm_for(signature_of_shape(16, 4096, 8192, "fp16", "NT")) is None
    assert algorithm_for(signature_of_shape(17, 4096, 8192, "bf16", "NT")) is None
    assert algorithm_for(signature_of_shape(16, 8192, 4096, "bf16", "NT")) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("batch", 2), ("is_repeated", 1), ("lda", 8196), ("align_b", 8), ("ldd", 4100)],
)
def test_other_layouts_are_left_to_the_library(rows, field, value):
    signature = list(signature_of_shape(16, 4096, 8192, "bf16", "NT"))
    signature[AT[field]] = value
    assert algorithm_for(tuple(signature)) is None


def test_rows_of_other_devices_and_libraries_are_ignored(rows):
    assert measured_algorithms.read_rows(rows, "GPU X", 120900) == {}
    assert measured_algorithms.read_rows(rows, "GPU Y", 130000) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "[]",
        "3",
        '{"sections": [3]}',
        '{"sections": [{"device": "GPU X", "library": 13, "rows": [[]]}]}',
    ],
)
def test_malformed_text_is_a_value_error(text):
    with pytest.raises(ValueError):
        measured_algorithms.read_rows(text, "GPU X", 130000)


def test_the_shipped_file_is_well_formed():
    content = json.loads(measured_algorithms.FILE.read_text())
    kinds = set(KINDS.values())
    places = [(section["device"], section["library"]) for section in content["sections"]]
    assert len(set(places)) == len(places) >= 1
    for section in content["sections"]:
        assert isinstance(section["device"], str)
        assert isinstance(section["library"], int)
        rows = measured_algorithms.read_rows(
            json.dumps(content), section["device"], section["library"] * 10000
        )
        assert len(rows) == len(section["rows"]) >= 1
        keys = [tuple(row[:-1]) for row in section["rows"]]
        assert len(set(keys)) == len(keys)
        for row in section["rows"]:
            named = dict(zip(measured_algorithms.KEY, row[:-1], strict=True))
            assert (named["type_a"], named["compute"]) in kinds
            assert len(row[-1]) == measured_algorithms.CONFIG_COUNT
            # No partial sums in the output type: the precision flags forbid them by default.
            assert row[-1][REDUCTION] in (0, REDUCTION_COMPUTE_TYPE)
            assert min(named["m"], named["n"], named["k"]) >= 1
