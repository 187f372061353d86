"""The number behind what names a device, for Python code that calls the core by number."""


def device_number(device=None):
    """Return the number of a device: None is the current one. Opens the device.

    >>> device_number("host")
    -1
    """
    return current_device() if device is None else resolve_device(device)


def device_number_unopened(device=None):
    """Return the number of a device without opening it; None is the current one.

    >>> device_number_unopened("cuda:1")
    1
    """
    return current_device() if device is None else parse_device(device)


# What the method __cuda_stream__ of a stream gives. TypeError when that is no pair, ValueError when
# it is of another version.
cdef object protocol_handle(object stream):
    given = stream.__cuda_stream__()
    try:
        version, handle = given
    except (TypeError, ValueError):
        raise TypeError(f"stream gives {given!r} as __cuda_stream__; it must give (0, handle)"
                        ) from None
    if version != 0:
        raise ValueError(f"stream gives version {version} of __cuda_stream__; this library knows 0")
    return handle


def stream_handle(int device, stream=None):
    """Return the handle of a stream: None is the thread's current one on `device`.

    A number is a handle already; an object gives its ``cuda_stream``, or that of
    ``__cuda_stream__``.

    >>> stream_handle(-1)
    0
    """
    cdef uint64_t handle
    if stream is None:
        handle = current_handle(device)
    elif isinstance(stream, int) and not isinstance(stream, bool):
        if not 0 <= stream < 1 << 64:
            raise ValueError(f"stream: got {stream}, allowed: a handle is from 0 to below 2**64")
        handle = stream
    elif hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    elif hasattr(stream, "__cuda_stream__"):
        handle = protocol_handle(stream)
    else:
        raise TypeError(
            f"stream: got {type(stream).__name__}, allowed: None, a Stream, a handle or an object "
            "with __cuda_stream__")
    return handle
