"""The public device functions: available devices, the current device, and their properties.

Names and meanings follow ``torch.cuda``. A device argument is anything that :class:`Device` takes;
None is the current device. Querying the properties of a CUDA device does not open it.
"""

import functools
import platform
import warnings
from dataclasses import dataclass
from pathlib import Path

from gputensor._alloc.foreign import device_memory
from gputensor._driver import registry
from gputensor._driver.environment import switch
from gputensor._driver.nvml import count_visible, reading
from gputensor._driver.registry import cuda_device_count, device_info
from gputensor._driver.settings import host_capacity
from gputensor.callable_module import make_callable
from gputensor.errors import DeviceError, argument_error
from gputensor.streams.order import tracer
from gputensor.streams.queue import Device, set_device, synchronize

__all__ = [
    "Device",
    "DeviceProperties",
    "attach_listener",
    "can_device_access_peer",
    "clock_rate",
    "current_device",
    "deliver",
    "detach_listener",
    "device",
    "device_count",
    "device_memory_used",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "is_bf16_supported",
    "is_tf32_supported",
    "mem_get_info",
    "memory_usage",
    "power_draw",
    "set_device",
    "synchronize",
    "temperature",
    "utilization",
]

# As in torch.cuda: ``with device(1): ...``.
device = Device
make_callable(__name__, Device)  # and as torch.device: ``gt.device("cuda:1")``


@dataclass(frozen=True)
class DeviceProperties:
    """The properties of a device.

    Attributes
    ----------
    name, type : str
        The maker's name for it; ``"cuda"`` or ``"host"``.
    major, minor : int
        The compute capability; 0, 0 for the host device.
    total_memory, L2_cache_size : int
        Bytes.
    multi_processor_count, max_threads_per_multi_processor, max_threads_per_block : int
        These and the following numbers are 0 for the host device.
    warp_size, regs_per_multiprocessor : int
    shared_memory_per_multiprocessor, shared_memory_per_block, shared_memory_per_block_optin : int
        Bytes.
    clock_rate, memory_clock_rate : int
        The highest rates in kHz.
    memory_bus_width : int
        Bits.
    is_integrated : bool
        Whether the device uses the host's memory.
    is_multi_gpu_board : bool
    uuid, pci_bus_id : str
        Empty for the host device.
    pci_domain_id, pci_device_id : int
        The first and the third number of `pci_bus_id`.
    """

    name: str
    type: str
    major: int = 0
    minor: int = 0
    total_memory: int = 0
    multi_processor_count: int = 0
    max_threads_per_multi_processor: int = 0
    max_threads_per_block: int = 0
    warp_size: int = 0
    regs_per_multiprocessor: int = 0
    L2_cache_size: int = 0
    shared_memory_per_multiprocessor: int = 0
    shared_memory_per_block: int = 0
    shared_memory_per_block_optin: int = 0
    clock_rate: int = 0
    memory_clock_rate: int = 0
    memory_bus_width: int = 0
    is_integrated: bool = False
    is_multi_gpu_board: bool = False
    uuid: str = ""
    pci_bus_id: str = ""
    pci_domain_id: int = 0
    pci_device_id: int = 0


def _fact(function):
    """Answer for the device that a program is traced for, if one is being traced; a decorator."""

    @functools.wraps(function)
    def answered(*arguments, **named):
        trace = tracer()
        if trace is None:
            return function(*arguments, **named)
        device = named.get("device", arguments[0] if arguments else None)
        return trace.fact(function.__name__, device)

    return answered


@_fact
def device_count():
    """Return the number of CUDA devices that this process sees; 0 when CUDA cannot be used.

    Initialises CUDA, but creates no context. With ``GPUTENSOR_NVML_BASED_CUDA_CHECK=1`` it queries
    NVML (package ``nvidia-ml-py``) instead, which does not initialise CUDA, so that the process can
    still fork, and interprets ``CUDA_VISIBLE_DEVICES`` as the driver does.

    >>> device_count() >= 0
    True
    """
    found = _count_by_nvml()
    return cuda_device_count() if found is None else found


@_fact
def is_available():
    """Return whether there is a CUDA device; never raises.

    With ``GPUTENSOR_NVML_BASED_CUDA_CHECK=1`` it does not initialise CUDA; see
    :func:`device_count`.

    >>> is_available() == (device_count() > 0)
    True
    """
    found = _count_by_nvml()
    return (cuda_device_count() if found is None else found) > 0


def _count_by_nvml():
    """Return NVML's count; None if NVML is not enabled or missing, and 0 if it fails."""
    if not switch("GPUTENSOR_NVML_BASED_CUDA_CHECK"):
        return None
    try:
        return count_visible()
    except ImportError:
        warnings.warn(
            "GPUTENSOR_NVML_BASED_CUDA_CHECK=1 needs the package nvidia-ml-py; CUDA is used "
            "instead, and this process cannot fork CUDA work afterwards",
            RuntimeWarning,
            stacklevel=4,
        )
        return None
    except DeviceError:
        return 0


@_fact
def current_device():
    """Return the number of this thread's current device: a CUDA ordinal, or -1 for the host device.

    >>> with Device("host"):
    ...     current_device()
    -1
    """
    return Device().number


@_fact
def get_device_properties(device=None):
    """Return the :class:`DeviceProperties` of a device.

    Raises
    ------
    DeviceError
        There is no such device, or CUDA cannot be used here.

    Examples
    --------
    >>> get_device_properties("host").type
    'host'
    """
    number = Device(device).number
    if number < 0:
        memory = host_capacity()
        return DeviceProperties(_processor_name(), "host", total_memory=memory, is_integrated=True)
    info = device_info(number)
    domain, _, place = info["pci"].split(":")  # 0000:3B:00.0
    major, minor = info["compute_capability"]
    return DeviceProperties(
        name=info["name"],
        type="cuda",
        major=major,
        minor=minor,
        total_memory=info["total_memory"],
        multi_processor_count=info["multiprocessors"],
        max_threads_per_multi_processor=info["threads_per_multiprocessor"],
        max_threads_per_block=info["threads_per_block"],
        warp_size=info["warp_size"],
        regs_per_multiprocessor=info["registers_per_multiprocessor"],
        L2_cache_size=info["l2_nbytes"],
        shared_memory_per_multiprocessor=info["shared_nbytes_per_multiprocessor"],
        shared_memory_per_block=info["static_shared_nbytes_per_block"],
        shared_memory_per_block_optin=info["shared_nbytes_per_block"],
        clock_rate=info["clock_khz"],
        memory_clock_rate=info["memory_clock_khz"],
        memory_bus_width=info["memory_bus_bits"],
        is_integrated=bool(info["integrated"]),
        is_multi_gpu_board=bool(info["multi_gpu_board"]),
        uuid=info["uuid"],
        pci_bus_id=info["pci"],
        pci_domain_id=int(domain, 16),
        pci_device_id=int(place.split(".")[0], 16),
    )


def _processor_name():
    """Return the name of the processor, for the host device."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


@_fact
def get_device_name(device=None):
    """Return the maker's name for a device.

    >>> len(get_device_name("host")) > 0
    True
    """
    return get_device_properties(device).name


@_fact
def get_device_capability(device=None):
    """Return the compute capability of a CUDA device as ``(major, minor)``.

    Raises
    ------
    ValueError
        The device is a host device, which has none.
    """
    if Device(device).number < 0:
        raise argument_error(ValueError, "device", str(Device(device)), "a CUDA device")
    properties = get_device_properties(device)
    return properties.major, properties.minor


@_fact
def is_bf16_supported(device=None, *, including_emulation=True):
    """Return whether the device computes in bfloat16: capability 8.0 or newer, or the host device.

    `including_emulation` is accepted for compatibility with PyTorch; the answer is the hardware's.

    >>> is_bf16_supported("host")
    True
    """
    return Device(device).number < 0 or get_device_capability(device) >= (8, 0)


@_fact
def is_tf32_supported(device=None):
    """Return whether the device has TF32 products: CUDA capability 8.0 or newer.

    >>> is_tf32_supported("host")
    False
    """
    return Device(device).number >= 0 and get_device_capability(device) >= (8, 0)


@_fact
def mem_get_info(device=None):
    """Return ``(free, total)`` bytes of a device, as its driver reports for all processes.

    >>> free, total = mem_get_info("host")
    >>> 0 <= free <= total
    True
    """
    return device_memory(Device(device).number)


@_fact
def can_device_access_peer(device, peer_device):
    """Return whether one CUDA device can read and write the memory of another directly.

    Raises
    ------
    DeviceError
        A device does not exist, or the package ``cuda-python``, which is needed, is missing.
    """
    one, other = Device(device).number, Device(peer_device).number
    if one == other or one < 0 or other < 0:
        return False
    for number in (one, other):
        if number >= cuda_device_count():
            raise DeviceError(f"there is no CUDA device {number}")
    try:
        from cuda.bindings import driver
    except ImportError:
        raise DeviceError("can_device_access_peer needs the package cuda-python") from None
    status, answer = driver.cuDeviceCanAccessPeer(one, other)
    if int(status) != 0:
        raise DeviceError(f"cuDeviceCanAccessPeer({one}, {other}) failed: status {int(status)}")
    return bool(answer)


def attach_listener(listener):
    """Call a function for each call that the library makes to the devices' drivers.

    Parameters
    ----------
    listener : callable
        ``listener(device, name, status, arguments)`` with the device's number, the driver call
        (``event_create``, ``event_record``, ``event_destroy``, ``stream_create``,
        ``stream_wait_event``, ``stream_synchronize``, ``synchronize``, ``copy_async``,
        ``kernel_launch``, ``mem_alloc``, ...), its CUDA status, and its first four arguments as
        integers.

    Notes
    -----
    The main thread calls it, with no lock held, soon after the driver calls and in their order on
    each device; :func:`deliver` delivers them at once. An exception in it is reported by
    ``sys.unraisablehook``; KeyboardInterrupt and SystemExit are raised in the main thread when all
    calls are delivered. Calls inside CUDA's libraries are not reported.

    Examples
    --------
    >>> heard = []
    >>> def listener(device, name, status, arguments):
    ...     heard.append(name)
    >>> attach_listener(listener)
    >>> synchronize("host")
    >>> detach_listener(listener)
    >>> "synchronize" in heard
    True
    """
    if not callable(listener):
        raise argument_error(TypeError, "listener", listener, "a callable")
    registry.attach_listener(listener)


def detach_listener(listener):
    """Remove a listener after delivering all calls so far to it.

    Raises
    ------
    ValueError
        The listener is not attached.
    """
    try:
        registry.detach_listener(listener)
    except ValueError:
        raise argument_error(ValueError, "listener", listener, "one that is attached") from None


def deliver():
    """Deliver pending calls and events to listeners and allocator trackers now."""
    registry.deliver()


def _reading(name, device):
    number = Device(device).number
    if number < 0:
        raise argument_error(ValueError, "device", str(Device(device)), "a CUDA device")
    return reading(name, number)


@_fact
def temperature(device=None):
    """Return the temperature of a GPU in degrees Celsius.

    This and the following functions query NVML (package ``nvidia-ml-py``).

    Raises
    ------
    ValueError
        The device is a host device.
    DeviceError
        The package is missing, or NVML does not answer.
    """
    return _reading("temperature", device)


@_fact
def power_draw(device=None):
    """Return the power that a GPU draws, in milliwatts; raises like :func:`temperature`."""
    return _reading("power_draw", device)


@_fact
def clock_rate(device=None):
    """Return the clock of a GPU's multiprocessors in MHz; raises like :func:`temperature`."""
    return _reading("clock_rate", device)


@_fact
def utilization(device=None):
    """Return the percentage of the last sampling period in which a kernel ran on a GPU.

    Raises as :func:`temperature`.
    """
    return _reading("utilization", device)


@_fact
def memory_usage(device=None):
    """Return the percentage of the last sampling period in which GPU memory was read or written.

    Raises as :func:`temperature`.
    """
    return _reading("memory_usage", device)


@_fact
def device_memory_used(device=None):
    """Return the bytes of a GPU that are in use, by all processes.

    Raises as :func:`temperature`.
    """
    return _reading("device_memory_used", device)


def __dir__():
    return sorted(__all__)
