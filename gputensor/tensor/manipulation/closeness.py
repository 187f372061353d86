"""Comparisons of tensors with a tolerance, and of whole tensors."""

import builtins

from gputensor._arrays.dtypes import float64
from gputensor._arrays.promotion import result_type
from gputensor.errors import float_argument
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.functions import (
    abs,
    all,
    equal,
    isfinite,
    isnan,
    less_equal,
    logical_and,
    logical_or,
    numbers_too,
    subtract,
)
from gputensor.tensor.interop import astype

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


@numbers_too
def isclose(x1, x2, /, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Return where ``abs(x1 - x2) <= atol + rtol * abs(x2)`` or the two are equal.

    With `equal_nan`, NaN is close to NaN. Integers are compared in float64.

    >>> import gputensor as gt
    >>> isclose(gt.asarray([1.0, 2.0], device="host"), 1.000001).tolist()
    [True, False]
    """
    for x in (x1, x2):
        if isinstance(x, (list, tuple)):
            tensor_argument(x, "isclose")
    tensor_argument(x1 if type(x1) is Tensor else x2, "isclose")
    rtol, atol = (
        one if isinstance(one, Tensor) else float_argument(f"isclose: {title}", one)
        for title, one in (("rtol", rtol), ("atol", atol))
    )
    if result_type(x1, x2).kind in "iub":
        x1, x2 = (astype(x, float64) if type(x) is Tensor else float(x) for x in (x1, x2))
    size = builtins.abs(x2) if type(x2) is not Tensor else abs(x2)
    distance = abs(subtract(x1, x2))
    near = less_equal(distance, atol + rtol * size)
    # Infinities are close only to themselves: the distance is NaN, or the limit is infinite too.
    near = logical_or(logical_and(near, isfinite(distance)), equal(x1, x2))
    if not equal_nan:
        return near
    missing = [isnan(x) if type(x) is Tensor else x != x for x in (x1, x2)]
    return logical_or(near, logical_and(*missing))


@numbers_too
def allclose(x1, x2, /, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Return whether all elements are close, as a bool; see :func:`isclose`. Waits for the device.

    >>> import gputensor as gt
    >>> allclose(gt.ones(2, device="host"), 1)
    True
    """
    return bool(all(isclose(x1, x2, rtol, atol, equal_nan)).item())


@numbers_too
def array_equal(x1, x2, /, equal_nan=False):
    """Return whether two tensors have the same shape and elements, as a bool. Waits for the device.

    This is PyTorch's ``equal``; :func:`equal` compares element by element, as in NumPy.

    >>> import gputensor as gt
    >>> array_equal(gt.ones(2, device="host"), gt.ones((1, 2), device="host"))
    False
    """
    if tensor_argument(x1, "array_equal").shape != tensor_argument(x2, "array_equal").shape:
        return False
    same = equal(x1, x2)
    if equal_nan and x1.dtype.kind in "fcV" and x2.dtype.kind in "fcV":
        same = logical_or(same, logical_and(isnan(x1), isnan(x2)))
    return bool(all(same).item())


def array_equiv(x1, x2, /):
    """Return whether the elements are equal after broadcasting, as a bool. Waits for the device.

    >>> import gputensor as gt
    >>> array_equiv(gt.ones(2, device="host"), gt.ones((3, 2), device="host"))
    True
    """
    try:
        same = equal(tensor_argument(x1, "array_equiv"), tensor_argument(x2, "array_equiv"))
    except ValueError:
        return False
    return bool(all(same).item())
