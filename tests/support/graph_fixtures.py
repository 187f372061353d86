"""The devices that tests of graphs run on."""

import random

import pytest

from gputensor._driver import registry
from gputensor.streams import Device


@pytest.fixture(params=["immediate", "deferred"])
def device(request):
    """A host device that runs work at once, and one that defers it; it is the current one."""
    seed = None if request.param == "immediate" else random.SystemRandom().getrandbits(32)
    number = registry.open_host(capacity=64 << 20, seed=seed)
    with Device(number):
        yield number
    registry.close_host(number)
