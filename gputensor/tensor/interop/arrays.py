"""Tensors with memory of their own, in the words of NumPy and PyTorch."""

from gputensor.tensor.interop import asarray

__all__ = ["array", "tensor"]


def array(obj, /, dtype=None, *, device=None, copy=True):
    """Return a new tensor with the values of `obj`: :func:`asarray` with ``copy=True``.

    >>> array([1, 2], "float32", device="host").tolist()
    [1.0, 2.0]
    """
    return asarray(obj, dtype, device=device, copy=copy)


def tensor(data, /, *, dtype=None, device=None):
    """Return a new tensor with the values of `data`; see :func:`asarray` for what that may be.

    >>> tensor([1, 2], device="host").tolist()
    [1, 2]
    """
    return asarray(data, dtype, device=device, copy=True)
