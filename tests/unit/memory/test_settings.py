"""The allocator's settings and a device's share of memory: effects and values shown."""

import pytest

import gputensor as gt
from gputensor import memory
from gputensor._alloc import config
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from gputensor.streams import Device

MIB = 1 << 20


pytest_plugins = ("tests.support.failing_fixtures",)


@pytest.fixture
def device(open_device):
    return open_device()


def test_the_fraction_limits_one_device_and_survives_other_changes(device, conf):
    memory.set_per_process_memory_fraction(0.25, device)
    conf("page_reuse:False")
    assert memory.get_per_process_memory_fraction(device) == 0.25
    assert memory.get_per_process_memory_fraction("host") == 1.0
    with pytest.raises(OutOfMemoryError) as caught:
        memory.caching_allocator_alloc(100 * MIB, device)
    assert caught.value.reason == "limit"
    memory.set_per_process_memory_fraction(1.0, device)
    memory.caching_allocator_delete(memory.caching_allocator_alloc(100 * MIB, device))


@pytest.mark.parametrize("wrong", [1, "0.5", None, True])
def test_the_fraction_must_be_a_float(device, wrong):
    with pytest.raises(TypeError, match="^fraction: got .*; expected float$"):
        memory.set_per_process_memory_fraction(wrong, device)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_the_fraction_must_lie_between_0_and_1(device, wrong):
    with pytest.raises(ValueError, match="^fraction: got .*; expected 0 to 1$"):
        memory.set_per_process_memory_fraction(wrong, device)


def test_of_two_ways_to_set_the_fraction_the_later_one_holds_and_is_shown(device, conf):
    def shown():
        return memory.get_allocator_settings(device)["per_process_memory_fraction"]

    assert shown() == (1.0, "default")
    memory.set_per_process_memory_fraction(0.5, device)
    assert shown() == (0.5, "set_per_process_memory_fraction")
    assert memory.get_allocator_settings("host")["per_process_memory_fraction"] == (1.0, "default")
    with Device(device):
        assert memory.get_allocator_settings()["per_process_memory_fraction"] == shown()
    conf("per_process_memory_fraction:1.0")
    assert shown() == (1.0, "set_allocator_settings")
    memory.caching_allocator_delete(memory.caching_allocator_alloc(200 * MIB, device))
    conf("per_process_memory_fraction:0.8")
    memory.set_per_process_memory_fraction(0.25, device)
    conf("per_process_memory_fraction:0.8,page_reuse:True")
    assert (shown(), memory.get_per_process_memory_fraction(device)) == (
        (0.8, "set_allocator_settings"), 0.8)  # fmt: skip


def test_settings_show_the_values_in_force_and_their_sources(conf):
    conf("page_size_mb:4")
    in_force = memory.get_allocator_settings()
    assert in_force["page_size_mb"] == (4, "set_allocator_settings")
    assert in_force["backend"] == ("native", "default")
    assert memory.get_allocator_backend() == "native"
    with pytest.raises(ValueError, match="^set_allocator_settings: page_size_mb: got '3'"):
        conf("page_size_mb:3")
    with pytest.raises(TypeError, match="^text: got dict"):
        conf({})
    assert memory.get_allocator_settings() == in_force


def test_device_that_closes_while_settings_change_is_left_alone(monkeypatch):
    number = registry.open_host(capacity=64 << 20)
    gt.zeros(8, device=number)
    fraction_of = config.fraction_of

    def closing(device):
        # Another thread may do this if it gets the GIL in the middle of the change.
        if device == number:
            monkeypatch.undo()
            registry.close_host(number)
            assert registry.open_host(capacity=32 << 20) == number
        return fraction_of(device)

    monkeypatch.setattr(config, "fraction_of", closing)
    memory.set_per_process_memory_fraction(1.0, number)
    assert gt.zeros(8, device=number).tolist() == [0.0] * 8
    registry.close_host(number)
