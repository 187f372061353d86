"""The public device functions, on the host device and with stand-ins for the NVML package."""

import os
import subprocess
import sys
import types

import pytest

from gputensor import device as gt_device
from gputensor._driver import nvml, registry
from gputensor._driver.settings import host_count
from gputensor._driver.visible_devices import parse_visible, visible_ordinals
from gputensor.errors import DeviceError
from gputensor.streams import Device

CUDA_COUNT = registry.cuda_device_count()


def test_availability_agrees_with_the_count():
    assert gt_device.device_count() == CUDA_COUNT
    assert gt_device.is_available() == (CUDA_COUNT > 0)


def test_set_device_changes_the_current_device_of_the_thread():
    former = gt_device.current_device()
    number = registry.open_host(capacity=16 << 20)
    try:
        gt_device.set_device(number)
        assert gt_device.current_device() == number == Device().number
        gt_device.set_device("host")
        assert gt_device.current_device() == -1
        with gt_device.device(number):
            assert gt_device.current_device() == number
        assert gt_device.current_device() == -1
    finally:
        gt_device.set_device(former)
        registry.close_host(number)


def test_missing_device_is_refused_and_changes_nothing():
    former = gt_device.current_device()
    for bad in ("host:29", f"cuda:{CUDA_COUNT}"):
        with pytest.raises(DeviceError):
            gt_device.set_device(bad)
    assert gt_device.current_device() == former
    with pytest.raises(DeviceError):
        gt_device.get_device_properties(f"cuda:{CUDA_COUNT}")


def test_host_device_has_properties_and_no_capability():
    properties = gt_device.get_device_properties("host")
    assert properties.type == "host" and properties.total_memory > 0
    assert properties.name == gt_device.get_device_name("host")
    with pytest.raises(ValueError, match="^device: got 'host'; expected a CUDA device$"):
        gt_device.get_device_capability("host")
    assert gt_device.is_bf16_supported("host") and not gt_device.is_tf32_supported("host")
    assert not gt_device.can_device_access_peer("host", "cuda:0")


def test_memory_of_a_device_is_what_its_driver_says():
    number = registry.open_host(capacity=64 << 20)
    try:
        free, total = gt_device.mem_get_info(number)
        assert total == 64 << 20 and 0 <= free <= total
    finally:
        registry.close_host(number)


UUIDS = ("GPU-9e8d35e3-a134-0fdd-0e01-23811fdbd293", "GPU-472ea263-58d7-410d-cc82-f7fdece5bd28")


class FakeNvml(types.ModuleType):
    """The part of nvidia-ml-py that the library calls; counts its shutdowns."""

    class NVMLError(Exception):
        pass

    def __init__(self, count):
        super().__init__("pynvml")
        self.count, self.shutdowns = count, 0

    def nvmlInit(self):
        if self.count is None:
            raise self.NVMLError

    def nvmlDeviceGetCount(self):
        return self.count

    def nvmlShutdown(self):
        self.shutdowns += 1

    def nvmlDeviceGetHandleByIndex(self, at):
        return at

    def nvmlDeviceGetHandleByPciBusId(self, bus):
        return f"handle of {bus}"

    def nvmlDeviceGetUUID(self, handle):
        return UUIDS[handle].encode()

    def nvmlDeviceGetTemperature(self, handle, sensor):
        assert (handle, sensor) == ("handle of 0000:01:00.0", 0)
        return 41

    def nvmlDeviceGetPowerUsage(self, handle):
        return 350_000

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return {1: 1980}[kind]

    def nvmlDeviceGetUtilizationRates(self, handle):
        return types.SimpleNamespace(gpu=97, memory=12)

    def nvmlDeviceGetMemoryInfo(self, handle):
        return types.SimpleNamespace(used=5 << 30)


@pytest.mark.parametrize(
    ("count", "visible", "expected"),
    [
        (2, None, 2),
        (0, None, 0),
        (None, None, 0),
        (2, "", 0),
        (2, "-1", 0),
        (2, "1", 1),
        (2, "1,0,2", 2),
        (2, "GPU-472e,GPU-9", 2),
        (2, "GPU-472e,GPU-1", 1),
    ],
)
def test_nvml_check_uses_nvml(monkeypatch, count, visible, expected):
    library = FakeNvml(count)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setenv("GPUTENSOR_NVML_BASED_CUDA_CHECK", "1")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(gt_device, "cuda_device_count", lambda: pytest.fail("CUDA was started"))
    assert gt_device.device_count() == expected
    assert gt_device.is_available() is (expected > 0)
    assert library.shutdowns == (0 if count is None else 2)


FACTS = """
name total_memory multiprocessors threads_per_multiprocessor threads_per_block warp_size
registers_per_multiprocessor l2_nbytes shared_nbytes_per_multiprocessor
static_shared_nbytes_per_block shared_nbytes_per_block clock_khz memory_clock_khz memory_bus_bits
integrated multi_gpu_board uuid
""".split()
READINGS = {
    "temperature": 41,
    "power_draw": 350_000,
    "clock_rate": 1980,
    "utilization": 97,
    "memory_usage": 12,
    "device_memory_used": 5 << 30,
}


@pytest.mark.parametrize("name", READINGS)
def test_readings_use_the_nvml_handle_of_the_cuda_device(monkeypatch, name):
    library = FakeNvml(2)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(nvml, "device_info", lambda ordinal: {"pci": f"0000:0{ordinal}:00.0"})
    assert getattr(gt_device, name)("cuda:1") == READINGS[name]
    assert library.shutdowns == 1
    with pytest.raises(ValueError, match="^device: got 'host'; expected a CUDA device$"):
        getattr(gt_device, name)("host")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(DeviceError, match=f"^{name} needs the package nvidia-ml-py$"):
        getattr(gt_device, name)("cuda:1")
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(None))
    with pytest.raises(DeviceError, match="^NVML cannot be queried"):
        getattr(gt_device, name)("cuda:1")


def test_properties_have_the_numbers_of_the_bus(monkeypatch):
    facts = dict.fromkeys(FACTS, 0) | {"compute_capability": (9, 0), "pci": "00A1:3B:1F.0"}
    monkeypatch.setattr(gt_device, "device_info", lambda ordinal: facts)
    properties = gt_device.get_device_properties("cuda:0")
    assert (properties.pci_domain_id, properties.pci_device_id) == (0xA1, 0x1F)
    assert properties.pci_bus_id == "00A1:3B:1F.0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1gpu2,2ampere", [1, 2]),
        ("0, 1, 2, -1, 3", [0, 1, 2]),
        ("0, 1, 2, 1", []),
        ("2, +3, -0, 5", [2, 3, 0, 5]),
        ("one,two,3,4", []),
        ("4,3,two,one", [4, 3]),
        ("GPU-9e8d35e3", ["GPU-9e8d35e3"]),
        ("GPU-123, 2", ["GPU-123"]),
        ("GPU-1,MIG-2", ["GPU-1"]),
        ("MIG-89c850dc", ["MIG-89c850dc"]),
        ("GPU-1,GPU-1", []),
        ("", []),
    ],
)
def test_visible_devices_are_read_as_the_driver_reads_them(text, expected):
    assert parse_visible(text) == expected


def test_visible_uuids_stop_at_the_first_that_is_not_one_device():
    uuids = ["GPU-99a", "GPU-9e8", "GPU-e42", "GPU-e56"]
    assert visible_ordinals("GPU-e4,GPU-9e8", uuids) == [2, 1]
    assert visible_ordinals("GPU-9e8,GPU-e,GPU-99", uuids) == [1]
    assert visible_ordinals("GPU-5,GPU-9e8", uuids) == []
    assert visible_ordinals("GPU-9e8,GPU-99,GPU-9e", uuids) == []
    assert visible_ordinals("MIG-1", uuids) is None
    assert visible_ordinals("3,1,4,0", uuids) == [3, 1]


def test_nvml_check_without_its_package_warns_and_uses_cuda(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("GPUTENSOR_NVML_BASED_CUDA_CHECK", "1")
    with pytest.warns(RuntimeWarning, match="needs the package nvidia-ml-py"):
        assert gt_device.is_available() == (CUDA_COUNT > 0)


def test_import_and_availability_by_nvml_do_not_load_cuda():
    code = (
        "import sys, types\n"
        "nvml = types.ModuleType('pynvml')\n"
        "nvml.NVMLError = Exception\n"
        "nvml.nvmlInit = nvml.nvmlShutdown = lambda: None\n"
        "nvml.nvmlDeviceGetCount = lambda: 1\n"
        "sys.modules['pynvml'] = nvml\n"
        "from gputensor import device\n"
        "assert device.is_available()\n"
        "print('libcuda.so' in open('/proc/self/maps').read())\n"
    )
    environ = {**os.environ, "GPUTENSOR_NVML_BASED_CUDA_CHECK": "1"}
    environ.pop("CUDA_VISIBLE_DEVICES", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "False\n", done.stderr


HOST_DEVICES = """
import gputensor as gt
from gputensor._driver import registry
x = gt.arange(1000, device="host:3")
y = x.to_device("host:1") + 1
assert str(y.device) == "host:1" and (y.numpy() == range(1, 1001)).all()
with gt.Device("host:2"), gt.stream(gt.Stream()):
    assert str(gt.ones(4).device) == "host:2"
totals = {gt.device.mem_get_info(f"host:{i}")[1] for i in range(4)}
assert len(totals) == 1, totals
for number in (-5, -4):
    try:
        gt.zeros(1, device=f"host:{-1 - number}") if number == -5 else registry.close_host(number)
    except (gt.DeviceError, ValueError) as error:
        print(error)
assert registry.open_host(capacity=1 << 24) == -5
"""


def test_host_devices_of_the_environment_open_by_name():
    environ = {**os.environ, "GPUTENSOR_HOST_DEVICES": "4", "GPUTENSOR_DEVICE": "host"}
    done = subprocess.run(
        [sys.executable, "-c", HOST_DEVICES], env=environ, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "host:4 (device -5) is not open: it was closed, or is not one of the 4 of "
        "GPUTENSOR_HOST_DEVICES",
        "device: got -4; expected a device that open_host made",
    ]


@pytest.mark.parametrize("text", ["0", "17", "-1", "many", "", "1.5"])
def test_a_bad_number_of_host_devices_is_named(monkeypatch, text):
    monkeypatch.setenv("GPUTENSOR_HOST_DEVICES", text)
    with pytest.raises(ValueError, match="^GPUTENSOR_HOST_DEVICES: got .*; expected a number from"):
        host_count()
