"""Device numbers and stream handles, for Python code that calls the core by number."""


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


# The handle that a stream's __cuda_stream__() returns. TypeError if the result is not a pair,
# ValueError for another version of the protocol.
cdef object protocol_handle(object stream):
    given = stream.__cuda_stream__()
    try:
        version, handle = given
    except (TypeError, ValueError):
        raise argument_error(TypeError, "stream.__cuda_stream__()", Described(repr(given)),
                             "(0, handle)") from None
    if version != 0:
        raise argument_error(ValueError, "stream.__cuda_stream__()",
                             Described(f"version {version}"), "version 0")
    return handle


def stream_handle(int device, stream=None):
    """Return the handle of a stream; None is the thread's current stream on `device`.

    A number is a handle already. For an object it is ``cuda_stream``, or the handle that
    ``__cuda_stream__`` returns.

    >>> stream_handle(-1)
    0
    """
    cdef uint64_t handle
    if stream is None:
        handle = current_handle(device)
    elif isinstance(stream, int) and not isinstance(stream, bool):
        if not 0 <= stream < 1 << 64:
            raise argument_error(ValueError, "stream", stream, "a handle from 0 to below 2**64")
        handle = stream
    elif hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    elif hasattr(stream, "__cuda_stream__"):
        handle = protocol_handle(stream)
    else:
        raise argument_error(TypeError, "stream", stream,
                             "None, a Stream, a handle or an object with __cuda_stream__")
    return handle
