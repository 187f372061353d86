"""Control of the allocator: settings, limits, caching, and allocations by address."""

import contextlib
import operator
from typing import Any

from gputensor._alloc import (
    allocator as device_allocator,
)
from gputensor._alloc import (
    config,
)
from gputensor._alloc import (
    foreign as raw_memory,
)
from gputensor._alloc import (
    observe as report,
)
from gputensor._alloc import (
    pinned as pinned_memory,
)
from gputensor._alloc.config import settings as _settings
from gputensor._alloc.foreign import library_path
from gputensor.errors import Described, argument_error
from gputensor.memory.scopes import UncachedBlock
from gputensor.streams.queue import Stream, device_number, device_of, stream_handle

__all__ = [
    "c_library",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "empty_cache",
    "empty_host_cache",
    "get_allocator_backend",
    "get_allocator_settings",
    "get_per_process_memory_fraction",
    "pinned_buffer",
    "record_stream",
    "register_pinned",
    "set_allocator_settings",
    "set_per_process_memory_fraction",
]


def empty_cache(device=None) -> None:
    """Return cached memory to the driver, on one device or on all; waits for queued work."""
    numbers = device_allocator.open_devices() if device is None else [device_number(device)]
    for number in numbers:
        report.empty_cache(number)


def empty_host_cache() -> None:
    """Return cached pinned host memory to the system."""
    pinned_memory.empty_cache()


def caching_allocator_alloc(size, device=None, stream=None) -> int:
    """Allocate device memory and return its address, for callers that work with addresses.

    Parameters
    ----------
    size : int
        Bytes; 0 gives address 0.
    stream : Stream, int or object with ``__cuda_stream__``, optional
        The stream of the device in whose order the memory is used; default: the current one.

    Examples
    --------
    >>> ptr = caching_allocator_alloc(4096, "host")
    >>> caching_allocator_delete(ptr)
    """
    try:
        nbytes = -1 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        nbytes = -1
    if nbytes < 0:
        raise argument_error(ValueError, "size", size, "an integer, 0 or more")
    number = device_number(device)
    if isinstance(stream, Stream) and stream.device_number != number:
        got = Described(f"a stream on {stream.device}")
        raise argument_error(ValueError, "stream", got, f"one on {device_of(number)}")
    return raw_memory.raw_alloc(number, nbytes, stream_handle(number, stream))


def caching_allocator_delete(mem_ptr) -> None:
    """Free an allocation of :func:`caching_allocator_alloc`.

    Raises
    ------
    TypeError
        The address is not an integer.
    ValueError
        The address is not in use by such an allocation. A tensor frees its memory itself.
    """
    raw_memory.raw_delete(mem_ptr)


def record_stream(mem_ptr, stream, device=None) -> None:
    """Record that foreign work queued on a stream uses the allocation at an address.

    The library's own operations do not need it.
    """
    raw_memory.raw_record_stream(mem_ptr, stream_handle(device_number(device), stream))


def caching_allocator_enable(value=True, device=None) -> None:
    """Turn caching on or off for later requests; without it each request is a driver call.

    Parameters
    ----------
    value : bool
        Whether to cache. Existing blocks are freed in the way in which they were allocated.
    device : optional
        Default: all devices, including those that are first used later.
    """
    if device is None:
        device_allocator.set_caching_everywhere(bool(value))
    else:
        device_allocator.set_caching(_used_number(device), bool(value))


class caching_allocator_disabled(UncachedBlock, contextlib.ContextDecorator):  # noqa: N801
    """Turn caching off in a ``with`` block, on a device or, by default, on all.

    The end of the block restores the former state of each device.

    Examples
    --------
    >>> with caching_allocator_disabled("host"):
    ...     ptr = caching_allocator_alloc(4096, "host")
    >>> caching_allocator_delete(ptr)
    """


def _used_number(device):
    """Return the number of a device after opening its allocator."""
    number = device_number(device)
    device_allocator.open_allocator(number)
    return number


def set_per_process_memory_fraction(fraction, device=None) -> None:
    """Limit the memory that the process may hold on a device to a share of its total.

    Parameters
    ----------
    fraction : float
        From 0.0 to 1.0 (no limit). Memory already held is kept. The limit applies until it is set
        again, here or for all devices by :func:`set_allocator_settings`.

    Raises
    ------
    TypeError
        The fraction is not a float.
    ValueError
        The fraction is outside [0, 1].

    Examples
    --------
    >>> set_per_process_memory_fraction(0.5, "host")
    >>> get_per_process_memory_fraction("host")
    0.5
    >>> set_per_process_memory_fraction(1.0, "host")
    """
    if not isinstance(fraction, float):
        raise argument_error(TypeError, "fraction", fraction, "float")
    if not 0 <= fraction <= 1:
        raise argument_error(ValueError, "fraction", fraction, "0 to 1")
    config.set_fraction(device_number(device), fraction)


def get_per_process_memory_fraction(device=None) -> float:
    """Return the share of a device's memory that the process may hold."""
    return config.fraction_of(device_number(device))


def get_allocator_backend() -> str:
    """Return ``"native"`` or ``"cudaMallocAsync"``."""
    return _settings.current().backend


def get_allocator_settings(device=None) -> dict[str, tuple[Any, str]]:
    """Return a dict from the name of each option to its (value, source) on a device.

    The source is ``"default"``, ``"environment"``, or the function that set the option last:
    ``"set_allocator_settings"`` (for all devices) or ``"set_per_process_memory_fraction"`` (for one
    device). Only ``per_process_memory_fraction`` can differ between devices.

    Examples
    --------
    >>> get_allocator_settings()["backend"].value
    'native'
    """
    if device is None and not config.has_own_fractions():
        return _settings.current().in_force()  # the same for all, so no device has to be opened
    return config.in_force_on(device_number(device))


def set_allocator_settings(text) -> None:
    """Change options at run time; options that `text` does not name keep their values.

    Parameters
    ----------
    text : str
        ``key:value,key:value``, as in ``GPUTENSOR_ALLOC_CONF``.

    Raises
    ------
    ValueError
        `text` has an unknown key or a bad value. Nothing has changed.
    """
    if not isinstance(text, str):
        raise argument_error(TypeError, "text", text, "str")
    _settings.change(text)


def pinned_buffer(nbytes, device=None):
    """Return pinned host memory, an object with a buffer, for fast copies to and from a device.

    Examples
    --------
    >>> import numpy as np
    >>> np.frombuffer(pinned_buffer(16, "host"), "f4").shape
    (4,)
    """
    return pinned_memory.PinnedMemory(device_number(device), nbytes)


def register_pinned(buffer, device=None):
    """Pin existing host memory in place, and return the object that keeps it pinned.

    A copy from it in a capture becomes a node of the graph that reads the memory at each replay, as
    with a :func:`pinned_buffer`; the memory has to stay pinned as long as the graph is replayed.
    Outside of captures an upload reads its source before it returns, whether pinned or not.

    Parameters
    ----------
    buffer : object with a contiguous writable buffer
        A NumPy array, a bytearray, ...; it is kept alive while it is pinned.
    device : optional
        Default: the current device.

    Returns
    -------
    PinnedRegion
        It has ``ptr`` and ``nbytes``. Its ``unregister()``, its destruction, or the end of its
        ``with`` block unpins the memory.

    Raises
    ------
    TypeError, ValueError
        The object has no buffer, or it is empty, read-only or not contiguous.

    Examples
    --------
    >>> import numpy as np
    >>> with register_pinned(np.zeros(1000), "host") as region:
    ...     region.nbytes
    8000
    """
    rule = "an object with a contiguous writable buffer of at least 1 byte"
    try:
        view = memoryview(buffer)
    except TypeError:
        raise argument_error(TypeError, "buffer", buffer, rule) from None
    with view:
        if view.readonly or not view.c_contiguous or not view.nbytes:
            kind = "read-only" if view.readonly else "empty or not contiguous"
            got = Described(f"{type(buffer).__name__}, {kind}")
            raise argument_error(ValueError, "buffer", got, rule)
    return pinned_memory.PinnedRegion(device_number(device), buffer)


def c_library() -> str:
    """Return the path of the library whose C functions allocate for other libraries.

    For PyTorch's ``CUDAPluggableAllocator`` the names are ``"gputensor_malloc_or_throw"`` and
    ``"gputensor_free"``: PyTorch does not check the pointer that it receives, so the first throws a
    C++ exception if there is no memory. For callers in C,
    ``gputensor_malloc(size, device, stream)`` returns NULL instead;
    ``gputensor_record_stream(ptr, stream)`` works with both. The functions need no GIL. They
    require a process that runs Python, and fail until it has imported ``gputensor.memory``.
    """
    return library_path()
