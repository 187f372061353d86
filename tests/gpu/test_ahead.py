"""Programs compiled ahead of time on a GPU: from a file, in a process without a compiler."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gputensor as gt
from gputensor.blas.libraries import library_path
from tests.support.programs import ahead_models, nested_control
from tests.support.programs.c_program import CProgramProcess

COMPILER = shutil.which("gcc") or shutil.which("cc")

CHILD = (
    ahead_models.WITHOUT_COMPILER
    + """
path, folder, *sizes = sys.argv[1:]
with gt.load_program(path, device="cuda") as program:
    for n in sizes:
        given = np.load(f"{folder}/{n}.in.npz")
        found = program(*(gt.asarray(given[name], device="cuda") for name in given.files))
        found = found if isinstance(found, tuple) else (found,)
        np.savez(f"{folder}/{n}.out.npz", *(one.numpy() for one in found))
"""
)


def test_conditions_are_set_by_a_kernel_of_the_file(cuda, rng, tmp_path):
    def opened(model, *specs, weights):
        gt.compile(model, *specs, weights=weights, target=["sm_80", "native"]).save(
            tmp_path / "m.gtp"
        )
        return gt.load_program(tmp_path / "m.gtp", device="cuda")

    program, w = nested_control.check("cuda", rng, opened)
    nested_control.check_in_capture("cuda", rng, program, w)


@pytest.mark.parametrize("name", sorted(ahead_models.MODELS))
def test_a_file_needs_no_compiler(name, cuda, rng, tmp_path):
    model = ahead_models.MODELS[name](rng)
    program = model.compile(target=["sm_80", "native"])
    program.save(tmp_path / "model.gtp")
    wanted = {}
    for n in model.sizes:
        arrays = model.arrays(rng, n)
        np.savez(tmp_path / f"{n}.in.npz", *arrays)
        found = model.results(program(*[gt.asarray(one, device="cuda") for one in arrays]))
        wanted[n] = [one.numpy() for one in found]
    command = [sys.executable, "-c", CHILD, str(tmp_path / "model.gtp"), str(tmp_path)]
    environment = {**os.environ, "GPUTENSOR_KERNEL_CACHE": "0"}
    done = subprocess.run(
        [*command, *map(str, model.sizes)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for n, results in wanted.items():
        found = np.load(tmp_path / f"{n}.out.npz")
        for at, one in enumerate(results):
            np.testing.assert_array_equal(found[f"arr_{at}"], one)


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler on the path")
@pytest.mark.parametrize("name", sorted(ahead_models.MODELS))
def test_a_file_runs_without_python(name, cuda, rng, tmp_path):
    model = ahead_models.MODELS[name](rng)
    program = model.compile(target=["sm_80", "native"])
    program.save(tmp_path / "model.gtp")
    gt.matmul(gt.ones((4, 4), device="cuda"), gt.ones((4, 4), device="cuda"))  # loads cuBLAS
    folders = [os.path.dirname(library_path(one)) for one in ("cublasLt", "cublas")]
    searched = os.pathsep.join([*folders, os.environ.get("LD_LIBRARY_PATH", "")])
    example = CProgramProcess(COMPILER, tmp_path, {"LD_LIBRARY_PATH": searched})
    for n in (1, 8, 16):
        arrays = model.arrays(rng, n)
        found = model.results(program(*[gt.asarray(one, device="cuda") for one in arrays]))
        wanted = [one.numpy() for one in found]
        for one, other in zip(
            example.run(tmp_path / "model.gtp", name, arrays, wanted), wanted, strict=True
        ):
            np.testing.assert_array_equal(one, other)
