"""Functions that select among tensors, or write to one by positions and masks."""

import math
from numbers import Number

from gputensor._arrays.dtypes import float32, int32, int64
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, function_argument, list_argument, plain_int
from gputensor.tensor import functions as fn
from gputensor.tensor.core import (
    Tensor,
    axis_argument,
    spellings,
    tensor_argument,
    written_argument,
)
from gputensor.tensor.engine import queue_call
from gputensor.tensor.grids import within
from gputensor.tensor.interop import asarray, astype, copy
from gputensor.tensor.interop.arrays import PLAIN, beside, values_argument
from gputensor.tensor.manipulation import arange, broadcast_to, full, moveaxis, reshape
from gputensor.tensor.manipulation.joining import concat, stack

__all__ = [
    "apply_along_axis", "block", "choose", "copyto", "index_add", "place", "put", "putmask",
    "scatter_add", "select",
]  # fmt: skip


def copyto(target, source, /, *, where=True):
    """Write `source` to `target` where the mask `where` is true.

    >>> import gputensor as gt
    >>> x = gt.zeros(2, device="host")
    >>> copyto(x, 3)
    >>> x.tolist()
    [3.0, 3.0]
    """
    written_argument(target, "copyto", "dst")
    if where is True:
        target[...] = source
    else:
        source = source if isinstance(source, Tensor) else target.dtype.type(source).item()
        target[...] = fn.where(where, source, target)


def putmask(x, mask, values, /):
    """Write `values` to `x` where `mask` is true: a number, or a tensor.

    The values of a tensor with another shape are repeated in row-major order to the shape of `x`.

    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2, 3, 4], device="host")
    >>> putmask(x, x > 2, gt.asarray([10, 20], device="host"))
    >>> x.tolist()
    [1, 2, 10, 20]
    """
    device = written_argument(x, "putmask", "a").device
    values = asarray(values, x.dtype, device=device)
    if values.shape != x.shape and values.size:
        values = reshape(_repeated(values, x.size), x.shape)
    x[...] = fn.where(mask, values, x)


def _repeated(values, count):
    """Return `count` elements: those of `values` in row-major order, as often as needed."""
    values = reshape(values, -1)
    if values.size < 2:
        return broadcast_to(values, (count,))
    if count > values.size:
        values = concat([values] * -(-count // values.size))
    return values[:count]


def place(x, mask, values, /):
    """Write successive `values`, repeated if necessary, to `x` where `mask` is true.

    Several values wait for the device.

    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2, 3, 4], device="host")
    >>> place(x, x > 1, gt.asarray([10, 20], device="host"))
    >>> x.tolist()
    [1, 10, 20, 10]
    """
    shape = written_argument(x, "place", "arr").shape
    if tensor_argument(mask, "place").shape != shape:
        raise argument_error(
            ValueError, "place: mask", Described(f"shape {mask.shape}"), f"{shape}"
        )
    values = reshape(asarray(values, x.dtype, device=x.device), -1)
    if values.size == 1:
        x[...] = fn.where(mask, values[0], x)
        return
    if not shape:
        x, mask = reshape(x, 1), reshape(mask, 1)
    places = mask.nonzero()
    count = places[0].size
    if count and not values.size:
        raise argument_error(ValueError, "place: values", Described("no elements"), "at least one")
    if count:
        x[places] = _repeated(values, count)


def put(x, indices, values, /):
    """Write successive `values`, repeated if necessary, to elements at flat row-major indices.

    >>> import gputensor as gt
    >>> x = gt.zeros((2, 2), device="host")
    >>> put(x, gt.asarray([3], device="host"), 5)
    >>> x.tolist()
    [[0.0, 0.0], [0.0, 5.0]]
    """
    flat = reshape(written_argument(x, "put", "a"), -1)
    if not isinstance(indices, (int, slice)):
        indices = reshape(asarray(indices, device=x.device), -1)
        indices = indices if indices.size else astype(indices, int64)
        if isinstance(values, (Tensor, list, tuple)) or hasattr(values, "__array__"):
            values = reshape(asarray(values, x.dtype, device=x.device), -1)
            if not values.size:
                return
            if values.size > 1:
                values = _repeated(values, indices.size)
    flat[indices] = values
    if not x.is_contiguous:
        x[...] = reshape(flat, x.shape)


@spellings("gputensor.tensor.numerics.torch_methods.select", dim="axis", index="index")
def select(conditions, choices, /, default=0):
    """Return, for each element, the choice of the first condition that is true there.

    PyTorch's ``select(x, dim, index)`` is a view of `x` without the axis.

    >>> import gputensor as gt
    >>> x = gt.arange(4, device="host")
    >>> select([x < 1, x < 3], [x, x * 10], -1).tolist()
    [0, 10, 20, -1]
    """
    if isinstance(conditions, Tensor) and isinstance(plain_int(choices), int):
        return conditions.select(choices, default)
    conditions = list_argument("select: condlist", conditions)
    choices = list_argument("select: choicelist", choices)
    if len(conditions) != len(choices) or not conditions:
        got = Described(f"{len(conditions)} conditions for {len(choices)} choices")
        rule = "as many as choices, at least one"
        raise argument_error(ValueError, "select: conditions", got, rule)
    *choices, result = _in_one_dtype([*choices, default])
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = fn.where(condition, choice, result)
    return result


def _in_one_dtype(values):
    """Return values of which numbers have the dtype of all, where a tensor has another one.

    `where` of a number and a tensor of bool would give the dtype of the number.
    """
    tensors = [one for one in values if isinstance(one, Tensor)]
    if not tensors or not all(isinstance(one, (Tensor, Number)) for one in values):
        return values
    dtype = result_type(*values)
    if all(one.dtype == dtype for one in tensors):
        return values
    device = tensors[0].device
    return [one if isinstance(one, Tensor) else full((), one, dtype, device=device)
            for one in values]  # fmt: skip


def choose(index, choices, /):
    """Return elements of the choices, selected by the integer `index` at each place.

    >>> import gputensor as gt
    >>> a, b = gt.asarray([1, 2], device="host"), gt.asarray([10, 20], device="host")
    >>> choose(gt.asarray([1, 0], device="host"), (a, b)).tolist()
    [10, 2]
    """
    if not isinstance(choices, Tensor):
        choices = list_argument("choose: choices", choices)
    if not len(choices):
        got = Described("no elements")
        raise argument_error(ValueError, "choose: choices", got, "at least one")
    if isinstance(index, (list, tuple)):
        first = next((one for one in choices if isinstance(one, Tensor)), None)
        index = asarray(index) if first is None else asarray(index, device=first.device)
    if tensor_argument(index, "choose").dtype.kind in "bi":
        index = astype(index, int64, copy=False)
        index = fn.where(fn.less(index, 0), len(choices), index)  # -1 is no choice, unlike x[-1]
    try:
        index = fn.remainder(within(index, len(choices)), len(choices))
    except IndexError:
        got, rule = Described("an element out of range"), f"0 to {len(choices) - 1}, or a mode="
        raise argument_error(IndexError, "choose: index", got, rule) from None
    result = choices[0]
    for number, choice in enumerate(choices[1:], 1):
        result = fn.where(fn.equal(index, number), choice, result)
    return copy(broadcast_to(result, index.shape)) if len(choices) == 1 else result


def _leaves(arrays):
    if isinstance(arrays, list):
        for one in arrays:
            yield from _leaves(one)
    else:
        yield arrays


def block(arrays, /):
    """Return tensors and numbers joined like nested lists: the innermost along the last axis.

    >>> import gputensor as gt
    >>> one = gt.ones((1, 1), device="host")
    >>> block([[one, one * 2], [one * 3, one * 4]]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    like = next((one for one in _leaves(arrays) if isinstance(one, Tensor)), None)
    depth, first = 0, arrays
    while isinstance(first, list):
        if not first:
            got = Described("a list without elements")
            raise argument_error(ValueError, "block: arrays", got, "tensors in nested lists")
        depth, first = depth + 1, first[0]

    def ndim(part):
        if isinstance(part, list):
            return max(ndim(one) for one in part)
        return 0 if isinstance(part, PLAIN) else tensor_argument(part, "block").ndim

    axes = max(depth, ndim(arrays))

    def joined(part, level):
        if not isinstance(part, list):
            if isinstance(part, PLAIN):
                part = asarray(part) if like is None else beside(part, like)
            return reshape(part, (1,) * (axes - part.ndim) + part.shape)
        return concat([joined(one, level + 1) for one in part], axis=axes - depth + level)

    return joined(arrays, 0)


def apply_along_axis(function, axis, x, /, *arguments, **keywords):
    """Return the results of `function` for each vector of `x` along `axis`.

    `function` is called once for each vector; a function that takes an axis is much faster.

    >>> import gputensor as gt
    >>> apply_along_axis(gt.sum, 1, gt.ones((2, 3), device="host")).tolist()
    [3.0, 3.0]
    """
    moved = moveaxis(values_argument(x, "apply_along_axis"), axis, -1)
    rows = reshape(moved, (math.prod(moved.shape[:-1]), moved.shape[-1]))
    function_argument("apply_along_axis: func1d", function)
    results = [function(rows[i], *arguments, **keywords) for i in range(rows.shape[0])]
    results = [one if isinstance(one, Tensor) else asarray(one, device=x.device) for one in results]
    whole = reshape(stack(results), (*moved.shape[:-1], *results[0].shape))
    return moveaxis(whole, -1, axis) if results[0].ndim == 1 else whole


def _added(x, axis, index, source):
    """Return x plus the sums of `source` for each index.

    16-bit floats are summed in float32, integers of fewer than 32 bits in int32.
    """
    narrow = x.dtype.itemsize < 4
    dtype = x.dtype if not narrow else float32 if x.dtype.kind in "fV" else int32
    result = astype(x.contiguous(), dtype)
    shape = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    rows = shape[0], source.size // max(1, shape[0] * shape[2]), shape[2]
    source = reshape(astype(source, dtype, copy=False).contiguous(), rows)
    if index.size and source.size:
        is_own = index.size == source.size != rows[1]  # an index for each element
        index = reshape(index.contiguous(), rows if is_own else -1)
        queue_call("add_at", (), (reshape(result, shape),), (index, source), "scatter_add")
    return astype(result, x.dtype, copy=False)


def _check_sum(x, index, name):
    if tensor_argument(index, name).dtype.kind not in "iu":
        got = Described(index.dtype.name)
        raise argument_error(TypeError, f"{name}: index", got, "an integer dtype")
    if tensor_argument(x, name).dtype.kind == "b":
        raise argument_error(TypeError, f"{name}: x", Described("bool"), "a numeric dtype")


@spellings(dim="axis")
def index_add(x, /, axis, index, source, *, alpha=1):
    """Return `x` with slices of `source` added to slices along `axis`, selected by `index`.

    Repeated indices add up, on a GPU in no fixed order. 16-bit floats are summed in float32.

    >>> import gputensor as gt
    >>> x, index = gt.zeros(3, device="host"), gt.asarray([2, 2, 0], device="host")
    >>> index_add(x, 0, index, gt.asarray([1.0, 2.0, 3.0], device="host")).tolist()
    [3.0, 0.0, 3.0]
    """
    _check_sum(x, index, "index_add")
    axis = axis_argument(axis, x.ndim, "index_add")
    wanted = (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
    if index.ndim != 1 or tensor_argument(source, "index_add").shape != wanted:
        got = Described(f"shape {source.shape} for an index of shape {index.shape}")
        raise argument_error(
            ValueError, "index_add: source", got, f"{wanted}, an index of one axis"
        )
    return _added(x, axis, index, source if alpha == 1 else source * alpha)


@spellings(dim="axis", src="source")
def scatter_add(x, /, axis, index, source):
    """Return `x` with elements of `source` added to elements along `axis`, selected by `index`.

    Repeated indices add up, on a GPU in no fixed order. 16-bit floats are summed in float32.

    >>> import gputensor as gt
    >>> x, index = gt.zeros((1, 3), device="host"), gt.asarray([[2, 2]], device="host")
    >>> scatter_add(x, 1, index, gt.asarray([[1.0, 4.0]], device="host")).tolist()
    [[0.0, 0.0, 5.0]]
    """
    _check_sum(x, index, "scatter_add")
    source = tensor_argument(source, "scatter_add")
    if tensor_argument(index, "scatter_add").ndim != x.ndim or source.ndim != x.ndim:
        got = Described(f"{index.ndim} and {source.ndim} dimensions")
        raise argument_error(ValueError, "scatter_add: index, source", got, f"{x.ndim}, as x has")
    axis = axis_argument(axis, x.ndim, "scatter_add")
    source = source[tuple(slice(extent) for extent in index.shape)]
    if source.shape != index.shape:
        got = Described(f"shape {source.shape}")
        raise argument_error(ValueError, "scatter_add: source", got, f"{index.shape} or more")
    others = [i for i in range(x.ndim) if i != axis]
    if all(index.shape[i] == x.shape[i] for i in others):
        if all(index.strides[i] == 0 or index.shape[i] == 1 for i in others):
            # One index for whole slices, as index[:, None] broadcast to the shape of source.
            index = index[tuple(slice(None) if i == axis else 0 for i in range(x.ndim))]
        return _added(x, axis, index, source)
    places = flat_places(x, axis, index, "scatter_add")
    return reshape(_added(reshape(x, -1), 0, places, reshape(source, -1)), x.shape)


def flat_places(x, axis, index, name):
    """Return the flat row-major places in `x` of positions along `axis`, as a vector.

    Positions out of range raise as those of ``x[index]``.

    >>> import gputensor as gt
    >>> x, index = gt.zeros((2, 3), device="host"), gt.asarray([[2], [-3]], device="host")
    >>> flat_places(x, 1, index, "scatter_add").tolist()
    [2, 3]
    """
    if any(index.shape[i] > extent for i, extent in enumerate(x.shape) if i != axis):
        got = Described(f"shape {index.shape}")
        raise argument_error(ValueError, f"{name}: index", got, f"{x.shape} or less")
    places, index = 0, within(index, x.shape[axis], axis)
    for i, extent in enumerate(x.shape):
        line = arange(index.shape[i], device=x.device).reshape(
            [-1 if i == k else 1 for k in range(x.ndim)]
        )
        here = fn.where(fn.less(index, 0), fn.add(index, extent), index) if i == axis else line
        places = fn.add(fn.multiply(here, 1), places * extent if i else 0)
    return reshape(broadcast_to(places, index.shape), -1)
