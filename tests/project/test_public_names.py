"""`dir` of a package lists its public names and no others."""

import ast
import inspect
from pathlib import Path

import pytest

import gputensor as gt
from tests.project.peer_names import TORCH_CUDA
from tests.support import public_stubs

# The array API standard and packaging tools need these in the package.
PROTOCOL = {"__array_api_version__", "__array_namespace_info__", "__version__"}
PACKAGES = {
    "gt": gt,
    "sharing": gt.sharing,
    "blas": gt.blas,
    "memory": gt.memory,
    "graphs": gt.graphs,
    "lib": gt.lib,
    "lib.stride_tricks": gt.lib.stride_tricks,
    "device": gt.device,
    "fft": gt.fft,
    "linalg": gt.linalg,
    "polynomial": gt.polynomial,
    "polynomial.polynomial": gt.polynomial.polynomial,
    "special": gt.special,
    "random": gt.random,
}


@pytest.mark.parametrize("name", PACKAGES)
def test_dir_lists_public_names_only(name):
    package = PACKAGES[name]
    listed = dir(package)
    assert set(listed) >= set(package.__all__)
    assert {entry for entry in listed if entry.startswith("_")} <= PROTOCOL
    for entry in listed:
        value = getattr(package, entry)
        if inspect.ismodule(value):
            assert entry in (*gt._MODULES, "tensor", "tunable", "stride_tricks"), entry


@pytest.mark.parametrize("name", PACKAGES)
def test_public_names_have_a_docstring(name):
    package = PACKAGES[name]
    missing = [
        entry
        for entry in dir(package)
        if callable(getattr(package, entry)) and not getattr(package, entry).__doc__
    ]
    assert not missing


def test_each_name_of_torch_cuda_is_here_or_has_a_reason():
    page = (Path(__file__).parents[2] / "docs" / "streams.md").read_text()
    rows = page[page.index("## PyTorch names that are not here") :].partition("What has")[0]
    left_out = " ".join(line.split("|")[1] for line in rows.splitlines() if line.startswith("|"))
    here = {name for name in TORCH_CUDA if hasattr(gt.cuda, name)}
    assert here <= set(gt.cuda.__all__)
    assert {name for name in TORCH_CUDA if f"`{name}`" not in left_out} <= here


def parts(text):
    """Yield the statements of a stub, independently of their order and layout."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name, alias.asname) for alias in node.names)
        else:
            yield ast.dump(node)


@pytest.mark.parametrize(
    ("path", "made"),
    [
        (public_stubs.PACKAGE, public_stubs.package_stub),
        (public_stubs.METHODS, public_stubs.method_stub),
    ],
    ids=["package", "methods"],
)
def test_stub_says_what_the_tables_say(path, made):
    assert set(parts(path.read_text())) == set(parts(made())), "run tests/support/public_stubs.py"


def test_stubs_have_every_method():
    core = public_stubs.METHODS.with_name("core") / "__init__.pyi"
    named = set()
    for node in ast.walk(ast.parse(core.read_text() + public_stubs.METHODS.read_text())):
        if isinstance(node, ast.ClassDef) and node.name in ("Tensor", "Methods"):
            for one in node.body:
                targets = getattr(one, "targets", [getattr(one, "target", one)])
                named |= {getattr(part, "name", getattr(part, "id", None)) for part in targets}
    assert not {name for name in dir(gt.Tensor) if name[0] != "_"} - named


def test_results_that_are_not_one_tensor_are_said():
    x = gt.ones((2, 2), device="host")
    index = gt.asarray([[0, 1]], device="host")
    arguments = {
        "array_split": (2,), "chunk": (2,), "concat": (), "cumsum": (0,), "gather": (0, index),
        "index_select": (0, index[0]), "norm": (), "permute": ((1, 0),), "quantile": (0.5,),
        "repeat": (2,), "split": (2,), "stack": (), "std_mean": (), "take_along_axis": (index, 0),
        "tensordot": (x, 1), "unsqueeze": (0,), "unstack": (), "var_mean": (),
    }  # fmt: skip
    for name, more in arguments.items():
        first = [x, x] if name in ("concat", "stack") else x
        result = getattr(gt, name)(first, *more)
        said = public_stubs.RESULTS.get(name, "Tensor").partition("[")[0]
        assert type(result).__name__ == said, name
