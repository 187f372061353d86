"""Cumulative extremes and sums of exponentials, and runs of equal elements."""

import math
from typing import NamedTuple

from gputensor._arrays.dtypes import float32, int64
from gputensor.errors import Described, argument_error, float_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, spellings, tensor_argument
from gputensor.tensor.engine import queue_call
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import arange, empty, moveaxis, ones, reshape, take
from gputensor.tensor.manipulation.differences import diff
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.manipulation.picking import take_along_axis
from gputensor.tensor.scans import cumsum
from gputensor.tensor.sorting import sort

__all__ = ["cummax", "cummin", "logcumsumexp", "mode", "unique_consecutive", "unwrap"]


class Extremes(NamedTuple):
    """The result of :func:`cummax`, :func:`cummin` and :func:`mode`."""

    values: Tensor
    indices: Tensor


def _scanned(op, x, axis, name):
    """Return the result of the call ``cumulate`` along an axis."""
    axis = axis_argument(axis, tensor_argument(x, name).ndim, name)
    out = empty(x.shape, x.dtype, device=x.device)
    if x.size:
        lines = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
        dense = reshape(x.contiguous(), lines)
        queue_call("cumulate", (op,), (reshape(out, lines),), (dense,), name)
    return out


def _column(x, axis):
    """Return 0, 1, ... along an axis, in a shape that broadcasts to that of x."""
    count = x.shape[axis]
    return reshape(arange(count, device=x.device), [-1] + [1] * (x.ndim - axis % x.ndim - 1))


def _extremes(op, x, axis, name):
    if tensor_argument(x, name).dtype.kind == "c":
        raise argument_error(TypeError, f"{name}: x", Described(x.dtype.name), "a real dtype")
    axis = axis_argument(axis, x.ndim, name)
    values = _scanned(op, x, axis, name)
    # The last position so far at which an element is the extreme; a NaN remains the extreme.
    is_one = fn.logical_or(fn.equal(x, values), fn.not_equal(x, x))
    places = fn.where(is_one, _column(x, axis), 0)
    return Extremes(values, _scanned("max", places, axis, name))


@spellings(dim="axis")
def cummax(x, /, axis):
    """Return the running maximum along `axis` and its positions; from a NaN on, it is NaN.

    Among equal elements, the position is that of the last, as in PyTorch.

    >>> import gputensor as gt
    >>> [one.tolist() for one in cummax(gt.asarray([1, 3, 2], device="host"), 0)]
    [[1, 3, 3], [0, 1, 1]]
    """
    return _extremes("max", x, axis, "cummax")


@spellings(dim="axis")
def cummin(x, /, axis):
    """Return the running minimum along `axis` and its positions; see :func:`cummax`.

    >>> import gputensor as gt
    >>> [one.tolist() for one in cummin(gt.asarray([3, 1, 2], device="host"), 0)]
    [[3, 1, 1], [0, 1, 1]]
    """
    return _extremes("min", x, axis, "cummin")


@spellings(dim="axis")
def logcumsumexp(x, /, axis):
    """Return the logarithm of the cumulative sum of ``exp(x)`` along `axis`, without overflow.

    >>> import gputensor as gt
    >>> logcumsumexp(gt.asarray([1000.0, -gt.inf], device="host"), 0).tolist()
    [1000.0, 1000.0]
    """
    if tensor_argument(x, "logcumsumexp").dtype.kind not in "fV":
        got = Described(x.dtype.name)
        raise argument_error(TypeError, "logcumsumexp: x", got, "a floating-point dtype")
    return _scanned("logaddexp", x, axis, "logcumsumexp")


def unwrap(x, /, discont=None, axis=-1, *, period=2 * math.pi):
    """Return angles without jumps: whole periods are removed from steps above half a period.

    Parameters
    ----------
    x : Tensor
    discont : float, optional
        The least step that counts as a jump; default: half a period.
    axis : int
    period : float

    >>> import gputensor as gt
    >>> unwrap(gt.asarray([0.0, 3.0, 0.5], device="host"), period=4.0).tolist()
    [0.0, -1.0, 0.5]
    """
    axis = axis_argument(axis, tensor_argument(x, "unwrap").ndim, "unwrap")
    x = astype(x, float32) if x.dtype.kind in "biu" else x
    step = diff(x, axis=axis)
    period = float_argument("unwrap: period", period)
    half = period / 2
    short = fn.subtract(fn.remainder(fn.add(step, half), period), half)
    # A step of half a period upwards stays as it is.
    is_half = fn.logical_and(fn.equal(short, -half), fn.greater(step, 0))
    short = fn.where(is_half, half, short)
    limit = half if discont is None else discont
    change = fn.where(fn.less(fn.abs(step), limit), 0, fn.subtract(short, step))
    before = (slice(None),) * axis
    result = fn.positive(x)
    tail = before + (slice(1, None),)
    result[tail] = fn.add(x[tail], cumsum(change, axis))
    return result


@spellings(dim="axis", keepdim="keepdims")
def mode(x, /, axis=-1, keepdims=False):
    """Return the most frequent value along `axis`, the least if several, and a position of it.

    >>> import gputensor as gt
    >>> mode(gt.asarray([3, 1, 3], device="host")).values.item()
    3
    """
    axis = axis_argument(axis, tensor_argument(x, "mode").ndim, "mode")
    if x.shape[axis] == 0:
        raise argument_error(ValueError, "mode: x", Described("no elements"), "at least one")
    ordered = sort(x, axis)
    before = (slice(None),) * axis
    place = fn.add(fn.multiply(astype(fn.equal(ordered, ordered), int64), 0), _column(x, axis))
    # Where each run of equal elements begins, and its length up to each element.
    inside = fn.equal(ordered[before + (slice(1, None),)], ordered[before + (slice(None, -1),)])
    first = ordered[before + (slice(None, 1),)]
    is_new = concat([ones(first.shape, "bool", device=x.device), fn.logical_not(inside)], axis)
    begin = _scanned("max", fn.where(is_new, place, 0), axis, "mode")
    longest = fn.argmax(fn.subtract(place, begin), axis=axis, keepdims=True)
    values = take_along_axis(ordered, longest, axis)
    is_there = fn.logical_or(fn.equal(x, values), fn.not_equal(x, x))
    found = fn.max(fn.where(is_there, _column(x, axis), 0), axis, keepdims=True)
    if not keepdims:
        key = before + (0,)
        values, found = fn.positive(values[key]), fn.positive(found[key])
    return Extremes(values, found)


@spellings(dim="axis")
def unique_consecutive(x, /, return_inverse=False, return_counts=False, axis=None):
    """Return a flat tensor without elements that equal the one before; waits for the device.

    Parameters
    ----------
    x : Tensor
    return_inverse, return_counts : bool
        Also return the position in the result for each element, and the length of each run.
    axis : int, optional
        Compare slices along this axis in place of elements.

    >>> import gputensor as gt
    >>> unique_consecutive(gt.asarray([1, 1, 2, 1], device="host")).tolist()
    [1, 2, 1]
    """
    name = "unique_consecutive"
    lines = reshape(tensor_argument(x, name), -1)
    if axis is not None:
        lines = moveaxis(x, axis_argument(axis, x.ndim, name), 0)
    is_other = fn.not_equal(lines[1:], lines[:-1])
    is_other = fn.any(is_other, tuple(range(1, lines.ndim))) if lines.ndim > 1 else is_other
    first = ones(min(1, lines.shape[0]), "bool", device=x.device)
    is_new = concat([first, is_other])
    places = is_new.nonzero()[0]
    results = [take(lines, places, 0) if axis is None else take(x, places, axis)]
    if return_inverse:
        inverse = fn.subtract(cumsum(is_new), 1)
        results.append(reshape(inverse, x.shape) if axis is None else inverse)
    if return_counts:
        end = ones(1, int64, device=x.device) * lines.shape[0]
        results.append(diff(concat([places, end])))
    return results[0] if len(results) == 1 else tuple(results)
