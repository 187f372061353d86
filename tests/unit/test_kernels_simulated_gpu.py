"""The CUDA executor without a GPU: layouts, keys, parameter structs, launches and kernel text.

A driver library made for tests (fake_gpu.cpp) runs the generated kernels, compiled for the CPU, on
the embedded device's streams: at once, or deferred in an order that a seed gives. What only a GPU
can show (its own arithmetic, memory coalescing, speed) is in tests/gpu.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from tests.unit.kernel_compiler import COMPILER

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++ on the path")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    output = tmp_path_factory.mktemp("gpu") / "libcuda-fake.so"
    includes = [f"-I{ROOT}", f"-I{sysconfig.get_paths()['include']}"]
    subprocess.run(
        [COMPILER, "-std=c++17", "-O0", "-shared", "-fPIC", "-fvisibility=hidden", *includes]
        + ["-o", str(output), str(ROOT / "tests/unit/fake_gpu.cpp"), "-ldl"],
        check=True,
    )
    return output


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


def run(library, kernels, case, **settings):
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("CUDA_", "FAKE_"))
    }
    environment |= {"GPUTENSOR_LIBCUDA": str(library), "PYTHONPATH": str(ROOT)}
    environment |= {"GPUTENSOR_KERNEL_CACHE": str(kernels), **settings}
    command = [sys.executable, str(ROOT / "tests/unit/simulated_gpu_cases.py"), case]
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "ok"


@pytest.mark.parametrize("case", ["elementwise", "layouts", "reductions", "indices"])
def test_cuda_executor_agrees_with_numpy(library, kernels, case):
    run(library, kernels, case)
    # The compiled files are there now, so a second process with another order costs little.
    run(library, kernels, case, FAKE_CUDA_SEED=str(np.random.default_rng().integers(1 << 31)))


def test_known_kernel_is_compiled_once_and_found_on_disk(library, kernels):
    run(library, kernels, "known_calls")
    before = sorted(path.name for path in kernels.iterdir())
    run(library, kernels, "known_calls")
    assert sorted(path.name for path in kernels.iterdir()) == before
