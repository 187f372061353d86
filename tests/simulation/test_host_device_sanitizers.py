"""The host device under ThreadSanitizer and AddressSanitizer: no race, no bad access, no leak."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler on the path")
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_on_a_host_device_are_clean(tmp_path, sanitizer):
    program = tmp_path / "stress"
    compiled = subprocess.run(
        [
            COMPILER, "-std=c++17", "-O0", "-g1", f"-fsanitize={sanitizer}", "-pthread",
            f"-I{ROOT}", f"-I{sysconfig.get_paths()['include']}", "-o", str(program),
            str(ROOT / "tests/simulation/driver_stress.cpp"),
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    if "cannot find" in compiled.stderr:
        pytest.skip(f"needs the {sanitizer} sanitizer's runtime library")
    assert compiled.returncode == 0, compiled.stderr
    options = {"TSAN_OPTIONS": "exitcode=66", "ASAN_OPTIONS": "detect_leaks=1"}
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | options
    result = subprocess.run([str(program)], capture_output=True, text=True, env=environment)
    if "unexpected memory mapping" in result.stderr:
        pytest.skip("this kernel's address layout is not one that the sanitizer supports")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["peers left 0"] * 3 + ["left 0 ran 448"] * 3
