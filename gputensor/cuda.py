"""The names of ``cupy.cuda`` and ``torch.cuda``, for programs that use them.

Most names refer to the library's own objects; docs/streams.md lists those of PyTorch that are not
here. `MemoryPool` and `set_allocator` implement CuPy's interface with private pools. Host devices
support everything except the compilation of CUDA C++.
"""

import contextlib
import threading
import weakref

from gputensor import cuda_runtime as runtime
from gputensor import graphs, memory, random, streams
from gputensor._alloc.allocator import open_devices
from gputensor._alloc.foreign import raw_delete
from gputensor.blas import tunable
from gputensor.device import (
    can_device_access_peer,
    clock_rate,
    current_device,
    device,
    device_count,
    device_memory_used,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    is_bf16_supported,
    is_tf32_supported,
    mem_get_info,
    memory_usage,
    power_draw,
    set_device,
    temperature,
    utilization,
)
from gputensor.errors import (
    Described,
    DeviceError,
    OutOfMemoryError,
    argument_error,
    float_argument,
    int_argument,
)
from gputensor.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from gputensor.memory import (
    CUDAPluggableAllocator,
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from gputensor.random import get_state, initial_seed, manual_seed, seed, set_state
from gputensor.streams import (
    Device,
    Event,
    ExternalStream,
    Stream,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
    synchronize,
)
from gputensor.tensor.transfer import get_sync_debug_mode, set_sync_debug_mode

__all__ = [
    "CUDAGraph", "CUDAPluggableAllocator", "Device", "Event", "ExternalStream", "Graph", "MemPool",
    "MemoryPointer", "MemoryPool", "OutOfMemoryError", "Stream", "alloc", "caching_allocator_alloc",
    "caching_allocator_delete", "caching_allocator_disabled", "caching_allocator_enable",
    "can_device_access_peer", "clock_rate", "current_device", "current_stream", "default_stream",
    "device", "device_count", "device_memory_used", "device_of", "empty_cache", "get_allocator",
    "get_allocator_backend", "get_current_stream", "get_default_memory_pool",
    "get_default_pinned_memory_pool", "get_device_capability", "get_device_id", "get_device_name",
    "get_device_properties", "get_elapsed_time", "get_per_process_memory_fraction", "get_rng_state",
    "get_rng_state_all", "get_stream_from_external", "get_sync_debug_mode", "graph",
    "graph_pool_handle", "graphs", "host_memory_stats", "host_memory_stats_as_nested_dict", "init",
    "initial_seed", "ipc_collect", "is_available", "is_bf16_supported",
    "is_current_stream_capturing", "is_initialized", "is_tf32_supported", "list_gpu_processes",
    "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory", "memory_allocated",
    "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "memory_usage", "power_draw", "random",
    "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats",
    "reset_peak_memory_stats", "runtime", "seed", "seed_all", "set_allocator", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "set_sync_debug_mode", "stream", "streams", "synchronize", "temperature", "tunable",
    "use_mem_pool", "using_allocator", "utilization",
]  # fmt: skip

get_current_stream = current_stream
manual_seed_all, seed_all = manual_seed, seed  # a seed is that of all devices here
get_rng_state = get_state


def set_rng_state(new_state, device=None):
    """Make the default generator of a device continue from a result of `get_rng_state`.

    >>> set_rng_state(get_rng_state("host"), "host")
    """
    set_state(new_state, device)


def get_rng_state_all():
    """Return the results of :func:`get_rng_state` for all CUDA devices, as a list.

    >>> len(get_rng_state_all()) == device_count()
    True
    """
    return [get_rng_state(f"cuda:{number}") for number in range(device_count())]


def set_rng_state_all(new_states):
    """Continue the default generators of all CUDA devices from :func:`get_rng_state_all`.

    >>> set_rng_state_all(get_rng_state_all())
    """
    for number, state in enumerate(new_states):
        set_rng_state(state, f"cuda:{number}")


def init():
    """Initialise CUDA now rather than at its first use; raises DeviceError if it cannot be used."""
    if device_count() == 0:
        raise DeviceError("init: there is no CUDA device")


def is_initialized():
    """Return whether this process has allocated on a CUDA device.

    >>> is_initialized() and not is_available()
    False
    """
    return any(number >= 0 for number in open_devices())


def ipc_collect():
    """Return at once: memory of other processes is given up when its last tensor is dropped.

    >>> ipc_collect()
    """


@contextlib.contextmanager
def device_of(obj):
    """Make the device of a tensor current in a ``with`` block; other objects change nothing.

    >>> with device_of(random.rand(2, device="host")):
    ...     current_device()
    -1
    """
    place = getattr(obj, "device", None)
    with place if isinstance(place, Device) else contextlib.nullcontext():
        yield


def get_device_id():
    """Return the number of this thread's current device; -1 for the host device.

    >>> with Device("host"):
    ...     get_device_id()
    -1
    """
    return current_device()


class Graph(CUDAGraph):
    """A graph with CuPy's `launch`: ``with gt.graphs.graph(g): ...``, then ``g.launch()``."""

    def launch(self, stream=None):
        """Queue a replay on a stream; default: the current one."""
        if stream is None:
            self.replay()
            return
        with _on(stream):
            self.replay()


_on = stream


class MemoryPointer:
    """Memory of a pool; it returns to the pool with the last reference to this object.

    Attributes
    ----------
    ptr : int
        The address.
    size : int
        The requested bytes.
    device_id : int
    """

    def __init__(self, ptr, size, device_id):
        self.ptr, self.size, self.device_id = ptr, size, device_id
        if ptr:
            weakref.finalize(self, raw_delete, ptr).atexit = False

    def __int__(self):
        return self.ptr


class MemoryPool:
    """A pool of memory with CuPy's functions, on a :class:`gputensor.memory.MemPool`.

    Parameters
    ----------
    allocator : CUDAPluggableAllocator, optional
        The source of its memory; default: the driver.

    Examples
    --------
    >>> with Device("host"):
    ...     pool = MemoryPool()
    ...     memory = pool.malloc(1000)
    ...     pool.used_bytes()
    1024
    >>> del memory
    >>> pool.used_bytes()
    0
    """

    def __init__(self, allocator=None):
        self._pool = MemPool(allocator=allocator)

    def malloc(self, size):
        """Return a :class:`MemoryPointer` of `size` bytes on the current device and stream."""
        number = current_device()
        with use_mem_pool(self._pool):
            return MemoryPointer(caching_allocator_alloc(size), size, number)

    def _blocks(self):
        return [block for segment in self._pool.snapshot(False) for block in segment["blocks"]]

    def used_bytes(self):
        """Return the bytes in use."""
        return self.total_bytes() - self.free_bytes()

    def total_bytes(self):
        """Return the bytes that the pool holds, in use or free."""
        return sum(segment["total_size"] for segment in self._pool.snapshot(False))

    def free_bytes(self):
        """Return the free bytes that the pool holds."""
        return sum(block["size"] for block in self._blocks() if block["state"] == "inactive")

    def n_free_blocks(self):
        """Return the number of free blocks."""
        return sum(block["state"] == "inactive" for block in self._blocks())

    def free_all_blocks(self, stream=None):
        """Return free memory to the driver, not only of this pool but of the whole library."""
        empty_cache()


class _LibraryPool(MemoryPool):
    """The memory of the library on the current device, with CuPy's functions."""

    def __init__(self):
        pass

    def malloc(self, size):
        return MemoryPointer(caching_allocator_alloc(size), size, current_device())

    def _blocks(self):
        return [block for segment in memory_snapshot() for block in segment["blocks"]]

    def used_bytes(self):
        return memory_allocated()

    def total_bytes(self):
        return memory_reserved()

    def free_bytes(self):
        return memory_reserved() - memory_allocated()

    def get_limit(self):
        """Return the bytes that this process may hold on the device; 0 without a limit."""
        fraction = get_per_process_memory_fraction()
        return 0 if fraction >= 1 else int(fraction * mem_get_info()[1])

    def set_limit(self, size=None, fraction=None):
        """Limit what this process holds on the device: by bytes or a fraction; 0 means no limit."""
        if (size is None) == (fraction is None):
            got = Described("both" if size is not None else "neither")
            raise argument_error(TypeError, "set_limit: size, fraction", got, "exactly one of them")
        if size is not None:
            fraction = int_argument("set_limit: size", size) / mem_get_info()[1]
        fraction = float_argument("set_limit: fraction", fraction)
        if fraction < 0:
            raise argument_error(ValueError, "set_limit", fraction, "0 or more")
        set_per_process_memory_fraction(min(fraction, 1.0) or 1.0)


class _LibraryPinnedPool:
    """The pinned host memory of the library, with CuPy's function."""

    def free_all_blocks(self):
        empty_cache()


def get_default_memory_pool():
    """Return the library's memory of the current device, with CuPy's functions of a pool.

    >>> with Device("host"):
    ...     get_default_memory_pool().used_bytes() >= 0
    True
    """
    return _LibraryPool()


def get_default_pinned_memory_pool():
    """Return the library's pinned host memory, with CuPy's ``free_all_blocks``.

    >>> get_default_pinned_memory_pool().free_all_blocks()
    """
    return _LibraryPinnedPool()


def get_elapsed_time(start_event, end_event):
    """Return the milliseconds between two events that have been recorded.

    >>> first, last = (Event(enable_timing=True) for _ in range(2))
    >>> for event in (first, last):
    ...     event.record(Stream("host"))
    ...     event.synchronize()
    >>> get_elapsed_time(first, last) >= 0
    True
    """
    return start_event.elapsed_time(end_event)


class _Chosen(threading.local):
    """The pool that :func:`set_allocator` chose for this thread."""

    allocator = scope = None


_chosen = _Chosen()


def set_allocator(allocator=None):
    """Serve this thread's requests on the current device from the pool with this `malloc`.

    Parameters
    ----------
    allocator : bound method `malloc` of a MemoryPool, or None
        None restores the library's own pool. Other functions are refused with `TypeError`; pass a
        :class:`gputensor.memory.CUDAPluggableAllocator` to the pool instead.

    Examples
    --------
    >>> with Device("host"):
    ...     pool = MemoryPool()
    ...     set_allocator(pool.malloc)
    ...     memory = caching_allocator_alloc(512)
    ...     set_allocator(None)
    ...     pool.used_bytes()
    512
    >>> raw_delete(memory)
    """
    pool = getattr(allocator, "__self__", None)
    if isinstance(pool, _LibraryPool):
        allocator = pool = None
    if allocator is not None and not (
        isinstance(pool, MemoryPool) and allocator.__func__ is MemoryPool.malloc
    ):
        raise argument_error(TypeError, "allocator", allocator, "the malloc of a MemoryPool")
    if _chosen.scope is not None:
        _chosen.scope.__exit__(None, None, None)
        _chosen.scope = None
    _chosen.allocator = allocator
    if pool is not None:
        scope = use_mem_pool(pool._pool)
        scope.__enter__()
        _chosen.scope = scope


@contextlib.contextmanager
def using_allocator(allocator=None):
    """Call :func:`set_allocator` for a ``with`` block, and restore the choice at its end.

    >>> with Device("host"):
    ...     pool = MemoryPool()
    ...     with using_allocator(pool.malloc):
    ...         get_allocator() == pool.malloc
    True
    """
    before = get_allocator()
    set_allocator(allocator)
    try:
        yield
    finally:
        set_allocator(before)


def alloc(size):
    """Return a :class:`MemoryPointer` of `size` bytes from this thread's allocator.

    >>> with Device("host"):
    ...     alloc(100).size
    100
    """
    return (get_allocator() or get_default_memory_pool().malloc)(size)


def get_allocator():
    """Return the argument of this thread's last call of :func:`set_allocator`, or None."""
    return _chosen.allocator


def __dir__():
    return sorted(__all__)
