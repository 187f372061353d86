"""Control of the allocator: settings, limits, caching, and memory by address."""

import contextlib
import operator

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
from gputensor.errors import argument_error
from gputensor.memory.scopes import UncachedBlock
from gputensor.streams.queue import device_number, stream_handle

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


def empty_cache(device=None):
    """Give cached memory back to the device, on one device or on all; waits for queued work."""
    numbers = device_allocator.open_devices() if device is None else [device_number(device)]
    for number in numbers:
        report.empty_cache(number)


def empty_host_cache():
    """Give cached pinned host memory back to the system."""
    pinned_memory.empty_cache()


def caching_allocator_alloc(size, device=None, stream=None):
    """Allocate device memory and return its address, for callers that pass addresses on.

    Parameters
    ----------
    size : int
        Bytes; 0 gives address 0.
    stream : Stream, int or object with ``__cuda_stream__``, optional
        The stream in whose order the memory is used; default: the current one.

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
        raise argument_error(ValueError, "size", size, "an integer from 0")
    number = device_number(device)
    # More than any device has: the request fails as one for all of the address space does.
    return raw_memory.raw_alloc(number, min(nbytes, 1 << 62), stream_handle(number, stream))


def caching_allocator_delete(mem_ptr):
    """Give back what :func:`caching_allocator_alloc` returned.

    Raises
    ------
    TypeError
        The address is not an integer.
    ValueError
        It was not given out here, or was given back since. A tensor's memory goes with the tensor.
    """
    raw_memory.raw_delete(mem_ptr)


def record_stream(mem_ptr, stream, device=None):
    """Say that foreign work queued on a stream uses the allocation at an address.

    The library's own operations do this themselves.
    """
    raw_memory.raw_record_stream(mem_ptr, stream_handle(device_number(device), stream))


def caching_allocator_enable(value=True, device=None):
    """Turn caching on or off for the requests to come; off, each is a call of the driver.

    Parameters
    ----------
    value : bool
        Blocks allocated before are freed as they were allocated.
    device : optional
        Default: all devices, those too that are used for the first time later.
    """
    if device is None:
        device_allocator.set_caching_everywhere(bool(value))
    else:
        device_allocator.set_caching(_used_number(device), bool(value))


class caching_allocator_disabled(UncachedBlock, contextlib.ContextDecorator):  # noqa: N801
    """Have caching off in a ``with`` block, on a device or, by default, on all.

    Afterwards each device is as it was before.

    Examples
    --------
    >>> with caching_allocator_disabled("host"):
    ...     ptr = caching_allocator_alloc(4096, "host")
    >>> caching_allocator_delete(ptr)
    """


def _used_number(device):
    """The number of a device, which has an allocator from now on."""
    number = device_number(device)
    device_allocator.open_allocator(number)
    return number


def set_per_process_memory_fraction(fraction, device=None):
    """Limit the memory that the process may hold on a device to a share of its total.

    Parameters
    ----------
    fraction : float
        From 0.0 to 1.0 (no limit). Memory held already stays. It holds until it is set again,
        here or for all devices by :func:`set_allocator_settings`.

    Raises
    ------
    TypeError
        The fraction is not a float.
    ValueError
        It is outside of [0, 1].

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
        raise argument_error(ValueError, "fraction", fraction, "a value from 0 to 1")
    config.set_fraction(device_number(device), fraction)


def get_per_process_memory_fraction(device=None):
    """Return the share of a device's memory that the process may hold."""
    return config.fraction_of(device_number(device))


def get_allocator_backend():
    """Return ``"native"`` or ``"cudaMallocAsync"``."""
    return _settings.current().backend


def get_allocator_settings(device=None):
    """Return a dict from the name of every option to its (value, source) on a device.

    The source is ``"default"``, ``"environment"`` or the function that set it last:
    ``"set_allocator_settings"``, for all devices, or ``"set_per_process_memory_fraction"``, for one
    device. Devices can only differ in ``per_process_memory_fraction``.

    Examples
    --------
    >>> get_allocator_settings()["backend"].value
    'native'
    """
    if device is None and not config.has_own_fractions():
        return _settings.current().in_force()  # the same on all: no device has to be opened
    return config.in_force_on(device_number(device))


def set_allocator_settings(text):
    """Change options at run time; those that `text` does not name stay as they are.

    Parameters
    ----------
    text : str
        ``key:value,key:value``, as in ``GPUTENSOR_ALLOC_CONF``.

    Raises
    ------
    ValueError
        For an unknown key or a bad value; then nothing is changed.
    """
    if not isinstance(text, str):
        raise argument_error(TypeError, "text", text, "str")
    _settings.change(text)


def pinned_buffer(nbytes, device=None):
    """Return pinned host memory: an object with a buffer, for fast copies to and from a device.

    Examples
    --------
    >>> import numpy as np
    >>> np.frombuffer(pinned_buffer(16, "host"), "f4").shape
    (4,)
    """
    return pinned_memory.PinnedMemory(device_number(device), nbytes)


def register_pinned(buffer, device=None):
    """Pin memory of the program's in place, and return the object that keeps it so.

    A copy from it in a capture is a node of the graph that reads the memory at each replay, as from
    a :func:`pinned_buffer`; the memory has to stay pinned as long as the graph is replayed. Outside
    of captures an upload reads its source before it returns, pinned or not.

    Parameters
    ----------
    buffer : object with a contiguous writable buffer
        A NumPy array, a bytearray, ...; kept alive while it is pinned.
    device : optional
        Default: the current device.

    Returns
    -------
    PinnedRegion
        With ``ptr`` and ``nbytes``. Its ``unregister()``, its end and the end of a ``with`` block
        unpin the memory.

    Examples
    --------
    >>> import numpy as np
    >>> with register_pinned(np.zeros(1000), "host") as region:
    ...     region.nbytes
    8000
    """
    return pinned_memory.PinnedRegion(device_number(device), buffer)


def c_library():
    """Return the path of the library whose C symbols other libraries may call.

    PyTorch's ``CUDAPluggableAllocator`` takes the names ``"gputensor_malloc_or_throw"`` and
    ``"gputensor_free"``: it does not look at the pointer it is given, so the first throws a C++
    exception when there is no memory. ``gputensor_malloc(size, device, stream)`` returns NULL then,
    for callers in C; ``gputensor_record_stream(ptr, stream)`` goes with both. They need no GIL, and
    are for processes that run Python: until ``gputensor.memory`` is imported there, they give no
    memory.
    """
    return library_path()
