"""Copies with elements replaced by index or condition, and indices of diagonals and triangles."""

import numpy as np

from gputensor.errors import (
    Described,
    argument_error,
    function_argument,
    int_argument,
    list_argument,
)
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, spellings, tensor_argument
from gputensor.tensor.grids import tril_indices, triu_indices
from gputensor.tensor.interop import astype, copy
from gputensor.tensor.manipulation import arange, reshape, zeros
from gputensor.tensor.manipulation.diagonals import diagonal
from gputensor.tensor.scans import cumsum
from gputensor.tensor.sorting import sort

__all__ = [
    "apply_over_axes", "diag_indices_from", "diagonal_scatter", "index_copy", "index_fill",
    "mask_indices", "masked_scatter", "piecewise", "select_scatter", "slice_scatter",
    "sort_complex", "tril_indices_from", "triu_indices_from",
]  # fmt: skip


def _places(x, axis, index, name):
    axis = axis_argument(axis, tensor_argument(x, name).ndim, name)
    if tensor_argument(index, name).dtype.kind not in "iu" or index.ndim > 1:
        got = Described(f"{index.dtype.name} of {index.ndim} dimensions")
        raise argument_error(TypeError, f"{name}: index", got, "an integer dtype and 1 dimension")
    return (slice(None),) * axis + (reshape(index, -1),)


@spellings(dim="axis")
def index_copy(x, /, axis, index, source):
    """Return `x` with slices along `axis`, selected by `index`, replaced by those of `source`.

    >>> import gputensor as gt
    >>> x, index = gt.zeros(3, device="host"), gt.asarray([2, 0], device="host")
    >>> index_copy(x, 0, index, gt.asarray([5.0, 6.0], device="host")).tolist()
    [6.0, 0.0, 5.0]
    """
    key = _places(x, axis, index, "index_copy")
    result = copy(x)
    result[key] = source
    return result


@spellings(dim="axis")
def index_fill(x, /, axis, index, value):
    """Return `x` with `value` in slices along `axis`, selected by `index`.

    >>> import gputensor as gt
    >>> index_fill(gt.zeros(3, device="host"), 0, gt.asarray([1], device="host"), 7).tolist()
    [0.0, 7.0, 0.0]
    """
    key = _places(x, axis, index, "index_fill")
    result = copy(x)
    result[key] = value
    return result


def masked_scatter(x, mask, source, /):
    """Return `x` with successive elements of `source` where `mask` is true.

    `source` must have at least as many elements as `mask` has true ones. Does not wait for the
    device.

    >>> import gputensor as gt
    >>> x = gt.zeros(3, device="host")
    >>> masked_scatter(x, gt.asarray([True, False, True], device="host"), x + 4).tolist()
    [4.0, 0.0, 4.0]
    """
    flat = reshape(tensor_argument(source, "masked_scatter"), -1)
    if flat.size == 0:
        return copy(tensor_argument(x, "masked_scatter"))
    tensor_argument(x, "masked_scatter")
    mask = fn.logical_or(mask, zeros(x.shape, "bool", device=x.device))
    places = fn.clip(fn.subtract(cumsum(mask), 1), 0, flat.size - 1)
    chosen = reshape(flat[places], x.shape)
    return fn.where(mask, astype(chosen, x.dtype, copy=False), x)


def piecewise(x, conditions, functions, /, *arguments, **keywords):
    """Return a function defined by cases: at each element, that of the last true condition.

    Every function is called with all of `x`, which avoids waiting for the device, so it must accept
    elements outside its own part.

    Parameters
    ----------
    x : Tensor
    conditions : sequence of Tensor
        The rows of a tensor with several axes are a sequence, too.
    functions : sequence of callables or numbers
        One for each condition, and optionally one for elements without a true condition, which
        default to 0.
    *arguments, **keywords
        Further arguments of the functions.

    >>> import gputensor as gt
    >>> x = gt.asarray([-2.0, 3.0], device="host")
    >>> piecewise(x, [x < 0], [lambda v: -v, 10]).tolist()
    [2.0, 10.0]
    """
    if isinstance(conditions, Tensor) and conditions.ndim > 1:
        conditions = list(conditions)
    conditions = list(conditions) if isinstance(conditions, (list, tuple)) else [conditions]
    functions = list_argument("piecewise: funclist", functions)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        got = Described(f"{len(functions)} for {len(conditions)} conditions")
        rule = "as many as conditions, or one more"
        raise argument_error(ValueError, "piecewise: functions", got, rule)

    def values(one):
        return one(x, *arguments, **keywords) if callable(one) else one

    result = zeros(tensor_argument(x, "piecewise").shape, x.dtype, device=x.device)
    if len(functions) > len(conditions):
        result = fn.where(fn.equal(result, 0), values(functions[-1]), result)
    for condition, one in zip(conditions, functions, strict=False):
        result = fn.where(condition, values(one), result)
    return astype(result, x.dtype, copy=False)


def apply_over_axes(function, x, axes, /):
    """Return ``function(x, axis)`` applied for each axis in turn; reduced axes keep extent 1.

    >>> import gputensor as gt
    >>> apply_over_axes(gt.sum, gt.ones((2, 3), device="host"), [0, 1]).tolist()
    [[6.0]]
    """
    ndim = tensor_argument(x, "apply_over_axes").ndim
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        axis = axis_argument(axis, ndim, "apply_over_axes")
        result = function_argument("apply_over_axes: function", function)(x, axis)
        if result.ndim != ndim:
            result = reshape(result, (*result.shape[:axis], 1, *result.shape[axis:]))
        if result.ndim != ndim:
            got = Described(f"{result.ndim} dimensions")
            raise argument_error(ValueError, "apply_over_axes: result", got, f"{ndim}")
        x = result
    return x


def diag_indices_from(x, /):
    """Return the indices of the main diagonal of a tensor with equal extents.

    >>> import gputensor as gt
    >>> [one.tolist() for one in diag_indices_from(gt.ones((2, 2), device="host"))]
    [[0, 1], [0, 1]]
    """
    if tensor_argument(x, "diag_indices_from").ndim < 2 or len(set(x.shape)) != 1:
        got = Described(f"shape {x.shape}")
        rule = "two or more equal extents"
        raise argument_error(ValueError, "diag_indices_from: x", got, rule)
    return (arange(x.shape[0], device=x.device),) * x.ndim


def _matrix(x, name):
    if tensor_argument(x, name).ndim != 2:
        raise argument_error(ValueError, f"{name}: x", Described(f"{x.ndim} dimensions"), "2")
    return x


def tril_indices_from(x, /, k=0):
    """Return the indices of the lower triangle of a matrix; see :func:`tril_indices`.

    >>> import gputensor as gt
    >>> [one.tolist() for one in tril_indices_from(gt.ones((2, 2), device="host"))]
    [[0, 1, 1], [0, 0, 1]]
    """
    return tril_indices(_matrix(x, "tril_indices_from").shape[0], k, x.shape[1], device=x.device)


def triu_indices_from(x, /, k=0):
    """Return the indices of the upper triangle of a matrix; see :func:`triu_indices`.

    >>> import gputensor as gt
    >>> [one.tolist() for one in triu_indices_from(gt.ones((2, 2), device="host"))]
    [[0, 0, 1], [0, 1, 1]]
    """
    return triu_indices(_matrix(x, "triu_indices_from").shape[0], k, x.shape[1], device=x.device)


def mask_indices(n, function, k=0, *, device=None):
    """Return where ``function(ones, k)`` is not zero; `function` may be :func:`tril`.

    >>> import gputensor as gt
    >>> [one.tolist() for one in mask_indices(2, gt.tril, device="host")]
    [[0, 1, 1], [0, 0, 1]]
    """
    ones = fn.add(zeros((n, n), "int64", device=device), 1)
    function_argument("mask_indices: mask_func", function)
    return fn.not_equal(function(ones, k=k), 0).nonzero()


def sort_complex(x, /):
    """Return complex numbers sorted by real part, then imaginary part, along the last axis.

    >>> import gputensor as gt
    >>> sort_complex(gt.asarray([2 + 1j, 1 + 2j, 1 + 1j], device="host")).tolist()
    [(1+1j), (1+2j), (2+1j)]
    """
    dtype = tensor_argument(x, "sort_complex").dtype
    if dtype.kind != "c":
        is_wide = dtype.itemsize >= 4 and dtype.kind != "f" or dtype.itemsize == 8
        x = astype(x, np.dtype(np.complex128 if is_wide else np.complex64))
    return sort(x)


@spellings(dim="axis", src="source")
def slice_scatter(x, /, source, axis=0, start=None, end=None, step=1):
    """Return a copy of `x` with `source` written to a slice of one axis.

    >>> import gputensor as gt
    >>> slice_scatter(gt.zeros(4, device="host"), gt.ones(2, device="host"), 0, 1, 3).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    axis = axis_argument(axis, tensor_argument(x, "slice_scatter").ndim, "slice_scatter")
    part = (
        one if one is None else int_argument(f"slice_scatter: {title}", one)
        for title, one in (("start", start), ("end", end), ("step", step))
    )
    return _with_part(x, source, (slice(None),) * axis + (slice(*part),))


@spellings(dim="axis", src="source")
def select_scatter(x, /, source, axis, index):
    """Return a copy of `x` with `source` written to the slice at one place of an axis.

    >>> import gputensor as gt
    >>> select_scatter(gt.zeros((2, 2), device="host"), gt.ones(2, device="host"), 1, 0).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    axis = axis_argument(axis, tensor_argument(x, "select_scatter").ndim, "select_scatter")
    index = int_argument("select_scatter: index", index)
    return _with_part(x, source, (slice(None),) * axis + (index,))


def _with_part(x, source, key):
    result = copy(x)
    result[key] = source
    return result


@spellings(dim1="axis1", dim2="axis2", src="source")
def diagonal_scatter(x, /, source, offset=0, axis1=0, axis2=1):
    """Return a copy of `x` with `source` written to a diagonal.

    >>> import gputensor as gt
    >>> diagonal_scatter(gt.zeros((2, 2), device="host"), gt.ones(2, device="host")).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    result = copy(tensor_argument(x, "diagonal_scatter"))
    diagonal(result, offset, axis1, axis2)[...] = source
    return result
