"""Distances between vectors, and PyTorch's products with an added term."""

import math

from gputensor._arrays.dtypes import float32
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, float_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import axis_argument, spellings, tensor_argument
from gputensor.tensor.grids import triu_indices
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import expand_dims
from gputensor.tensor.manipulation.axes import unsqueeze
from gputensor.tensor.products import matmul

__all__ = ["addbmm", "addmv", "addr", "cdist", "dist", "ger", "pdist", "powered", "renorm"]

# For more rows, the differences of all pairs take far more memory than the vectors.
_SHORT = 25


def _wide(x):
    """Return x in a dtype whose sums of squares do not overflow early."""
    return astype(x, float32) if x.dtype.itemsize == 2 else x


def powered(x, p, axis, keepdims=False):
    """Return the norm of order `p` along some axes, of 16-bit floats in float32.

    >>> import gputensor as gt
    >>> powered(gt.asarray([3.0, 4.0], device="host"), 2, 0).item()
    5.0
    """
    p = float_argument("p", p)
    size = fn.abs(_wide(x))
    if p == math.inf:
        return fn.max(size, axis, keepdims=keepdims)
    if p == -math.inf:
        return fn.min(size, axis, keepdims=keepdims)
    if p == 0:
        return fn.sum(fn.not_equal(size, 0), axis, size.dtype, keepdims=keepdims)
    if p == 1:
        return fn.sum(size, axis, keepdims=keepdims)
    if p == 2:
        return fn.sqrt(fn.sum(fn.square(size), axis, keepdims=keepdims))
    return fn.pow(fn.sum(fn.pow(size, p), axis, keepdims=keepdims), 1 / p)


def dist(x1, x2, /, p=2):
    """Return the norm of order `p` of the difference of two tensors.

    >>> import gputensor as gt
    >>> dist(gt.asarray([3.0, 0.0], device="host"), gt.asarray([0.0, 4.0], device="host")).item()
    5.0
    """
    difference = fn.subtract(x1, x2)
    if difference.dtype.kind in "biu":
        difference = astype(difference, float32)
    result = powered(difference, p, None)
    return astype(result, difference.dtype) if difference.dtype.itemsize == 2 else result


def cdist(x1, x2, /, p=2.0):
    """Return the distances of order `p` from rows of x1 to rows of x2; other axes are stacks.

    With many rows, Euclidean distances are computed by products, which loses digits of small ones.

    >>> import gputensor as gt
    >>> x = gt.asarray([[0.0, 0.0], [3.0, 4.0]], device="host")
    >>> cdist(x, x).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    for one in (x1, x2):
        if tensor_argument(one, "cdist").ndim < 2:
            got = Described(f"{one.ndim} dimensions")
            raise argument_error(ValueError, "cdist: x", got, "2 or more")
    if x1.shape[-1] != x2.shape[-1]:
        got = Described(f"rows of {x1.shape[-1]} and {x2.shape[-1]}")
        raise argument_error(ValueError, "cdist: x1, x2", got, "rows of one length")
    dtype = result_type(x1, x2, 1.0)
    x1, x2 = (_wide(astype(one, dtype, copy=False)) for one in (x1, x2))
    if p != 2 or max(x1.shape[-2], x2.shape[-2]) <= _SHORT:
        difference = fn.subtract(expand_dims(x1, -2), expand_dims(x2, -3))
        result = powered(difference, p, -1)
        return astype(result, dtype, copy=False) if dtype.itemsize == 2 else result
    squares = (fn.sum(fn.square(one), -1, keepdims=True) for one in (x1, x2))
    first, second = squares
    total = fn.subtract(fn.add(first, second.mT), fn.multiply(matmul(x1, x2.mT), 2))
    result = fn.sqrt(fn.maximum(total, 0))
    return astype(result, dtype, copy=False) if dtype.itemsize == 2 else result


@spellings(dim="axis")
def renorm(x, /, p, axis, maxnorm):
    """Return `x` with slices along `axis` scaled down to a norm of at most `maxnorm`.

    >>> import gputensor as gt
    >>> renorm(gt.asarray([[3.0, 4.0], [0.5, 0.0]], device="host"), 1, 0, 3.5).round(3).tolist()
    [[1.5, 2.0], [0.5, 0.0]]
    """
    axis = axis_argument(axis, tensor_argument(x, "renorm").ndim, "renorm")
    others = tuple(i for i in range(x.ndim) if i != axis)
    size = powered(x, p, others, True)
    factor = fn.where(fn.greater(size, maxnorm), fn.divide(maxnorm, fn.add(size, 1e-7)), 1.0)
    return fn.multiply(x, astype(factor, x.dtype, copy=False) if x.dtype.itemsize == 2 else factor)


def _blend(x, made, beta, alpha):
    made = made if alpha == 1 else fn.multiply(made, alpha)
    if beta == 0:
        return made
    return fn.add(x if beta == 1 else fn.multiply(x, beta), made)


def addmv(x, matrix, vector, /, *, beta=1, alpha=1):
    """Return ``beta * x + alpha * (matrix @ vector)``.

    >>> import gputensor as gt
    >>> a = gt.ones((2, 2), device="host")
    >>> addmv(a[0], a, a[1]).tolist()
    [3.0, 3.0]
    """
    made = matmul(matrix, unsqueeze(tensor_argument(vector, "addmv"), -1))[..., 0]
    return _blend(x, made, beta, alpha)


def addr(x, vec1, vec2, /, *, beta=1, alpha=1):
    """Return ``beta * x + alpha * outer(vec1, vec2)``.

    >>> import gputensor as gt
    >>> v = gt.asarray([1.0, 2.0], device="host")
    >>> addr(gt.ones((2, 2), device="host"), v, v).tolist()
    [[2.0, 3.0], [3.0, 5.0]]
    """
    return _blend(x, ger(vec1, vec2), beta, alpha)


def ger(input, vec2, /):
    """Return the outer product of two vectors; :func:`outer` takes other tensors, too.

    >>> import gputensor as gt
    >>> ger(gt.asarray([1, 2], device="host"), gt.asarray([3, 4], device="host")).tolist()
    [[3, 4], [6, 8]]
    """
    for one in (input, vec2):
        if tensor_argument(one, "ger").ndim != 1:
            got = Described(f"{one.ndim} dimensions")
            raise argument_error(ValueError, "ger: vectors", got, "1")
    return fn.multiply(unsqueeze(input, -1), vec2)


def pdist(x, /, p=2.0):
    """Return the distances of order `p` between the rows of a matrix, each pair once, in order.

    >>> import gputensor as gt
    >>> pdist(gt.asarray([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]], device="host")).round(3).tolist()
    [5.0, 1.0, 4.243000030517578]
    """
    if tensor_argument(x, "pdist").ndim != 2:
        raise argument_error(ValueError, "pdist: x", Described(f"{x.ndim} dimensions"), "2")
    first, second = triu_indices(x.shape[0], 1, device=x.device)
    dtype = result_type(x, 1.0)
    rows = _wide(astype(x, dtype, copy=False))
    result = powered(fn.subtract(rows[first], rows[second]), p, -1)
    return astype(result, dtype, copy=False)


def addbmm(x, batch1, batch2, /, *, beta=1, alpha=1):
    """Return ``beta * x + alpha * s``, where s is the sum of the products of two matrix stacks.

    >>> import gputensor as gt
    >>> a = gt.ones((3, 2, 2), device="host")
    >>> addbmm(a[0], a, a).tolist()
    [[7.0, 7.0], [7.0, 7.0]]
    """
    for one in (batch1, batch2):
        if tensor_argument(one, "addbmm").ndim != 3:
            got = Described(f"{one.ndim} dimensions")
            raise argument_error(ValueError, "addbmm: batch", got, "3")
    return _blend(x, fn.sum(matmul(batch1, batch2), 0), beta, alpha)
