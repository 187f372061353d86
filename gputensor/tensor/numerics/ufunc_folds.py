"""``reduce`` and ``accumulate`` of functions that have no reduction of their own.

The functions are associative, so a fold takes a number of calls that grows with the logarithm of
the length: each call joins two halves, or each element with the one 1, 2, 4, ... places before it.
"""

import math

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.tensor.core import axis_argument
from gputensor.tensor.functions import positive
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop import copy as copy_of
from gputensor.tensor.manipulation import broadcast_to, moveaxis, reshape
from gputensor.tensor.manipulation.joining import concat

__all__ = ["FOLDED", "accumulated", "folded"]

#: The ufuncs that fold here; NumPy knows the value of an empty one.
FOLDED = frozenset(
    "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor gcd lcm fmax fmin "
    "hypot logaddexp logaddexp2".split()
)


def folded(name, join, x, axis=0, dtype=None, out=None, keepdims=False):
    """Return the elements along the axes joined by a function of two tensors.

    >>> import gputensor as gt
    >>> x = gt.asarray([[1, 2], [4, 4]], device="host")
    >>> folded("bitwise_or", gt.bitwise_or, x).tolist()
    [5, 6]
    """
    x = x if dtype is None else astype(x, dtype, copy=False)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = sorted({axis_argument(one, x.ndim, name) for one in axes})
    kept = [extent for i, extent in enumerate(x.shape) if i not in axes]
    count = math.prod(x.shape[i] for i in axes)
    rest = reshape(moveaxis(x, tuple(axes), tuple(range(len(axes)))), (count, *kept))
    if not count:
        rest = _empty(name, rest)
    elif name.startswith("logical"):
        rest = rest != 0
    elif name == "hypot":
        rest = abs(rest)
    while rest.shape[0] > 1:
        half = rest.shape[0] // 2
        rest, last = join(rest[:half], rest[half : 2 * half]), rest[2 * half :]
        rest = concat([rest, last]) if last.shape[0] else rest
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)] if keepdims else kept
    result = reshape(rest[0], tuple(shape))
    if out is None:
        return result if count > 1 else copy_of(result)
    return positive(result, out=out)


def _empty(name, rest):
    identity = getattr(np, name).identity
    if identity is None:
        got = Described("an axis without elements")
        raise argument_error(ValueError, f"{name}.reduce: x", got, "one element or more")
    return broadcast_to(asarray(identity, rest.dtype, device=rest.device), (1, *rest.shape[1:]))


def accumulated(name, join, x, axis=0, dtype=None, out=None):
    """Return, for each element along an axis, it and all before it joined by a function.

    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2, 4], device="host")
    >>> accumulated("bitwise_or", gt.bitwise_or, x).tolist()
    [1, 3, 7]
    """
    x = x if dtype is None else astype(x, dtype, copy=False)
    axis = axis_argument(axis, x.ndim, name)
    rest = moveaxis(x, axis, 0)
    rest = rest != 0 if name.startswith("logical") else copy_of(rest)
    step = 1
    while step < rest.shape[0]:
        rest = concat([rest[:step], join(rest[:-step], rest[step:])])
        step *= 2
    result = moveaxis(rest, 0, axis)
    return result if out is None else positive(result, out=out)
