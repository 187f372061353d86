"""Misspelt environment variables are reported once, and never as an error."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gputensor._driver import environment

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import gputensor as gt
from gputensor._alloc.allocator import is_caching
gt.ones(3, device="host")
print(is_caching(-1))
"""


def run(*options, program=PROGRAM, **variables):
    clean = {name: text for name, text in os.environ.items() if not name.startswith("GPUTENSOR_")}
    clean |= {"PYTHONPATH": str(ROOT), "GPUTENSOR_DEVICE": "host", **variables}
    command = [sys.executable, *options, "-c", program]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize("options", [(), ("-W", "error")])
def test_unknown_variable_is_reported_once_with_the_nearest_name(options):
    out, said = run(*options, GPUTENSOR_NO_MEMORY_CACHNG="1", GPUTENSOR_ALOC_CONF="x")
    assert out == "True"
    assert said.count("GPUTENSOR_NO_MEMORY_CACHNG: unknown variable") == 1
    assert said.count("did you mean GPUTENSOR_NO_MEMORY_CACHING?") == 1
    assert said.count("did you mean GPUTENSOR_ALLOC_CONF?") == 1
    assert "<string>:2: RuntimeWarning" in said or options


@pytest.mark.parametrize(
    ("text", "is_caching", "is_reported"),
    [("1", False, False), ("0", True, False), ("", True, False), ("yes", True, True),
     ("TRUE", True, True), (" 1", True, True)],
)  # fmt: skip
def test_switch_is_0_or_1_and_anything_else_is_reported_once(text, is_caching, is_reported):
    out, said = run(GPUTENSOR_NO_MEMORY_CACHING=text)
    assert out == str(is_caching)
    expected = f"GPUTENSOR_NO_MEMORY_CACHING: got {text!r}; expected 0 or 1"
    assert said.count(expected) == int(is_reported)
    assert bool(said) == is_reported


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [("EARLY_START", "no", "0 or 1; it counts as 1"), ("EARLY_START", "0", ""),
     ("EARLY_START", "", ""), ("OOM_REPLAY_SECONDS", "x", "a number of seconds"),
     ("OOM_REPLAY_SECONDS", "-1", "a number of seconds"),
     ("OOM_REPLAY_SECONDS", "nan", "a number of seconds"), ("OOM_REPLAY_SECONDS", "0", ""),
     ("OOM_REPLAY_SECONDS", "1.5", ""), ("OOM_REPLAY_SECONDS", "1e9", "")],
)  # fmt: skip
def test_value_that_counts_as_the_default_is_reported(name, text, rule):
    _, said = run(program="import gputensor", **{f"GPUTENSOR_{name}": text})
    assert said.count(f"GPUTENSOR_{name}: got {text!r}; expected {rule}") == bool(rule)
    assert bool(said) == bool(rule)


def test_switch_that_is_set_after_the_import_is_checked_as_well():
    change = "import os, gputensor\nos.environ['GPUTENSOR_NO_MEMORY_CACHING'] = 'on'\n"
    _, said = run(program=change + PROGRAM)
    assert said.count("GPUTENSOR_NO_MEMORY_CACHING: got 'on'") == 1


def test_known_names_are_those_that_the_library_reads():
    found = set()
    for path in ROOT.glob("gputensor/**/*"):
        if path.suffix in (".py", ".pyx", ".pxi", ".h") and path.name != "environment.py":
            found |= set(re.findall(r"[\"'](GPUTENSOR_[A-Z_]+)[\"']", path.read_text()))
    found.discard("GPUTENSOR_KERNEL")  # a name in kernel text
    header = "gputensor/programs/c_entry/gputensor_program.h"
    statuses = (ROOT / header).read_text()  # of the C entry
    found -= set(re.findall("GPUTENSOR_PROGRAM_[A-Z]+", statuses))
    assert found - {"GPUTENSOR_"} <= environment.KNOWN
    read = (ROOT / "setup.py").read_text() + (ROOT / "Makefile").read_text()
    tools = {name for name in environment.KNOWN if name in read}
    assert environment.KNOWN <= found | tools
    assert environment.SWITCHES <= environment.KNOWN
