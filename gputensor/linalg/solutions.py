"""Linear equations: solutions, inverses, determinants, ranks and least squares."""

import math
from typing import NamedTuple

from gputensor._arrays.dtypes import finfo, int64
from gputensor._arrays.promotion import result_type
from gputensor._engines import solvers
from gputensor.errors import Described, argument_error, int_argument, list_argument
from gputensor.linalg.decompositions import svd, svdvals
from gputensor.linalg.matrices import compute_dtype, matrices, new, real_dtype, rounded, square
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, on_one_device, tensor_argument
from gputensor.tensor.engine import queue_engine
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import (
    broadcast_to,
    expand_dims,
    matrix_transpose,
    moveaxis,
    ones,
    reshape,
    zeros,
)
from gputensor.tensor.manipulation.axes import broadcast_shapes
from gputensor.tensor.products import matmul

__all__ = [
    "det", "inv", "lstsq", "matrix_rank", "pinv", "slogdet", "solve", "tensorinv", "tensorsolve",
]  # fmt: skip


def inv(x, /):
    """Return the inverses of square matrices.

    >>> import gputensor as gt
    >>> inv(gt.asarray([[2.0]], device="host")).tolist()
    [[0.5]]
    """
    a = square(x, "inv")
    return rounded(queue_engine(solvers.matrix, ("inv",), [new(a, a.shape)], a) if a.size else a, x)


def solve(x1, x2, /):
    """Return the solutions of ``x1 @ x == x2``; x2 is a vector if it has one dimension.

    >>> import gputensor as gt
    >>> x1 = gt.asarray([[2.0]], device="host")
    >>> solve(x1, gt.asarray([4.0], device="host")).tolist()
    [2.0]
    """
    a = square(x1, "solve", "x1")
    is_vector = tensor_argument(x2, "solve").ndim == 1
    b = matrices(expand_dims(x2, -1) if is_vector else x2, "solve", "x2")
    a, b = on_one_device("solve", (a, b), None)
    if b.shape[-2] != a.shape[-1]:
        got = Described(f"shape {x2.shape}")
        raise argument_error(ValueError, "solve: x2", got, f"{a.shape[-1]} rows, as x1 has")
    if a.dtype != b.dtype:
        dtype = result_type(a, b)
        a, b = astype(a, dtype, copy=False), astype(b, dtype, copy=False)
    if a.ndim > 2 or b.ndim > 2:
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (broadcast_to(one, batch + one.shape[-2:]) for one in (a, b))
    result = new(b, b.shape)
    if result.size:
        queue_engine(solvers.solve, (), [result], a, b)
    if x1.dtype.itemsize <= 2 or x2.dtype.itemsize <= 2:
        narrow = result_type(x1, x2)
        if narrow.itemsize == 2 and narrow.kind in "fV":
            result = astype(result, narrow)
    return result[..., 0] if is_vector else result


def det(x, /):
    """Return the determinants of square matrices.

    >>> import gputensor as gt
    >>> det(gt.asarray([[2.0]], device="host")).item()
    2.0
    """
    a = square(x, "det")
    if a.shape[-1] == 0:
        return ones(a.shape[:-2], a.dtype, device=a.device)
    result = new(a, a.shape[:-2])
    return rounded(queue_engine(solvers.matrix, ("det",), [result], a) if a.size else result, x)


class SlogDet(NamedTuple):
    """The result of :func:`slogdet`."""

    sign: Tensor
    logabsdet: Tensor


def slogdet(x, /):
    """Return the signs of determinants and the logarithms of their magnitudes.

    >>> import gputensor as gt
    >>> slogdet(gt.asarray([[-1.0]], device="host")).sign.item()
    -1.0
    """
    a = square(x, "slogdet")
    shape, real = a.shape[:-2], real_dtype(a.dtype)
    if a.shape[-1] == 0:
        return SlogDet(ones(shape, a.dtype, device=a.device), zeros(shape, real, device=a.device))
    parts = [new(a, shape), new(a, shape, real)]
    if a.size:
        queue_engine(solvers.matrix_pair, ("slogdet",), parts, a)
    return SlogDet(*(rounded(part, x) for part in parts))


def _limit(s, shape, rtol):
    """Return the limits below which singular values count as 0."""
    if rtol is None:
        rtol = max(shape[-2:]) * finfo(s.dtype).eps
    largest = fn.max(s, -1, keepdims=True) if s.shape[-1] else s
    return fn.multiply(largest, expand_dims(rtol, -1) if isinstance(rtol, Tensor) else rtol)


def matrix_rank(x, /, tol=None, *, rtol=None):
    """Return the number of singular values above `tol`, or above `rtol` times the greatest.

    >>> import gputensor as gt
    >>> matrix_rank(gt.ones((2, 2), device="host")).item()
    1
    """
    if tensor_argument(x, "matrix_rank").ndim < 2:  # a vector or number has rank 0 or 1
        return astype(fn.any(fn.not_equal(x, 0)), int64)
    a = matrices(x, "matrix_rank")
    if tol is not None and rtol is not None:
        got = Described("both tol and rtol")
        raise argument_error(ValueError, "matrix_rank: tol", got, "only one of them")
    s = svdvals(a)
    if tol is None:
        limit = _limit(s, a.shape, rtol)
    else:
        limit = expand_dims(tol, -1) if isinstance(tol, Tensor) else tol
    return fn.sum(fn.greater(s, limit), -1, int64)


def pinv(x, /, rcond=None, *, rtol=None):
    """Return the pseudo-inverses; singular values up to `rtol` times the greatest count as 0.

    `rcond` is NumPy's name for `rtol`. The default is the greater extent times the dtype's eps.

    >>> import gputensor as gt
    >>> pinv(gt.asarray([[2.0], [0.0]], device="host")).tolist()
    [[0.5, 0.0]]
    """
    rtol = rcond if rtol is None else rtol
    a = matrices(x, "pinv")
    u, s, vh = svd(a, full_matrices=False)
    if s.shape[-1] == 0:
        shape = (*a.shape[:-2], a.shape[-1], a.shape[-2])
        return rounded(zeros(shape, a.dtype, device=a.device), x)
    inverse = fn.where(fn.greater(s, _limit(s, a.shape, rtol)), fn.reciprocal(s), 0)
    v, uh = (matrix_transpose(fn.conj(one)) for one in (vh, u))
    return rounded(matmul(fn.multiply(v, expand_dims(inverse, -2)), uh), x)


class LstSq(NamedTuple):
    """The result of :func:`lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(x1, x2, /, rcond=None):
    """Return the least-squares solutions of ``x1 @ x == x2``, by singular value decomposition.

    Parameters
    ----------
    rcond : float, optional
        Singular values up to this times the greatest count as 0. Default: the greater extent times
        the dtype's eps.

    Returns
    -------
    LstSq
        The solutions, the sums of squared residuals for each right side (none unless x1 has more
        rows than columns), the ranks of x1, and its singular values.

    >>> import gputensor as gt
    >>> a, b = gt.ones((3, 1), device="host"), gt.asarray([1.0, 2.0, 3.0], device="host")
    >>> round(lstsq(a, b).solution, 3).tolist()
    [2.0]
    """
    dtype = compute_dtype(result_type(tensor_argument(x1, "lstsq"), tensor_argument(x2, "lstsq")))
    a = astype(matrices(x1, "lstsq", "x1"), dtype, copy=False)
    is_vector = x2.ndim == 1
    b = matrices(expand_dims(x2, -1) if is_vector else x2, "lstsq", "x2")
    b = astype(b, dtype, copy=False)
    if b.shape[-2] != a.shape[-2]:
        got = Described(f"shape {x2.shape}")
        raise argument_error(ValueError, "lstsq: x2", got, f"{a.shape[-2]} rows, as x1 has")
    u, s, vh = svd(a, full_matrices=False)
    is_kept = fn.greater(s, _limit(s, a.shape, rcond))
    inverse = fn.where(is_kept, fn.reciprocal(s), 0)
    v, uh = (matrix_transpose(fn.conj(one)) for one in (vh, u))
    result = matmul(v, fn.multiply(expand_dims(inverse, -1), matmul(uh, b)))
    left = fn.subtract(b, matmul(a, result))
    squares = fn.sum(fn.real(fn.multiply(left, fn.conj(left))), -2)
    if a.shape[-2] <= a.shape[-1]:
        squares = squares[..., :0]
    return LstSq(result[..., 0] if is_vector else result, squares, fn.sum(is_kept, -1), s)


def tensorsolve(a, b, /, axes=None):
    """Return x with ``tensordot(a, x, x.ndim)`` equal to `b`.

    Parameters
    ----------
    a : Tensor
        Its shape is that of `b` followed by that of the result; both have as many elements.
    b : Tensor
    axes : sequence of int, optional
        Axes of `a` that are first moved to the end.

    >>> import gputensor as gt
    >>> a = gt.reshape(gt.eye(4, device="host"), (2, 2, 4)) * 2
    >>> tensorsolve(a, gt.ones((2, 2), device="host")).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    tensor_argument(b, "tensorsolve")
    if tensor_argument(a, "tensorsolve") is not None and axes is not None:
        axes = list_argument("tensorsolve: axes", axes)
        axes = [axis_argument(axis, a.ndim, "tensorsolve") for axis in axes]
        a = moveaxis(a, axes, list(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or math.prod(shape) != b.size:
        got = Described(f"shapes {a.shape} and {b.shape}")
        rule = "the shape of b, then the unknowns' shape with as many elements"
        raise argument_error(ValueError, "tensorsolve: a", got, rule)
    return reshape(solve(reshape(a, (b.size, b.size)), reshape(b, -1)), shape)


def tensorinv(a, /, ind=2):
    """Return the inverse of `a` as a map from its last axes to its first `ind`.

    >>> import gputensor as gt
    >>> tensorinv(gt.reshape(gt.eye(4, device="host"), (4, 2, 2)), 1).shape
    (2, 2, 4)
    """
    ind = int_argument("tensorinv: ind", ind)
    ndim = tensor_argument(a, "tensorinv").ndim
    if not 0 < ind <= ndim:
        raise argument_error(ValueError, "tensorinv: ind", ind, f"1 to {ndim}")
    first, last = a.shape[:ind], a.shape[ind:]
    if math.prod(first) != math.prod(last):
        got = Described(f"shape {a.shape}")
        rule = "as many elements in the first `ind` axes as in the others"
        raise argument_error(ValueError, "tensorinv: a", got, rule)
    return reshape(inv(reshape(a, (math.prod(first), -1))), (*last, *first))
