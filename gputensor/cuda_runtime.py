"""The calls of ``cupy.cuda.runtime`` that programs make: devices, their properties and memory.

``gputensor.cuda.runtime`` is this module. Host devices count as no device, but are accepted where
one is current.
"""

from gputensor import device, streams
from gputensor.errors import DriverError

__all__ = [
    "CUDARuntimeError", "deviceCanAccessPeer", "deviceSynchronize", "getDevice", "getDeviceCount",
    "getDeviceProperties", "is_hip", "memGetInfo", "setDevice", "streamSynchronize",
]  # fmt: skip

CUDARuntimeError = DriverError
is_hip = False


def getDeviceCount():  # noqa: N802 - CuPy's name, as the others
    """Return the number of CUDA devices.

    >>> getDeviceCount() >= 0
    True
    """
    return device.device_count()


def getDevice():  # noqa: N802
    """Return the number of this thread's current device; -1 for the host device.

    >>> from gputensor import Device
    >>> with Device("host"):
    ...     getDevice()
    -1
    """
    return device.current_device()


def setDevice(number):  # noqa: N802
    """Make a device the current one of this thread.

    >>> setDevice(getDevice())
    """
    device.set_device(number)


def deviceSynchronize():  # noqa: N802
    """Wait for all work of the current device.

    >>> deviceSynchronize()
    """
    streams.synchronize()


def streamSynchronize(stream):  # noqa: N802
    """Wait for the work of a stream, given by its handle.

    >>> from gputensor import Stream, current_device
    >>> streamSynchronize(Stream(current_device()).cuda_stream)
    """
    streams.ExternalStream(stream, device.current_device()).synchronize()


def memGetInfo():  # noqa: N802
    """Return the free and the total bytes of the current device.

    >>> free, total = memGetInfo()
    >>> 0 < free <= total
    True
    """
    return device.mem_get_info()


def deviceCanAccessPeer(number, peer):  # noqa: N802
    """Return 1 if a device can access the memory of another one, otherwise 0.

    >>> getDeviceCount() < 2 or deviceCanAccessPeer(0, 1) in (0, 1)
    True
    """
    return int(device.can_device_access_peer(number, peer))


def getDeviceProperties(number):  # noqa: N802
    """Return properties of a device as a dictionary, under the names of CUDA's runtime.

    >>> getDeviceProperties(-1)["totalGlobalMem"] > 0
    True
    """
    found = device.get_device_properties("host" if number == -1 else number)
    return {
        "name": found.name.encode(),
        "totalGlobalMem": found.total_memory,
        "major": found.major,
        "minor": found.minor,
        "multiProcessorCount": found.multi_processor_count,
        "maxThreadsPerBlock": found.max_threads_per_block,
        "maxThreadsPerMultiProcessor": found.max_threads_per_multi_processor,
        "warpSize": found.warp_size,
        "regsPerMultiprocessor": found.regs_per_multiprocessor,
        "l2CacheSize": found.L2_cache_size,
        "sharedMemPerBlock": found.shared_memory_per_block,
        "sharedMemPerBlockOptin": found.shared_memory_per_block_optin,
        "sharedMemPerMultiprocessor": found.shared_memory_per_multiprocessor,
        "clockRate": found.clock_rate,
        "memoryClockRate": found.memory_clock_rate,
        "memoryBusWidth": found.memory_bus_width,
        "integrated": int(found.is_integrated),
    }


def __dir__():
    return sorted(__all__)
