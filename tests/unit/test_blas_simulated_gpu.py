"""The way of a product on a GPU, without one: plans, padding, workspaces, captures, tuning.

A driver and a BLAS made for tests (fake_gpu.cpp, fake_cublas.cpp) run the same calls on the CPU, at
once or deferred in an order that a seed gives. What only the real libraries can show (their
arithmetic, their speed, what they refuse) is in tests/gpu.
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
def libraries(tmp_path_factory):
    """A folder with the two libraries of BLAS and the driver."""
    folder = tmp_path_factory.mktemp("gpu")
    includes = [f"-I{ROOT}", f"-I{sysconfig.get_paths()['include']}"]
    options = [COMPILER, "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", *includes]
    driver = folder / "libcuda-fake.so"
    subprocess.run(
        [*options, "-O0", "-o", str(driver), str(ROOT / "tests/unit/fake_gpu.cpp"), "-ldl"],
        check=True,
    )
    for name in ("libcublasLt.so.13", "libcublas.so.13"):
        subprocess.run(
            [*options, "-O1", "-o", str(folder / name), str(ROOT / "tests/unit/fake_cublas.cpp")]
            + ["-ldl"],
            check=True,
        )
    return folder


@pytest.mark.parametrize("is_deferred", [False, True], ids=["at-once", "deferred"])
@pytest.mark.parametrize(
    "case",
    [
        "views",
        "paddings",
        "epilogues",
        "scaled",
        "attributes",
        "batches",
        "groups",
        "streams",
        "captures",
        "tuning",
    ],
)
def test_products_on_a_simulated_gpu(libraries, case, is_deferred):
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("CUDA_", "FAKE_", "GPUTENSOR_", "CUBLAS_"))
    }
    environment |= {
        "GPUTENSOR_LIBCUDA": str(libraries / "libcuda-fake.so"),
        "LD_LIBRARY_PATH": str(libraries),
        "GPUTENSOR_KERNEL_CACHE": str(libraries / "kernels"),
        "PYTHONPATH": str(ROOT),
    }
    if is_deferred:
        environment["FAKE_CUDA_SEED"] = str(np.random.default_rng().integers(1, 1 << 31))
    command = [sys.executable, str(ROOT / "tests/unit/simulated_blas_cases.py"), case]
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    seed = environment.get("FAKE_CUDA_SEED")
    assert result.returncode == 0, f"seed {seed}\n{result.stderr}"
    assert result.stdout.strip() == "ok"
