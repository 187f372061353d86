"""libgputensor_program.so under sanitizers, with a driver that executes no work: hostile files,
refused driver calls, threads. The results of programs are tested on a simulated GPU."""

import os
import shutil
import subprocess

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.launch import images
from tests.support.programs import ahead_models
from tests.support.simulated_gpu import ROOT

COMPILER = shutil.which("g++")
# Changed files of each program; "control", the smallest, has eight times as many.
FILES = int(os.environ.get("HOSTILE_FILES", "50"))
SEED = int.from_bytes(os.urandom(4), "little")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("c_library"),  # built once for each sanitizer
    pytest.mark.timeout(600),
    pytest.mark.skipif(COMPILER is None, reason="needs g++ on the path"),
]


class Checks:
    """c_library_checks.cpp, built with a sanitizer, and its driver."""

    def __init__(self, folder, sanitizer):
        self.folder = folder
        flags = ["-std=c++17", "-O0", f"-fsanitize={sanitizer}", f"-I{ROOT}"]
        fakes = ROOT / "tests/support/fakes"
        for source, more in ("stub_libcuda", ["-shared", "-fPIC"]), ("c_library_checks", []):
            command = [COMPILER, *flags, *more, fakes / f"{source}.cpp", "-o", folder / source]
            done = subprocess.run([*command, "-ldl", "-pthread"], capture_output=True, text=True)
            if "cannot find" in done.stderr:
                pytest.skip(f"needs the libraries of -fsanitize={sanitizer}")
            assert done.returncode == 0, done.stderr

    def run(self, *arguments):
        environment = {
            **os.environ,
            "GPUTENSOR_LIBCUDA": str(self.folder / "stub_libcuda"),
            "ASAN_OPTIONS": "allocator_may_return_null=1",
        }
        done = subprocess.run(
            [self.folder / "c_library_checks", *map(str, arguments)],
            env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def under_asan(tmp_path_factory):
    return Checks(tmp_path_factory.mktemp("asan"), "address,undefined")


@pytest.fixture(scope="module")
def under_tsan(tmp_path_factory):
    return Checks(tmp_path_factory.mktemp("tsan"), "thread")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a function that saves a model for a GPU that is not there, with made-up kernels."""
    folder, patch = tmp_path_factory.mktemp("programs"), pytest.MonkeyPatch()
    patch.setattr(images, "image_of", lambda program, target: b"\x7fELF" + b"x" * 60)

    def save(name, compress=True):
        path = folder / f"{name}{compress}.gtp"
        if not path.exists():
            with gt.Device("host"):
                MODELS[name]().save(path, compress=compress)
        return path

    yield save
    patch.undo()


def control():
    """All control flow, nested, with a state and a weight that a region reads."""

    def control(x, *, weights, state):
        state["t"] += x[0]
        a = gt.while_loop(lambda c: gt.max(c) < 9, lambda c: c * 2, x)
        b = gt.cond(gt.sum(a) > 1, lambda c: c + weights["w"], lambda c: c, a)
        _, d = gt.scan(lambda c, r: (c + r, c * 2), weights["w"], b)
        return (
            a,
            d,
            gt.fori_loop(0, 3, lambda i, c: gt.scan(lambda k, r: (k, r), c, b)[0] * i, c0(x)),
        )

    def c0(x):
        return x[0] + 1

    weights, state = {"w": np.ones(5, np.float32)}, {"t": gt.spec((5,))}
    return gt.compile(control, gt.spec((4, 5)), weights=weights, state=state, target="h200")


def model(name):
    return lambda: ahead_models.MODELS[name](np.random.default_rng(1)).compile("h200")


MODELS = {"control": control, **{name: model(name) for name in ("loops", "network", "orders")}}


@pytest.mark.parametrize("name", MODELS)
def test_hostile_files_are_refused_or_harmless(name, saved, under_asan, tmp_path):
    count = 8 * FILES if name == "control" else FILES
    # The hashes of changed files are corrected, except those of the contents of streams.
    for compress, files in (False, count), (True, count // 4):
        path = saved(name, compress)
        output = under_asan.run("fuzz", path, tmp_path / "changed.gtp", files, SEED)
        assert f"{files} files: " in output


@pytest.mark.parametrize("name", MODELS)
def test_a_call_that_the_driver_refuses_leaves_nothing_behind(name, saved, under_asan):
    assert " calls failed, one after the other" in under_asan.run("sweep", saved(name))


@pytest.mark.parametrize("name", ["control", "loops", "orders"])
def test_runs_launch_a_graph_unless_the_driver_refuses(name, saved, under_asan):
    assert " 0 kernels launched; without graphs" in under_asan.run("graphs", saved(name))


@pytest.mark.parametrize("name", ["control", "loops"])
def test_sixteen_threads_run_sessions_of_their_own(name, saved, under_tsan):
    assert "0 faults" in under_tsan.run("threads", saved(name), 50)
