"""The list of operators in docs/onnx.md; ``python -m tests.importers.operator_list`` writes it."""

import textwrap
from pathlib import Path

import gputensor.importers.onnx_model  # noqa: F401 - fills the table
from gputensor.importers.onnx_registry import EXPANDED, registered

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
BEGIN, END = "<!-- operators -->\n", "<!-- end of operators -->\n"


def names(keys):
    shown = [f"`{domain}.{name}`" if domain else f"`{name}`" for domain, name in sorted(keys)]
    return textwrap.fill(" ".join(shown), 120, break_long_words=False, break_on_hyphens=False)


def operator_list():
    """The text of the list: the operators with their own function, and the expanded ones."""
    rows = set(registered())
    own = f"{len(rows)} operators have a function of their own:\n\n{names(rows)}"
    rest = EXPANDED - rows
    return f"{own}\n\n{len(rest)} are run by their definition:\n\n{names(rest)}\n"


def page_with(text):
    """The text of the page with this list in its place."""
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    return head + BEGIN + text + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with(operator_list()))
