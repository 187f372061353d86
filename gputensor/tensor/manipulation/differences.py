"""Differences of neighbours, gradients and integrals along an axis."""

from numbers import Number

import numpy as np

from gputensor._arrays.dtypes import float32, float64
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, int_argument
from gputensor.tensor.core import Tensor, axis_argument, spellings, tensor_argument
from gputensor.tensor.functions import add, divide, multiply, not_equal, subtract
from gputensor.tensor.functions import sum as sum_over
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop.arrays import beside
from gputensor.tensor.manipulation import broadcast_to, empty, reshape
from gputensor.tensor.manipulation.joining import concat

__all__ = ["areas", "diff", "ediff1d", "gradient", "trapezoid"]


_COMPLEX = (complex, np.complexfloating)


def _along(axis, *key):
    return (*[slice(None)] * axis, *key)


def _edge(value, x, axis, name):
    """Return the list of what to put before or after `x`: a tensor, or a number as one slice."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        value = beside(value, x)
    elif type(value) is not Tensor:
        value = asarray(value, result_type(x, value), device=x.device)
    if value.ndim == 0:
        value = broadcast_to(value, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return [value]


@spellings(dim="axis")
def diff(x, /, n=1, axis=-1, prepend=None, append=None):
    """Return the differences of neighbours along `axis`, taken `n` times.

    Parameters
    ----------
    prepend, append : Tensor, number or list, optional
        First put before and after `x`.

    >>> import gputensor as gt
    >>> diff(gt.asarray([1, 4, 9], device="host")).tolist()
    [3, 5]
    """
    axis = axis_argument(axis, tensor_argument(x, "diff").ndim, "diff")
    n = int_argument("diff: n", n)
    if n < 0:
        raise argument_error(ValueError, "diff: n", n, "0 or more")
    if n == 0:  # as in NumPy, without the further elements
        return x
    parts = [*_edge(prepend, x, axis, "diff"), x, *_edge(append, x, axis, "diff")]
    x = concat(parts, axis) if len(parts) > 1 else x
    difference = not_equal if x.dtype.kind == "b" else subtract
    for _ in range(min(n, max(x.shape[axis], 1))):  # then there are no elements
        x = difference(x[_along(axis, slice(1, None))], x[_along(axis, slice(None, -1))])
    return x


def ediff1d(x, /, to_end=None, to_begin=None):
    """Return the differences of neighbours of the flattened `x`, with optional values at the ends.

    The values at the ends are converted to the dtype of `x`.

    >>> import gputensor as gt
    >>> ediff1d(gt.asarray([1, 4, 9], device="host"), to_end=[0, 0]).tolist()
    [3, 5, 0, 0]
    """
    x = reshape(tensor_argument(x, "ediff1d"), -1)
    parts = [diff(x)]
    for place, (title, end) in enumerate((("to_begin", to_begin), ("to_end", to_end))):
        if end is None:
            continue
        if result_type(x, *([end] if isinstance(end, Tensor) else [])).kind != x.dtype.kind:
            got = Described(end.dtype.name)
            rule = f"values that fit the dtype of x, {x.dtype.name}"
            raise argument_error(TypeError, f"ediff1d: {title}", got, rule)
        is_tensor = isinstance(end, Tensor)
        end = astype(end, x.dtype) if is_tensor else asarray(end, x.dtype, device=x.device)
        parts.insert(place * len(parts), reshape(end, -1))
    return concat(parts) if len(parts) > 1 else parts[0]


def _slope(x, axis, spacing, edge_order):
    """Return slopes: second-order differences inside, differences of `edge_order` at both ends."""
    extent = x.shape[axis]
    if extent <= edge_order:
        got = Described(f"extent {extent} in axis {axis}")
        raise argument_error(ValueError, "gradient: x", got, f"{edge_order + 1} or more")
    result = empty(x.shape, dtype=result_type(x, 1.0), device=x.device)

    def at(first, last):
        return x[_along(axis, slice(first, last))]

    def put(place, difference, gap):
        # Real numbers are weak, so that their quotients have the dtype of the result.
        if isinstance(gap, (Tensor, *_COMPLEX)):
            result[place] = divide(difference, gap)
        else:
            divide(difference, gap, out=result[place])

    is_even = not (isinstance(spacing, Tensor) and spacing.ndim)
    inside = _along(axis, slice(1, -1))
    if is_even:
        steps = (spacing, spacing), (spacing, spacing)
        put(inside, subtract(at(2, None), at(None, -2)), 2.0 * spacing)
    else:
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        gaps = reshape(diff(spacing), shape)
        steps = [
            [gaps[_along(axis, slice(i, i + 1 or None))] for i in ends]
            for ends in ((0, min(1, extent - 2)), (-1, max(-2, 1 - extent)))
        ]
        left, right = gaps[_along(axis, slice(None, -1))], gaps[_along(axis, slice(1, None))]
        total = add(left, right)
        before = multiply(at(None, -2), divide(right, multiply(left, total)))
        middle = multiply(at(1, -1), divide(subtract(right, left), multiply(left, right)))
        after = multiply(at(2, None), divide(left, multiply(right, total)))
        result[inside] = add(subtract(middle, before), after)
    ends = _along(axis, slice(0, 1)), _along(axis, slice(-1, None))
    first, last = subtract(at(1, 2), at(0, 1)), subtract(at(-1, None), at(-2, -1))
    if edge_order == 1:
        put(ends[0], first, steps[0][0])
        put(ends[1], last, steps[1][0])
        return result
    # Extrapolates the slopes of the last two gaps linearly to the end.
    first, last = divide(first, steps[0][0]), divide(last, steps[1][0])
    inner = divide(subtract(at(2, 3), at(1, 2)), steps[0][1])
    result[ends[0]] = _at_end(first, inner, *steps[0])
    inner = divide(subtract(at(-2, -1), at(-3, -2)), steps[1][1])
    result[ends[1]] = _at_end(last, inner, *steps[1])
    return result


def _at_end(outer, inner, gap, next_gap):
    """Return the slope at an end, from the slopes over the last gap and over the next one."""
    share = divide(gap, add(gap, next_gap)) if isinstance(gap, Tensor) else 0.5
    return add(outer, multiply(subtract(outer, inner), share))


@spellings(dim="axis")
def gradient(x, /, *spacing, axis=None, edge_order=1):
    """Return the slopes along `axis` (default: all): a tensor for one axis, otherwise a tuple.

    `spacing` is omitted, one number for all axes, or for each axis a number, or its coordinates
    in a tensor or list. The slopes at both ends use two elements, or three with ``edge_order=2``.

    >>> import gputensor as gt
    >>> gradient(gt.asarray([1.0, 2.0, 4.0], device="host")).tolist()
    [1.0, 1.5, 2.0]
    """
    tensor_argument(x, "gradient")
    dtype = float32 if x.dtype.kind in "biu" else x.dtype
    # Differences of integers could overflow.
    x = astype(x, float64) if x.dtype.kind in "biu" else x
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [axis_argument(one, x.ndim, "gradient") for one in axes]
    if edge_order not in (1, 2):
        raise argument_error(ValueError, "gradient: edge_order", edge_order, "1 or 2")
    spacing = spacing or (1.0,)
    spacing = spacing * len(axes) if len(spacing) == 1 else spacing
    spacing = [beside(one, x) if isinstance(one, (list, tuple)) else one for one in spacing]
    for one in spacing:
        if not isinstance(one, (Tensor, Number, np.generic)):
            raise argument_error(TypeError, "gradient: spacing", one, "a number, Tensor or list")
    spacing = [
        astype(one, float64) if isinstance(one, Tensor) and one.dtype.kind in "biu" else one
        for one in spacing
    ]
    if len(spacing) != len(axes):
        got = Described(f"{len(spacing)} values")
        raise argument_error(TypeError, "gradient: spacing", got, f"1 or {len(axes)}")
    for one, step in zip(axes, spacing, strict=True):
        if isinstance(step, Tensor) and step.ndim and step.shape != (x.shape[one],):
            got = Described(f"shape {step.shape}")
            raise argument_error(ValueError, "gradient: spacing", got, f"{(x.shape[one],)}")
    slopes = [
        astype(_slope(x, one, step, edge_order), dtype, copy=False)
        for one, step in zip(axes, spacing, strict=True)
    ]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


@spellings(dim="axis")
def trapezoid(y, /, x=None, dx=1.0, axis=-1):
    """Return the integral of `y` along `axis` by the trapezoidal rule.

    Parameters
    ----------
    x : Tensor or list, optional
        The coordinates, with one dimension or the shape of `y`; default: `dx` apart.

    >>> import gputensor as gt
    >>> trapezoid(gt.asarray([1.0, 2.0, 4.0], device="host")).item()
    4.5
    """
    axis = axis_argument(axis, tensor_argument(y, "trapezoid").ndim, "trapezoid")
    return divide(sum_over(areas(y, x, dx, axis, "trapezoid"), axis), 2.0)


def areas(y, x, dx, axis, name):
    """Return twice the areas below the lines between neighbours along an axis.

    >>> import gputensor as gt
    >>> areas(gt.asarray([1.0, 2.0, 4.0], device="host"), None, 1.0, 0, "trapezoid").tolist()
    [3.0, 6.0]
    """
    width = dx
    if x is not None:
        x = beside(x, y) if isinstance(x, (list, tuple)) else x
        is_line = tensor_argument(x, name).ndim == 1
        width = diff(x, axis=0 if is_line else axis)
        if is_line:
            width = reshape(width, [-1 if i == axis else 1 for i in range(y.ndim)])
    both = add(y[_along(axis, slice(1, None))], y[_along(axis, slice(None, -1))])
    return multiply(both, width)
