"""The repository follows its layout rules, and each rule finds an example that breaks it."""

from pathlib import Path

import pytest

from tests.project import layout_rules as rules
from tests.project import rooms_rules

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("rule", (*rules.RULES, *rooms_rules.RULES), ids=lambda rule: rule.__name__)
def test_tree_keeps_the_rule(rule):
    faults = list(rule(ROOT))
    assert not faults, "\n" + "\n".join(faults)


def test_rules_look_at_every_package():
    seen = {rules.layer_of(path, ROOT) for path in rules.files(ROOT, (".pyx",), ("gputensor",))}
    assert seen >= {"_driver", "_alloc", "streams", "_kernels", "blas", "tensor"}


def write_file(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("_alloc/pool.py", "from gputensor.tensor.core import Tensor"),
        ("_alloc/core/pool.pxi", "    from gputensor.streams.current cimport current_stream"),
        ("_alloc/core/__init__.pxd", "cimport gputensor.blas.plan as plan"),
        ("_alloc/pool.py", "import os, gputensor.memory"),
        ("_alloc/pool.py", "from ..tensor import dtypes"),
        ("_alloc/pool.py", "from .. import tensor"),
        ("_alloc/pool.py", "from gputensor import (\n    errors,\n    memory,\n)"),
        ("_alloc/pool.py", "import gputensor as gt"),
        ("_alloc/pool.py", 'module = importlib.import_module("gputensor.tensor.core")'),
        ("_kernels/fill.py", "from gputensor.blas import plan"),
        ("memory.py", "from gputensor import cli"),
        ("memory.py", "from . import device"),
        ("errors.py", "from gputensor._driver import registry"),
        ("blas/plan.py", "from tests.unit import layout_rules"),
        ("novelty/plan.py", "import os"),
    ],
)
def test_import_to_the_right_is_found(tmp_path, name, line):
    root = write_file(tmp_path, f"gputensor/{name}", f'"""Opening."""\n{line}\n')
    assert len(list(rules.imports_to_the_right(root))) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("_alloc/pool.py", "from gputensor.errors import OutOfMemoryError"),
        ("_alloc/core/pool.pxi", "from gputensor._alloc.core cimport Block"),
        ("_alloc/pool.py", "from . import options"),
        ("tensor/core/tensor.pxi", "from gputensor.blas.plan cimport plan_find"),
        ("tensor/tensor.py", '"""Doc.\n\nfrom gputensor import memory\n>>> import gputensor\n"""'),
        ("_alloc/pool.py", "# import gputensor.memory"),
        ("cli/main.py", "from gputensor import memory"),
        ("__init__.py", "from gputensor.cli import main"),
        ("_alloc/pool.py", "import numpy, gputensors.tensor"),
    ],
)
def test_import_to_the_left_passes(tmp_path, name, text):
    root = write_file(tmp_path, f"gputensor/{name}", text + "\n")
    assert not list(rules.imports_to_the_right(root))


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("_driver/host/host.pxi", 'path = "libcuda.so.1"', 1),
        ("_driver/cuda/cuda.pxi", 'path = "libcuda.so.1"', 0),
        (
            "tensor/core/tensor.pxi",
            'cdef extern from *:\n    """\n    dlopen("libcuda.so");\n    """',
            1,
        ),
        ("tensor/core/tensor.pxi", "cublasCreate_v2(&handle)", 1),
        ("tensor/native.h", "int x = cublasCreate_v2;", 1),
        ("blas/plan/plan.pxi", "cublasCreate_v2(&handle)", 0),
        ("tensor/core/tensor.pxi", "x = 1  # as cublas does\n", 0),
        ("tensor/tensor.py", '"""Unlike libcuda and cublas."""', 0),
    ],
)
def test_foreign_library_named_outside_its_place_is_found(tmp_path, name, text, count):
    root = write_file(tmp_path, f"gputensor/{name}", text + "\n")
    assert len(list(rules.foreign_names(root))) == count


@pytest.mark.parametrize(("lines", "count"), [(rules.MAX_LINES, 0), (rules.MAX_LINES + 1, 1)])
def test_long_file_is_found(tmp_path, lines, count):
    root = write_file(tmp_path, "tests/unit/test_long.py", "x = 1\n" * lines)
    assert len(list(rules.long_files(root))) == count


@pytest.mark.parametrize(("lines", "count"), [(1000, 0), (1001, 1)])
def test_large_folder_is_found(tmp_path, lines, count):
    write_file(tmp_path, "gputensor/_alloc/core/block.pyx", "x = 1\n" * lines)
    root = write_file(tmp_path, "gputensor/_alloc/core/lists/list.pyx", "x = 1\n" * 1000)
    assert len(list(rules.large_folders(root))) == count


@pytest.mark.parametrize(
    ("name", "count"),
    [("_alloc/utils.py", 1), ("common/block.pyx", 1), ("_alloc/_base.pxd", 1), ("block.py", 0)],
)
def test_vague_file_name_is_found(tmp_path, name, count):
    root = write_file(tmp_path, f"gputensor/{name}", "x = 1\n")
    assert len(list(rules.vague_names(root))) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def malloc(int device): pass", 1),
        ("cpdef size_t malloc(int device): pass", 1),
        ("cdef class Block:\n    pass", 1),
        ("class Block:\n    pass", 1),
        ("def _malloc(): pass\ncdef int malloc(): pass\ncdef class _Block:\n    pass", 0),
    ],
)
def test_extension_without_stub_is_found(tmp_path, text, count):
    root = write_file(tmp_path, "gputensor/streams/block.pyx", text + "\n")
    assert len(list(rules.missing_stubs(root))) == count
    write_file(root, "gputensor/streams/block.pyi", "")
    write_file(root, "gputensor/_alloc/block.pyx", text + "\n")  # a private package needs none
    assert not list(rules.missing_stubs(root))


def test_package_without_reasons_is_found(tmp_path):
    for package in rules.PACKAGES:
        write_file(tmp_path, f"gputensor/{package}/DESIGN.md", "# D\n\n## Why not a lock\n")
    assert not list(rules.missing_designs(tmp_path))
    write_file(tmp_path, "gputensor/blas/DESIGN.md", "# Why we did it\nwhy not\n")
    (tmp_path / "gputensor/streams/DESIGN.md").unlink()
    assert len(list(rules.missing_designs(tmp_path))) == 2


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("gputensor/block.py", "import os\n", 1),
        ("gputensor/block.h", "#pragma once\nint x;\n", 1),
        ("gputensor/block.h", "#pragma once\n// What it owns.\n", 0),
        ("gputensor/block.pyx", "# cython: profile=False\n# What it owns.\n", 0),
        ("gputensor/block.py", '"""What it owns."""\n', 0),
        ("gputensor/__init__.py", "", 0),
    ],
)
def test_file_without_opening_is_found(tmp_path, name, text, count):
    root = write_file(tmp_path, name, text)
    assert len(list(rules.missing_openings(root))) == count


@pytest.mark.parametrize("folder", ["ro" + "ot", "wo" + "rk", "o" + "pt", "ho" + "me"])
def test_machine_path_is_found(tmp_path, folder):
    root = write_file(tmp_path, "docs/memory.md", f"Run /{folder}/somebody/python.\n")
    assert len(list(rules.machine_paths(root))) == 1
    write_file(root, "docs/memory.md", "Run bin/python of the environment.\n")
    assert not list(rules.machine_paths(root))


@pytest.mark.parametrize(("declared", "faults"), [("    cdef Page* page\n", 0), ("", 1)])
def test_loop_over_records_of_no_type_is_found(tmp_path, declared, faults):
    text = f"cdef int count(Page* head):\n{declared}    for page in each(head):\n        pass\n"
    root = write_file(tmp_path, "gputensor/_alloc/pool.pxi", text)
    assert len(list(rules.undeclared_records(root))) == faults
