"""Fixtures of the tests of failing requests: devices, settings, observers."""

import contextlib

import pytest

from gputensor import memory
from gputensor._alloc.explain import advice as oom_advice
from gputensor._alloc.explain import out_of_memory
from gputensor._driver import registry
from gputensor.errors import DeviceError

MIB = 1 << 20


@pytest.fixture
def open_device(monkeypatch):
    """Open host devices, of 256 MiB by default; the end of the test closes them with all memory.

    Replays have ample time, so that a busy machine finds the same options as an idle one.
    """
    monkeypatch.setenv(oom_advice.VARIABLE, "60")
    opened = []

    def open_one(capacity=256 * MIB, seed=None):
        opened.append(registry.open_host(capacity=capacity, seed=seed))
        return opened[-1]

    yield open_one
    memory.record_memory_history(None)
    for number in set(opened):
        with contextlib.suppress(DeviceError):  # the test may have closed it
            registry.close_host(number)


@pytest.fixture
def observed():
    """Attach observers, which are detached after the test."""
    yield memory.attach_out_of_memory_observer
    out_of_memory._observers.clear()


@pytest.fixture(params=[True, False], ids=["expandable", "plain"])
def either(request, conf):
    conf(f"expandable_segments:{request.param}")
    return request.param
