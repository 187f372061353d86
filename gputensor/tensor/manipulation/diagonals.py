"""Diagonals of matrices: views, sums, and matrices with a given diagonal."""

import operator

from gputensor.errors import Described, argument_error
from gputensor.tensor.core import axis_argument, spellings, tensor_argument, written_argument
from gputensor.tensor.functions import sum as sum_over
from gputensor.tensor.interop import copy
from gputensor.tensor.interop.arrays import values_argument
from gputensor.tensor.manipulation import (
    broadcast_to,
    diagonal_view,
    moveaxis,
    ones,
    reshape,
    tril,
    zeros,
)

__all__ = ["diag", "diagflat", "diagonal", "fill_diagonal", "trace", "tri"]


def _whole(value, name):
    try:
        return operator.index(value)
    except TypeError:
        raise argument_error(TypeError, name, value, "an int") from None


def _diagonal(x, offset, axis1, axis2, name):
    if tensor_argument(x, name).ndim < 2:
        raise argument_error(
            ValueError, f"{name}: x", Described(f"{x.ndim} dimensions"), "2 or more"
        )
    first, second = (axis_argument(axis, x.ndim, name) for axis in (axis1, axis2))
    if first == second:
        raise argument_error(ValueError, f"{name}: axis2", axis2, "an axis other than axis1")
    offset = _whole(offset, f"{name}: offset")
    rows, columns = x.shape[first], x.shape[second]
    # A square block remains, beginning with the first element of the diagonal.
    row, column = min(max(-offset, 0), rows), min(max(offset, 0), columns)
    length = min(rows - row, columns - column)
    key = [slice(None)] * x.ndim
    key[first], key[second] = slice(row, row + length), slice(column, column + length)
    view = diagonal_view(x[tuple(key)], first, second)
    return moveaxis(view, first - (first > second), -1)


@spellings(dim1="axis1", dim2="axis2")
def diagonal(x, /, offset=0, axis1=0, axis2=1):
    """Return a view of the diagonal of two axes, which becomes the last axis of the result.

    `offset` > 0 is above the main diagonal. Unlike NumPy's, the view is writable.

    >>> import gputensor as gt
    >>> diagonal(gt.asarray([[1, 2], [3, 4]], device="host")).tolist()
    [1, 4]
    """
    return _diagonal(x, offset, axis1, axis2, "diagonal")


def trace(x, /, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """Return the sum over the diagonal of two axes; see :func:`diagonal` and :func:`sum`.

    >>> import gputensor as gt
    >>> trace(gt.asarray([[1, 2], [3, 4]], device="host")).item()
    5
    """
    return sum_over(_diagonal(x, offset, axis1, axis2, "trace"), -1, dtype, out)


@spellings(diagonal="k")
def diag(x, /, k=0):
    """Return a matrix with the vector `x` on diagonal `k`, or a copy of diagonal `k` of a matrix.

    >>> import gputensor as gt
    >>> diag(gt.asarray([1, 2], device="host")).tolist()
    [[1, 0], [0, 2]]
    >>> diag(gt.asarray([[1, 2], [3, 4]], device="host")).tolist()
    [1, 4]
    """
    x = values_argument(x, "diag")
    if x.ndim == 2:
        return copy(_diagonal(x, k, 0, 1, "diag"))
    if x.ndim != 1:
        raise argument_error(ValueError, "diag: x", Described(f"{x.ndim} dimensions"), "1 or 2")
    k = _whole(k, "diag: k")
    extent = x.shape[0] + abs(k)
    result = zeros((extent, extent), dtype=x.dtype, device=x.device)
    _diagonal(result, k, 0, 1, "diag")[...] = x
    return result


def diagflat(x, /, k=0):
    """Return a matrix with the flattened elements of `x` on diagonal `k`.

    >>> import gputensor as gt
    >>> diagflat(gt.asarray([[1], [2]], device="host")).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(reshape(values_argument(x, "diagflat"), -1), k)


def fill_diagonal(x, value, /, wrap=False):
    """Write a number or the values of a tensor to the main diagonal of `x`, in place.

    More than two axes must have equal extents; their diagonal has equal indices. With `wrap`, the
    diagonal of a tall matrix starts again below its end.

    >>> import gputensor as gt
    >>> x = gt.zeros((2, 2), device="host")
    >>> fill_diagonal(x, 5)
    >>> x.tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    if written_argument(x, "fill_diagonal", "a").ndim < 2:
        got = Described(f"{x.ndim} dimensions")
        raise argument_error(ValueError, "fill_diagonal: x", got, "2 or more")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise argument_error(ValueError, "fill_diagonal: x", Described(x.shape), "equal extents")
    if wrap and x.ndim == 2:
        rows, columns = x.shape
        for start in range(0, rows, columns + 1):
            _diagonal(x[start:], 0, 0, 1, "fill_diagonal")[...] = value
        return
    view = x
    while view.ndim > 2:
        view = diagonal_view(view, 0, 1)
    diagonal(view)[...] = value


def tri(n_rows, n_cols=None, /, k=0, dtype=None, *, device=None):
    """Return a matrix with ones on and below diagonal `k` and zeros above it.

    >>> tri(2, device="host").tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    return tril(broadcast_to(ones((), dtype=dtype, device=device), shape), k)
