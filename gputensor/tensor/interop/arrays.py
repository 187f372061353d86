"""Tensors with memory of their own, under the names of NumPy and PyTorch."""

import numpy as np

from gputensor._arrays.dtypes import complex128, float64, int64, is_float8, uint64
from gputensor._arrays.promotion import result_type
from gputensor.errors import argument_error, int_argument
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import asarray

__all__ = [
    "MAX_NDIM", "PLAIN", "array", "beside", "host_array", "tensor", "values_argument", "widest",
]  # fmt: skip

MAX_NDIM = 16  # that of _arrays
_WIDTHS = {float64: 2, complex128: 2, uint64: 1}
#: Values that functions of several tensors take as tensors.
PLAIN = (bool, int, float, complex, list, tuple, range, np.generic)


def beside(values, x):
    """Return values as a tensor beside `x`: Python floats keep at least the precision of its dtype.

    A list of ints beside uint64, which has no common dtype with int64, is uint64, too.

    >>> x = asarray([0.1], "float64", device="host")
    >>> beside([0.1], x).dtype.name, beside([1, 2], x).dtype.name
    ('float64', 'int64')
    """
    if isinstance(values, Tensor):
        return values
    made = asarray(values, device=x.device)
    wide = result_type(made.dtype, x.dtype) if made.dtype.kind in "fc" else made.dtype
    if x.dtype == uint64 and wide == int64 and not isinstance(values, np.ndarray):
        wide = x.dtype
    return made if wide == made.dtype else asarray(values, wide, device=x.device)


def widest(values):
    """Return the tensor among values that lists beside them adopt a width from, or None.

    It is the first of 64-bit floats, so that a list keeps its digits; then that of uint64.

    >>> x, mask = asarray([0.1], "float64", device="host"), asarray([True], device="host")
    >>> widest([mask, [1], x]) is x, widest([1, 2])
    (True, None)
    """
    found = [one for one in values if isinstance(one, Tensor)]
    return max(found, key=lambda one: _WIDTHS.get(one.dtype, 0), default=None)


def tensors(values):
    """Return a list of values in which lists of numbers are tensors, beside those that are tensors.

    >>> [one.dtype.name for one in tensors([[1, 2], asarray(0.5, "float64", device="host")])]
    ['int64', 'float64']
    """
    like = widest(values)
    return [
        one if not isinstance(one, (list, tuple, range)) else asarray(one) if like is None
        else beside(one, like)
        for one in values
    ]  # fmt: skip


def array_like(value, others):
    """Return a number or a list as a tensor, beside the tensors of `others` if there are any.

    A number beside a tensor is weak, as in ``x + 1``.

    >>> array_like(3, [asarray(0.5, "float64", device="host")]).dtype.name
    'float64'
    """
    like = widest(others)
    if like is None:
        return asarray(value)
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        return beside(value, like)
    number = value.item() if isinstance(value, np.generic) else value
    has_arithmetic = not is_float8(like.dtype)
    dtype = result_type(like.dtype, number) if has_arithmetic else None
    return asarray(number, dtype, device=like.device)


def array(obj, /, dtype=None, *, device=None, copy=True, ndmin=0):
    """Return a new tensor with the values of `obj`: :func:`asarray` with ``copy=True``.

    Axes of extent 1 are added in front until there are `ndmin`.

    >>> array([1, 2], "float32", device="host").tolist()
    [1.0, 2.0]
    """
    ndmin = int_argument("array: ndmin", ndmin)
    if ndmin > MAX_NDIM:
        raise argument_error(ValueError, "array: ndmin", ndmin, f"at most {MAX_NDIM}")
    made = asarray(obj, dtype, device=device, copy=copy)
    return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def tensor(data, /, *, dtype=None, device=None):
    """Return a new tensor with the values of `data`; see :func:`asarray` for accepted objects.

    >>> tensor([1, 2], device="host").tolist()
    [1, 2]
    """
    return asarray(data, dtype, device=device, copy=True)


def host_array(name, value, dtype=None):
    """Return an argument as a NumPy array; ValueError for lists of unequal lengths.

    >>> host_array("repeats", [1, 2])
    array([1, 2])
    """
    try:
        return np.asarray(value, dtype)
    except ValueError:
        rule = "numbers, in lists of equal lengths"
        raise argument_error(ValueError, name, value, rule) from None


def values_argument(values, name, like=None):
    """Return a tensor, or a list of numbers as one, for the function `name`.

    A list becomes a tensor beside the tensor `like`, or on the current device if that is none.

    >>> with gt.Device("host"):
    ...     values_argument([1, 2], "diag").tolist()
    [1, 2]
    """
    if not isinstance(values, (list, tuple)):
        return tensor_argument(values, name)
    return beside(values, like) if isinstance(like, Tensor) else asarray(values)
