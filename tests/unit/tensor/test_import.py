"""Importing is cheap, opens no device, and offers the public names."""

import importlib
import inspect
import os
import subprocess
import sys

import gputensor as gt

# Each runs in a fresh interpreter. Processor time, because tests share the machine.
COST = """
import time
start = time.process_time()
import numpy
middle = time.process_time()
import gputensor
print(time.process_time() - middle, middle - start)
"""
QUIET = """
import sys
import gputensor.graphs
maps = open('/proc/self/maps').read()
loaded = [name for name in ('libcuda.so', 'libcublas', 'libnvrtc') if name in maps]
heavy = [name for name in ('torch', 'cupy', 'scipy', 'safetensors', 'opt_einsum', 'cuda.bindings',
                           'gputensor.programs')
         if name in sys.modules]
print(loaded + heavy)
"""


def run(program, **variables):
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True,
        env=os.environ | variables,
    )  # fmt: skip
    return result.stdout.strip()


def test_import_costs_at_most_150_ms_more_than_numpy(tmp_path):
    # The first run compiles the modules; the variables let it keep what it compiles.
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    costs = [[float(one) for one in run(COST, **kept).split()] for _ in range(5)]
    ours, numpys = map(min, zip(*costs, strict=True))
    # The 150 ms are those of a machine that imports NumPy in 150 ms; a slower one takes longer.
    assert ours <= max(0.15, numpys)


def test_import_loads_nothing_that_is_not_needed():
    assert run(QUIET) == "[]"


def test_modules_load_at_first_use():
    for name in ("blas", "memory"):
        assert inspect.ismodule(getattr(gt, name))
        assert name in dir(gt)
    assert importlib.import_module("gputensor.blas") is gt.blas


def test_unknown_name_raises_attribute_error():
    assert not hasattr(gt, "no_such_name")


def test_errors_and_version_are_public():
    assert issubclass(gt.OutOfMemoryError, MemoryError)
    assert issubclass(gt.DriverError, gt.GpuTensorError)
    assert gt.__version__.count(".") == 2
    assert gt.__array_api_version__ == "2025.12"
