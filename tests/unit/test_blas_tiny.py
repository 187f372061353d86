"""Tiny products: which they are, their program, and every way of it on a simulated GPU.

A driver and a BLAS made for tests (fake_gpu.cpp, fake_cublas.cpp) run the calls on the CPU, at once
or deferred in an order that a seed gives. What only a GPU can show (its time) is in tests/gpu.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from gputensor._kernels import nvrtc
from gputensor.blas.tiny import tile_of
from gputensor.blas.tiny_source import source
from gputensor.errors import DeviceError
from tests.unit.kernel_compiler import COMPILER

ROOT = Path(__file__).resolve().parents[2]
FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = 9, 10, 11, 12
CASES = ["layouts", "views", "epilogues", "batches", "special", "captures", "bits", "choices"]


def has_nvrtc():
    try:
        nvrtc.version()
    except DeviceError:
        return False
    return True


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A folder with the driver and the two libraries of BLAS."""
    if COMPILER is None:
        pytest.skip("needs g++ on the path")
    folder = tmp_path_factory.mktemp("gpu")
    includes = [f"-I{ROOT}", f"-I{sysconfig.get_paths()['include']}"]
    options = [COMPILER, "-std=c++17", "-O0", "-shared", "-fPIC", "-fvisibility=hidden", *includes]
    for name, text in (
        ("libcuda-fake.so", "fake_gpu.cpp"),
        ("libcublasLt.so.13", "fake_cublas.cpp"),
        ("libcublas.so.13", "fake_cublas.cpp"),
    ):
        path = str(ROOT / "tests/unit" / text)
        subprocess.run([*options, "-o", str(folder / name), path, "-ldl"], check=True)
    return folder


@pytest.mark.parametrize("is_deferred", [False, True], ids=["at-once", "deferred"])
@pytest.mark.parametrize("case", CASES)
def test_tiny_products_on_a_simulated_gpu(libraries, case, is_deferred):
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
    command = [sys.executable, str(ROOT / "tests/unit/tiny_cases.py"), case]
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    seed = environment.get("FAKE_CUDA_SEED")
    assert result.returncode == 0, f"seed {seed}\n{result.stderr}"
    assert result.stdout.strip() == "ok"


def test_only_products_of_one_wave_and_few_terms_are_tiny():
    assert tile_of(FLOAT32, 64, 64, 64) == tile_of(BFLOAT16, 128, 128, 128) == 16
    assert tile_of(FLOAT32, 128, 128, 256) == 16
    assert tile_of(FLOAT32, 256, 256, 128) == 32
    assert tile_of(FLOAT16, 256, 256, 64) == 0
    for dtype, *sizes in (
        (FLOAT64, 8, 8, 8),
        (BFLOAT16, 128, 128, 129),
        (FLOAT32, 128, 128, 257),
        (FLOAT32, 256, 256, 129),
        (FLOAT32, 4096, 4096, 1),
        (FLOAT32, 1 << 40, 1 << 40, 1),
        (FLOAT32, 8, 8, 8, 1 << 40),
        (FLOAT32, 1, 1, 1, 133),
    ):
        assert tile_of(dtype, *sizes) == 0, sizes


@pytest.mark.skipif(not has_nvrtc(), reason="needs NVRTC: cuda-python and its wheel")
@pytest.mark.parametrize("tile", [16, 32])
@pytest.mark.parametrize("output", ["float32", "float16", "bfloat16"])
def test_program_compiles_without_local_memory(output, tile):
    for target in ("sm_80", "sm_90"):
        nvrtc.compile_source(source(output, output, tile), target)
    text = nvrtc.compile_source(source(output, "float32", tile), "compute_90").decode()
    assert ".local" not in text
    assert text.count("ld.shared.v4.f32") >= 2
