"""The fault sweep over calls that load kernels, in a process whose driver is fake_gpu.cpp.

A request whose kernels are not loaded runs again and again; in run k the k-th driver call is
refused. After each run every loaded module belongs to a kernel, and the request succeeds.
"""

import contextlib
import ctypes
import os

from gputensor._driver import registry
from gputensor._kernels import launch
from gputensor.errors import GpuTensorError

DEVICE, STATUSES = 0, (2, 999)


def live_modules():
    return ctypes.CDLL(os.environ["GPUTENSOR_LIBCUDA"]).fake_live_modules()


def check_modules(before, what):
    loaded = len(launch.loaded_programs(DEVICE))
    assert live_modules() - before == loaded, f"{what}: {live_modules() - before} for {loaded}"


def run_refused(request, k, status):
    """Run once with the k-th call refused; return that call's name, or None if there was none."""
    launch.forget_kernels(DEVICE)
    before = live_modules()
    registry.start_trace(DEVICE)
    registry.fail_call(DEVICE, k, status)
    with contextlib.suppress(GpuTensorError):
        request()
    registry.fail_call(DEVICE, 0)
    trace = registry.take_trace(DEVICE)
    name = trace[k - 1][0] if len(trace) >= k else None
    check_modules(before, f"after call {k} ({name}) gave {status}")
    request()
    check_modules(before, f"after the request that followed call {k} ({name})")
    return name


def sweep(request):
    """Refuse each call of a request once with each status; return the names of those calls."""
    registry.observe(DEVICE)
    seen = set()
    request()
    for status in STATUSES:
        k = 1
        while (name := run_refused(request, k, status)) is not None:
            seen.add(name)
            k += 1
    return seen
