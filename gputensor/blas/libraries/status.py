"""The one place where a cuBLAS status number becomes an exception.

Names and texts are those of the cuBLAS documentation, section "cublasStatus_t"; cuBLASLt returns
the same numbers.
"""

from gputensor.errors import BlasError

__all__ = ["STATUS_TEXT", "raise_for_blas", "status_text"]

STATUS_TEXT = {
    0: ("CUBLAS_STATUS_SUCCESS", "no error"),
    1: ("CUBLAS_STATUS_NOT_INITIALIZED", "the library could not start on this device"),
    3: ("CUBLAS_STATUS_ALLOC_FAILED", "the library could not get memory"),
    7: ("CUBLAS_STATUS_INVALID_VALUE", "a parameter has an unsupported value"),
    8: ("CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks a feature that the product needs"),
    11: ("CUBLAS_STATUS_MAPPING_ERROR", "device memory could not be accessed"),
    13: ("CUBLAS_STATUS_EXECUTION_FAILED", "the GPU program failed to execute"),
    14: ("CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation of the library failed"),
    15: ("CUBLAS_STATUS_NOT_SUPPORTED", "the combination of types and layouts is not supported"),
    16: ("CUBLAS_STATUS_LICENSE_ERROR", "license error"),
}


def status_text(status):
    """Return ``"NAME (text)"`` for a cuBLAS status number.

    >>> status_text(3)
    'CUBLAS_STATUS_ALLOC_FAILED (the library could not get memory)'
    """
    name, text = STATUS_TEXT.get(status, (f"status {status}", "not a known status"))
    return f"{name} ({text})"


def raise_for_blas(status, call, facts=""):
    """Raise :class:`~gputensor.errors.BlasError` when `status` is not 0."""
    if status != 0:
        tail = f" {facts}" if facts else ""
        raise BlasError(f"{call} failed: {status_text(status)}{tail}", call, status)
