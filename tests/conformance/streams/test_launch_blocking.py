"""CUDA_LAUNCH_BLOCKING=1: each call waits for its work, and raises the error of that work."""

import os
import subprocess
import sys

import pytest

from gputensor._driver import registry

DEFERRED = """
from gputensor._driver import registry
import gputensor as gt, numpy as np
device = registry.open_host(seed=5)
with gt.Device(device):
    stream = gt.Stream()
    with gt.stream(stream):
        for turn in range(50):
            x = gt.ones(1000) * turn
            assert stream.query()
        g = gt.graphs.CUDAGraph()
    with gt.graphs.graph(g):
        y = x + 1
    g.replay()
    assert gt.current_stream().query()
    assert (y.numpy() == 50).all()
"""
KERNEL = """
import gputensor as gt
kernel = gt.RawKernel('extern "C" __global__ void stray(float* x) { x[1ull << 46] = 1; }', "stray")
x = gt.ones(10, device="cuda:0")
try:
    kernel((1,), (32,), (x,))
except gt.DriverError as error:
    print(type(error).__name__, error)
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CUDA_LAUNCH_BLOCKING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_device_that_defers_work_runs_each_call_to_its_end():
    done = run(DEFERRED)
    assert (done.returncode, done.stderr) == (0, "")


FAULT = """
from gputensor._driver import registry
from tests.support.driver_calls import Calls
import ctypes
device = registry.open_host(seed=5)
calls = Calls(device)
ptr = calls.make("mem_alloc", 4096)
assert calls.mem_free(ptr) == 0
print(calls.fill_async(ptr, 1, 4, 16, 0), calls.stream_query(0))
"""


def test_the_call_itself_returns_the_error_of_its_work():
    assert run(FAULT).stdout.split()[0] == "700"


def test_the_failing_kernel_is_named():
    if registry.cuda_device_count() == 0:
        pytest.skip("needs an NVIDIA GPU and its driver library")
    done = run(KERNEL)
    assert "stray" in done.stdout and "kernel_launch failed" in done.stdout, done
