"""Amounts of memory in use and reserved, statistics, and tables of them.

Byte counts are ints. `device` is a device or its name; None is the current device.
"""

import warnings
from typing import Any

from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor._alloc.observe import accounts
from gputensor._alloc.observe.statistics_names import nest
from gputensor.errors import argument_error
from gputensor.memory.gpu_processes import list_processes
from gputensor.memory.summary import format_summary
from gputensor.streams.queue import device_number, device_of

__all__ = [
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
]


def memory_allocated(device=None) -> int:
    """Return the bytes in use by callers, with each size rounded up to 512.

    It costs one load for each thread that allocates.

    Examples
    --------
    >>> memory_allocated("host") <= max_memory_allocated("host")
    True
    """
    return report.allocated_nbytes(device_number(device))


def max_memory_allocated(device=None) -> int:
    """Return the most bytes in use at one time since the last :func:`reset_peak_memory_stats`."""
    return report.peak_nbytes(device_number(device), "allocated_bytes")


def memory_reserved(device=None) -> int:
    """Return the bytes of device memory that the process holds, in use or cached."""
    return report.reserved_nbytes(device_number(device))


def max_memory_reserved(device=None) -> int:
    """Return the most bytes held at one time since the last :func:`reset_peak_memory_stats`."""
    return report.peak_nbytes(device_number(device), "reserved_bytes")


def mem_get_info(device=None) -> tuple[int, int]:
    """Return (free, total) bytes of the device, as its driver reports for all processes."""
    return raw_memory.device_memory(device_number(device))


def _deprecated(name, instead, function, device):
    warnings.warn(f"{name} is deprecated: use {instead}", FutureWarning, stacklevel=3)
    return function(device)


def memory_cached(device=None) -> int:
    """Deprecated name of :func:`memory_reserved`."""
    return _deprecated("memory_cached", "memory_reserved", memory_reserved, device)


def max_memory_cached(device=None) -> int:
    """Deprecated name of :func:`max_memory_reserved`."""
    return _deprecated("max_memory_cached", "max_memory_reserved", max_memory_reserved, device)


def reset_max_memory_allocated(device=None) -> None:
    """Deprecated name of :func:`reset_peak_memory_stats`, which resets every peak."""
    return _deprecated("reset_max_memory_allocated", "reset_peak_memory_stats",
                       reset_peak_memory_stats, device)  # fmt: skip


def reset_max_memory_cached(device=None) -> None:
    """Deprecated name of :func:`reset_peak_memory_stats`, which resets every peak."""
    return _deprecated("reset_max_memory_cached", "reset_peak_memory_stats",
                       reset_peak_memory_stats, device)  # fmt: skip


def memory_stats(device=None) -> dict[str, int]:
    """Return all statistics of a device as a flat dict, sorted by name.

    Keys are ``"<statistic>.<pool>.<field>"`` with the statistics ``allocation``, ``segment``,
    ``active``, ``inactive_split`` (counts), ``allocated_bytes``, ``reserved_bytes``,
    ``active_bytes``, ``inactive_split_bytes``, ``requested_bytes``; the pools ``all``,
    ``large_pool``, ``small_pool``; the fields ``current``, ``peak``, ``allocated``, ``freed``. Then
    ``oversize_allocations.<field>``, ``oversize_segments.<field>``, ``num_alloc_retries``,
    ``num_ooms``, ``num_sync_all_streams``, ``num_device_alloc``, ``num_device_free``,
    ``num_oom_rejections``, ``max_split_size`` (-1: no limit), and for each private pool that is in
    use or has memory ``reserved_bytes_by_private_pools.<id>.<pool>.<field>``. All values are from
    the same moment.

    Examples
    --------
    >>> stats = memory_stats("host")
    >>> stats["allocated_bytes.all.current"] == memory_allocated("host")
    True
    """
    return accounts.flat_statistics(device_number(device))


def memory_stats_as_nested_dict(device=None) -> dict[str, Any]:
    """Return :func:`memory_stats` with a dict for each part of a name.

    The keys of ``reserved_bytes_by_private_pools`` are the ids of the pools, pairs of ints.

    Examples
    --------
    >>> sorted(memory_stats_as_nested_dict("host")["segment"])
    ['all', 'large_pool', 'small_pool']
    """
    nested = nest(memory_stats(device))
    pools = nested.get("reserved_bytes_by_private_pools", {})
    nested["reserved_bytes_by_private_pools"] = {
        tuple(map(int, name.split("_"))): values for name, values in pools.items()
    }
    return nested


def reset_peak_memory_stats(device=None) -> None:
    """Set every peak to its current value."""
    report.reset_peak(device_number(device))


def reset_accumulated_memory_stats(device=None) -> None:
    """Set the values that only grow to zero: ``allocated``, ``freed`` and the event counts."""
    accounts.reset_accumulated(device_number(device))


def host_memory_stats() -> dict[str, int]:
    """Return the statistics of pinned host memory as a flat dict, sorted by name.

    ``allocations`` and ``allocated_bytes`` describe the segments held, ``active_requests`` and
    ``active_bytes`` the blocks that callers or pending streams use, each with the fields
    ``current``, ``peak``, ``allocated``, ``freed``. ``num_host_alloc`` and ``num_host_free`` count
    the driver calls; ``host_alloc_time`` and ``host_free_time`` are their times in microseconds,
    with the fields ``total``, ``max``, ``min``, ``count``, ``avg``.
    """
    return accounts.pinned_statistics()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Return :func:`host_memory_stats` with a dict for each part of a name."""
    return nest(host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    """Set every peak of pinned host memory to its current value."""
    report.reset_peak_pinned()


def reset_accumulated_host_memory_stats() -> None:
    """Set the statistics of pinned host memory that only grow to zero."""
    accounts.reset_accumulated_pinned()


def memory_summary(device=None, abbreviated=False) -> str:
    """Return the statistics of a device as a readable table of text.

    Parameters
    ----------
    device : optional
        Default: the current device.
    abbreviated : bool
        Leave out the rows of the large and the small pool.
    """
    number = device_number(device)
    free, total = raw_memory.device_memory(number)
    return format_summary(str(device_of(number)), memory_stats(number), free, total, abbreviated)


def list_gpu_processes(device=None) -> str:
    """Return the processes that use a GPU and their memory, as text; uses NVML, not CUDA.

    Raises
    ------
    ValueError
        The device is not a GPU.
    """
    number = device_number(device)
    if number < 0:
        raise argument_error(ValueError, "device", str(device_of(number)), "a CUDA device")
    return list_processes(number)
