"""Queries to NVML, the management library of NVIDIA's driver, which does not start CUDA.

Needs the package ``nvidia-ml-py``. NVML is opened for each query and closed after it.
"""

import contextlib
import os

from gputensor._driver.registry import device_info
from gputensor._driver.visible_devices import visible_ordinals
from gputensor.errors import DeviceError

__all__ = ["count_visible", "nvml", "reading"]

# Reading -> the function of NVML, its further arguments, and the attribute of the result, if any.
READINGS = {
    "temperature": ("nvmlDeviceGetTemperature", (0,), None),
    "power_draw": ("nvmlDeviceGetPowerUsage", (), None),
    "clock_rate": ("nvmlDeviceGetClockInfo", (1,), None),
    "utilization": ("nvmlDeviceGetUtilizationRates", (), "gpu"),
    "memory_usage": ("nvmlDeviceGetUtilizationRates", (), "memory"),
    "device_memory_used": ("nvmlDeviceGetMemoryInfo", (), "used"),
}


@contextlib.contextmanager
def nvml():
    """Open NVML for a ``with`` block; the block's variable is the module ``pynvml``.

    Raises
    ------
    ImportError
        The package is missing.
    DeviceError
        NVML cannot be opened, or a query in the block fails.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
        try:
            yield pynvml
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise DeviceError(f"NVML cannot be queried: {error}") from None


def count_visible():
    """Return how many devices CUDA would show this process, or None if only CUDA can tell."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    with nvml() as library:
        total = library.nvmlDeviceGetCount()
        uuids = [""] * total
        if text is not None and "GPU-" in text:
            uuids = [
                _text(library.nvmlDeviceGetUUID(library.nvmlDeviceGetHandleByIndex(at)))
                for at in range(total)
            ]
    found = visible_ordinals(text, uuids)
    return None if found is None else len(found)


def reading(name, ordinal):
    """Return one of `READINGS` of a CUDA device, as an int in NVML's unit."""
    function, arguments, attribute = READINGS[name]
    bus = device_info(ordinal)["pci"]  # NVML numbers all GPUs of the machine, CUDA the visible ones
    try:
        with nvml() as library:
            handle = library.nvmlDeviceGetHandleByPciBusId(bus)
            answer = getattr(library, function)(handle, *arguments)
    except ImportError:
        raise DeviceError(f"{name} needs the package nvidia-ml-py") from None
    return int(answer if attribute is None else getattr(answer, attribute))


def _text(answer):
    return answer.decode() if isinstance(answer, bytes) else answer
