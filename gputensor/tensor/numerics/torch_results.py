"""Variants for calls with PyTorch's keywords, where its function returns something else than ours.

``x.max(axis=1)`` returns the greatest elements, as in NumPy; ``x.max(dim=1)`` also returns their
positions, as in PyTorch. Users call our functions; `spellings` selects these variants.
"""

import operator
from itertools import accumulate
from typing import NamedTuple

from gputensor.errors import Described, argument_error, has_elements
from gputensor.tensor import functions as fn
from gputensor.tensor import sorting
from gputensor.tensor.core import Tensor, axis_argument, tensor_argument
from gputensor.tensor.grids import tril_indices, triu_indices
from gputensor.tensor.manipulation import squeeze
from gputensor.tensor.manipulation.picking import take_along_axis
from gputensor.tensor.manipulation.splitting import array_split

__all__ = [
    "aminmax", "lower_median", "lower_nanmedian", "lower_places", "max_with_index",
    "min_with_index", "sort_with_indices", "split_by_size", "squeeze_ones", "unbiased_std",
    "unbiased_var", "upper_places",
]  # fmt: skip


class Found(NamedTuple):
    """Elements and their positions along an axis."""

    values: Tensor
    indices: Tensor


def max_with_index(x, /, axis=None, keepdims=False):
    """Return the greatest elements along an axis and the first position of each.

    >>> import gputensor as gt
    >>> [one.tolist() for one in gt.max(gt.asarray([[3, 1, 3]], device="host"), dim=1)]
    [[3], [0]]
    """
    if axis is None:
        return fn.max(x, None, keepdims=keepdims)
    return Found(fn.max(x, axis, keepdims=keepdims), fn.argmax(x, axis, keepdims=keepdims))


def min_with_index(x, /, axis=None, keepdims=False):
    """Return the least elements along an axis and the first position of each.

    >>> import gputensor as gt
    >>> [one.tolist() for one in gt.min(gt.asarray([[3, 1, 3]], device="host"), dim=1)]
    [[1], [1]]
    """
    if axis is None:
        return fn.min(x, None, keepdims=keepdims)
    return Found(fn.min(x, axis, keepdims=keepdims), fn.argmin(x, axis, keepdims=keepdims))


def lower_places(n, m=None, k=0, *, device=None):
    """Return the places of a lower triangle; arguments have PyTorch's order: rows, columns, offset.

    >>> import gputensor as gt
    >>> [one.tolist() for one in gt.tril_indices(2, 3, offset=-1, device="host")]
    [[1], [0]]
    """
    return tril_indices(n, k, m, device=device)


def upper_places(n, m=None, k=0, *, device=None):
    """Return the places of an upper triangle, as :func:`lower_places` does.

    >>> import gputensor as gt
    >>> [one.tolist() for one in gt.triu_indices(2, 3, offset=1, device="host")]
    [[0, 0, 1], [1, 2, 2]]
    """
    return triu_indices(n, k, m, device=device)


def sort_with_indices(x, /, axis=-1, descending=False, stable=True):
    """Return the sorted elements along `axis` and their former positions.

    >>> import gputensor as gt
    >>> [one.tolist() for one in gt.sort(gt.asarray([3, 1, 2], device="host"), dim=0)]
    [[1, 2, 3], [1, 2, 0]]
    """
    order = sorting.argsort(x, axis, descending=descending, stable=stable)
    return Found(take_along_axis(x, order, axis), order)


def _lower(x, axis, keepdims, name, is_without_nan):
    """Return the lower middle element along `axis`, or the first NaN unless they are ignored."""
    if axis is None:
        lower = _lower(tensor_argument(x, name).reshape(-1), 0, False, name, is_without_nan).values
        return lower.reshape((1,) * x.ndim) if keepdims else lower
    axis = axis_argument(axis, tensor_argument(x, name).ndim, name)
    if x.shape[axis] == 0:
        raise argument_error(ValueError, f"{name}: x", Described("no elements"), "at least one")
    order = sorting.argsort(x, axis)
    count = fn.sum(fn.logical_not(fn.isnan(x)), axis, keepdims=True)
    middle = fn.maximum(fn.floor_divide(count - 1, 2), 0)
    if not is_without_nan:  # NaN is at the end of the order
        middle = fn.where(fn.less(count, x.shape[axis]), count, middle)
    indices = take_along_axis(order, middle, axis)
    values = take_along_axis(x, indices, axis)
    return Found(*(one if keepdims else squeeze(one, axis) for one in (values, indices)))


def lower_median(x, /, axis=None, keepdims=False):
    """Return the lower of the middle elements along `axis` and its position.

    >>> import gputensor as gt
    >>> [one.item() for one in gt.median(gt.asarray([4, 1, 3, 2], device="host"), dim=0)]
    [2, 3]
    """
    return _lower(x, axis, keepdims, "median", False)


def lower_nanmedian(x, /, axis=None, keepdims=False):
    """Return :func:`lower_median` of the elements that are not NaN.

    >>> import gputensor as gt
    >>> x = gt.asarray([4.0, float("nan"), 2.0], device="host")
    >>> [one.item() for one in gt.nanmedian(x, dim=0)]
    [2.0, 2]
    """
    return _lower(x, axis, keepdims, "nanmedian", True)


def _unbiased(reduce, x, axis, unbiased, given):
    if unbiased is not None and given.keys() & {"correction", "ddof"}:
        got = Described("unbiased and correction")
        raise argument_error(TypeError, f"{reduce.__name__}: unbiased", got, "only one of them")
    if not given.keys() & {"correction", "ddof"}:
        given["correction"] = 0 if unbiased is False else 1
    return reduce(x, axis, **given)


def unbiased_var(x, /, axis=None, unbiased=None, **given):
    """Return the variance over `axis`; the divisor is the number of elements minus one.

    >>> import gputensor as gt
    >>> gt.var(gt.asarray([1.0, 3.0], device="host"), dim=0).item()
    2.0
    """
    return _unbiased(fn.var, x, axis, unbiased, given)


def unbiased_std(x, /, axis=None, unbiased=None, **given):
    """Return the square root of :func:`unbiased_var`.

    >>> import gputensor as gt
    >>> gt.std(gt.asarray([1.0, 5.0, 3.0], device="host"), dim=0).item()
    2.0
    """
    return _unbiased(fn.std, x, axis, unbiased, given)


def squeeze_ones(x, /, axis=None):
    """Return a view without those of the given axes that have extent 1.

    >>> import gputensor as gt
    >>> gt.squeeze(gt.zeros((1, 3), device="host"), dim=(0, 1)).shape
    (3,)
    """
    axes = axis if isinstance(axis, (tuple, list)) else () if axis is None else (axis,)
    axes = [axis_argument(one, tensor_argument(x, "squeeze").ndim, "squeeze") for one in axes]
    return squeeze(x, None if axis is None else tuple(i for i in axes if x.shape[i] == 1))


def split_by_size(x, /, sizes, axis=0):
    """Return parts of `x` along `axis`, each of `sizes` elements, or one of each of several sizes.

    >>> import gputensor as gt
    >>> [part.tolist() for part in gt.split(gt.arange(5, device="host"), 2, dim=0)]
    [[0, 1], [2, 3], [4]]
    """
    extent = tensor_argument(x, "split").shape[axis_argument(axis, x.ndim, "split")]
    if not has_elements(sizes):
        size = operator.index(sizes)
        if size < 1:
            raise argument_error(ValueError, "split: split_size", size, "1 or more")
        return array_split(x, range(size, extent, size), axis)
    sizes = [operator.index(one) for one in sizes]
    if min(sizes, default=0) < 0 or sum(sizes) != extent:
        raise argument_error(ValueError, "split: sizes", sizes, f"sizes whose sum is {extent}")
    return array_split(x, list(accumulate(sizes))[:-1], axis)


class Extremes(NamedTuple):
    """The least and the greatest elements."""

    min: Tensor
    max: Tensor


def aminmax(x, /, *, dim=None, keepdim=False):
    """Return the least and the greatest elements over an axis or over all.

    >>> import gputensor as gt
    >>> least, greatest = aminmax(gt.asarray([3, 1, 2], device="host"))
    >>> int(least), int(greatest)
    (1, 3)
    """
    return Extremes(*(of(x, dim, keepdims=keepdim) for of in (fn.min, fn.max)))
