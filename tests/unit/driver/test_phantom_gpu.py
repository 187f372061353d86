"""A GPU that is not there: its facts, what it refuses, and that it leaves nothing behind."""

import ctypes

import pytest

from gputensor._alloc.allocator import open_allocator, set_caching
from gputensor._driver import registry
from gputensor._kernels.calls import make
from gputensor._kernels.launch import CallOperand, loaded_programs, programs_by_function
from gputensor.errors import DriverError
from gputensor.programs.ahead.bindings import Maker
from gputensor.programs.ahead.code import Kernels

FACTS = (80, 108, 164 << 10)


def test_facts_are_those_it_was_opened_with():
    one, two = registry.open_phantom_gpu(*FACTS), registry.open_phantom_gpu(90, 132, 7)
    assert one != two and min(one, two) >= registry.cuda_device_count()
    assert registry.device_facts_of(one) == FACTS
    assert registry.device_facts_of(two) == (90, 132, 7)
    assert registry.device_name(one) == "phantom"
    registry.close_phantom_gpu(one)
    registry.close_phantom_gpu(two)
    with pytest.raises(ValueError, match="open_phantom_gpu made"):
        registry.close_phantom_gpu(one)


def test_only_phantoms_are_closed():
    with pytest.raises(ValueError, match="device: got -1"):
        registry.close_phantom_gpu(-1)


def test_a_launch_that_is_not_recorded_is_refused():
    device = registry.open_phantom_gpu(*FACTS)
    try:
        operand = CallOperand(1 << 50, "float32", (4,))
        with pytest.raises(DriverError, match="kernel_launch"):
            make("arange", device, 0, (0, 1, operand))
        assert loaded_programs(device)
    finally:
        registry.close_phantom_gpu(device)
    assert not programs_by_function(device)


def test_numbers_can_be_used_again():
    """Facts of a phantom do not carry over to the next one with the same number."""
    seen = set()
    for _ in range(40):
        device = registry.open_phantom_gpu(*FACTS)
        open_allocator(device)
        set_caching(device, False)
        seen.add(device)
        registry.close_phantom_gpu(device)
    assert len(seen) == 1


def test_a_maker_closes_its_phantom_after_an_error():
    with pytest.raises(ZeroDivisionError), Maker(FACTS, Kernels()) as maker:
        device = maker.device
        1 / 0  # noqa: B018
    with pytest.raises(ValueError, match="expected a device"):
        registry.close_phantom_gpu(device)
    with Maker(FACTS, Kernels()):
        pass


def test_no_driver_library_is_needed(monkeypatch):
    monkeypatch.setenv("GPUTENSOR_LIBCUDA", "/nowhere/libcuda.so")
    assert ctypes.CDLL(None)
    device = registry.open_phantom_gpu(*FACTS)
    registry.close_phantom_gpu(device)
