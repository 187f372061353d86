"""Fixtures of the conformance tests: the same promises held on every device.

``device`` is a device number: the embedded host device and, where there is a GPU, CUDA device 0;
``where`` is the same by name. ``place`` is the number of one of these, or of a host device that
defers its work.
``calls`` is the driver table itself, also on host devices that defer work under several seeds; a
host device is fresh for each test, and must be empty again at its end.
"""

import pytest

from gputensor._driver import registry
from tests.support.driver_calls import Calls
from tests.support.tensor_devices import NAMES, device_of

CAPACITY = 512 << 20
SEEDS = {f"deferred-{seed}": seed for seed in (1, 2, 3, 4)}


def cuda_or_skip():
    if registry.cuda_device_count() == 0:
        pytest.skip("needs a CUDA device: run this on a machine with an NVIDIA GPU and driver")
    return 0


@pytest.fixture(params=["host", "cuda"])
def device(request):
    """The number of a device to run on."""
    return -1 if request.param == "host" else cuda_or_skip()


@pytest.fixture(params=["host", "cuda"], scope="module")
def where(request):
    """The device argument that tensors are made with."""
    if request.param == "cuda":
        cuda_or_skip()
    return request.param


@pytest.fixture(params=NAMES, scope="module")
def place(request):
    """The number of a device to run on; host devices that defer work are among them."""
    return cuda_or_skip() if request.param == "cuda" else device_of(request.param)


@pytest.fixture(params=["host", *SEEDS, "cuda"])
def calls(request):
    """The driver table of a device, callable from Python."""
    if request.param == "cuda":
        ordinal = cuda_or_skip()
        registry.observe(ordinal)
        yield Calls(ordinal)
        assert Calls(ordinal).synchronize() == 0
        return
    number = registry.open_host(capacity=CAPACITY, seed=SEEDS.get(request.param))
    yield Calls(number)
    left = registry.leaks(number)
    registry.close_host(number)
    assert not any(left.values()), f"the test left {left}"
