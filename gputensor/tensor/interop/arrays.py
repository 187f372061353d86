"""Tensors with memory of their own, under the names of NumPy and PyTorch."""

from gputensor.tensor.interop import asarray

__all__ = ["array", "tensor"]


def array(obj, /, dtype=None, *, device=None, copy=True, ndmin=0):
    """Return a new tensor with the values of `obj`: :func:`asarray` with ``copy=True``.

    Axes of extent 1 are added in front until there are `ndmin`.

    >>> array([1, 2], "float32", device="host").tolist()
    [1.0, 2.0]
    """
    made = asarray(obj, dtype, device=device, copy=copy)
    return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def tensor(data, /, *, dtype=None, device=None):
    """Return a new tensor with the values of `data`; see :func:`asarray` for accepted objects.

    >>> tensor([1, 2], device="host").tolist()
    [1, 2]
    """
    return asarray(data, dtype, device=device, copy=True)
