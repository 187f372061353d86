"""Every exception of the library, and the one place that turns a driver status into one.

The core returns status numbers. At its edge, :func:`raise_for_status` is called with the name of
the call and the facts that the caller knows; no other code makes a :class:`DriverError`.
:func:`argument_error` gives all errors about arguments the same form.
"""

import operator

__all__ = [
    "BlasError",
    "Described",
    "DeviceError",
    "DriverError",
    "GpuTensorError",
    "ModelError",
    "OutOfMemoryError",
    "ProgramError",
    "ProgramFileError",
    "ProgramRunError",
    "TraceError",
    "UnorderedAccessError",
    "amount",
    "argument_error",
    "float_argument",
    "function_argument",
    "int_argument",
    "list_argument",
    "raise_for_status",
    "status_text",
]

# Names and texts of the CUDA driver's status numbers that can occur here (CUresult in the CUDA
# driver API reference); the host device uses the same numbers.
STATUS_TEXT = {
    0: ("CUDA_SUCCESS", "no error"),
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    3: (
        "CUDA_ERROR_NOT_INITIALIZED",
        "initialization error; CUDA cannot be used in a process that was forked from one that has "
        "used it: start processes with the method 'spawn'",
    ),
    4: ("CUDA_ERROR_DEINITIALIZED", "driver shutting down"),
    34: ("CUDA_ERROR_STUB_LIBRARY", "the driver library is a stub, not the real one"),
    36: ("CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the call needs a newer driver"),
    46: ("CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is busy or closed to this process"),
    100: ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    101: ("CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"),
    200: ("CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"),
    201: ("CUDA_ERROR_INVALID_CONTEXT", "invalid device context"),
    205: ("CUDA_ERROR_MAP_FAILED", "a resource could not be mapped"),
    206: ("CUDA_ERROR_UNMAP_FAILED", "a resource could not be unmapped"),
    207: ("CUDA_ERROR_ARRAY_IS_MAPPED", "the array is mapped and cannot be destroyed"),
    208: ("CUDA_ERROR_ALREADY_MAPPED", "the resource is mapped already"),
    209: ("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for the device"),
    218: ("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    304: ("CUDA_ERROR_OPERATING_SYSTEM", "a call of the operating system failed"),
    400: ("CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"),
    401: ("CUDA_ERROR_ILLEGAL_STATE", "a resource is in the wrong state for the call"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    600: ("CUDA_ERROR_NOT_READY", "device not ready"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    701: ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"),
    702: ("CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel ran longer than the system allows"),
    704: ("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is enabled already"),
    708: ("CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the primary context exists already"),
    712: ("CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the host memory is registered already"),
    713: ("CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the host memory is not registered"),
    715: ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel met an illegal instruction"),
    716: ("CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"),
    717: ("CUDA_ERROR_INVALID_ADDRESS_SPACE", "a kernel accessed the wrong address space"),
    718: ("CUDA_ERROR_INVALID_PC", "a kernel's program counter left its code"),
    719: ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
    720: ("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks for a cooperative launch"),
    800: ("CUDA_ERROR_NOT_PERMITTED", "operation not permitted"),
    801: ("CUDA_ERROR_NOT_SUPPORTED", "operation not supported"),
    803: ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "kernel driver and driver library do not match"),
    804: (
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "the device does not support the compatibility package",
    ),
    900: ("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while the stream is capturing"),
    901: ("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "a previous error invalidated the capture"),
    902: ("CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would become one"),
    903: ("CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture did not begin on this stream"),
    904: ("CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a forked stream was not joined to the capture"),
    905: ("CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency crosses into a capturing stream"),
    906: ("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "implicit dependency on a capturing stream"),
    907: ("CUDA_ERROR_CAPTURED_EVENT", "not permitted on an event recorded in a capture"),
    908: ("CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture was begun by another thread"),
    910: ("CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graphs differ too much for an update"),
    999: ("CUDA_ERROR_UNKNOWN", "unknown error"),
}


class GpuTensorError(Exception):
    """Base class of the library's own errors."""


class DeviceError(GpuTensorError, RuntimeError):
    """A device, its driver library or a symbol of that library is missing or cannot be opened."""


class DriverError(GpuTensorError, RuntimeError):
    """A driver call failed.

    Attributes
    ----------
    call : str
        The entry of the driver table that failed, for example ``"page_create"``.
    status : int
        The CUDA status number (``CUresult``).
    """

    def __init__(self, message, call="", status=0):
        super().__init__(message)
        self.call = call
        self.status = status


class UnorderedAccessError(GpuTensorError, RuntimeError):
    """Under ``ordering("check")``: two uses of the same memory are not ordered.

    Attributes
    ----------
    access, former : str
        ``file:line in function`` of the use that raised, and of the earlier use.
    """

    def __init__(self, message, access="", former=""):
        super().__init__(message)
        self.access = access
        self.former = former


class BlasError(GpuTensorError, RuntimeError):
    """A call into cuBLAS or cuBLASLt failed.

    Attributes
    ----------
    call : str
        The library function, for example ``"cublasLtMatmul"``.
    status : int
        The library's status number (``cublasStatus_t``).
    """

    def __init__(self, message, call="", status=0):
        super().__init__(message)
        self.call = call
        self.status = status


class OutOfMemoryError(GpuTensorError, MemoryError, RuntimeError):
    """The device has not enough memory for a request. The request changed nothing.

    It is a MemoryError as in Python and CuPy, and a RuntimeError as in PyTorch.

    Attributes
    ----------
    reason : str
        ``"exhausted"``, ``"fragmented"``, ``"waiting on streams"``, ``"idle private pool"``,
        ``"limit"`` or ``"other processes"``.
    facts : dict
        The amounts in bytes that the message names: ``requested``, ``allocated``, ``reserved``,
        ``free``, ``total``, ``largest_free_block``, ``limit``.
    option : str or None
        An option with which the request would have succeeded, if one is known: from a replay of
        the recorded events, or because the amounts prove it.
    call_sites : list of tuple
        ``(nbytes, n_blocks, place)`` of the lines that hold most, if the history records stacks.
    """

    def __init__(self, message, reason="exhausted", facts=None, option=None, call_sites=()):
        super().__init__(message)
        self.reason = reason
        self.facts = dict(facts or {})
        self.option = option
        self.call_sites = list(call_sites)


class ModelError(GpuTensorError, ValueError):
    """A model file is damaged or needs a missing feature; the message names the node."""


class ProgramError(GpuTensorError, ValueError):
    """A traced function breaks a rule for programs; the message names the call."""


class ProgramRunError(GpuTensorError, RuntimeError):
    """A call of a checked session failed or made a NaN; the message names the user's line."""


class ProgramFileError(ProgramError):
    """A program file is damaged or malicious; none of it was used."""


class TraceError(GpuTensorError, RuntimeError):
    """A function does something that a program cannot contain, or not for all sizes.

    The message has one form: ``model.py:31: PROBLEM; WAY OUT``.

    Attributes
    ----------
    line : str
        Where the traced function did it: ``"model.py:31"``.
    """

    def __init__(self, line, problem, way_out):
        super().__init__(f"{line}: {problem}; {way_out}" if line else f"{problem}; {way_out}")
        self.line = line


class Described(str):
    """A description that replaces a value in a message: ``got a closed device``."""

    __slots__ = ()
    __repr__ = str.__str__


def argument_error(kind, name, value, rule):
    """Return the error for an argument: ``name: got VALUE; expected RULE``.

    Parameters
    ----------
    kind : type
        The exception to make. A `TypeError` shows the type of the value, other exceptions its repr.
    name : str
        The argument, option or environment variable as the user writes it; names from files may
        contain any characters, and the message is one line. It is cut at 300 characters.
    value : object
        The value, or a :class:`Described` text. The repr of a value is cut at 300 characters.
    rule : str
        The accepted values.

    Examples
    --------
    >>> argument_error(ValueError, "mode", "fast", "'auto' or 'manual'")
    ValueError("mode: got 'fast'; expected 'auto' or 'manual'")
    >>> argument_error(TypeError, "event", 3, "an Event")
    TypeError('event: got int; expected an Event')
    >>> argument_error(ValueError, "end_event", Described("an event without timing"), "one with it")
    ValueError('end_event: got an event without timing; expected one with it')
    """
    if issubclass(kind, TypeError) and not isinstance(value, Described):
        is_dtype = type(value).__name__.endswith("DType")  # of NumPy, which need not be imported
        value = Described(str(value) if is_dtype else type(value).__name__)
    name = name if name.isprintable() else repr(name)
    name = name if len(name) <= 300 else f"{name[:297]}..."
    shown = repr(value)
    if len(shown) > 300 and not isinstance(value, Described):
        shown = shown[:297] + "..."
    return kind(f"{name}: got {shown}; expected {rule}")


def int_argument(name, value):
    """Return an argument as an int; TypeError if it is none.

    >>> int_argument("k", 3)
    3
    """
    try:
        return operator.index(value)
    except TypeError:
        raise argument_error(TypeError, name, value, "an int") from None


def plain_int(value):
    """Return an integer of any type as an int, and anything else, a bool too, as it is.

    >>> plain_int(3), plain_int("same")
    (3, 'same')
    """
    if type(value) is int or isinstance(value, bool):
        return value
    try:
        return operator.index(value)
    except TypeError:
        return value


def float_argument(name, value):
    """Return an argument as a float; TypeError if it is no real number.

    >>> float_argument("p", 3)
    3.0
    """
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise argument_error(TypeError, name, value, "a number") from None


def has_elements(value):
    """Return whether an argument is a sequence or an array with axes; one without is a number.

    >>> has_elements([3]), has_elements(3)
    (True, False)
    """
    return hasattr(value, "__iter__") and getattr(value, "ndim", 1) != 0


def list_argument(name, value, rule="a sequence"):
    """Return an argument as a list; TypeError if it has no elements to iterate over.

    >>> list_argument("axes", (0, 1))
    [0, 1]
    """
    try:
        return list(value)
    except TypeError:
        raise argument_error(TypeError, name, value, rule) from None


def function_argument(name, value):
    """Return an argument; TypeError if it cannot be called.

    >>> function_argument("function", abs)
    <built-in function abs>
    """
    if not callable(value):
        raise argument_error(TypeError, name, value, "a function")
    return value


UNITS = (
    (60, 2, "EiB"), (50, 2, "PiB"), (40, 2, "TiB"), (30, 2, "GiB"), (20, 1, "MiB"), (10, 1, "KiB"),
)  # fmt: skip


def amount(nbytes):
    """Return bytes in the unit that leaves one to four digits before the point.

    >>> amount(512), amount(20 << 20), amount(150 << 30), amount(2**50)
    ('512 bytes', '20.0 MiB', '150.00 GiB', '1.00 PiB')
    """
    for exponent, digits, unit in UNITS:
        if abs(nbytes) >= 2**exponent:
            return f"{nbytes / 2**exponent:.{digits}f} {unit}"
    return f"{nbytes} bytes"


def status_text(status):
    """Return ``"NAME (text)"`` for a driver status number.

    >>> status_text(2)
    'CUDA_ERROR_OUT_OF_MEMORY (out of memory)'
    """
    name, text = STATUS_TEXT.get(status, (f"status {status}", "not a status this library knows"))
    return f"{name} ({text})"


def raise_for_status(status, call, facts=""):
    """Raise :class:`DriverError` when `status` is not 0.

    Parameters
    ----------
    status : int
        The status that the entry returned.
    call : str
        The name of the driver entry.
    facts : str
        What the caller knows: which object, how many bytes, how much is in use.
    """
    if status != 0:
        tail = f" {facts}" if facts else ""
        raise DriverError(f"{call} failed: {status_text(status)}{tail}", call, status)
