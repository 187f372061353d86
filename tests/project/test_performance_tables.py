"""docs/performance.md contains the results under benchmarks/results."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("tables", ROOT / "benchmarks" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_holds_the_tables_of_the_results(tables):
    page = (ROOT / "docs" / "performance.md").read_text()
    assert tables.page_with_tables(page, tables.render()) == page, (
        "run benchmarks/tables.py: a result has changed since"
    )


def test_every_result_has_a_place_on_the_page(tables):
    named = {name for name, _, _ in tables.SECTIONS}
    folder = ROOT / "benchmarks" / "results"
    paths = [path.relative_to(folder) for path in folder.rglob("*.json")]
    found = {path.with_suffix("").as_posix() for path in paths if path.parts[0] != "host"}
    assert found <= named


def test_a_page_without_marks_is_refused(tables):
    with pytest.raises(ValueError, match="lacks the marks"):
        tables.page_with_tables("# Performance", "")
