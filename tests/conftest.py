"""The fixtures of all tests, and one rule: no module leaves host devices open behind it.

There are 31 further host devices. If a module leaves one open, later modules have one device fewer
and find an open device where they expect none.

``seed`` and ``rng`` are fresh for each test, and a failure report shows the seed. ``device`` is the
number of a host device that only this test uses: once it runs work at once, once it defers it; in
tests/conformance it is the host or CUDA. ``deferred`` is a deferring device that the tests of a
module share. ``conf`` changes the allocator's settings until the test ends.

Where there is no GPU, the default device is ``host:1``, which no test names. So a tensor that a
test makes without a device, beside tensors on the host device, is an error everywhere, and not only
where a GPU is the default device.
"""

import fcntl
import gc
import os
import random

import numpy as np
import pytest

from gputensor import Device, memory
from gputensor._driver import registry
from gputensor.errors import DeviceError
from tests.support.allocator_settings import restored
from tests.support.processes import scheduling
from tests.support.tensor_devices import SEEDS, device_of


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    return scheduling.scheduling(config, log)


default = []  # the default device, if it is host:1


def pytest_configure():
    if "GPUTENSOR_DEVICE" in os.environ or registry.cuda_device_count():
        return
    # Processes that tests start find the default device themselves.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUTENSOR_HOST_DEVICES", "2")
        patch.setenv("GPUTENSOR_DEVICE", "host:1")
        default.append(Device())


def open_devices():
    """The numbers of the further host devices that are open."""
    found = set()
    for number in range(-2, -33, -1):
        try:
            registry.leaks(number)
        except (DeviceError, ValueError):
            continue
        found.add(number)
    return found


def set_aside():
    """Hide long-lived objects from the garbage collector, which many tests run often."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish():
    set_aside()


@pytest.fixture(scope="module", autouse=True)
def no_devices_left_open():
    set_aside()  # the modules that earlier tests have imported
    before = open_devices()
    yield
    # The devices of the tensor tests stay open for the whole run.
    kept = {device_of(name) for name in SEEDS} if open_devices() - before else set()
    left = open_devices() - before - kept
    assert not left, f"the module left host devices {sorted(left)} open"
    assert not default or Device() == default[0], f"the module left {Device()} current"


def fresh_seed():
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    return seed


@pytest.fixture
def seed():
    """A fresh seed; the failure report shows it."""
    return fresh_seed()


@pytest.fixture
def rng(seed):
    """Random numbers from a fresh seed."""
    return np.random.default_rng(seed)


@pytest.fixture(params=["immediate", "deferred"])
def device(request):
    """The number of a host device of 256 MiB, closed after the test."""
    seed = None if request.param == "immediate" else fresh_seed()
    number = registry.open_host(capacity=256 << 20, seed=seed)
    yield number
    memory.record_memory_history(None)
    registry.close_host(number)


@pytest.fixture(autouse=True)
def turn(request, tmp_path_factory):
    """With several pytest-xdist workers, give a test marked ``alone`` the GPU to itself.

    Other tests share one lock; a test marked ``alone`` takes it exclusively. A test holds the gate
    while it waits for the lock, so no further test begins meanwhile.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ or registry.cuda_device_count() == 0:
        yield
        return
    folder = tmp_path_factory.getbasetemp().parent
    is_alone = request.node.get_closest_marker("alone") is not None
    with open(folder / "gate", "w") as gate, open(folder / "turn", "w") as lock:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@pytest.fixture(scope="module")
def deferred():
    """The number of a host device that defers work, with a fresh seed; closed after the module."""
    number = registry.open_host(capacity=1 << 30, seed=fresh_seed())
    yield number
    gc.collect()
    registry.host_run_all(number)
    registry.close_host(number)


@pytest.fixture
def conf():
    """Change settings of the allocator; the previous settings return after the test."""
    with restored():
        yield memory.set_allocator_settings
