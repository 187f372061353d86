"""The table of product backends: complete rows, and no backend named outside of the table."""

import re
from pathlib import Path

import pytest

from gputensor.blas.backends import backend_table
from tests.support.internals import goes_by_pointers

ROOT = Path(__file__).resolve().parents[3]
BLAS = ROOT / "gputensor/blas"
TABLE = BLAS / "backends/table.pxi"
ROWS = backend_table()
OWN = [row["name"] for row in ROWS if row["is_own"]]


def test_every_row_is_complete():
    assert [row["name"] for row in ROWS if not row["is_complete"]] == []
    assert len({row["name"] for row in ROWS}) == len({row["number"] for row in ROWS}) == len(ROWS)
    text = TABLE.read_text()
    assert re.findall(r'Backend\(name=b"(\w+)"', text) == [row["name"] for row in ROWS]


def test_numbers_in_files_of_tuned_results_keep_their_meaning():
    numbers = {row["name"]: row["number"] for row in ROWS}
    first = {"cublaslt": 0, "cublas": 1, "integer": 2, "tiny": 3, "skinny": 4, "packed": 5}
    last = {"unaligned": 6, "pointers": 7, "grouped": 8, "held": 9}
    assert numbers | first | last == numbers


def test_docs_name_the_rows():
    text = (ROOT / "docs/blas.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", text, re.M)
    assert sorted((int(number), name) for number, name in rows) == sorted(
        (row["number"], row["name"]) for row in ROWS
    )


@pytest.mark.parametrize("name", OWN)
def test_a_kernel_is_one_folder_and_one_row(name):
    folder = BLAS / "kernels" / name
    assert (folder / f"{name}.pxi").exists()
    names = re.findall(rf"\b{name}_(?:can|wins|build|launch)\b", TABLE.read_text())
    needed = {f"{name}_{what}" for what in ("build", "can", "launch")}
    assert set(names) | {f"{name}_wins"} == needed | {f"{name}_wins"}
    for path in sorted((ROOT / "gputensor").rglob("*")):
        if path.suffix not in (".pyx", ".pxd", ".pxi", ".py") or path == TABLE:
            continue
        if folder not in path.parents:
            assert not set(names) & set(re.findall(r"\w+", path.read_text())), path


def test_tiny_products_are_removed_by_their_folder_and_their_row():
    inside = (BLAS / "kernels/tiny/tiny.pxi").read_text()
    defined = set(re.findall(r"^(?:cdef|def)[^(=\n]*?\b(\w*tiny\w*)\(", inside, re.M))
    assert {"tiny_can", "tiny_program"} <= defined
    for path in BLAS.rglob("*.p*"):
        if path.suffix in (".pyx", ".pxd", ".pxi", ".py") and path.parent.name != "tiny":
            used = defined & set(re.findall(r"\w+", path.read_text()))
            assert not used or path == TABLE, path


def test_a_nested_batch_uses_arrays_of_pointers():
    assert goes_by_pointers(11, 68, 16, 16, 16, batch=8, outer=[(4, 0, 256, 2048)])
    assert not goes_by_pointers(11, 68, 16, 16, 16, batch=8)
