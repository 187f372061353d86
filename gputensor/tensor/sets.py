"""Sets of values, partitions, and sorting by several keys, as in NumPy."""

import operator

from gputensor._arrays.promotion import result_type
from gputensor.errors import argument_error, has_elements, list_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.interop.arrays import beside, tensors
from gputensor.tensor.manipulation import reshape
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.manipulation.picking import take_along_axis
from gputensor.tensor.sorting import argsort, isin, sort, unique

__all__ = [
    "argpartition", "intersect1d", "lexsort", "partition", "partition_in_place", "setdiff1d",
    "setxor1d", "union1d",
]  # fmt: skip


def _both(x1, x2, name):
    """Return the unique values of both, ascending; NaN counts once, as in :func:`unique`."""
    first = tensor_argument(x1 if isinstance(x1, Tensor) else x2, name)
    x1, x2 = (beside(one, first) if isinstance(one, (list, tuple)) else tensor_argument(one, name)
              for one in (x1, x2))  # fmt: skip
    dtype = result_type(x1, x2)
    return (unique(astype(reshape(one, -1), dtype, copy=False)) for one in (x1, x2))


def union1d(x1, x2, /):
    """Return the unique values that are in x1 or x2, ascending.

    >>> import gputensor as gt
    >>> x, y = gt.asarray([3, 1], device="host"), gt.asarray([1, 2], device="host")
    >>> union1d(x, y).tolist()
    [1, 2, 3]
    """
    return unique(concat(list(_both(x1, x2, "union1d"))))


def intersect1d(x1, x2, /):
    """Return the unique values that are in both x1 and x2, ascending.

    >>> import gputensor as gt
    >>> x, y = gt.asarray([3, 1], device="host"), gt.asarray([1, 2], device="host")
    >>> intersect1d(x, y).tolist()
    [1]
    """
    first, second = _both(x1, x2, "intersect1d")
    return first[isin(first, second)]


def setdiff1d(x1, x2, /):
    """Return the unique values of x1 that are not in x2, ascending.

    >>> import gputensor as gt
    >>> x, y = gt.asarray([3, 1], device="host"), gt.asarray([1, 2], device="host")
    >>> setdiff1d(x, y).tolist()
    [3]
    """
    first, second = _both(x1, x2, "setdiff1d")
    found = first[isin(first, second, invert=True)]
    return astype(found, x1.dtype, copy=False) if isinstance(x1, Tensor) else found


def setxor1d(x1, x2, /):
    """Return the unique values that are in exactly one of x1 and x2, ascending.

    >>> import gputensor as gt
    >>> x, y = gt.asarray([3, 1], device="host"), gt.asarray([1, 2], device="host")
    >>> setxor1d(x, y).tolist()
    [2, 3]
    """
    first, second = _both(x1, x2, "setxor1d")
    alone = [first[isin(first, second, invert=True)], second[isin(second, first, invert=True)]]
    return sort(concat(alone))


def _check_place(x, kth, axis, name):
    if axis is None:
        extent = tensor_argument(x, name).size
    else:
        extent = tensor_argument(x, name).shape[axis_argument(axis, x.ndim, name)]
    for one in kth if has_elements(kth) else (kth,):
        try:
            is_inside = -extent <= operator.index(one) < extent
        except TypeError:
            is_inside = False
        if not is_inside:
            raise argument_error(ValueError, f"{name}: kth", one, f"an int below {extent}")


def partition(x, kth, /, axis=-1):
    """Return `x` with element `kth` at its sorted position; here `x` is sorted completely.

    >>> import gputensor as gt
    >>> partition(gt.asarray([3, 1, 2], device="host"), 1).tolist()
    [1, 2, 3]
    """
    _check_place(x, kth, axis, "partition")
    return sort(x, axis)


def partition_in_place(x, kth, /, axis=-1):
    """Sort the tensor itself along `axis`: the method ``x.partition(kth)``, as in NumPy.

    >>> import gputensor as gt
    >>> x = gt.asarray([3, 1, 2], device="host")
    >>> x.partition(1)
    >>> x.tolist()
    [1, 2, 3]
    """
    x[...] = partition(x, kth, axis)


def argpartition(x, kth, /, axis=-1):
    """Return the indices by which :func:`partition` orders; the same as :func:`argsort`.

    >>> import gputensor as gt
    >>> argpartition(gt.asarray([3, 1, 2], device="host"), 1).tolist()
    [1, 2, 0]
    """
    _check_place(x, kth, axis, "argpartition")
    return argsort(x, axis)


def lexsort(keys, /, axis=-1):
    """Return the indices that sort by several keys along `axis`; the last is most significant.

    >>> import gputensor as gt
    >>> first, second = gt.asarray([2, 1, 1], device="host"), gt.asarray([0, 1, 0], device="host")
    >>> lexsort((first, second)).tolist()
    [2, 0, 1]
    """
    if not isinstance(keys, Tensor):
        keys = list_argument("lexsort: keys", keys, "a sequence of Tensors")
    if not len(keys):
        raise argument_error(ValueError, "lexsort: keys", keys, "one Tensor or more")
    if not isinstance(keys, Tensor):
        keys = tensors(keys)
    order = argsort(tensor_argument(keys[0], "lexsort"), axis)
    for key in keys[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return fn.positive(order)
