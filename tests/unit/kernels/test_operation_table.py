"""The table of operations: complete rows, and complete functions, stubs and pages made from it."""

import ast
from pathlib import Path

import pytest

import gputensor as gt
from gputensor._kernels import operations
from gputensor._kernels.operations import (
    BY_HAND,
    ELEMENTWISE,
    REDUCTION_RULES,
    REDUCTIONS,
    RULES,
    operation,
)
from gputensor.cli.operations import table
from gputensor.tensor import functions
from gputensor.tensor.functions import source

ROOT = Path(__file__).resolve().parents[3]
ROW = ("twice", 1, "same", {"if": "a + a"}, "np.abs", "2 * x.", "[1, 2] -> array([2, 4])")
#: Functions composed of functions of the table.
WITHOUT_A_ROW = {"amax", "amin", "count_nonzero", "std"}
SPECIAL = {row.public_name for row in ELEMENTWISE if row.is_special}
PARTS = ("name", "arity", "rule", "cuda", "host", "doc", "example")


def test_complete_row_is_accepted():
    row = operation(5, ROW)
    assert (row.code, row.public_name, row.kinds) == (5, "twice", {"int", "float"})
    assert operation(5, ("two twice", *ROW[1:])).public_name == "twice"
    row = operation(5, ("two special.twice", *ROW[1:]))
    assert row.public_name == "twice" and row.is_special


@pytest.mark.parametrize("part", PARTS[1:])
def test_row_without_a_part_names_it(part):
    number = PARTS.index(part)
    for missing in (ROW[:number], (*ROW[:number], type(ROW[number])(), *ROW[number + 1 :])):
        with pytest.raises(ValueError, match=f"^operation twice: got no {part}; expected "):
            operation(5, missing)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("arity", 4),
        ("rule", "others"),
        ("cuda", {"if": "a", "uf": "b"}),
        ("cuda", {"x": "a"}),
        ("cuda", {"i": "a", "f": ""}),
        ("cuda", "a + b"),
        ("example", "[1, 2]"),
    ],
)
def test_row_with_a_wrong_part_names_it(part, value):
    number = PARTS.index(part)
    with pytest.raises(ValueError, match=f"^operation twice: got {part} "):
        operation(5, (*ROW[:number], value, *ROW[number + 1 :]))


@pytest.mark.parametrize("host", ["np.no_such_function", "no_such_function"])
def test_row_without_its_host_function_is_named(host):
    from gputensor._kernels.host import elementwise

    row = operation(5, (*ROW[:4], host, *ROW[5:]))
    with pytest.raises(ImportError, match="operation twice: got host"):
        elementwise.host_function(row)


def test_names_are_unique():
    names = [row.name for row in ELEMENTWISE]
    made = [row.public_name for row in ELEMENTWISE if row.example != BY_HAND]
    assert len(set(names)) == len(names)
    assert len(set(made)) == len(made)


def test_functions_and_stub_are_those_of_the_table():
    made = [row.public_name for row in source.generated(ELEMENTWISE)]
    stub = ast.parse(source.stub_source(ELEMENTWISE))
    named = [node.name for node in stub.body if isinstance(node, ast.FunctionDef)]
    assert list(dict.fromkeys(named)) == made
    path = ROOT / "gputensor/tensor/functions/elementwise_functions.pyi"
    assert path.read_text() == source.stub_source(ELEMENTWISE), "the stub is outdated: build again"
    for row in source.generated(ELEMENTWISE):
        doc = getattr(functions, row.public_name).__doc__
        assert source.docstring(row, RULES) in doc, f"build again: {row.public_name} is older"
    by_hand = {row.public_name for row in ELEMENTWISE if row.example == BY_HAND} - {"copy"}
    named = {*WITHOUT_A_ROW, *made, *by_hand} | {row.name for row in REDUCTIONS}
    assert named == {*functions.__all__, *SPECIAL}


def test_build_reads_the_table_without_the_library():
    tree = ast.parse(Path(operations.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
    assert [node.module for node in imports] == ["typing"]


def test_listing_has_a_line_for_each_function_and_the_page_each_rule():
    lines = table().splitlines()
    names = [line.split("`")[1] for line in lines if line.startswith("| `")]
    special = {f"special.{name}" for name in SPECIAL}
    assert sorted(names) == sorted({*functions.__all__, *special} - WITHOUT_A_ROW)
    page = (ROOT / "docs" / "operations.md").read_text()
    for rule, result in [*RULES.items(), *REDUCTION_RULES.items()]:
        assert f"| {rule} | {result} |" in page, f"docs/operations.md needs: | {rule} | {result} |"
    assert all(hasattr(gt, name) for name in names if name not in special)
    assert SPECIAL <= {*gt.special.__all__}
