"""What holds for all tests: no module leaves host devices open behind it.

There are 31 further host devices; each one left open is missing to the modules that come later, and
is an open device where they expect none.
"""

import gc

import numpy as np
import pytest

from gputensor._driver import registry
from gputensor.errors import DeviceError
from tests.support.tensor_devices import SEEDS, device_of


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


@pytest.fixture(scope="module", autouse=True)
def no_devices_left_open():
    before = open_devices()
    yield
    # Those of the tensor tests stay open for the whole run.
    kept = {device_of(name) for name in SEEDS} if open_devices() - before else set()
    left = open_devices() - before - kept
    assert not left, f"the module left host devices {sorted(left)} open"


@pytest.fixture(scope="module")
def deferred():
    """The number of a host device that defers work, with a fresh seed; closed after the module."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"deferred device: seed {seed}")
    number = registry.open_host(capacity=1 << 30, seed=seed)
    yield number
    gc.collect()
    registry.host_run_all(number)
    registry.close_host(number)
