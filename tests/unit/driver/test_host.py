"""The embedded host device: its behaviour beyond the contract of the table."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gputensor._driver import registry, settings
from gputensor.errors import DeviceError
from tests.support.driver_calls import HOST_FUNCTION, Calls
from tests.support.internals import watched

ROOT = Path(__file__).resolve().parents[3]
MIB = 1 << 20


@pytest.fixture
def open_calls():
    opened = []

    def open_device(**arguments):
        opened.append(registry.open_host(**arguments))
        return Calls(opened[-1])

    yield open_device
    for number in opened:
        registry.close_host(number)


def test_capacity_is_shared_by_allocations_and_pages_to_the_last_byte(open_calls):
    calls = open_calls(capacity=64 * MIB)
    page = calls.make("page_create", 32 * MIB)
    ptr = calls.make("mem_alloc", 32 * MIB)
    assert calls.mem_info() == (0, 0, 64 * MIB)
    assert calls.mem_alloc(1)[0] == 2
    assert calls.page_create(2 * MIB)[0] == 2
    assert calls.page_destroy(page) == 0
    assert calls.mem_info() == (0, 32 * MIB, 64 * MIB)
    assert calls.mem_free(ptr) == 0


def test_pinned_memory_is_not_device_memory(open_calls):
    calls = open_calls(capacity=MIB)
    pinned = calls.make("pinned_alloc", 8 * MIB)
    assert calls.mem_info() == (0, MIB, MIB)
    assert calls.pinned_free(pinned) == 0


def test_an_access_to_an_unmapped_page_faults():
    code = """
import ctypes
from gputensor._driver import registry
from tests.support.driver_calls import Calls
calls = Calls(registry.open_host(capacity=1 << 26))
unit = calls.granularity
va, page = calls.make("va_reserve", unit, 0), calls.make("page_create", unit)
assert calls.page_map(va, unit, page) == 0
ctypes.c_int.from_address(va).value = 5
print(ctypes.c_int.from_address(va).value, flush=True)
assert calls.page_unmap(va, unit) == 0
ctypes.c_int.from_address(va).value
print("survived")
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": ""},
    )  # fmt: skip
    assert result.returncode == -signal.SIGSEGV
    assert result.stdout.split() == ["5"]


def test_many_pages_take_one_file_descriptor(open_calls):
    calls = open_calls(capacity=1 << 40)
    before = len(os.listdir("/proc/self/fd"))
    pages = [calls.make("page_create", calls.granularity) for _ in range(3000)]
    assert len(os.listdir("/proc/self/fd")) <= before + 1
    assert all(calls.page_destroy(page) == 0 for page in pages)


def test_destroyed_pages_give_their_memory_back(open_calls):
    calls = open_calls(capacity=1 << 40)
    unit = 16 * MIB
    va = calls.make("va_reserve", unit, 0)

    def shared_kib():
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssShmem:")[1].split()[0])

    def held_nbytes():
        """The bytes of each device's memory file; other tests keep devices open."""
        files = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        files = [file for file in files if "gputensor-host-device" in os.path.realpath(file)]
        return {file: os.stat(file).st_blocks * 512 for file in files}

    start, before = shared_kib(), held_nbytes()
    for _ in range(8):
        page = calls.make("page_create", unit)
        assert calls.page_map(va, unit, page) == 0
        assert calls.fill_async(va, 1, 1, unit, 0) == 0
        assert calls.page_unmap(va, unit) == 0
        assert calls.page_destroy(page) == 0
    after = held_nbytes()
    assert after and max(after[file] - before.get(file, 0) for file in after) < unit
    assert shared_kib() - start < 2 * unit // 1024


def test_a_phantom_device_has_any_capacity_and_no_memory(open_calls):
    capacity = 10 << 40
    calls = open_calls(capacity=capacity, phantom=True)
    ptr = calls.make("mem_alloc", 4 << 40)
    va = calls.make("va_reserve", 6 << 40, 0)
    page = calls.make("page_create", 6 << 40)
    assert calls.page_map(va, 6 << 40, page) == 0
    assert calls.mem_info() == (0, 0, capacity)
    assert calls.fill_async(ptr, 1, 4, 1 << 38, 0) == 0
    assert calls.copy_async(va, ptr, 1 << 40, 0) == 0
    ran = []
    assert calls.host_launch(HOST_FUNCTION(lambda _: ran.append(1)), None, 0) == 0
    assert calls.synchronize() == 0
    assert ran == []


def test_a_phantom_device_answers_in_microseconds(open_calls):
    calls = open_calls(capacity=10 << 40, phantom=True)
    start = time.thread_time()
    for i in range(5000):
        ptr = calls.make("mem_alloc", (i % 97 + 1) << 20)
        assert calls.mem_free(ptr) == 0
    assert (time.thread_time() - start) / 10_000 < 50e-6


@pytest.mark.parametrize("seed", [None, 1])
def test_closing_a_device_frees_everything_left_on_it(seed):
    number = registry.open_host(capacity=64 * MIB, seed=seed)
    calls = Calls(number)
    ptr = calls.make("mem_alloc", MIB)
    page = calls.make("page_create", calls.granularity)
    va = calls.make("va_reserve", calls.granularity, 0)
    assert calls.page_map(va, calls.granularity, page) == 0
    stream, event = calls.make("stream_create", 0), calls.make("event_create", 0)
    assert calls.fill_async(ptr, 0, 1, MIB, stream) == 0
    assert calls.event_record(event, stream) == 0
    left = registry.leaks(number)
    assert left == {
        "allocations": 1, "pages": 1, "mappings": 1, "va_ranges": 1, "pinned": 0, "registered": 0,
        "streams": 1, "events": 1, "graphs": 0, "executables": 0,
        "used_bytes": MIB + calls.granularity,
    }  # fmt: skip
    registry.close_host(number)
    with pytest.raises(DeviceError, match="is not open"):
        registry.counts(number)


def test_numbers_of_closed_devices_are_given_out_again_after_the_slots_closed():
    events = []
    first = registry.open_host(capacity=MIB)
    with watched(lambda *event: events.append((*event, registry.leaks(first)["allocations"]))):
        assert Calls(first).make("mem_alloc", 4096)
        registry.close_host(first)
    assert events == [("close", first, 1)]
    assert registry.open_host(capacity=MIB) == first
    registry.close_host(first)


def test_only_devices_that_open_host_made_are_closed():
    with pytest.raises(ValueError, match="device: got -1; expected a device that open_host made"):
        registry.close_host(-1)
    with pytest.raises(DeviceError, match="is not open"):
        registry.close_host(-30)


def test_the_embedded_device_takes_its_capacity_from_the_environment():
    code = (
        "from tests.support.driver_calls import Calls\n"
        "print(Calls(-1).mem_info()[2], Calls(-1).make('mem_alloc', 4096) > 0)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "GPUTENSOR_HOST_MEMORY": "3M"}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=environment
    )
    assert result.stdout.split() == [str(3 * MIB), "True"]


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4G", 4 << 30),
        (" 2 MiB ", 2 << 20),
        ("1tb", 1 << 40),
        ("3k", 3072),
    ],
)
def test_sizes_are_read_in_powers_of_1024(text, nbytes):
    assert settings.parse_nbytes(text) == nbytes


@pytest.mark.parametrize(
    "text",
    ["", "G", "-1", "1.5G", "4GG", "4 X", "0x10", "1\N{KELVIN SIGN}", "9" * 5000, "9" * 20, "17T"],
)
def test_a_malformed_size_is_refused_with_the_name_of_the_setting(monkeypatch, text):
    monkeypatch.setenv("GPUTENSOR_HOST_MEMORY", text)
    with pytest.raises(ValueError, match="GPUTENSOR_HOST_MEMORY: got .*; expected"):
        settings.host_capacity()


def test_an_illegal_copy_is_refused_at_once_when_work_runs_at_once(open_calls):
    calls = open_calls(capacity=64 * MIB)
    ptr = calls.make("mem_alloc", 4096)
    va = calls.make("va_reserve", calls.granularity, 0)
    assert calls.copy_async(ptr, va, 64, 0) == 700
    assert calls.copy_async(va, ptr, 64, 0) == 700
    assert calls.fill_async(ptr, 0, 1, 4097, 0) == 700
    assert calls.synchronize() == 0


def test_overlapping_ranges_copy_as_if_through_a_buffer(open_calls):
    calls = open_calls(capacity=MIB)
    data = np.arange(256, dtype=np.uint8)
    ptr = calls.upload(data)
    assert calls.copy_async(ptr + 3, ptr, 200, 0) == 0
    expected = data.copy()
    expected[3:203] = data[:200]
    np.testing.assert_array_equal(calls.download(ptr, np.empty_like(data)), expected)


def test_misuse_from_python_is_an_error_that_names_it():
    with pytest.raises(
        ValueError,
        match="k: got -1; expected the number of a call, counted from 1, or 0 to turn",
    ):
        registry.fail_call(-1, -1)
    with pytest.raises(ValueError, match="'mem_allot'"):
        registry.fail_call(-1, 1, name="mem_allot")
    with pytest.raises(DeviceError, match="GPUTENSOR_HOST_DEVICES"):
        registry.device_name(-17)
    with pytest.raises(ValueError, match="device: got 0, a CUDA device; expected a host device"):
        registry.leaks(0)
