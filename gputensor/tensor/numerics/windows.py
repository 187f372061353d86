"""Views beyond reshape: by strides, by windows, and of complex parts; and resized copies."""

import operator

from gputensor._arrays.dtypes import complex64, complex128, float32, float64
from gputensor.errors import Described, argument_error, has_elements, int_argument, list_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import axis_argument, spellings, storage_place, tensor_argument, view_of
from gputensor.tensor.interop import copy, part_view
from gputensor.tensor.manipulation import moveaxis, reshape, zeros
from gputensor.tensor.manipulation.axes import transpose
from gputensor.tensor.manipulation.joining import concat

__all__ = [
    "as_strided", "resize", "rollaxis", "sliding_window_view", "t", "trim_zeros", "unfold",
    "view_as_complex", "view_as_real",
]  # fmt: skip


def _offset(x):
    """Return the bytes from the beginning of the storage to the first element."""
    return storage_place(x)[2]


def _steps(x):
    return [step // x.itemsize for step in x.strides]


def as_strided(x, shape, strides, /, offset=None):
    """Return a view of the memory of `x` with the given extents and strides, in elements.

    Parameters
    ----------
    x : Tensor
    shape, strides : sequence of int
    offset : int, optional
        The first element, counted from the beginning of the memory; default: that of `x`.

    Raises
    ------
    ValueError
        An element would lie outside the memory of `x`.

    >>> import gputensor as gt
    >>> as_strided(gt.arange(4, device="host"), (3, 2), (1, 1)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    shape, strides = (
        tuple(int_argument(name, one) for one in list_argument(name, given))
        for name, given in (("as_strided: size", shape), ("as_strided: stride", strides))
    )
    if len(shape) != len(strides) or min(shape, default=0) < 0:
        got = Described(f"{shape} and {strides}")
        rule = "equally many, with extents of 0 or more"
        raise argument_error(ValueError, "as_strided: shape, strides", got, rule)
    phase = _offset(tensor_argument(x, "as_strided")) % x.itemsize
    count = (storage_place(x)[1] - phase) // x.itemsize
    first = (
        _offset(x) // x.itemsize if offset is None else int_argument("as_strided: offset", offset)
    )
    if 0 not in shape:
        reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
        low = first + sum(one for one in reach if one < 0)
        high = first + sum(one for one in reach if one > 0)
        if low < 0 or high >= count:
            got = Described(f"elements {low} to {high}")
            rule = f"0 to {count - 1}, the memory of x"
            raise argument_error(ValueError, "as_strided: strides", got, rule)
    else:
        first = min(max(first, 0), count)
    return view_of(x, first * x.itemsize + phase, x.dtype, shape, strides)


@spellings(dimension="axis")
def unfold(x, /, axis, size, step):
    """Return a view of windows of `size` elements along `axis`, `step` apart, in a new last axis.

    >>> import gputensor as gt
    >>> unfold(gt.arange(5, device="host"), 0, 3, 2).tolist()
    [[0, 1, 2], [2, 3, 4]]
    """
    axis = axis_argument(axis, tensor_argument(x, "unfold").ndim, "unfold")
    size, step = int_argument("unfold: size", size), int_argument("unfold: step", step)
    if not 0 <= size <= x.shape[axis]:
        raise argument_error(ValueError, "unfold: size", size, f"0 to {x.shape[axis]}, the extent")
    if step < 1:
        raise argument_error(ValueError, "unfold: step", step, "1 or more")
    strides = _steps(x)
    count = (x.shape[axis] - size) // step + 1
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], size)
    steps = (*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis])
    return view_of(x, _offset(x), x.dtype, shape, steps)


def sliding_window_view(x, window_shape, /, axis=None):
    """Return a view of all windows of an extent along each of some axes, as new last axes.

    Parameters
    ----------
    window_shape : int or sequence of int
    axis : int or sequence of int, optional
        One for each extent of the windows; all axes when not given.

    >>> import gputensor as gt
    >>> sliding_window_view(gt.arange(4, device="host"), 3).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    sizes = window_shape if has_elements(window_shape) else (window_shape,)
    ndim = tensor_argument(x, "sliding_window_view").ndim
    axes = range(ndim) if axis is None else axis if has_elements(axis) else (axis,)
    sizes, axes = list(sizes), list(axes)
    if len(sizes) != len(axes):
        got = Described(f"{len(sizes)} extents for {len(axes)} axes")
        raise argument_error(ValueError, "sliding_window_view: window_shape", got, "one for each")
    for size, one in zip(sizes, axes, strict=True):
        x = unfold(x, axis_argument(one, ndim, "sliding_window_view"), size, 1)
    return x


def view_as_real(x, /):
    """Return a view of a complex tensor with the real and imaginary parts in a new last axis.

    >>> import gputensor as gt
    >>> view_as_real(gt.asarray([1 + 2j], device="host")).tolist()
    [[1.0, 2.0]]
    """
    if tensor_argument(x, "view_as_real").dtype.kind != "c":
        got = Described(x.dtype.name)
        raise argument_error(TypeError, "view_as_real: x", got, "a complex dtype")
    part = part_view(x, False)
    return view_of(part, _offset(part), part.dtype, (*x.shape, 2), (*_steps(part), 1))


def view_as_complex(x, /):
    """Return a view of pairs along the last axis as complex numbers.

    >>> import gputensor as gt
    >>> view_as_complex(gt.asarray([[1.0, 2.0]], device="host")).tolist()
    [(1+2j)]
    """
    if tensor_argument(x, "view_as_complex").dtype not in (float32, float64):
        got = Described(x.dtype.name)
        raise argument_error(TypeError, "view_as_complex: x", got, "float32 or float64")
    steps = _steps(x)
    fits = x.ndim and x.shape[-1] == 2 and steps[-1] == 1
    if not fits or any(step % 2 for step, n in zip(steps[:-1], x.shape, strict=False) if n > 1):
        got = Described(f"shape {x.shape} with strides {tuple(steps)}")
        rule = "adjacent pairs in the last axis"
        raise argument_error(ValueError, "view_as_complex: x", got, rule)
    dtype = complex64 if x.dtype == float32 else complex128
    if _offset(x) % dtype.itemsize:
        rule = f"a multiple of {dtype.itemsize}: copy it first"
        raise argument_error(ValueError, "view_as_complex: bytes before x", _offset(x), rule)
    return view_of(x, _offset(x), dtype, x.shape[:-1], [step // 2 for step in steps[:-1]])


def t(x, /):
    """Return the transpose of a matrix; a tensor of fewer dimensions is returned unchanged.

    >>> import gputensor as gt
    >>> t(gt.ones((2, 3), device="host")).shape
    (3, 2)
    """
    if tensor_argument(x, "t").ndim > 2:
        raise argument_error(ValueError, "t: x", Described(f"{x.ndim} dimensions"), "at most 2")
    return transpose(x)


def rollaxis(x, axis, start=0, /):
    """Return a view with `axis` moved before axis `start`; `moveaxis` is easier to read.

    >>> import gputensor as gt
    >>> rollaxis(gt.ones((2, 3, 4), device="host"), 2).shape
    (4, 2, 3)
    """
    axis = axis_argument(axis, tensor_argument(x, "rollaxis").ndim, "rollaxis")
    start = operator.index(start)
    start += x.ndim if start < 0 else 0
    if not 0 <= start <= x.ndim:
        raise argument_error(ValueError, "rollaxis: start", start, f"{-x.ndim} to {x.ndim}")
    return moveaxis(x, axis, start - (axis < start))


def resize(x, shape, /):
    """Return a new tensor of `shape` filled with the elements of `x`, repeated if necessary.

    >>> import gputensor as gt
    >>> resize(gt.asarray([1, 2], device="host"), (2, 3)).tolist()
    [[1, 2, 1], [2, 1, 2]]
    """
    flat = reshape(tensor_argument(x, "resize"), -1)
    out = zeros(shape, x.dtype, device=x.device)
    if out.size and flat.size:
        times = -(-out.size // flat.size)
        whole = flat if times == 1 else concat([flat] * times)
        out[...] = reshape(whole[: out.size], out.shape)
    return out


def trim_zeros(x, /, trim="fb", axis=None):
    """Return `x` without the zeros at its front and back; waits for the device.

    Parameters
    ----------
    x : Tensor
    trim : {"fb", "f", "b"}
        The ends to trim: front, back or both.
    axis : int, tuple of int, optional
        The axes along which slices of zeros are removed. Default: all.

    >>> import gputensor as gt
    >>> trim_zeros(gt.asarray([0, 1, 0, 2, 0], device="host")).tolist()
    [1, 0, 2]
    """
    if not isinstance(trim, str) or trim.lower() not in ("fb", "bf", "f", "b"):
        raise argument_error(ValueError, "trim_zeros: trim", trim, "'fb', 'f' or 'b'")
    ndim = tensor_argument(x, "trim_zeros").ndim
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = {axis_argument(one, ndim, "trim_zeros") for one in axes}
    is_kept = fn.not_equal(x, 0)
    key = [slice(None)] * ndim
    for one in axes:
        others = tuple(i for i in range(ndim) if i != one)
        places = fn.any(is_kept, others).nonzero()[0]
        first = int(places[0]) if places.size and "f" in trim.lower() else 0
        end = int(places[-1]) + 1 if places.size and "b" in trim.lower() else x.shape[one]
        key[one] = slice(first, end if places.size else 0)
    return copy(x[tuple(key)])
