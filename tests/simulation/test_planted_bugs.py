"""The suite can fail: with one wait removed, random programs see wrong numbers.

The package is copied, one line of one module is changed, only that module is rebuilt, and random
programs run on the copy: those of test_allocator_machine.py, or replays in captures.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")

# Each planted bug: the file, the correct text, the text with the bug.
PLANTED = {
    "an event of another stream counts as complete without asking": (
        "_alloc/order/deferred_free.pxi",
        "return driver.event_query(driver.self, use.event) == STATUS_OK",
        "return True",
    ),
    "the work of any stream counts as done": (
        "_alloc/core/progress.pxi",
        "return epoch < state.completed",
        "return True",
    ),
    "a view is unmapped while the device may use it": (
        "_alloc/order/returns.pxi",
        "if state.bit & view.streams and not progress_is_done("
        "state, min(view.epoch, state.newest)):",
        "if False:",
    ),
    "a use in a capture does not wait for replays in it": (
        "streams/order/graph_memory.h",
        "if (replay != NO_STREAM && replay != stream && !has(users, stream))",
        "if (false)",
    ),
    "a replay in a capture does not wait for uses in it": (
        "streams/order/graph_memory.h",
        "if (user != stream) add_once(waits, user);",
        "(void)user;",
    ),
    "a graph does not own the memory of those replayed in it": (
        "streams/order/graph_memory.h",
        "            add_once(own, name);\n",
        "",
    ),
}

RUN_ALLOCATOR = """
import sys
from gputensor._driver import registry
import gputensor
from tests.support.models.allocator_shadow import MIB, random_program
assert gputensor.__file__.startswith(sys.argv[1]), gputensor.__file__
for seed in range(40):
    number = registry.open_host(capacity=160 * MIB, seed=seed)
    try:
        random_program(number, seed, steps=150, check_every=25)
    except AssertionError as error:
        print("seed", seed, "found:", error)
        sys.exit(3)
    registry.close_host(number)
"""

RUN_REPLAYS = """
import sys
import gputensor
from tests.simulation.test_captured_replays import BranchWorld, random_steps
assert gputensor.__file__.startswith(sys.argv[1]), gputensor.__file__
for seed in range(200):
    with BranchWorld(seed) as world:
        for dst in (1, 2):
            world.captured([(dst, 0)])
        try:
            for _ in range(3):
                world.branches(random_steps(world.random, 8))
            world.replay()
            world.check()
        except AssertionError as error:
            print("seed", seed, "found:", error)
            sys.exit(3)
"""


def is_sanitized():
    return "san.so" in os.environ.get("LD_PRELOAD", "")


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler on the path")
@pytest.mark.skipif(
    importlib.util.find_spec("Cython") is None, reason="needs Cython, which builds the package"
)
@pytest.mark.skipif(is_sanitized(), reason="runs on extensions built without a sanitizer")
@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_bug_is_found(tmp_path, planted):
    name, right, wrong = PLANTED[planted]
    shutil.copytree(
        ROOT / "gputensor", tmp_path / "gputensor", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(
        ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__")
    )
    source = tmp_path / "gputensor" / name
    text = source.read_text()
    assert text.count(right) == 1, "the line to plant the bug in has changed: change it here too"
    source.write_text(text.replace(right, wrong))
    for file in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / file, tmp_path)
    room = str(Path(name).parent)
    (built,) = source.parent.glob("*.so")
    built.unlink()
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path,
        env=os.environ | {"GPUTENSOR_BUILD_ONLY": room.replace("/", "."), "PYTHONPATH": ""},
        check=True,
        capture_output=True,
    )
    run = RUN_ALLOCATOR if name.startswith("_alloc") else RUN_REPLAYS
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "GPUTENSOR_ALLOC_CONF": ""}
    result = subprocess.run(
        [sys.executable, "-c", run, str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 3, f"bug not found: {result.stdout}{result.stderr}"
    print(result.stdout)
