"""Selection of elements by positions or by masks.

Positions on the device stay there. Functions whose result length depends on values, such as the
count of a mask, wait for the device.
"""

import numpy as np

from gputensor._arrays.dtypes import bool_, int64
from gputensor.errors import Described, argument_error, int_argument
from gputensor.streams.order import tracer
from gputensor.tensor.core import (
    Tensor,
    axis_argument,
    spellings,
    tensor_argument,
    written_argument,
)
from gputensor.tensor.functions import equal, where
from gputensor.tensor.functions import max as largest
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop.arrays import host_array, values_argument
from gputensor.tensor.manipulation import (
    arange,
    broadcast_arrays,
    broadcast_to,
    empty,
    expand_dims,
    moveaxis,
    nonzero,
    reshape,
    take,
)
from gputensor.tensor.manipulation.joining import concat, stack

__all__ = [
    "argwhere", "compress", "compressed", "delete", "extract", "flatnonzero", "gather",
    "index_select", "insert", "kept_where", "masked_fill", "masked_select", "one_hot",
    "put_along_axis", "scatter", "take_along_axis",
]  # fmt: skip


def flatnonzero(x, /):
    """Return where the flattened `x` is not zero, in one int64 tensor. Waits for the device.

    >>> import gputensor as gt
    >>> flatnonzero(gt.asarray([[0, 5], [7, 0]], device="host")).tolist()
    [1, 2]
    """
    return nonzero(reshape(tensor_argument(x, "flatnonzero"), -1))[0]


def argwhere(x, /):
    """Return where `x` is not zero: one row of positions for each such element. Waits.

    >>> import gputensor as gt
    >>> argwhere(gt.asarray([[0, 5], [7, 0]], device="host")).tolist()
    [[0, 1], [1, 0]]
    """
    if tensor_argument(x, "argwhere").ndim == 0:
        count = int(nonzero(reshape(x, 1))[0].size)
        return empty((count, 0), dtype=int64, device=x.device)
    return stack(nonzero(x), -1)


def _mask(mask, like, name):
    if tensor_argument(mask, name).dtype.kind != "b":
        raise argument_error(TypeError, f"{name}: mask", Described(mask.dtype.name), "dtype bool")
    return mask


def masked_fill(x, mask, value, /, out=None):
    """Return `x` with elements replaced by `value`, a number or a tensor, where `mask` is true.

    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2], device="host")
    >>> masked_fill(x, x > 1, 0).tolist()
    [1, 0]
    """
    mask = _mask(mask, tensor_argument(x, "masked_fill"), "masked_fill")
    if type(value) is not Tensor:
        value = asarray(value, dtype=x.dtype, device=x.device)
    return where(mask, astype(value, x.dtype, copy=False), x, out=out)


def masked_select(x, mask, /):
    """Return the elements of `x` where `mask` is true, in one dimension. Waits for the device.

    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2, 3], device="host")
    >>> masked_select(x, x > 1).tolist()
    [2, 3]
    """
    mask = _mask(mask, tensor_argument(x, "masked_select"), "masked_select")
    if x.shape != mask.shape:
        x, mask = broadcast_arrays(x, mask)
    return x[mask] if x.ndim else reshape(x, 1)[reshape(mask, 1)]


def extract(condition, x, /):
    """Return elements of the flattened `x` where the flattened `condition` is not zero. Waits.

    >>> import gputensor as gt
    >>> extract(gt.asarray([1, 0], device="host"), gt.asarray([5, 6], device="host")).tolist()
    [5]
    """
    places = flatnonzero(tensor_argument(condition, "extract"))
    return take(reshape(tensor_argument(x, "extract"), -1), places)


def compress(condition, x, /, axis=None):
    """Return slices of `x` along `axis` (default: flattened) where `condition` is true. Waits.

    >>> import gputensor as gt
    >>> compress([True, False, True], gt.asarray([5, 6, 7], device="host")).tolist()
    [5, 7]
    """
    x = values_argument(x, "compress", condition)
    if axis is None:
        x, axis = reshape(x, -1), 0
    if not isinstance(condition, Tensor):
        condition = asarray(host_array("compress: condition", condition, bool), device=x.device)
    if condition.ndim != 1:
        got = Described(f"{condition.ndim} dimensions")
        raise argument_error(ValueError, "compress: condition", got, "1")
    return take(x, nonzero(condition)[0], axis)


def compressed(x, condition, /, axis=None):
    """Return slices of `x` along `axis` where `condition` is true: the method of :func:`compress`.

    >>> import gputensor as gt
    >>> gt.asarray([5, 6, 7], device="host").compress([True, False, True]).tolist()
    [5, 7]
    """
    return compress(condition, x, axis)


def kept_where(x, condition, other, /):
    """Return `x` where `condition` is true and `other` elsewhere: PyTorch's method ``where``.

    >>> import gputensor as gt
    >>> x = gt.asarray([5, 6, 7], device="host")
    >>> x.where(x > 5, 0).tolist()
    [0, 6, 7]
    """
    if tensor_argument(condition, "where").dtype != bool_:
        got = Described(condition.dtype.name)
        raise argument_error(TypeError, "where: condition", got, "bool")
    return where(condition, x, other)


def _grid(x, indices, axis, name):
    """Return a key for `x` that applies `indices` along `axis`, element by element elsewhere."""
    tensor_argument(x, name)
    if tensor_argument(indices, name).dtype.kind not in "iu":
        got = Described(indices.dtype.name)
        raise argument_error(TypeError, f"{name}: indices", got, "an integer dtype")
    if indices.ndim != x.ndim:
        got = Described(f"{indices.ndim} dimensions")
        raise argument_error(ValueError, f"{name}: indices", got, f"{x.ndim}, as x has")
    axis = axis_argument(axis, x.ndim, name)
    key = []
    for i, extent in enumerate(x.shape):
        if i == axis:
            key.append(indices)
            continue
        if indices.shape[i] not in (1, extent) and extent != 1:
            got = Described(f"shape {indices.shape}")
            rule = f"extents of {x.shape} or 1 except in axis {axis}"
            raise argument_error(ValueError, f"{name}: indices", got, rule)
        places = arange(extent, device=x.device)
        key.append(reshape(places, [-1 if j == i else 1 for j in range(x.ndim)]))
    return tuple(key)


@spellings(dim="axis")
def take_along_axis(x, /, indices, axis=-1):
    """Return elements of `x`, selected along `axis` by `indices` at each place of the other axes.

    `indices` has as many dimensions as `x`; the other axes broadcast. An `axis` of None flattens
    `x`.

    >>> import gputensor as gt
    >>> x = gt.asarray([[5, 6], [7, 8]], device="host")
    >>> take_along_axis(x, gt.asarray([[1], [0]], device="host"), axis=1).tolist()
    [[6], [7]]
    """
    if axis is None:
        x, axis = reshape(tensor_argument(x, "take_along_axis"), -1), 0
    return x[_grid(x, indices, axis, "take_along_axis")]


def put_along_axis(x, indices, values, /, axis=-1):
    """Write `values` to the elements that :func:`take_along_axis` would return, in place.

    >>> import gputensor as gt
    >>> x = gt.zeros((2, 2), device="host")
    >>> put_along_axis(x, gt.asarray([[1], [0]], device="host"), 5, axis=1)
    >>> x.tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    written_argument(x, "put_along_axis", "arr")
    if axis is None:
        if not x.is_contiguous:
            got = Described("a tensor that is not contiguous")
            rule = "a contiguous one if axis is None"
            raise argument_error(ValueError, "put_along_axis: x", got, rule)
        x, axis = reshape(x, -1), 0
    x[_grid(x, indices, axis, "put_along_axis")] = values


def _corner(x, indices, axis, name):
    """Return `x` cut to the extents of `indices` except along `axis`, as torch.gather reads it."""
    tensor_argument(x, name)
    tensor_argument(indices, name)
    if x.ndim != indices.ndim:
        got = Described(f"{indices.ndim} dimensions")
        raise argument_error(ValueError, f"{name}: index", got, f"{x.ndim}, as x has")
    axis = axis_argument(axis, x.ndim, name)
    for i, (extent, most) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if i != axis and extent > most:
            got = Described(f"shape {indices.shape}")
            rule = f"at most the extents of {x.shape} except in axis {axis}"
            raise argument_error(ValueError, f"{name}: index", got, rule)
    key = [slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape)]
    return x[tuple(key)], axis


@spellings(dim="axis")
def gather(x, /, axis, index):
    """Return elements of `x`, selected along `axis` by `index`, as PyTorch's gather.

    The other axes of `index` may be shorter than those of `x`.

    >>> import gputensor as gt
    >>> x = gt.asarray([[5, 6], [7, 8]], device="host")
    >>> gather(x, 1, gt.asarray([[1, 1]], device="host")).tolist()
    [[6, 6]]
    """
    x, axis = _corner(x, index, axis, "gather")
    return x[_grid(x, index, axis, "gather")]


@spellings(dim="axis", src="source", value="source")
def scatter(x, /, axis, index, source):
    """Return a copy of `x` with `source` written to elements selected along `axis` by `index`.

    `source` is a number, or a tensor whose extents are at least those of `index`. PyTorch's
    ``reduce="add"`` and ``"multiply"`` combine it with the elements there.

    >>> import gputensor as gt
    >>> x, index = gt.zeros((1, 3), device="host"), gt.asarray([[2, 0]], device="host")
    >>> scatter(x, 1, index, 4).tolist()
    [[4.0, 0.0, 4.0]]
    """
    result = astype(tensor_argument(x, "scatter"), x.dtype)
    part, axis = _corner(result, index, axis, "scatter")
    if type(source) is Tensor and source.ndim == index.ndim:
        source = source[tuple(slice(extent) for extent in index.shape)]
    part[_grid(part, index, axis, "scatter")] = source
    return result


@spellings(dim="axis")
def index_select(x, /, axis, index):
    """Return slices of `x` along `axis`, selected by an integer tensor; see :func:`take`.

    >>> import gputensor as gt
    >>> index_select(gt.arange(3, device="host"), 0, gt.asarray([2], device="host")).tolist()
    [2]
    """
    return take(x, index, axis)


def one_hot(x, num_classes=-1, /, *, dtype=int64):
    """Return vectors along a new last axis with 1 at the position given by each element, else 0.

    With -1 there are as many classes as the greatest element needs, which waits for the device. An
    element outside the classes raises IndexError, on CUDA devices within :func:`checked_indices`;
    otherwise, and in compiled programs, it gives zeros only.

    >>> import gputensor as gt
    >>> one_hot(gt.asarray([1, 0], device="host"), 3).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    if tensor_argument(x, "one_hot").dtype.kind not in "iu":
        got = Described(x.dtype.name)
        raise argument_error(TypeError, "one_hot: x", got, "an integer dtype")
    num_classes = int_argument("one_hot: num_classes", num_classes)
    if num_classes < -1 or num_classes == -1 and x.size == 0:
        rule = "the number of classes, or -1 with elements to count them by"
        raise argument_error(ValueError, "one_hot: num_classes", num_classes, rule)
    if num_classes == -1:
        num_classes = int(largest(x)) + 1
        if num_classes < 1:
            rule = "0 or more in every element"
            raise argument_error(IndexError, "one_hot: x", num_classes - 1, rule)
    classes = arange(num_classes, device=x.device)
    places = x if x.dtype.kind == "i" else astype(x, int64)
    if tracer() is None and x.size:
        row = broadcast_to(empty(1, bool_, device=x.device), (num_classes,))
        try:
            row[where(places < 0, num_classes, astype(places, int64, copy=False))]
        except IndexError:
            wrong = places[(places < 0) | (places >= num_classes)]
            rule = f"0 to {num_classes - 1}"
            raise argument_error(IndexError, "one_hot: index in x", wrong[0].item(), rule) from None
    return astype(equal(expand_dims(places, -1), classes), dtype)


def _kept(obj, extent, name):
    """Return the positions along an axis that NumPy's delete keeps."""
    positions = np.arange(extent)
    if isinstance(obj, Tensor):
        obj = obj.numpy()
    try:
        return np.delete(positions, obj)
    except IndexError:
        rule = f"positions below {extent}"
        raise argument_error(IndexError, f"{name}: obj", obj, rule) from None
    except ValueError:
        rule = f"ints, or {extent} bools"
        raise argument_error(ValueError, f"{name}: obj", obj, rule) from None


def delete(x, obj, /, axis=None):
    """Return a copy of `x` without the slices `obj` along `axis` (default: flattened).

    `obj` is an int, a slice, or a sequence of ints; for a tensor, the call waits for its values.

    >>> import gputensor as gt
    >>> delete(gt.arange(4, device="host"), [1, -1]).tolist()
    [0, 2]
    """
    tensor_argument(x, "delete")
    if axis is None:
        x, axis = reshape(x, -1), 0
    axis = axis_argument(axis, x.ndim, "delete")
    extent, prefix = x.shape[axis], (slice(None),) * axis
    is_number = isinstance(obj, (int, np.integer)) and not isinstance(obj, bool)
    if is_number and -extent <= obj < extent:
        obj = slice(int(obj), int(obj) + 1 or None)
    if isinstance(obj, slice) and obj.step in (None, 1):
        first, last, _ = obj.indices(extent)
        parts = slice(first), slice(max(first, last), None)
        return concat([x[prefix + (one,)] for one in parts], axis=axis)
    return x[prefix + (_kept(obj, extent, "delete"),)]


def insert(x, obj, values, /, axis=None):
    """Return a copy of `x` with `values` before positions `obj` along `axis` (default: flattened).

    >>> import gputensor as gt
    >>> insert(gt.arange(3, device="host"), 1, 9).tolist()
    [0, 9, 1, 2]
    """
    tensor_argument(x, "insert")
    if axis is None:
        x, axis = reshape(x, -1), 0
    axis = axis_argument(axis, x.ndim, "insert")
    extent = x.shape[axis]
    if isinstance(obj, Tensor):
        obj = obj.numpy()
    if isinstance(obj, slice):
        obj = range(*obj.indices(extent))
    places = host_array("insert: obj", obj)
    places = places if places.size else places.astype(int)
    if (
        places.dtype.kind not in "iu"
        or places.size
        and (places.min() < -extent or places.max() > extent)
    ):
        rule = f"positions from {-extent} to {extent}"
        raise argument_error(IndexError, "insert: obj", obj, rule)
    if type(values) is not Tensor:
        values = asarray(values, dtype=x.dtype, device=x.device)
    places = np.where(places < 0, places + extent, places)
    if places.ndim == 0:
        # All slices of the values along their first axis go to this position.
        if values.ndim < x.ndim:
            values = reshape(values, (1,) * (x.ndim - values.ndim) + values.shape)
        values = moveaxis(values, 0, axis)
        places = np.full(values.shape[axis], places)
    prefix = (slice(None),) * axis
    if places.size and (places == places[0]).all():
        parts = slice(places[0]), slice(places[0], None)
        before, after = (x[prefix + (one,)] for one in parts)
        made = (*x.shape[:axis], places.size, *x.shape[axis + 1 :])
        values = broadcast_to(astype(values, x.dtype, copy=False), made)
        return concat([before, values, after], axis=axis)
    order = np.argsort(places, kind="stable")
    is_new = np.zeros(extent + places.size, bool)
    targets = places.copy()
    targets[order] += np.arange(places.size)
    is_new[targets] = True
    shape = (*x.shape[:axis], extent + places.size, *x.shape[axis + 1 :])
    result = empty(shape, dtype=x.dtype, device=x.device)
    result[prefix + (np.flatnonzero(~is_new),)] = x
    result[prefix + (targets,)] = values
    return result
