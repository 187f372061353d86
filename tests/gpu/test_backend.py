"""The option backend:cudaMallocAsync on a real GPU, in its own process: first use fixes it."""

import os
import subprocess
import sys

PROGRAM = """
import threading

import numpy as np

import gputensor as gt
from gputensor.graphs import CUDAGraph, graph

rng = np.random.default_rng()
assert gt.memory.get_allocator_backend() == "cudaMallocAsync"


def check_capture():
    value = gt.asarray(rng.standard_normal((256, 256)), device="cuda")
    unrelated = gt.ones(1000, device="cuda")
    g = CUDAGraph()
    with graph(g):
        doubled = value + value
        del unrelated
        total = gt.sum(doubled, axis=0)
        del doubled
    for _ in range(5):
        value[...] = gt.asarray(rng.standard_normal((256, 256)), device="cuda")
        others = [gt.ones((256, 256), device="cuda") for _ in range(3)]
        g.replay()
        np.testing.assert_allclose(total.numpy(), 2 * value.numpy().sum(axis=0), atol=1e-11)
        assert all((other.numpy() == 1).all() for other in others)
    del value, total, others
    g.reset()


def allocate(stop, failures):
    try:
        with gt.stream(gt.Stream(device="cuda")):
            while not stop.is_set():
                ones = gt.ones(100_000, device="cuda")
                assert float(gt.sum(ones + ones)) == 200_000
    except BaseException as error:
        failures.append(error)


with gt.Device("cuda:0"):
    check_capture()
    stop, failures = threading.Event(), []
    thread = threading.Thread(target=allocate, args=(stop, failures))
    thread.start()
    for _ in range(20):
        check_capture()
    stop.set()
    thread.join()
    assert not failures, failures

    # Other programs may use the device at the same time, so the check has several attempts.
    for attempt in range(8):
        big = gt.ones(1 << 30, dtype="uint8", device="cuda")
        del big
        gt.synchronize()
        kept = gt.memory.mem_get_info()[0]
        gt.memory.empty_cache()
        if gt.memory.mem_get_info()[0] - kept > 1000 << 20:
            break
    else:
        raise SystemExit("the driver's pool kept nothing across a synchronization")
print("ok")
"""


def test_the_drivers_pool_serves_what_is_not_captured(cuda):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "GPUTENSOR_ALLOC_CONF": "backend:cudaMallocAsync"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1] == "ok"
