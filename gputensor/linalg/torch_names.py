"""Matrix functions at PyTorch's top level, with its arguments and results."""

from typing import NamedTuple

from gputensor._arrays.dtypes import int64
from gputensor.errors import argument_error
from gputensor.linalg import decompositions
from gputensor.linalg.matrices import matrices
from gputensor.linalg.powers import multi_dot
from gputensor.linalg.solutions import inv, pinv, slogdet
from gputensor.linalg.triangles import cholesky_solve
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import (
    arange,
    broadcast_to,
    expand_dims,
    eye,
    matrix_transpose,
    tril,
    triu,
    zeros,
)
from gputensor.tensor.manipulation.picking import take_along_axis

__all__ = [
    "chain_matmul", "cholesky_inverse", "inverse", "logdet", "lu_unpack", "pinverse", "svd",
]  # fmt: skip


class SVD(NamedTuple):
    """The result of :func:`svd`."""

    U: Tensor
    S: Tensor
    V: Tensor


class LUParts(NamedTuple):
    """The result of :func:`lu_unpack`."""

    P: Tensor
    L: Tensor
    U: Tensor


def chain_matmul(*matrices):
    """Return the product of two or more matrices, in the order that needs the fewest terms.

    >>> import gputensor as gt
    >>> chain_matmul(gt.ones((2, 3), device="host"), gt.ones((3, 1), device="host")).tolist()
    [[3.0], [3.0]]
    """
    return multi_dot(list(matrices))


def cholesky_inverse(L, upper=False):
    """Return the inverses of matrices from their Cholesky factors `L`.

    >>> import gputensor as gt
    >>> cholesky_inverse(gt.asarray([[2.0]], device="host")).tolist()
    [[0.25]]
    """
    x = matrices(L, "cholesky_inverse", "L")
    unit = eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return cholesky_solve(broadcast_to(unit, x.shape), L, upper)


def lu_unpack(LU_data, LU_pivots):
    """Return P, L and U, whose product is the matrix, from the results of :func:`lu_factor`.

    Parameters
    ----------
    LU_data, LU_pivots : Tensor
        Pivots count from 0, as in SciPy and :func:`gputensor.linalg.lu_factor`.

    >>> import gputensor as gt
    >>> x = gt.asarray([[1.0, 2.0], [2.0, 1.0]], device="host")
    >>> p, l, u = lu_unpack(*gt.linalg.lu_factor(x))
    >>> (p @ l @ u).tolist()
    [[1.0, 2.0], [2.0, 1.0]]
    """
    x = matrices(LU_data, "lu_unpack", "LU_data")
    rows, inner = x.shape[-2], min(x.shape[-2:])
    if tensor_argument(LU_pivots, "lu_unpack").shape != (*x.shape[:-2], inner):
        rule = f"{(*x.shape[:-2], inner)}"
        raise argument_error(ValueError, "lu_unpack: LU_pivots", LU_pivots.shape, rule)
    pivots = astype(LU_pivots, int64, copy=False)
    places = arange(rows, device=x.device)
    order = broadcast_to(places, (*x.shape[:-2], rows))
    for i in range(inner):  # exchange the rows i and pivots[i]
        other = pivots[..., i : i + 1]
        first, second = order[..., i : i + 1], take_along_axis(order, other, -1)
        order = fn.where(places == other, first, order)
        order = fn.where(places == i, second, order)
    unit = eye(rows, inner, dtype=x.dtype, device=x.device)
    lower, upper = tril(x[..., :inner], k=-1) + unit, triu(x[..., :inner, :])
    p = astype(fn.equal(expand_dims(places, -1), expand_dims(order, -2)), x.dtype)
    return LUParts(p, lower, upper)


def pinverse(x, /, rcond=1e-15):
    """Return the pseudo-inverses, with PyTorch's default limit for singular values.

    >>> import gputensor as gt
    >>> pinverse(gt.asarray([[2.0]], device="host")).tolist()
    [[0.5]]
    """
    return pinv(x, rtol=rcond)


def inverse(input):
    """Return the inverses of square matrices, as ``linalg.inv``.

    >>> import gputensor as gt
    >>> inverse(gt.asarray([[2.0]], device="host")).tolist()
    [[0.5]]
    """
    return inv(input)


def logdet(input):
    """Return the logarithms of determinants: -inf for 0, and NaN for negative ones.

    >>> import gputensor as gt
    >>> logdet(gt.eye(2, device="host")).item()
    0.0
    """
    sign, logarithm = slogdet(input)
    if sign.dtype.kind == "c":
        return fn.add(fn.log(sign), logarithm)
    return fn.where(fn.less(sign, 0), float("nan"), logarithm)


def svd(input, some=True, compute_uv=True):
    """Return U, S and V with ``U @ diag(S) @ V.mH`` equal to the input: PyTorch's older function.

    Parameters
    ----------
    input : Tensor
        Matrices of any shape.
    some : bool
        U and V have as many columns as the shorter side; otherwise both are square.
    compute_uv : bool
        Whether U and V are computed; otherwise they are square and filled with zeros.

    >>> import gputensor as gt
    >>> svd(gt.asarray([[3.0, 0.0]], device="host")).V.shape
    (2, 1)
    """
    for name, value in (("some", some), ("compute_uv", compute_uv)):
        if not isinstance(value, bool):
            raise argument_error(TypeError, f"svd: {name}", value, "bool")
    if not compute_uv:
        s = decompositions.svdvals(tensor_argument(input, "svd"))
        u, v = (
            zeros((*input.shape[:-2], n, n), input.dtype, device=input.device)
            for n in input.shape[-2:]
        )
        return SVD(u, s, v)
    u, s, vh = decompositions.svd(input, full_matrices=not some)
    return SVD(u, s, matrix_transpose(fn.conj(vh) if vh.dtype.kind == "c" else vh))
