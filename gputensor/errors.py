"""Every exception of the library, and the one place where a driver status becomes one.

The core returns status numbers; :func:`raise_for_status` is called at the edge, with the name of
the call and the facts that the caller knows. Nothing else in the library makes a
:class:`DriverError`.
"""

__all__ = [
    "BlasError",
    "DeviceError",
    "DriverError",
    "GpuTensorError",
    "OutOfMemoryError",
    "raise_for_status",
    "status_text",
]

# Names and texts of the CUDA driver's status numbers that the library can meet (CUresult in the
# CUDA driver API reference); the host device uses the same numbers.
STATUS_TEXT = {
    0: ("CUDA_SUCCESS", "no error"),
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    3: ("CUDA_ERROR_NOT_INITIALIZED", "initialization error"),
    4: ("CUDA_ERROR_DEINITIALIZED", "driver shutting down"),
    100: ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    101: ("CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"),
    200: ("CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"),
    201: ("CUDA_ERROR_INVALID_CONTEXT", "invalid device context"),
    209: ("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for the device"),
    218: ("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    400: ("CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    600: ("CUDA_ERROR_NOT_READY", "device not ready"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    701: ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"),
    716: ("CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"),
    719: ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
    800: ("CUDA_ERROR_NOT_PERMITTED", "operation not permitted"),
    801: ("CUDA_ERROR_NOT_SUPPORTED", "operation not supported"),
    900: ("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while the stream is capturing"),
    901: ("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "a previous error invalidated the capture"),
    905: ("CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency crosses into a capturing stream"),
    906: ("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "implicit dependency on a capturing stream"),
    999: ("CUDA_ERROR_UNKNOWN", "unknown error"),
}


class GpuTensorError(Exception):
    """Base class of the errors that are the library's own."""


class DeviceError(GpuTensorError, RuntimeError):
    """A device, its driver library or a symbol of it is missing or cannot be opened."""


class DriverError(GpuTensorError, RuntimeError):
    """A driver call failed.

    Attributes
    ----------
    call : str
        The entry that failed, for example ``"page_create"``.
    status : int
        The CUDA status number (``CUresult``).
    """

    def __init__(self, message, call="", status=0):
        super().__init__(message)
        self.call = call
        self.status = status


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


class OutOfMemoryError(GpuTensorError, MemoryError):
    """The device has not enough memory for a request. Nothing was changed by the request.

    Attributes
    ----------
    reason : str
        ``"exhausted"``, ``"fragmented"``, ``"waiting on streams"``, ``"idle private pool"``,
        ``"limit"`` or ``"other processes"``.
    facts : dict
        The amounts in bytes that the message names: ``requested``, ``allocated``, ``reserved``,
        ``free``, ``total``, ``largest_free_block``, ``limit``.
    """

    def __init__(self, message, reason="exhausted", facts=None):
        super().__init__(message)
        self.reason = reason
        self.facts = dict(facts or {})


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
        What the driver entry returned.
    call : str
        The name of the entry.
    facts : str
        What the caller knows: which object, how many bytes, what is in use.
    """
    if status != 0:
        tail = f" {facts}" if facts else ""
        raise DriverError(f"{call} failed: {status_text(status)}{tail}", call, status)
