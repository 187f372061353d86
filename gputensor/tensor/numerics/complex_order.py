"""The order of complex numbers, as in NumPy: by the real part, then by the imaginary part.

Element-wise calls and reductions come here for complex operands; all is composed of operations on
the parts, so both devices agree. A number with a NaN in a part is not less and not greater than
any other, and it is the maximum and the minimum of any numbers that it is among.
"""

import math

from gputensor._kernels.operations import ELEMENTWISE
from gputensor.errors import Described, argument_error
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, out_argument
from gputensor.tensor.manipulation import expand_dims, permute_dims, reshape
from gputensor.tensor.manipulation.picking import take_along_axis

__all__ = ["elementwise", "extreme", "position"]

NAMES = {row.code: row.public_name for row in ELEMENTWISE}


def _parts(x):
    if type(x) is not Tensor:
        number = complex(x)
        return number.real, number.imag
    return (x.real, x.imag) if x.dtype.kind == "c" else (x, 0)


def _has_nan(part):
    if type(part) is not Tensor:
        return math.isnan(part)
    return fn.isnan(part) if part.dtype.kind == "f" else False


def _nan(x):
    """Return whether a part is NaN: a mask, or a bool for a number."""
    real, imag = (_has_nan(part) for part in _parts(x))
    return _either(real, imag)


def _either(one, other):
    if one is False or one is True or other is False or other is True:
        known, rest = (one, other) if isinstance(one, bool) else (other, one)
        return True if known else rest
    return fn.logical_or(one, other)


def _compared(compare, x1, x2):
    """Return whether x1 is before x2; `compare`, less or less_equal, decides about equal ones."""
    (r1, i1), (r2, i2) = _parts(x1), _parts(x2)
    before = fn.less(r1, r2)  # of two numbers it is NumPy's
    unordered = _either(_has_nan(i1), _has_nan(i2))
    if unordered is not False:
        before = fn.logical_and(before, fn.logical_not(unordered))
    return fn.logical_or(before, fn.logical_and(fn.equal(r1, r2), compare(i1, i2)))


def _greater_of(x1, x2):
    return _first_if(_compared(fn.less_equal, x2, x1), x1, x2)


def _less_of(x1, x2):
    return _first_if(_compared(fn.less_equal, x1, x2), x1, x2)


def _first_if(chosen, x1, x2):
    unordered = _nan(x1)
    if unordered is not False:
        chosen = fn.logical_or(chosen, unordered)
    return fn.where(chosen, x1, x2)


FUNCTIONS = {
    "less": lambda x1, x2: _compared(fn.less, x1, x2),
    "less_equal": lambda x1, x2: _compared(fn.less_equal, x1, x2),
    "greater": lambda x1, x2: _compared(fn.less, x2, x1),
    "greater_equal": lambda x1, x2: _compared(fn.less_equal, x2, x1),
    "maximum": _greater_of,
    "minimum": _less_of,
    "clip": lambda x, low, high: _less_of(_greater_of(x, low), high),
}


def elementwise(name, op, arguments, out):
    """Return an ordering operation, given by its code, of arguments whose dtype is complex.

    >>> import gputensor as gt
    >>> (gt.asarray([1 + 2j, 1 + 3j], device="host") < 1 + 3j).tolist()
    [True, False]
    """
    return _into(name, FUNCTIONS[NAMES[op]](*arguments), out)


def _into(name, result, out):
    if out is None:
        return result
    out_argument(out, result, result.shape, result.dtype, name)[...] = result
    return out


def _lines(name, x, axis):
    """Return x with the reduced axes as one last axis, and the numbers of these axes."""
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        axes = axis if isinstance(axis, (tuple, list)) else (axis,)
        if not x.ndim and axes in ((0,), (-1,)):  # as for real numbers
            axes = ()
        axes = tuple(axis_argument(one, x.ndim, name) for one in axes)
    for one in axes:
        if x.shape[one] == 0:
            raise argument_error(ValueError, f"{name}: axis {one}", Described("no elements"),
                                 "at least one")  # fmt: skip
    rest = tuple(one for one in range(x.ndim) if one not in axes)
    moved = permute_dims(x, rest + tuple(sorted(axes)))
    count = math.prod(x.shape[one] for one in axes)
    return reshape(moved, (*(x.shape[one] for one in rest), count)), axes


def _places(lines, is_greatest):
    """Return the place of the extreme in each line: the first of several, or of the NaNs."""
    find, none = (fn.max, -math.inf) if is_greatest else (fn.min, math.inf)
    real, imag = lines.real, lines.imag
    hit = fn.equal(real, find(real, axis=-1, keepdims=True))
    tied = fn.where(hit, imag, none)
    hit = fn.logical_and(hit, fn.equal(imag, find(tied, axis=-1, keepdims=True)))
    lost = fn.logical_or(fn.isnan(real), fn.isnan(imag))
    hit = fn.where(fn.any(lost, axis=-1, keepdims=True), lost, hit)
    return fn.argmax(hit, axis=-1)


def _given(name, x, axes, result, out, keepdims):
    if keepdims:
        shape = [1 if one in axes else extent for one, extent in enumerate(x.shape)]
        result = reshape(result, tuple(shape))
    return _into(name, result, out)


def extreme(name, x, axis, out, keepdims):
    """Return the greatest or least element of complex `x` over axes.

    >>> import gputensor as gt
    >>> gt.max(gt.asarray([1 + 2j, 1 + 3j, 0], device="host")).item()
    (1+3j)
    """
    lines, axes = _lines(name, x, axis)
    places = expand_dims(_places(lines, "max" in name), axis=-1)
    found = take_along_axis(lines, places, -1)[..., 0]
    return _given(name, x, axes, found, out, keepdims)


def position(name, x, axis, out, keepdims):
    """Return the place of the greatest or least element of complex `x` along an axis, or of all.

    >>> import gputensor as gt
    >>> gt.argmin(gt.asarray([1 + 2j, 1 + 3j, 0], device="host")).item()
    2
    """
    lines, axes = _lines(name, x, axis if axis is None else (axis,))
    return _given(name, x, axes, _places(lines, name == "argmax"), out, keepdims)
