"""A debug build stops at the first operation after which the allocator's accounting is wrong.

The package is built once more in a folder of its own with ``GPUTENSOR_BUILD_DEBUG=1``, together
with a module that breaks one invariant of the accounting at a time (planted_violations.pyx). In
that build every operation must detect a broken invariant, and the checker must cover each one.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gputensor._alloc import core as check_hook

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("debug_build"),  # one worker, so that it is built once
    pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler on the path"),
    pytest.mark.skipif(
        importlib.util.find_spec("Cython") is None, reason="needs Cython, which builds the package"
    ),
    pytest.mark.skipif(
        "san.so" in os.environ.get("LD_PRELOAD", ""), reason="runs without a sanitizer"
    ),
]

# Opens a device that holds objects of every kind, and defines each operation.
PROGRAM = """
import sys, threading
import gputensor
from gputensor import memory
from gputensor._alloc import (
    check as checker, allocator as device_allocator, foreign as raw_memory, observe as report,
)
from gputensor._driver import registry
from tests.support.driver_calls import Calls
from tests.support import internals
from tests.simulation.planted_violations import KINDS, plant

assert gputensor.__file__.startswith(sys.argv[1]), gputensor.__file__
MIB = 1 << 20
device = registry.open_host(capacity=512 * MIB, seed=1)
calls = Calls(device)
stream, other = calls.make("stream_create", 0), calls.make("stream_create", 0)
alloc, free = raw_memory.raw_alloc, raw_memory.raw_delete
small = [alloc(device, 1000 * (i % 5 + 1), stream) for i in range(20)]
large = [alloc(device, 20 * MIB, stream) for i in range(8)]
for ptr in large[::2]:
    free(ptr)
in_view = alloc(device, 40 * MIB, stream)
assert internals.view_blocks(device) == [in_view]
for ptr in small[::3]:
    free(ptr)
free(alloc(device, 512, stream))
report.empty_cache(device)
for _ in range(100):
    calls.fill_async(small[2], 1, 4, 64, other)
raw_memory.raw_record_stream(small[2], other)
free(small[2])                          # pending
pool = raw_memory.new_pool_id()
internals.retain_pool(device, pool)
internals.begin_pool(device, pool)
in_pool = alloc(device, 3 * MIB, stream)
internals.end_pool(device, pool)
free(small[1])                          # cached

def end_a_thread():
    begun, go = threading.Event(), threading.Event()
    def work():
        free(alloc(device, 512, stream))
        begun.set()
        go.wait()
    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    yield
    go.set()
    thread.join()

def refuse():
    try:
        alloc(device, 1 << 40, stream)
    except gputensor.OutOfMemoryError:
        pass

OPERATIONS = {
    "malloc, a hit": lambda: alloc(device, 2000, stream),
    "malloc, a miss": lambda: alloc(device, 30 * MIB, other),
    "malloc, refused": refuse,
    "malloc without caching": lambda: alloc(device, 512, stream),
    "free": lambda: free(small[4]),
    "free of a large block": lambda: free(large[1]),
    "free in a view": lambda: free(in_view),
    "free in a pool": lambda: free(in_pool),
    "record_stream": lambda: raw_memory.raw_record_stream(small[5], other),
    "the begin of a pool": lambda: internals.begin_pool(device, pool),
    "the end of a pool": lambda: internals.end_pool(device, pool),
    "a hold on a pool": lambda: internals.retain_pool(device, pool),
    "a pool's release": lambda: internals.release_pool(device, pool),
    "set_pool_kind": lambda: internals.set_pool_kind(device, pool, True, False),
    "empty_cache": lambda: report.empty_cache(device),
    "reset_peak": lambda: report.reset_peak(device),
    "statistics": lambda: report.all_values(device),
    "a change of settings": lambda: memory.set_allocator_settings("page_size_mb:4"),
    "set_caching": lambda: device_allocator.set_caching(device, False),
    "the return of everything free": lambda: device_allocator.close_allocator(device),
    "the end of a thread": end_a_thread,
}
before = {
    "malloc, a hit": lambda: free(alloc(device, 2000, stream)),
    "malloc without caching": lambda: device_allocator.set_caching(device, False),
    "the end of a pool": lambda: internals.begin_pool(device, pool),
}
"""
OPERATE = """
operation, violation = sys.argv[2:]
before.get(operation, lambda: None)()
step = OPERATIONS[operation]
if operation == "the end of a thread":
    step = step()
    next(step)
plant(device, violation)
if operation == "the end of a thread":
    next(step, None)
else:
    step()
print("not stopped")
"""
ALL_KINDS = """
assert checker.check(device) == [], checker.check(device)
for what, sentence in KINDS.items():
    plant(device, what)
    found = checker.check(device)
    assert any(sentence in fault for fault in found), (what, found)
    plant(device, what, -1)
    assert checker.check(device) == [], (what, checker.check(device))
print(len(KINDS), "found")
"""
SOUND = """
def work():
    for i in range(150):
        ptr = alloc(device, 700 * (i % 7 + 1), stream)
        raw_memory.raw_record_stream(ptr, other)
        kept = alloc(device, 3 * MIB, stream)
        free(ptr)
        free(kept)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for operation in OPERATIONS.values():
    if operation not in (end_a_thread, OPERATIONS["the return of everything free"]):
        operation()
registry.close_host(device)
print("never stopped")
"""
OPERATIONS = [line.split('"')[1] for line in PROGRAM.splitlines() if line.startswith('    "')]
OPERATIONS = list(dict.fromkeys(OPERATIONS))

BUILD = """
import os
from Cython.Build import cythonize
from setuptools import Extension, setup
from tests.support import internals
os.environ["CC"] = os.environ["CXX"] = {compiler!r}
extension = Extension("tests.simulation.planted_violations",
                      ["tests/simulation/planted_violations.pyx"], language="c++",
                      include_dirs=["."], extra_compile_args=["-std=c++17", "-O0", "-w"])
setup(packages=[], ext_modules=cythonize([extension], build_dir="planted",
                                         compiler_directives={{"language_level": 3}}))
"""


# What the code of a room that takes part in the checks contains; the other rooms of the allocator
# are the same in a debug build.
CHECKED = ("GT_IS_CHECKED", "check_after(", "device_hold(")


def checked_rooms():
    """Return the rooms of the allocator that a debug build compiles differently."""
    return sorted(
        room.name
        for room in (ROOT / "gputensor/_alloc").iterdir()
        if any(word in part.read_text() for part in room.glob("*.px[di]") for word in CHECKED)
    )


def built(folder, program, variables):
    arguments = ["-q", "build_ext", "--inplace"]
    done = subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def debug_build(tmp_path_factory):
    """Copy the tree, build the allocator there as a debug build, and return the folder."""
    folder = tmp_path_factory.mktemp("debug")
    for name in ("gputensor", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    # Reuse the modules that are the same in both builds.
    for name in [*ROOT.glob("build/cython"), *ROOT.glob("build/lib.*")]:
        shutil.copytree(name, folder / "build" / name.name)
    rooms = checked_rooms()
    for room in rooms:
        for library in folder.rglob(f"_alloc/{room}/*.so"):
            library.unlink()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, folder)
    only = ",".join(f"_alloc.{room}" for room in rooms)
    debug = {"GPUTENSOR_BUILD_DEBUG": "1", "GPUTENSOR_BUILD_ONLY": only, "PYTHONPATH": ""}
    built(folder, ["setup.py"], debug)
    built(folder, ["-c", BUILD.format(compiler=COMPILER)], {})
    return folder


def run(folder, program, *arguments, **variables):
    variables = {"PYTHONPATH": str(folder), "GPUTENSOR_ALLOC_CONF": "", **variables}
    return subprocess.run(
        [sys.executable, "-c", program, str(folder), *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_next_operation_stops_at_a_broken_invariant(debug_build, operation):
    violation = "a page's views" if operation == "free in a view" else "reserved bytes of a pool"
    done = run(debug_build, PROGRAM + OPERATE, operation, violation)
    assert done.returncode == -signal.SIGABRT, done.stdout + done.stderr
    change = operation.split(",")[0].split(" of a large")[0].split(" in ")[0].split(" without")[0]
    assert f"gputensor: after {change}, the allocator of device -2 " in done.stderr
    assert ("views and counts" if "views" in violation else "private pool") in done.stderr


def test_the_checker_finds_every_broken_invariant(debug_build):
    done = run(debug_build, PROGRAM + ALL_KINDS)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= 30


def test_sound_programs_are_not_stopped(debug_build):
    done = run(debug_build, PROGRAM + SOUND)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "never stopped\n"


def test_the_rate_of_checks_is_a_setting(debug_build):
    operation = ("reset_peak", "reserved bytes of a pool")
    done = run(debug_build, PROGRAM + OPERATE, *operation, GPUTENSOR_CHECK_EVERY="1000000")
    assert done.stdout == "not stopped\n", done.stderr
    done = run(debug_build, PROGRAM + OPERATE, *operation, GPUTENSOR_CHECK_EVERY=" 1 ")
    assert done.returncode == -signal.SIGABRT


@pytest.mark.parametrize("text", ["0", "-1", "often", "1.5", str(1 << 63)])
def test_an_invalid_rate_of_checks_is_an_error(debug_build, text):
    done = run(debug_build, "import gputensor", GPUTENSOR_CHECK_EVERY=text)
    assert done.returncode == 1
    words = f"ValueError: GPUTENSOR_CHECK_EVERY: got {text!r}; expected an integer above 0"
    assert words in done.stderr


@pytest.mark.skipif(check_hook.IS_CHECKED, reason="runs in a release build")
def test_a_release_build_does_not_check():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, gputensor; print('gputensor._alloc.check' in "
         "sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout == "False\n", done.stderr
