"""The public device functions, on the host device and with stand-ins for the NVML package."""

import os
import subprocess
import sys
import types

import pytest

from gputensor import device as gt_device
from gputensor._driver import registry
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


class FakeNvml(types.ModuleType):
    """The part of nvidia-ml-py that is asked, and how often it was shut down."""

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


@pytest.mark.parametrize(
    ("count", "visible", "expected"),
    [
        (2, None, True),
        (0, None, False),
        (None, None, False),
        (2, "", False),
        (2, "-1", False),
        (2, "1", True),
    ],
)
def test_nvml_check_asks_nvml(monkeypatch, count, visible, expected):
    nvml = FakeNvml(count)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setenv("GPUTENSOR_NVML_BASED_CUDA_CHECK", "1")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(gt_device, "cuda_device_count", lambda: pytest.fail("CUDA was started"))
    assert gt_device.is_available() is expected
    assert nvml.shutdowns == (count is not None and visible in (None, "1"))


def test_nvml_check_without_its_package_warns_and_asks_cuda(monkeypatch):
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
