"""Tensors made from functions, iterables, buffers and parts."""

import itertools
import math
import sys

import numpy as np

from gputensor._arrays.dtypes import float32, float64
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, function_argument, int_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import axis_argument, spellings, tensor_argument
from gputensor.tensor.grids import indices
from gputensor.tensor.interop import asarray, ascontiguous, astype
from gputensor.tensor.manipulation import arange, empty, moveaxis, reshape, zeros
from gputensor.tensor.manipulation.axes import atleast_1d, broadcast_shapes
from gputensor.tensor.manipulation.joining import meshgrid, stack
from gputensor.tensor.numerics.options import in_memory_order
from gputensor.tensor.numerics.windows import view_as_complex

__all__ = [
    "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "block_diag", "cartesian_prod",
    "combinations", "complex", "diag_embed", "from_numpy", "frombuffer", "fromfunction", "fromiter",
    "polar", "scalar_tensor",
]  # fmt: skip


MOST_CHOSEN = 1 << 30  # elements of a combination


def ascontiguousarray(a, dtype=None, *, device=None):
    """Return a tensor whose memory is row-major and without gaps, with at least one axis.

    It is `a` itself, or a view of it, where that is so already.

    >>> import gputensor as gt
    >>> ascontiguousarray(gt.zeros((2, 3), device="host").T).strides
    (8, 4)
    """
    return atleast_1d(ascontiguous(asarray(a, dtype, device=device)))


def asfortranarray(a, dtype=None, *, device=None):
    """Return a tensor whose memory is column-major, a transposed view of row-major memory.

    >>> import gputensor as gt
    >>> asfortranarray(gt.zeros((2, 3), device="host")).T.is_contiguous
    True
    """
    return in_memory_order("F", asarray, a, dtype=dtype, device=device)


def asarray_chkfinite(a, dtype=None, order=None, *, device=None):
    """Return :func:`asarray`, and raise ValueError for infinities and NaN; waits for the device.

    >>> asarray_chkfinite([1, 2], device="host").tolist()
    [1, 2]
    """
    made = in_memory_order(order, asarray, a, dtype=dtype, device=device)
    if made.dtype.kind not in "biu" and not fn.all(fn.isfinite(made)).item():
        got = Described("infinities or NaN")
        raise argument_error(ValueError, "asarray_chkfinite: a", got, "finite numbers")
    return made


def scalar_tensor(value, /, *, dtype=None, device=None):
    """Return a tensor without axes of a number, by default of float32.

    >>> scalar_tensor(2, device="host").dtype
    dtype('float32')
    """
    return asarray(value, dtype=float32 if dtype is None else dtype, device=device)


def fromfunction(function, shape, *, dtype=float32, device=None, **keywords):
    """Return the result of `function` for the indices of a grid, one tensor for each axis.

    >>> fromfunction(lambda i, j: i * 10 + j, (2, 2), dtype="int64", device="host").tolist()
    [[0, 1], [10, 11]]
    """
    function_argument("fromfunction: function", function)
    if isinstance(shape, (tuple, list)) and not shape:
        raise argument_error(ValueError, "fromfunction: shape", shape, "at least one extent")
    grids = indices(shape, dtype, device=device)
    return function(*(grids[i] for i in range(grids.shape[0])), **keywords)


def fromiter(iterable, dtype, count=-1, *, device=None):
    """Return a vector of the values of an iterable, or of the first `count` if that is given.

    >>> fromiter((i * i for i in range(3)), "int32", device="host").tolist()
    [0, 1, 4]
    """
    like = empty(0, dtype, device="host").dtype
    count = int_argument("fromiter: count", count)
    if not hasattr(iterable, "__iter__"):
        raise argument_error(TypeError, "fromiter: iterable", iterable, "an iterable of numbers")
    if count > sys.maxsize:
        raise argument_error(ValueError, "fromiter: count", count, f"at most {sys.maxsize}")
    values = itertools.islice(iterable, count) if count >= 0 else iterable
    plain = like if like.kind != "V" else np.dtype(np.float32)
    try:
        array = np.fromiter(values, plain)
    except (TypeError, ValueError):
        got = Described("elements that are no numbers")
        raise argument_error(TypeError, "fromiter: iterable", got, "numbers") from None
    if 0 <= count != array.size:
        rule = f"at most {array.size}, the number of values"
        raise argument_error(ValueError, "fromiter: count", count, rule)
    return asarray(array, like, device=device)


def frombuffer(buffer, dtype=float32, count=-1, offset=0, *, device=None):
    """Return a copy of the numbers in a bytes-like object, as a vector.

    >>> frombuffer(b"ab", "uint8", device="host").tolist()
    [97, 98]
    """
    like = empty(0, dtype, device="host").dtype
    count = int_argument("frombuffer: count", count)
    offset = int_argument("frombuffer: offset", offset)
    try:
        array = np.frombuffer(buffer, like, count, offset)
    except TypeError:
        raise argument_error(TypeError, "frombuffer: buffer", buffer, "bytes") from None
    except (ValueError, OverflowError) as error:
        got = Described(f"count {count} and offset {offset} ({error})")
        raise argument_error(ValueError, "frombuffer: buffer", got, "whole elements") from None
    return asarray(array, device=device, copy=True)


def from_numpy(array, /, *, device=None):
    """Return a NumPy array as a tensor; on a host device they share memory, as in PyTorch.

    >>> import numpy as np
    >>> array = np.zeros(2)
    >>> x = from_numpy(array, device="host")
    >>> array[0] = 3
    >>> x.tolist()
    [3.0, 0.0]
    """
    if not isinstance(array, np.ndarray):
        raise argument_error(TypeError, "from_numpy: array", array, "a NumPy array")
    is_host = empty(0, device=device).device.type == "host"
    return asarray(array, device=device, copy=False if is_host else None)


def _parts(first, second, name):
    dtype = result_type(tensor_argument(first, name), tensor_argument(second, name))
    if dtype.kind not in "biuf" or dtype.itemsize < 4:
        dtype = float32 if dtype.kind in "biufV" else dtype
    if dtype.kind == "c":
        raise argument_error(TypeError, f"{name}: dtype", Described(dtype.name), "a real dtype")
    dtype = float64 if dtype == float64 else float32
    return dtype, (astype(one, dtype, copy=False) for one in (first, second))


def complex(real, imag, /):
    """Return complex numbers with the given real and imaginary parts.

    >>> import gputensor as gt
    >>> complex(gt.ones(1, device="host"), gt.zeros(1, device="host")).tolist()
    [(1+0j)]
    """
    dtype, (real, imag) = _parts(real, imag, "complex")
    shape = broadcast_shapes(real.shape, imag.shape)
    out = empty((*shape, 2), dtype, device=real.device)
    out[..., 0] = real
    out[..., 1] = imag
    return view_as_complex(out)


def polar(size, angle, /):
    """Return complex numbers with the given magnitudes and angles.

    >>> import gputensor as gt
    >>> polar(gt.ones(1, device="host"), gt.zeros(1, device="host")).tolist()
    [(1+0j)]
    """
    _dtype, (size, angle) = _parts(size, angle, "polar")
    return complex(fn.multiply(size, fn.cos(angle)), fn.multiply(size, fn.sin(angle)))


@spellings(dim1="axis1", dim2="axis2")
def diag_embed(x, /, offset=0, axis1=-2, axis2=-1):
    """Return matrices, in two given axes, with the last axis of `x` on a diagonal.

    >>> import gputensor as gt
    >>> diag_embed(gt.asarray([1, 2], device="host")).tolist()
    [[1, 0], [0, 2]]
    """
    if tensor_argument(x, "diag_embed").ndim == 0:
        got = Described("0 dimensions")
        raise argument_error(ValueError, "diag_embed: x", got, "1 or more")
    offset = int_argument("diag_embed: offset", offset)
    ends = [axis_argument(axis, x.ndim + 1, "diag_embed") for axis in (axis1, axis2)]
    if ends[0] == ends[1]:
        raise argument_error(ValueError, "diag_embed: axis2", axis2, "an axis other than axis1")
    count = x.shape[-1]
    extent = count + abs(offset)
    out = zeros((*x.shape[:-1], extent, extent), x.dtype, device=x.device)
    if x.size:
        line = arange(count, device=x.device)
        rows, columns = (fn.add(line, max(shift, 0)) for shift in (-offset, offset))
        out[..., rows, columns] = x
    return moveaxis(out, (-2, -1), ends)


def block_diag(*matrices):
    """Return a matrix with the given matrices along its diagonal; a vector is a row.

    >>> import gputensor as gt
    >>> block_diag(gt.ones((1, 2), device="host"), gt.ones((1, 1), device="host")).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    found = []
    for one in matrices:
        if tensor_argument(one, "block_diag").ndim > 2:
            got = Described(f"{one.ndim} dimensions")
            raise argument_error(ValueError, "block_diag: matrices", got, "at most 2")
        found.append(one.reshape((1,) * (2 - one.ndim) + one.shape))
    if not found:
        got = Described("no matrices")
        raise argument_error(ValueError, "block_diag: matrices", got, "at least one")
    shape = [sum(one.shape[axis] for one in found) for axis in (0, 1)]
    out = zeros(shape, result_type(*found), device=found[0].device)
    row = column = 0
    for one in found:
        out[row : row + one.shape[0], column : column + one.shape[1]] = one
        row, column = row + one.shape[0], column + one.shape[1]
    return out


def cartesian_prod(*vectors):
    """Return all choices of one element of each vector, in order, as rows.

    >>> import gputensor as gt
    >>> x = gt.asarray([5, 6], device="host")
    >>> cartesian_prod(x, x).tolist()
    [[5, 5], [5, 6], [6, 5], [6, 6]]
    """
    for one in vectors:
        if tensor_argument(one, "cartesian_prod").ndim != 1:
            got = Described(f"a vector of {one.ndim} dimensions")
            raise argument_error(ValueError, "cartesian_prod: vectors", got, "1")
    if len(vectors) == 1:
        return vectors[0]
    grids = meshgrid(*vectors, indexing="ij")
    return reshape(stack(grids, axis=-1), (-1, len(vectors)))


def combinations(x, r=2, with_replacement=False):
    """Return all combinations of `r` elements of a vector, in order, as rows.

    >>> import gputensor as gt
    >>> combinations(gt.asarray([5, 6, 7], device="host")).tolist()
    [[5, 6], [5, 7], [6, 7]]
    """
    if tensor_argument(x, "combinations").ndim != 1:
        got = Described(f"{x.ndim} dimensions")
        raise argument_error(ValueError, "combinations: x", got, "1")
    chooser = itertools.combinations_with_replacement if with_replacement else (
        itertools.combinations
    )  # fmt: skip
    r = int_argument("combinations: r", r)
    if not 0 <= r <= MOST_CHOSEN:
        raise argument_error(ValueError, "combinations: r", r, f"0 to {MOST_CHOSEN}")
    count = math.comb(x.size + (r - 1 if with_replacement and r else 0), r)
    flat = itertools.chain.from_iterable(chooser(range(x.size), r))
    places = np.fromiter(flat, np.int64, count * r).reshape(count, r)
    return x[asarray(places, device=x.device)]
