"""Cumulative sums and products along an axis."""

import math

from gputensor._arrays.dtypes import float32, int64, is_float8, uint64
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import axis_argument, out_argument, spellings, tensor_argument
from gputensor.tensor.engine import queue_call
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import empty, reshape

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]


def _result_dtype(x, dtype):
    if dtype is not None:
        return empty(0, dtype, device="host").dtype
    if x.dtype.kind == "u":
        return uint64
    return int64 if x.dtype.kind in "bi" else x.dtype


def _accumulated(name, x, axis, dtype, out, initial):
    """Return the cumulative results along `axis`, after the value `initial` unless it is None."""
    word = "sum" if name.endswith("sum") else "prod"
    if axis is None or not x.ndim and axis in (0, -1):
        x, axis = reshape(x, -1), 0
    axis = axis_argument(axis, x.ndim, name)
    dtype = _result_dtype(x, dtype)
    extra = initial is not None
    shape = tuple(n + (extra and i == axis) for i, n in enumerate(x.shape))
    if out is not None:
        out = out_argument(out, x, shape, dtype, name)
    # fp8 has no arithmetic.
    is_small = is_float8(dtype)
    wide = float32 if is_small else dtype
    x = astype(x, float32) if is_float8(x.dtype) else x
    result = empty(shape, wide, device=x.device)
    if extra:
        before = (slice(None),) * axis
        result[before + (slice(0, 1),)] = initial
        if x.size:
            rest = empty(x.shape, wide, device=x.device)
            result[before + (slice(1, None),)] = _scanned(word, rest, x, axis)
    elif x.size:
        _scanned(word, result, x, axis)
    if out is not None:
        out[...] = result
        return out
    return astype(result, dtype, copy=False)


def _scanned(word, out, x, axis):
    """Write the sums or products into a dense tensor, and return it."""
    shape = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    lines = reshape(x.contiguous(), shape)
    queue_call("cumulate", (word,), (reshape(out, shape),), (lines,))
    return out


@spellings(dim="axis")
def cumsum(x, /, axis=None, dtype=None, out=None):
    """Return the cumulative sums along `axis` (default: flattened).

    Bool and integers are summed in 64 bits, as in :func:`sum`.

    >>> import gputensor as gt
    >>> cumsum(gt.asarray([1, 2, 3], device="host")).tolist()
    [1, 3, 6]
    """
    return _accumulated("cumsum", tensor_argument(x, "cumsum"), axis, dtype, out, None)


@spellings(dim="axis")
def cumprod(x, /, axis=None, dtype=None, out=None):
    """Return the cumulative products along `axis` (default: flattened).

    >>> import gputensor as gt
    >>> cumprod(gt.asarray([1, 2, 3], device="host")).tolist()
    [1, 2, 6]
    """
    return _accumulated("cumprod", tensor_argument(x, "cumprod"), axis, dtype, out, None)


def _standard(name, x, axis, dtype, initial):
    if axis is None and tensor_argument(x, name).ndim != 1:
        got = Described(f"None for {x.ndim} dimensions")
        raise argument_error(ValueError, f"{name}: axis", got, "an axis unless x has 1 dimension")
    axis = 0 if axis is None else axis
    return _accumulated(name, tensor_argument(x, name), axis, dtype, None, initial)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Return the cumulative sums along `axis`, with a leading 0 if `include_initial`.

    >>> import gputensor as gt
    >>> cumulative_sum(gt.asarray([1, 2, 3], device="host"), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _standard("cumulative_sum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Return the cumulative products along `axis`, with a leading 1 if `include_initial`.

    >>> import gputensor as gt
    >>> cumulative_prod(gt.asarray([1, 2, 3], device="host")).tolist()
    [1, 2, 6]
    """
    return _standard("cumulative_prod", x, axis, dtype, 1 if include_initial else None)
