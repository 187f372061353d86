"""The processes that use a GPU, as text. Uses NVML, which creates no CUDA context."""

from gputensor._driver.nvml import nvml
from gputensor._driver.registry import device_info
from gputensor.errors import DeviceError, amount

__all__ = ["format_processes", "list_processes"]


def format_processes(ordinal, processes):
    """Return the text for (process id, bytes or None) pairs.

    >>> print(format_processes(0, [(41, 3 << 30), (7, None)]))
    GPU:0
    process         41 uses     3.00 GiB GPU memory
    process          7 uses      unknown GPU memory
    """
    if not processes:
        return f"GPU:{ordinal}\nno processes are running"
    lines = [
        f"process {pid:>10d} uses {'unknown' if used is None else amount(used):>12} GPU memory"
        for pid, used in processes
    ]
    return "\n".join([f"GPU:{ordinal}", *lines])


def list_processes(ordinal):
    """Return the text for a CUDA device; says so when NVML is missing or does not answer."""
    bus = device_info(ordinal)["pci"]  # NVML counts all GPUs of the machine, CUDA visible ones
    try:
        with nvml() as library:
            handle = library.nvmlDeviceGetHandleByPciBusId(bus)
            running = library.nvmlDeviceGetComputeRunningProcesses(handle)
    except ImportError:
        return "pynvml module not found, please install nvidia-ml-py"
    except DeviceError as error:
        return f"GPU:{ordinal}\n{error}"
    return format_processes(ordinal, [(process.pid, process.usedGpuMemory) for process in running])
