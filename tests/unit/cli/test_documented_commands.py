"""Command lines in docs run on the host device and print what their page shows."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from gputensor import Device
from gputensor.cli.main import main
from tests.project.test_docs import ROOT, code_blocks

# Page -> the commands whose options it lists.
PAGES = {"programs": ("run", "bench", "inspect"), "onnx": ("compile",)}
EXAMPLES = sorted(
    f"examples/{path.stem}"
    for path in (ROOT / "docs" / "examples").glob("*.md")
    if "```console" in path.read_text()  # tests/importers/test_server.py runs its requests
)


def document(page):
    return ROOT / "docs" / f"{page}.md"


def commands(page):
    """(line, printed lines) of each command of a page."""
    found = []
    for language, block in code_blocks(document(page)):
        if language == "console":
            for line in block.splitlines():
                if line.startswith("$ "):
                    found.append((line[2:], []))
                else:
                    found[-1][1].append(line)
    assert found, page
    return found


def python(path, *words):
    """The output of a process that imports the library; it must not warn."""
    environment = {**os.environ, "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", *words],
        cwd=path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def made(page, path):
    for language, block in code_blocks(document(page)):
        if language == "python":
            python(path, "-c", block)
            break
    return path


def run(line, path, capsys):
    """The output of a line of a page: a command of the library, or a program of examples/."""
    name, *words = shlex.split(line, comments=True)
    if name == "python":
        return python(path, str(ROOT / words[0]), *words[1:])
    assert name == "gputensor", line
    with Device("host"):
        code = main(words)
    output = capsys.readouterr()
    is_fault = "# exit code 1" in line
    assert code == int(is_fault) and (is_fault or not output.err), line
    return output.out + output.err


@pytest.mark.parametrize(
    "page", [*PAGES, *(pytest.param(page, marks=pytest.mark.slow) for page in EXAMPLES)]
)
def test_commands_print_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    """In the order of the page: a command may read the file that an earlier one wrote."""
    monkeypatch.chdir(made(page, tmp_path))
    for line, printed in commands(page):
        found = run(line, tmp_path, capsys)
        wanted = "\n".join(printed)
        pattern = re.escape(wanted).replace(re.escape("..."), r"(?:\.\.\.|[\s\S]*)")
        assert re.fullmatch(pattern, found.rstrip("\n")), f"{line}\n{found}\n{wanted}"


@pytest.mark.parametrize("page", PAGES)
def test_page_names_every_option_of_the_commands(page, capsys):
    text = document(page).read_text()
    for command in PAGES[page]:
        with pytest.raises(SystemExit):
            main([command, "--help"])
        options = set(re.findall(r"--[a-z]\w+", capsys.readouterr().out)) - {"--help"}
        for option in options:
            shown = re.sub(r"_(bf16|f32|f64)_", "_f16_", option)
            assert shown in text, f"docs/{page}.md does not name {option} of {command}"
