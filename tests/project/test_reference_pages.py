"""The generated pages of docs/ are up to date, and mypy knows the public names."""

import subprocess
import sys

import pytest

import gputensor as gt
from gputensor._driver.environment import KNOWN
from tests.project import reference_pages
from tests.project.peer_differences import DIFFERENCES
from tests.project.test_docs import ROOT


@pytest.mark.parametrize("file", reference_pages.PAGES)
def test_page_is_what_the_tables_give(file):
    written = (ROOT / "docs" / file).read_text()
    assert written == reference_pages.page(file), "run python -m tests.project.reference_pages"


def test_every_public_function_is_on_the_reference():
    text = (ROOT / "docs/reference.md").read_text()
    for name in reference_pages.main_names():
        if callable(getattr(gt, name)):
            assert f"| `{name}(" in text, name


def test_names_of_differences_exist_here():
    for title, rows in DIFFERENCES.items():
        for _theirs, ours, _remark in rows:
            for name in ours.replace("x.", "").split(", "):
                if name.replace(".", "").replace("_", "").isalnum() and "the same" not in name:
                    found = reference_pages.find(name)
                    assert found is not None or hasattr(gt.Tensor, name), f"{title}: {name}"


def test_every_variable_is_described():
    text = (ROOT / "docs/environment.md").read_text()
    assert all(f"| `{name}` | " in text for name in KNOWN)


WRONG = {
    "gt.no_such_function(1)": "has no attribute",
    "gt.zeros(2).no_such_method()": "has no attribute",
    "gt.sum(gt.zeros(2), axes=0)": "Unexpected keyword argument",
    "gt.memory.no_such_function()": "has no attribute",
    "gt.concat()": "Too few arguments",
    "gt.linalg.no_such_function(1)": "has no attribute",
}
RIGHT = """import gputensor as gt

x = gt.zeros((2, 3), "float32").sum(0) + gt.ones(3)
y: gt.Tensor = gt.concat([x, gt.interp(x, x, x)])
dtype = gt.float32
gt.memory.empty_cache()
kernel = gt.RawKernel("", "f")
"""


@pytest.mark.slow
def test_mypy_refuses_wrong_names(tmp_path):
    pytest.importorskip("mypy", reason="needs mypy")
    path = tmp_path / "program.py"
    path.write_text(RIGHT + "\n".join(WRONG) + "\n")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--cache-dir",
        str(tmp_path),
        "--follow-imports=silent",
    ]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path), "--ignore-missing-imports", str(path)],
        cwd=ROOT, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    faults = [line for line in done.stdout.splitlines() if ": error: " in line]
    first = RIGHT.count("\n") + 1
    for place, (text, message) in enumerate(WRONG.items(), first):
        assert any(f":{place}: error" in one and message in one for one in faults), (text, faults)
    assert not [one for one in faults if int(one.split(":")[1]) < first], faults
