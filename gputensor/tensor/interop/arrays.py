"""Tensors with memory of their own, under the names of NumPy and PyTorch."""

from gputensor._arrays.promotion import result_type
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import asarray

__all__ = ["array", "beside", "tensor", "values_argument"]


def beside(values, x):
    """Return values as a tensor beside `x`: Python floats keep at least the precision of its dtype.

    >>> x = asarray([0.1], "float64", device="host")
    >>> beside([0.1], x).dtype.name, beside([1, 2], x).dtype.name
    ('float64', 'int64')
    """
    if isinstance(values, Tensor):
        return values
    made = asarray(values, device=x.device)
    wide = result_type(made.dtype, x.dtype) if made.dtype.kind in "fc" else made.dtype
    return made if wide == made.dtype else asarray(values, wide, device=x.device)


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


def values_argument(values, name):
    """Return a tensor, or a list of numbers as one on the current device, for the function `name`.

    >>> with gt.Device("host"):
    ...     values_argument([1, 2], "diag").tolist()
    [1, 2]
    """
    return asarray(values) if isinstance(values, (list, tuple)) else tensor_argument(values, name)
