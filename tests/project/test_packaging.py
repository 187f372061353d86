"""The metadata is consistent: few requirements, one list of build needs, a small import."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


def listed(key):
    """Return the strings of a list in pyproject.toml (Python 3.10 has no TOML parser)."""
    block = re.search(rf"^{re.escape(key)} = \[(.*?)\]", PYPROJECT, re.MULTILINE | re.DOTALL)
    return re.findall(r'"([^"]+)"', block[1])


def run(program, **variables):
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        cwd=ROOT,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_only_numpy_and_ml_dtypes_are_needed_at_run_time():
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in listed("dependencies")}
    assert names == {"numpy", "ml_dtypes"}


def test_makefile_and_metadata_name_the_same_build_needs():
    needs = re.search(r"^BUILD_NEEDS := (.*)$", MAKEFILE, re.MULTILINE)[1]
    assert re.findall(r'"([^"]+)"', needs) == listed("requires")


@pytest.mark.parametrize("extra", ["cuda12", "cuda13", "onnx", "test", "docs"])
def test_every_dependency_has_its_reason_in_the_docs(extra):
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    for requirement in [*listed(extra), *listed("dependencies"), *listed("requires")]:
        name = re.match(r"[\w-]+", requirement)[0]
        assert f"`{name}`" in reasons, f"docs/dependencies.md does not say why {name} is needed"


def test_import_needs_nothing_beyond_numpy_and_ml_dtypes():
    program = """
import sys
import importlib.abc
class Nothing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split('.')[0] in {'cupy', 'cuda', 'torch', 'sklearn', 'opt_einsum', 'pynvml',
                                  'scipy', 'safetensors', 'onnx', 'hypothesis', 'pytest', 'Cython'}:
            raise ImportError(name)
sys.meta_path.insert(0, Nothing())
import gputensor as gt
print(gt.sum(gt.matmul(gt.ones((3, 4)), gt.ones((4, 5)))).numpy())
"""
    assert run(program, GPUTENSOR_DEVICE="host") == ["60.0"]


def test_import_loads_no_driver_library_and_no_optional_package():
    program = """
import sys, gputensor
maps = open('/proc/self/maps').read()
print(any(name in maps for name in ('libcuda.so', 'libcublas', 'libnvrtc')))
print(*({'cupy', 'cuda.bindings', 'torch', 'sklearn', 'opt_einsum', 'scipy'} & set(sys.modules)))
"""
    assert run(program) == ["False"]


def test_version_of_the_module_is_that_of_the_metadata():
    version = re.search(r'^version = "(.*)"', PYPROJECT, re.MULTILINE)[1]
    assert run("import gputensor; print(gputensor.__version__)") == [version]


@pytest.fixture
def bare_tree(tmp_path):
    """Return a folder that contains only the Makefile and the metadata."""
    for name in ("Makefile", "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    return tmp_path


def make(tree, *words):
    done = subprocess.run(
        ["make", *words], cwd=tree, capture_output=True, text=True, timeout=60, env=dict(os.environ)
    )
    return done.returncode, [line for line in done.stderr.splitlines() if "make" not in line[:5]]


def fake_python(tree, script):
    path = tree / "fake-python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f"PYTHON={path}"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "was not found"),
        ('case "$*" in *version_info*) exit 1;; *-V*) echo Python 3.8.1;; esac', "3.10 or newer"),
        ('case "$*" in *ensurepip*) exit 1;; *-V*) echo Python 3.11.1;; esac', "python3-venv"),
    ],
)
def test_unusable_python_is_one_clear_sentence(bare_tree, script, words):
    python = fake_python(bare_tree, script) if script else "PYTHON=no-such-python"
    code, errors = make(bare_tree, "environment", python)
    assert code != 0
    assert len(errors) == 1
    assert words in errors[0]
    assert not (bare_tree / ".venv").exists()


def test_every_folder_of_sources_is_a_package():
    folders = {path.parent for path in (ROOT / "gputensor").rglob("*.py*")}
    folders = {folder for folder in folders if folder.name != "__pycache__"}
    assert not [str(folder) for folder in folders if not [*folder.glob("__init__.py*")]]


def test_ci_runs_the_tests_that_people_run():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text()


def test_kernel_text_is_part_of_the_wheel_and_of_the_source_archive():
    kinds = {path.suffix for path in (ROOT / "gputensor").rglob("*.[ch]*") if path.is_file()}
    assert {".cuh", ".h"} <= kinds
    manifest = (ROOT / "MANIFEST.in").read_text().split()
    for suffix in (".cuh", ".h"):
        assert f"*{suffix}" in listed('"*"')
        assert f"*{suffix}" in manifest


def test_a_wheel_has_neither_extensions_of_the_tests_nor_leftovers(tmp_path):
    """Check the modules that `pip wheel` would build, with the build command of setup.py."""
    kept = ["gputensor/errors.py", "gputensor/_driver/registry.cpython-311.so"]
    dropped = ["gputensor/gone.py", "gputensor/gone.cpython-311.so", "tests/support/internals.so"]
    for name in kept + dropped:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    program = (
        "import runpy, sys, setuptools\n"
        "found = {}\n"
        "setuptools.setup = lambda **keywords: found.update(keywords)\n"
        "import Cython.Build\n"
        "Cython.Build.cythonize = lambda modules, **keywords: modules\n"
        "names = runpy.run_path('setup.py', run_name='__main__')\n"
        "built = {one.name.removeprefix('gputensor.') for one in found['ext_modules']}\n"
        "print(*set(names['HOT']) - built)\n"
        "from setuptools.dist import Distribution\n"
        "for inplace in (0, 1):\n"
        "    command = found['cmdclass']['build_ext'](\n"
        "        Distribution({'ext_modules': list(found['ext_modules'])}))\n"
        "    command.inplace = inplace\n"
        "    command.ensure_finalized()\n"
        "    print(*sorted({one.name.split('.')[0] for one in command.extensions}))\n"
        "command.build_lib = sys.argv[1]\n"
        "command.drop_leftovers()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    # The only name of HOT that is not an extension is the C library.
    assert done.stdout.splitlines() == [
        "programs.c_library.src.library", "gputensor", "gputensor tests",
    ]  # fmt: skip
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")]
    assert sorted(left) == sorted(kept)
