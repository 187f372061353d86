"""Views with axes in another order or number, under NumPy's and PyTorch's names."""

import operator

from gputensor.errors import Described, argument_error, has_elements, int_argument, list_argument
from gputensor.tensor.core import Tensor, axis_argument, spellings, tensor_argument
from gputensor.tensor.interop import asarray
from gputensor.tensor.interop.arrays import PLAIN
from gputensor.tensor.manipulation import broadcast_to, expand_dims, flip, permute_dims, reshape

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "expand", "flatten", "fliplr",
    "flipud", "ravel", "rot90", "swapaxes", "transpose", "unsqueeze",
]  # fmt: skip


@spellings("gputensor.tensor.manipulation.axes.swapaxes", dim0="axis1", dim1="axis2")
def transpose(x, /, axes=None):
    """Return a view with the axes in the order `axes`; default: in reverse order.

    PyTorch's ``transpose(x, 0, 1)`` is :func:`swapaxes`.

    >>> import gputensor as gt
    >>> transpose(gt.zeros((2, 3, 4), device="host")).shape
    (4, 3, 2)
    """
    if axes is None:
        axes = range(tensor_argument(x, "transpose").ndim - 1, -1, -1)
    return permute_dims(x, axes)


@spellings(dim0="axis1", dim1="axis2", axis0="axis1")
def swapaxes(x, /, axis1, axis2):
    """Return a view with two axes exchanged.

    >>> import gputensor as gt
    >>> swapaxes(gt.zeros((2, 3, 4), device="host"), 0, -1).shape
    (4, 3, 2)
    """
    order = list(range(tensor_argument(x, "swapaxes").ndim))
    one, other = (axis_argument(axis, x.ndim, "swapaxes") for axis in (axis1, axis2))
    order[one], order[other] = other, one
    return permute_dims(x, order)


def ravel(x, /, order="C"):
    """Return the elements in one dimension: a view if the strides allow it, otherwise a copy.

    Parameters
    ----------
    order : {"C", "F", "A", "K"}
        The order in which elements are read: "C": the last axis changes fastest; "F": the first
        one; "A": "F" if `x` has this order in memory and not the other, otherwise "C"; "K": the
        order in memory, but forwards along each axis.

    >>> import gputensor as gt
    >>> x = gt.asarray([[1, 2], [3, 4]], device="host").T
    >>> ravel(x).tolist(), ravel(x, "K").tolist()
    ([1, 3, 2, 4], [1, 2, 3, 4])
    """
    return _raveled(tensor_argument(x, "ravel"), order, None)


def _raveled(x, order, copy):
    if isinstance(order, str) and order in ("K", "k"):
        x, order = permute_dims(x, _reading_axes(x)), "C"
    elif order not in (None, *"CFAcfa"):
        raise argument_error(ValueError, "ravel: order", order, "'C', 'F', 'A' or 'K'")
    return reshape(x, -1, order, copy=copy)


def memory_axes(x):
    """Return the axes of a tensor by falling distance between elements in memory.

    >>> import gputensor as gt
    >>> memory_axes(gt.zeros((2, 3, 4), device="host").transpose(2, 0, 1))
    [1, 2, 0]
    """
    return sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))


def _reading_axes(x):
    """Return the axes in the order in which NumPy reads them in order "K".

    Axes that a broadcast repeats (stride 0) compare with no others, so they stay near their place.
    """
    strides = [0 if n == 1 else abs(s) for n, s in zip(x.shape, x.strides, strict=True)]
    axes = []  # from the last to the first
    for axis in reversed(range(x.ndim)):
        place = len(axes)
        for i in reversed(range(len(axes))):
            if strides[axis] and strides[axes[i]]:
                if strides[axes[i]] <= strides[axis]:
                    break
                place = i
        axes.insert(place, axis)
    return axes[::-1]


@spellings(start_dim="start_axis", end_dim="end_axis")
def flatten(x, /, start_axis=0, end_axis=-1):
    """Return a copy with the axes from `start_axis` through `end_axis` merged into one.

    In the place of `start_axis` it takes NumPy's order: "C", "F", "A" or "K", as :func:`ravel`.

    >>> import gputensor as gt
    >>> flatten(gt.zeros((2, 3, 4), device="host"), 1).shape
    (2, 12)
    """
    if isinstance(start_axis, str):
        return _raveled(tensor_argument(x, "flatten"), start_axis, True)
    if tensor_argument(x, "flatten").ndim == 0:
        return reshape(x, 1, copy=True)
    first = axis_argument(start_axis, x.ndim, "flatten")
    last = axis_argument(end_axis, x.ndim, "flatten")
    if last < first:
        raise argument_error(ValueError, "flatten: end_axis", end_axis, f"{start_axis} or more")
    extent = 1
    for one in x.shape[first : last + 1]:
        extent *= one
    return reshape(x, (*x.shape[:first], extent, *x.shape[last + 1 :]), copy=True)


@spellings(dim="axis")
def unsqueeze(x, /, axis):
    """Return a view with a new axis of extent 1, which is `axis` of the result.

    >>> import gputensor as gt
    >>> unsqueeze(gt.zeros(3, device="host"), -1).shape
    (3, 1)
    """
    return expand_dims(x, axis)


def expand(x, /, *shape):
    """Return a view broadcast to a shape, given as ints or a tuple; -1 keeps an extent of x.

    >>> import gputensor as gt
    >>> expand(gt.zeros((3, 1), device="host"), -1, 4).shape
    (3, 4)
    """
    tensor_argument(x, "expand")
    shape = tuple(shape[0] if len(shape) == 1 and has_elements(shape[0]) else shape)
    shift = len(shape) - x.ndim
    if any(one == -1 and i < shift for i, one in enumerate(shape)):
        raise argument_error(ValueError, "expand: shape", shape, "-1 only for axes that x has")
    return broadcast_to(x, [x.shape[i - shift] if n == -1 else n for i, n in enumerate(shape)])


def flipud(x, /):
    """Return a view with the order along the first axis reversed.

    >>> import gputensor as gt
    >>> flipud(gt.arange(3, device="host")).tolist()
    [2, 1, 0]
    """
    return flip(x, 0)


def fliplr(x, /):
    """Return a view with the order along the second axis reversed.

    >>> import gputensor as gt
    >>> fliplr(gt.asarray([[1, 2]], device="host")).tolist()
    [[2, 1]]
    """
    return flip(x, 1)


@spellings(dims="axes")
def rot90(x, /, k=1, axes=(0, 1)):
    """Return a view rotated `k` times by 90 degrees, from the first of `axes` to the second.

    >>> import gputensor as gt
    >>> rot90(gt.asarray([[1, 2], [3, 4]], device="host")).tolist()
    [[2, 4], [1, 3]]
    """
    tensor_argument(x, "rot90")
    axes = list_argument("rot90: axes", axes)
    if len(axes) != 2:
        raise argument_error(ValueError, "rot90: axes", axes, "two axes")
    one, other = (axis_argument(axis, x.ndim, "rot90") for axis in axes)
    if one == other:
        raise argument_error(ValueError, "rot90: axes", axes, "two different axes")
    turns = int_argument("rot90: k", k) % 4
    if turns == 0:
        return x[...]
    if turns == 2:
        return flip(x, (one, other))
    if turns == 1:
        return swapaxes(flip(x, other), one, other)
    return flip(swapaxes(x, one, other), other)


def _at_least(x, name, shape_of):
    if isinstance(x, PLAIN):
        x = asarray(x)
    elif type(x) is not Tensor:
        tensor_argument(x, name)
    return reshape(x, shape_of(x.shape))


def _one_or_all(arrays, name, shape_of):
    result = [_at_least(x, name, shape_of) for x in arrays]
    return result[0] if len(result) == 1 else result


def atleast_1d(*arrays):
    """Return views with at least one dimension: one view for one argument, otherwise a list.

    Numbers and lists of numbers become tensors.

    >>> import gputensor as gt
    >>> atleast_1d(gt.zeros((), device="host")).shape
    (1,)
    """
    return _one_or_all(arrays, "atleast_1d", lambda shape: shape or (1,))


def atleast_2d(*arrays):
    """Return views with at least two dimensions; a vector becomes a row.

    >>> import gputensor as gt
    >>> atleast_2d(gt.zeros(3, device="host")).shape
    (1, 3)
    """
    return _one_or_all(
        arrays, "atleast_2d", lambda shape: (1,) * max(0, 2 - len(shape)) + tuple(shape)
    )


def atleast_3d(*arrays):
    """Return views with at least three dimensions; a vector becomes the middle axis, as in NumPy.

    >>> import gputensor as gt
    >>> atleast_3d(gt.zeros(3, device="host")).shape
    (1, 3, 1)
    """

    def shape_of(shape):
        return {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}.get(len(shape), shape)

    return _one_or_all(arrays, "atleast_3d", shape_of)


def broadcast_shapes(*shapes):
    """Return the shape that tensors of the given shapes broadcast to.

    >>> broadcast_shapes((2, 1), 3, (1,))
    (2, 3)
    """
    result = []
    for shape in shapes:
        shape = shape if has_elements(shape) else (shape,)
        try:
            shape = [operator.index(extent) for extent in shape]
        except TypeError:
            raise argument_error(TypeError, "broadcast_shapes: shape", shape, "ints") from None
        if any(extent < 0 for extent in shape):
            rule = "extents of 0 or more"
            raise argument_error(ValueError, "broadcast_shapes: shape", shape, rule)
        result = [1] * (len(shape) - len(result)) + result
        for i, extent in enumerate(shape, len(result) - len(shape)):
            if result[i] != 1 and extent not in (1, result[i]):
                got = Described(", ".join(str(one) for one in shapes))
                raise argument_error(
                    ValueError, "broadcast_shapes", got, "extents that are equal or 1"
                )
            result[i] = extent if result[i] == 1 else result[i]
    return tuple(result)
