"""Each command line of docs/programs.md runs on the host device and prints what the page says."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from gputensor.cli.main import main
from tests.project.test_docs import ROOT, code_blocks

DOCUMENT = ROOT / "docs" / "programs.md"


def commands():
    """(line, lines that it prints) of each command of the page."""
    found = []
    for language, block in code_blocks(DOCUMENT):
        if language == "console":
            for line in block.splitlines():
                if line.startswith("$ "):
                    found.append((line[2:], []))
                else:
                    found[-1][1].append(line)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the first example of the page makes."""
    path = tmp_path_factory.mktemp("programs")
    block = next(block for language, block in code_blocks(DOCUMENT) if language == "python")
    environment = {**os.environ, "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize(("line", "printed"), commands(), ids=lambda part: str(part)[:60])
def test_command_prints_what_the_page_says(line, printed, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GPUTENSOR_DEVICE", "host")
    name, *words = shlex.split(line, comments=True)
    assert name == "gputensor"
    code = main(words)
    output = capsys.readouterr()
    assert (code, output.err) == (int("# exit code 1" in line), "")
    wanted = "\n".join(printed)
    pattern = re.escape(wanted).replace(re.escape("..."), r"(?:\.\.\.|[\s\S]*)")
    assert re.fullmatch(pattern, output.out.rstrip("\n")), f"{line}\n{output.out}\n{wanted}"


def test_page_names_every_option_of_the_commands(capsys):
    text = DOCUMENT.read_text()
    for command in ("run", "inspect"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        options = set(re.findall(r"--[a-z]\w+", capsys.readouterr().out)) - {"--help"}
        for option in options:
            shown = re.sub(r"_(bf16|f32|f64)_", "_f16_", option)
            assert shown in text, f"docs/programs.md does not name {option} of {command}"
