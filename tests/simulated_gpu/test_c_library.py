"""libgputensor_program.so: the C example runs compiled programs in processes without Python."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gputensor as gt
from tests.support import simulated_gpu
from tests.support.programs import ahead_models
from tests.support.programs.c_program import CProgramProcess
from tests.unit.passes import test_prepare

COMPILER = shutil.which("gcc") or shutil.which("cc")
SHARED = str(228 << 10)
pytestmark = [
    pytest.mark.process(FAKE_CUDA_SHARED=SHARED),
    pytest.mark.skipif(COMPILER is None, reason="needs a C compiler on the path"),
]


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Compile the example; return it with the environment of a simulated GPU's process."""
    environment = simulated_gpu.environment(
        os.environ.get("FAKE_CUDA_SEED"), FAKE_CUDA_SHARED=SHARED
    )
    return CProgramProcess(COMPILER, tmp_path_factory.mktemp("c"), environment)


def given(array):
    return gt.asarray(array, device="cuda")


def check(model, example, path, rng, sizes):
    """Check that a model's file gives the same results from C as from Python."""
    program = model.compile(target=["sm_80", "h200"])
    program.save(path)
    for n in sizes:
        arrays = model.arrays(rng, n)
        wanted = [one.numpy() for one in model.results(program(*map(given, arrays)))]
        found = example.run(path, model.name, arrays, wanted)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", sorted(ahead_models.MODELS))
def test_results_are_those_of_python(name, example, rng, tmp_path):
    model = ahead_models.MODELS[name](rng)
    check(model, example, tmp_path / "model.gtp", rng, [1, 8])


def test_conditions_are_read_by_the_host(example, rng, tmp_path):
    def conditions(x, limit, *, weights):
        def body(carry):
            return gt.cond(gt.sum(carry) < 0, lambda c: c - 1, lambda c: c * weights["w"], carry)

        return gt.while_loop(lambda c: gt.max(gt.abs(c)) < limit, body, x), x + 1

    specs = gt.spec((ahead_models.ROWS, 5)), gt.spec(())
    arguments = ((5,), np.float32, 0), ((), np.float32, 0)
    model = ahead_models.Model(
        conditions, specs, {"w": np.full(5, 1.5, np.float32)}, arguments, (1, 4)
    )
    model.arrays = lambda rng, n: [
        rng.standard_normal((n, 5)).astype(np.float32), np.float32(rng.integers(1, 30))
    ]  # fmt: skip
    check(model, example, tmp_path / "model.gtp", rng, [1, 4, 4])


def test_state_and_weights_beside_the_program(example, rng, tmp_path):
    def step(x, *, weights, state):
        state["total"] += x * weights["w"]
        return state["total"] * 1

    weights, state = {"w": np.full(8, 2.0, np.float32)}, {"total": np.ones(8, np.float32)}
    gt.compile(step, gt.spec((8,)), weights=weights, state=state, target="h200").save(
        tmp_path / "step.gtp", weights="step.safetensors"
    )
    x = np.ones(8, np.float32)
    (found,) = example.run(tmp_path / "step.gtp", "step", [x], [x], RUNS="4")
    np.testing.assert_array_equal(found, 11)  # 1, and 2 in each of five runs
    (tmp_path / "step.safetensors").unlink()
    text = example.fails(tmp_path / "step.gtp", "step", [x], [x])
    assert "needs its weights, 'step.safetensors'" in text


def test_mistakes_have_one_line(example, rng, tmp_path):
    path, x = tmp_path / "one.gtp", np.ones((3, 4), np.float32)
    gt.compile(lambda x: x + 1, gt.spec((ahead_models.ROWS, 4)), target="h200").save(path)
    gt.compile(lambda x: x + 1, gt.spec((4,)), target="cuda").save(tmp_path / "plain.gtp")
    gt.compile(lambda x: x + 1, gt.spec((4,)), target="b200").save(tmp_path / "newer.gtp")
    path.with_name("cut.gtp").write_bytes(path.read_bytes()[:-100])
    gt.save_safetensors(test_prepare.arrays(rng), tmp_path / "mine.safetensors")
    late = test_prepare.compiled(tmp_path, "h200")
    late.save(tmp_path / "late.gtp", weights="mine.safetensors", prepared=False)
    name = "main"
    for text, arguments in {
        "gone.gtp: cannot be opened: No such file": ("gone.gtp", name, [x], [x]),
        "has another size than it declares": ("cut.gtp", name, [x], [x]),
        "plain.gtp: has no launches for GPUs; compile it with": ("plain.gtp", name, [x], [x]),
        "late.gtp: prepares its weights when it is loaded; save": ("late.gtp", name, [x], [x]),
        "newer.gtp: was compiled for sm_100 with 148": ("newer.gtp", name, [x], [x]),
        "function: got 'no'; expected main": ("one.gtp", "no", [x], [x]),
        "inputs of main: got 2; expected 1": ("one.gtp", name, [x, x], [x]),
        "inputs of main: got (float32[3, 4]); expected row-major": ("one.gtp", name, [x], [x]),
        "inputs of main: got (float64[4, 4])": ("one.gtp", name, [np.ones((4, 4))], [x]),
        "outputs of main: got 0; expected 1": ("one.gtp", name, [x[:1]], []),
        "output 0 of main: got float32[3, 4]; expected float32[1": ("one.gtp", name, [x[:1]], [x]),
    }.items():
        file, *rest = arguments
        error = example.fails(tmp_path / file, *rest)
        assert error.startswith("gputensor: ") and text in error and error.count("\n") == 1, error
    wanted = '"inputs": [{"name": "x", "dtype": "float32", "shape": ["n", 4]}]'
    assert wanted in example.describe(path)


def test_other_projects_build_with_cmake_and_pkg_config(tmp_path):
    from gputensor.cli.main import main

    folder = Path(gt.__file__).parent / "programs/c_library"
    root = Path(gt.__file__).parents[1] / "examples/c"
    if shutil.which("cmake"):
        build = ["cmake", "-S", root, "-B", tmp_path / "b", f"-Dgputensor_program_DIR={folder}"]
        subprocess.run(build, check=True, capture_output=True)
        subprocess.run(["cmake", "--build", tmp_path / "b"], check=True, capture_output=True)
        assert (tmp_path / "b/run_program").exists()
    if shutil.which("pkg-config"):
        command = ["pkg-config", "--cflags", "--libs", "gputensor_program"]
        environment = {**os.environ, "PKG_CONFIG_PATH": str(folder)}
        flags = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        output = ["-o", tmp_path / "program"]
        subprocess.run(
            [COMPILER, root / "run_program.c", *output, *flags.stdout.split()], check=True
        )
    assert main(["c_library"]) == 0
