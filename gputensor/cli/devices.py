"""`gputensor devices`: lists the CUDA devices of this machine, and the host device.

It queries devices without opening them, so it creates no context and allocates no memory.
If CUDA cannot be used, the listing says why and still succeeds: the host device is always there.
"""

import json
import platform
from pathlib import Path

from gputensor.cli.input_error import InputError

__all__ = ["register"]

# The version of the loaded kernel module. The CUDA driver API reports only the CUDA version.
MODULE_VERSION = Path("/sys/module/nvidia/version")


def register(subparsers):
    """Add ``devices`` to the command line."""
    parser = subparsers.add_parser("devices", help="list the devices of this machine")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run_devices)


def run_devices(options):
    """Print the devices. Returns the exit code."""
    found = all_devices()
    print(json.dumps(found) if options.json else as_text(found))
    return 0


def all_devices():
    """Return a dict: ``devices``, a list of dicts, and ``cuda``, facts about the driver."""
    from gputensor._driver.registry import cuda_device_count, device_info, driver_version
    from gputensor._driver.settings import host_capacity, host_count
    from gputensor.errors import DeviceError

    devices = []
    try:
        version = driver_version()
        cuda = {"version": "{}.{}".format(*version), "driver": module_version(), "error": None}
        for number in range(cuda_device_count()):
            info = device_info(number)
            devices.append(
                {
                    "device": f"cuda:{number}",
                    "type": "cuda",
                    "name": info["name"],
                    "capability": "{}.{}".format(*info["compute_capability"]),
                    "total_bytes": info["total_memory"],
                    "multiprocessors": info["multiprocessors"],
                    "uuid": info["uuid"],
                    "pci": info["pci"],
                }
            )
    except DeviceError as error:
        cuda = {"version": None, "driver": module_version(), "error": str(error)}
    try:
        capacity, names = host_capacity(), ["host", *(f"host:{i}" for i in range(1, host_count()))]
    except ValueError as error:
        raise InputError(error) from None
    hosts = [
        {"device": name, "type": "host", "name": host_name(), "total_bytes": capacity}
        for name in names
    ]
    return {"devices": [*devices, *hosts], "cuda": cuda}


def module_version():
    """Return the version of the NVIDIA kernel module, or None if it is not loaded."""
    try:
        return MODULE_VERSION.read_text().strip()
    except OSError:
        return None


def host_name():
    """Return the name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def as_text(found):
    """Return the devices as lines for a person.

    >>> host = {"device": "host", "type": "host", "name": "a processor", "total_bytes": 2**34}
    >>> print(as_text({"devices": [host], "cuda": {"error": "no CUDA: no driver library"}}))
    host    a processor, 16.0 GiB
    no CUDA: no driver library
    """
    lines = []
    for device in found["devices"]:
        facts = [device["name"], f"{device['total_bytes'] / 2**30:.1f} GiB"]
        if device["type"] == "cuda":
            facts.append(f"capability {device['capability']}")
        lines.append(f"{device['device']:<7} {', '.join(facts)}")
    cuda = found["cuda"]
    if cuda["error"]:
        lines.append(cuda["error"])
    else:
        driver = f"driver {cuda['driver']}, " if cuda["driver"] else "driver for "
        lines.append(f"{driver}CUDA {cuda['version']}")
    return "\n".join(lines)
