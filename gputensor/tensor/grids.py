"""Coordinates and positions: progressions, index grids, triangles, flat and shaped indices."""

import math

import numpy as np

from gputensor._arrays.dtypes import bool_, float64, int64, uint64
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, has_elements, int_argument, list_argument
from gputensor.streams.queue import Device
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, spellings
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop.arrays import MAX_NDIM, beside, values_argument
from gputensor.tensor.manipulation import (
    arange,
    broadcast_to,
    empty,
    ones,
    reshape,
    tril,
    triu,
    zeros,
)
from gputensor.tensor.manipulation.joining import stack

__all__ = [
    "diag_indices", "indices", "ix_", "ravel_multi_index", "tril_indices", "triu_indices",
    "unravel_index", "vander",
]  # fmt: skip


def lines(start, stop, num, endpoint, retstep, dtype, device):
    """Return `num` evenly spaced values between tensors or numbers along a new first axis.

    This is `linspace` for tensors and for integer dtypes; the arguments are those of it. Each value
    is ``start + i * step``, computed in float64 or complex128.

    >>> lines(0, 10, 4, True, False, "int32", "host").tolist()
    [0, 3, 6, 10]
    """
    start, stop = _ends("linspace", start, stop)
    num = int_argument("linspace: num", num)
    tensors = [one for one in (start, stop) if isinstance(one, Tensor)]
    place = device if device is not None else tensors[0].device if tensors else Device()
    given = (start, stop)
    start, stop = (one if isinstance(one, Tensor) else asarray(one, device=place, dtype=
                   None if isinstance(one, list | tuple) else np.result_type(one, float64))
                   for one in given)  # fmt: skip
    common = result_type(*(tensors or [start, stop]), 1.0) if dtype is None else None
    wide = result_type(start, stop, float64)
    start, stop = (asarray(one, wide, device=place) if isinstance(one, list | tuple)
                   else astype(made, wide, copy=False)
                   for one, made in zip(given, (start, stop), strict=True))  # fmt: skip
    steps = num - 1 if endpoint else num
    delta = fn.subtract(stop, start)
    step = fn.divide(delta, steps) if steps > 0 else fn.multiply(delta, math.nan)
    places = reshape(arange(num, dtype=float64, device=place), (-1,) + (1,) * step.ndim)
    values = fn.add(fn.multiply(places, step if steps > 0 else delta), start)
    if endpoint and num > 1:
        values[-1] = stop
    dtype = empty(0, dtype, device=place).dtype if common is None else common
    values = astype(fn.floor(values) if dtype.kind in "iu" else values, dtype, copy=False)
    return (values, step) if retstep else values


def _ends(name, start, stop):
    """Return the ends of a line: tensors, lists or numbers."""
    for title, one in (("start", start), ("stop", stop)):
        if not isinstance(one, (Tensor, list, tuple, np.ndarray, np.generic, int, float, complex)):
            raise argument_error(TypeError, f"{name}: {title}", one, "a number or a Tensor")
    return start, stop


def indices(dimensions, dtype=int64, *, device=None):
    """Return the index of each element of a grid: one grid for each axis, along a new first axis.

    >>> indices((2, 2), device="host").tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    if not hasattr(dimensions, "__iter__"):
        raise argument_error(TypeError, "indices: dimensions", dimensions, "a sequence of ints")
    shape = tuple(list_argument("indices: dimensions", dimensions))
    if not shape:
        return empty((0,), dtype, device=device)
    grids = []
    for axis, extent in enumerate(shape):
        line = reshape(
            arange(extent, dtype=dtype, device=device), (-1,) + (1,) * (len(shape) - axis - 1)
        )
        grids.append(broadcast_to(line, shape))
    return stack(grids)


def ix_(*vectors):
    """Return index vectors, or masks, reshaped so that together they select a grid.

    >>> import gputensor as gt
    >>> x = gt.reshape(gt.arange(9, device="host"), (3, 3))
    >>> x[ix_(gt.asarray([0, 2], device="host"), gt.asarray([0, 1], device="host"))].tolist()
    [[0, 1], [6, 7]]
    """
    device = next((one.device for one in vectors if isinstance(one, Tensor)), None)
    shaped = []
    for place, one in enumerate(vectors):
        one = asarray(one, device=device)
        if one.ndim != 1:
            got = Described(f"{one.ndim} dimensions")
            raise argument_error(ValueError, "ix_: vectors", got, "1 for each")
        if one.dtype.kind == "b":
            one = one.nonzero()[0]
        shaped.append(reshape(one, (1,) * place + (-1,) + (1,) * (len(vectors) - place - 1)))
    return tuple(shaped)


@spellings("gputensor.tensor.numerics.torch_results.lower_places", row="n", col="m", offset="k")
def tril_indices(n, k=0, m=None, *, device=None):
    """Return the row and column indices of the lower triangle of an ``(n, m)`` matrix.

    >>> [one.tolist() for one in tril_indices(2, device="host")]
    [[0, 1, 1], [0, 0, 1]]
    """
    return tril(ones((n, n if m is None else m), bool_, device=device), k=k).nonzero()


@spellings("gputensor.tensor.numerics.torch_results.upper_places", row="n", col="m", offset="k")
def triu_indices(n, k=0, m=None, *, device=None):
    """Return the row and column indices of the upper triangle of an ``(n, m)`` matrix.

    >>> [one.tolist() for one in triu_indices(2, device="host")]
    [[0, 0, 1], [0, 1, 1]]
    """
    return triu(ones((n, n if m is None else m), bool_, device=device), k=k).nonzero()


def diag_indices(n, ndim=2, *, device=None):
    """Return the indices of the main diagonal of an array with `ndim` axes of extent `n`.

    >>> [one.tolist() for one in diag_indices(2, device="host")]
    [[0, 1], [0, 1]]
    """
    ndim = int_argument("diag_indices: ndim", ndim)
    if ndim > MAX_NDIM:
        raise argument_error(ValueError, "diag_indices: ndim", ndim, f"at most {MAX_NDIM}")
    return (arange(n, device=device),) * ndim


def within(index, extent, axis=0):
    """Return the index as int64; one outside of an axis of that extent raises as ``x[index]`` does.

    >>> import gputensor as gt
    >>> within(gt.asarray([1], device="host"), 2).tolist()
    [1]
    """
    if index.dtype.kind in "iu":
        index = astype(index, int64, copy=False)
    nothing = zeros(1, index.dtype, device=index.device)
    nothing = broadcast_to(nothing, (1,) * axis + (extent,))  # its errors name the axis
    found = nothing[(slice(None),) * axis + (index,)]
    return fn.add(index, reshape(found, index.shape) if axis else found)


def unravel_index(index, shape, /):
    """Return the index along each axis of `shape` for flat indices in row-major order.

    Indices out of range raise as those of ``x[index]``.

    >>> import gputensor as gt
    >>> [one.tolist() for one in unravel_index(gt.asarray([5], device="host"), (2, 3))]
    [[1], [2]]
    """
    rest = index if isinstance(index, Tensor) else asarray(index, device=Device())
    shape = [int_argument("unravel_index: shape", one) for one in
             (shape if has_elements(shape) else (shape,))]  # fmt: skip
    size = math.prod(shape)
    rest = within(rest, size)
    rest = fn.where(fn.less(rest, 0), fn.add(rest, size), rest)
    found = []
    for extent in reversed(shape[1:]):
        outer = fn.floor_divide(rest, extent)
        found.append(fn.subtract(rest, fn.multiply(outer, extent)))
        rest = outer
    return (*([rest] if shape else []), *reversed(found))


def _flat_index(positions, shape):
    """Return NumPy's number for ints; IndexError if one is out of range."""
    place = 0
    for one, extent in zip(positions, shape, strict=True):
        if not -extent <= one < extent:
            rule = f"{-extent} to {extent - 1}"
            raise argument_error(IndexError, "ravel_multi_index: positions", int(one), rule)
        place = place * extent + one % extent
    return np.int64(place)


def ravel_multi_index(positions, shape, /):
    """Return the flat row-major indices for indices along each axis of `shape`.

    Indices out of range raise as those of ``x[index]``.

    >>> import gputensor as gt
    >>> rows, columns = gt.asarray([1], device="host"), gt.asarray([2], device="host")
    >>> ravel_multi_index((rows, columns), (2, 3)).tolist()
    [5]
    """
    if not isinstance(positions, Tensor):
        positions = list_argument("ravel_multi_index: positions", positions)
    shape = list_argument("ravel_multi_index: shape", shape)
    if len(positions) != len(shape) or not len(positions):
        got = Described(f"{len(positions)} positions")
        raise argument_error(ValueError, "ravel_multi_index: positions", got,
                             f"{len(shape)}, one for each axis")  # fmt: skip
    if all(isinstance(one, (int, np.integer)) for one in positions):
        return _flat_index(positions, shape)
    first = next((one for one in positions if isinstance(one, Tensor)), None)
    place = None
    for one, extent in zip(positions, shape, strict=True):
        if first is None or not isinstance(one, (list, tuple, int, np.integer)):
            one = values_argument(one, "ravel_multi_index")
        one = within(beside(one, first), extent)
        one = fn.where(fn.less(one, 0), fn.add(one, extent), one)
        place = one if place is None else fn.add(fn.multiply(place, extent), one)
    return place


def vander(x, n=None, increasing=False):
    """Return the powers of a vector as columns, the highest first unless `increasing`.

    >>> import gputensor as gt
    >>> vander(gt.asarray([1, 2], device="host"), 3).tolist()
    [[1, 1, 1], [4, 2, 1]]
    """
    x = values_argument(x, "vander")
    if x.ndim != 1:
        got = Described(f"{x.ndim} dimensions")
        raise argument_error(ValueError, "vander: x", got, "1")
    count = x.size if n is None else int_argument("vander: N", n)
    if count < 0:
        raise argument_error(ValueError, "vander: N", count, "0 or more")
    powers = arange(count, device=x.device)
    powers = powers if increasing else fn.subtract(count - 1, powers)
    column = reshape(x, (-1, 1))
    if x.dtype.kind in "biu":
        dtype = uint64 if x.dtype == uint64 else int64
        return fn.pow(astype(column, dtype), astype(powers, dtype))
    return fn.where(fn.equal(powers, 0), 1, fn.pow(column, astype(powers, x.dtype)))
