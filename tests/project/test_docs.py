"""Examples in docstrings run, and everything that the documents name exists."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gputensor._alloc.config.options import OPTIONS, REJECTED
from gputensor.cli.main import build_parser
from tests.support.processes.starter import Starter

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("gputensor/*/*.md")])
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for suffix in ("py", "pyx")
    for path in (ROOT / "gputensor").rglob(f"*.{suffix}")
)
# Runs the examples of all modules in one process, always on the host device. As in NumPy's
# documents, `gt` and `np` are defined without an import.
RUNNER = """
import contextlib, doctest, importlib, io, json, sys
import gputensor, numpy
results = {}
for name in sys.argv[1:]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            module = importlib.import_module(name)
            names = {"gt": gputensor, "np": numpy}
            failed, attempted = doctest.testmod(module, extraglobs=names)
        except Exception as error:
            failed, attempted = 1, 0
            print(type(error).__name__, error)
    results[name] = failed, attempted, output.getvalue()
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def examples():
    """Return {module name: (failed, attempted, output)} of the examples in docstrings."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, *MODULES],
        capture_output=True,
        text=True,
        env={**os.environ, "GPUTENSOR_DEVICE": "host"},
        cwd=ROOT,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


one_worker = pytest.mark.xdist_group("docstrings")  # which runs the examples once


@one_worker
@pytest.mark.parametrize("module", MODULES)
def test_examples_of_the_module_hold(examples, module):
    failed, _, output = examples[module]
    assert failed == 0, output


@one_worker
def test_examples_are_found_in_extensions_too(examples):
    attempted = {module: count for module, (_, count, _) in examples.items()}
    assert attempted["gputensor.errors"] > 0
    assert sum(attempted.values()) > 100
    compiled = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                for p in (ROOT / "gputensor").rglob("*.pyx")}  # fmt: skip
    assert sum(attempted[module] for module in compiled) > 20


def targets():
    return set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def code_blocks(document):
    return re.findall(r"^```(\w*)\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


def shell_lines(document):
    """Yield the commands of a document's shell blocks, with continued lines joined."""
    for language, block in code_blocks(document):
        for line in block.replace("\\\n", " ").splitlines():
            if language in ("sh", "bash") or (language == "console" and line.startswith("$ ")):
                yield line.removeprefix("$ ").split(" #")[0].strip()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_of_the_document_exist(document):
    for line in shell_lines(document):
        words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
        if words[:1] == ["make"]:
            missing = set(words[1:]) - targets()
            assert not missing, f"{line}: the Makefile has no {missing}"
        if words[:1] == ["gputensor"]:
            assert build_parser().parse_args(words[1:]), line
        for word in words[1:2]:
            if words[0].startswith("python") and word.endswith(".py"):
                assert (ROOT / word).exists(), line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_the_document_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_readme_opens_with_the_two_commands():
    lines = list(shell_lines(ROOT / "README.md"))
    assert [line.split(" ")[:2] for line in lines[:2]] == [["make", "demo"], ["make", "test"]]


def test_readme_is_short_and_shows_its_picture_early():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) < 150
    assert any("](docs/gpt2_memory.svg)" in line for line in lines[:25])


def test_picture_of_the_readme_is_what_the_replay_gives():
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "draw_replay.py"), "--check"],
        capture_output=True,
        text=True,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("GPUTENSOR_")},
             "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT)},
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_glossary_is_short_and_every_design_links_to_it():
    text = (ROOT / "docs" / "glossary.md").read_text()
    rows = re.findall(r"^\| (?!word |\*\*)([^|]+) \|", text, re.M)
    words = [word for row in rows for word in row.split(", ")]
    assert 20 < len(words) <= 40
    assert len(set(words)) == len(words)
    for design in (ROOT / "gputensor").glob("*/DESIGN.md"):
        assert "(../../docs/glossary.md)" in design.read_text(), design


def python_blocks():
    for document in DOCUMENTS:
        blocks = [block for language, block in code_blocks(document) if language == "python"]
        for number, block in enumerate(blocks):
            yield pytest.param(block, id=f"{document.relative_to(ROOT)}:{number}")


@pytest.fixture(scope="module")
def starter():
    """Starts processes on the host device in which warnings are errors."""
    variables = {**os.environ, "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT)}
    made = Starter(("numpy", "gputensor.tensor"), ("-W", "error"), variables)
    yield made
    made.close()


@pytest.mark.parametrize("block", list(python_blocks()))
def test_python_of_the_documents_runs_on_the_host_device(block, starter, tmp_path):
    status, output = starter.run(block, environment=starter.environment, folder=tmp_path)
    assert status == 0, f"{block}\n{output}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_environment_variables_of_the_document_are_read_somewhere(document):
    sources = [*(ROOT / "gputensor").rglob("*.py*"), ROOT / "setup.py", ROOT / "Makefile"]
    code = "\n".join(path.read_text() for path in sources if path.suffix in (".py", ".pyx", ""))
    code += (ROOT / "Makefile").read_text()
    for name in set(re.findall(r"\bGPUTENSOR_[A-Z_]+[A-Z]\b", document.read_text())):
        assert name in code, f"{document.name} names {name}, which nothing reads"


def row(option):
    """Return the row of docs/memory.md for an option's definition."""
    default = option.default
    if isinstance(default, tuple):
        default = default[0]
    return f"| `{option.name}` | {'none' if default is None else default} | {option.doc} |"


def test_options_table_says_what_the_code_says():
    lines = (ROOT / "docs" / "memory.md").read_text().splitlines()
    found = [line for line in lines if re.match(r"\| `\w+` \| .* \| ", line)]
    expected = [row(option) for option in OPTIONS.values()]
    assert found == expected, "\n".join(["docs/memory.md needs these rows:", *expected])
    for name in REJECTED:
        assert f"| `{name}` | " in "\n".join(lines)
