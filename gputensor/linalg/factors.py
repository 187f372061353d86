"""LU decompositions with partial pivoting, named as in SciPy, CuPy and PyTorch."""

from typing import NamedTuple

from gputensor._arrays.dtypes import int32
from gputensor._arrays.promotion import result_type
from gputensor._engines import solvers
from gputensor.errors import Described, argument_error
from gputensor.linalg.matrices import compute_dtype, matrices, new, rounded, square
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, on_one_device, tensor_argument
from gputensor.tensor.engine import queue_engine
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import (
    arange,
    broadcast_to,
    expand_dims,
    eye,
    tril,
    triu,
)
from gputensor.tensor.manipulation.axes import broadcast_shapes
from gputensor.tensor.products import matmul

__all__ = ["lu", "lu_factor", "lu_solve"]

_SIDES = ("plain", "transposed", "adjoint")


class LU(NamedTuple):
    """The result of :func:`lu`."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """The result of :func:`lu_factor`."""

    lu: Tensor
    piv: Tensor


def lu_factor(a, /, overwrite_a=False, check_finite=True):
    """Return the LU decomposition of matrices as one tensor, and its pivots, for :func:`lu_solve`.

    Parameters
    ----------
    a : Tensor
        Matrices of any shape.
    overwrite_a, check_finite : bool
        SciPy's. They change nothing.

    Returns
    -------
    LUFactor
        U, and below its diagonal L without its diagonal of ones; and int32 pivots: row i was
        exchanged with row ``piv[i]``, in order, counted from 0 as in SciPy.

    >>> import gputensor as gt
    >>> lu, piv = lu_factor(gt.asarray([[1.0, 2.0], [2.0, 1.0]], device="host"))
    >>> lu.tolist(), piv.tolist()
    ([[2.0, 1.0], [0.5, 1.5]], [1, 1])
    """
    x = matrices(a, "lu_factor", "a")
    made, pivots = _factored(x, "lu", min(x.shape[-2:]))
    return LUFactor(rounded(made, a), pivots)


def _factored(a, word, count):
    """Return the decomposition, and `count` pivots or row numbers."""
    made, places = new(a, a.shape), new(a, (*a.shape[:-2], count), int32)
    if a.size:
        queue_engine(solvers.matrix_pair, (word,), [made, places], a)
    elif places.size:
        places[...] = arange(count, dtype=int32, device=a.device)
    return made, places


def lu(a, /, permute_l=False, overwrite_a=False, check_finite=True):
    """Return P, L and U, whose product is `a`; with `permute_l`, P @ L and U.

    Parameters
    ----------
    a : Tensor
        Matrices of any shape.
    permute_l : bool
        Whether L is multiplied by P.
    overwrite_a, check_finite : bool
        SciPy's. They change nothing.

    Returns
    -------
    LU
        A permutation matrix, a lower triangular matrix with ones on its diagonal, and an upper
        triangular matrix.

    >>> import gputensor as gt
    >>> p, l, u = lu(gt.asarray([[1.0, 2.0], [2.0, 1.0]], device="host"))
    >>> p.tolist(), u.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[2.0, 1.0], [0.0, 1.5]])
    """
    x = matrices(a, "lu", "a")
    made, order = _factored(x, "lu_rows", x.shape[-2])
    rows, inner = x.shape[-2], min(x.shape[-2:])
    unit = eye(rows, inner, dtype=x.dtype, device=x.device)
    lower, upper = tril(made[..., :inner], k=-1) + unit, triu(made[..., :inner, :])
    columns = arange(rows, dtype=int32, device=x.device)
    p = astype(fn.equal(expand_dims(columns, -1), expand_dims(order, -2)), x.dtype)
    if permute_l:
        return rounded(matmul(p, lower), a), rounded(upper, a)
    return LU(*(rounded(part, a) for part in (p, lower, upper)))


def lu_solve(lu_and_piv, b, /, trans=0, overwrite_b=False, check_finite=True):
    """Return the solutions of ``a @ x == b``, from the factors of `a` by :func:`lu_factor`.

    Parameters
    ----------
    lu_and_piv : LUFactor or (Tensor, Tensor)
    b : Tensor
        A vector if it has one dimension, else matrices.
    trans : {0, 1, 2}
        Solve with `a`, with its transpose, or with its adjoint.
    overwrite_b, check_finite : bool
        SciPy's. They change nothing.

    >>> import gputensor as gt
    >>> factors = lu_factor(gt.asarray([[1.0, 2.0], [2.0, 1.0]], device="host"))
    >>> lu_solve(factors, gt.asarray([5.0, 4.0], device="host")).tolist()
    [1.0, 2.0]
    """
    if not isinstance(lu_and_piv, (tuple, list)) or len(lu_and_piv) != 2:
        rule = "the pair (factors, pivots) of lu_factor"
        raise argument_error(TypeError, "lu_solve: lu_and_piv", lu_and_piv, rule)
    factors, pivots = lu_and_piv
    a = square(factors, "lu_solve", "lu")
    is_vector = tensor_argument(b, "lu_solve").ndim == 1
    right = matrices(expand_dims(b, -1) if is_vector else b, "lu_solve", "b")
    if trans not in (0, 1, 2):
        raise argument_error(ValueError, "lu_solve: trans", trans, "0, 1 or 2")
    if tensor_argument(pivots, "lu_solve").shape != a.shape[:-1]:
        got = Described(f"shape {pivots.shape}")
        raise argument_error(ValueError, "lu_solve: piv", got, f"{a.shape[:-1]}, one for each row")
    if right.shape[-2] != a.shape[-1]:
        got = Described(f"shape {b.shape}")
        raise argument_error(ValueError, "lu_solve: b", got, f"{a.shape[-1]} rows, as lu has")
    a, pivots, right = on_one_device("lu_solve", (a, pivots, right), None)
    dtype = compute_dtype(result_type(a, right))
    batch = broadcast_shapes(a.shape[:-2], right.shape[:-2])
    a, right = (
        broadcast_to(astype(one, dtype, copy=False), batch + one.shape[-2:]) for one in (a, right)
    )
    pivots = broadcast_to(astype(pivots, int32, copy=False), (*batch, pivots.shape[-1]))
    result = new(right, right.shape)
    if result.size:
        queue_engine(solvers.lu_solve, (_SIDES[trans],), [result], a, pivots, right)
    result = rounded(result, b)
    return result[..., 0] if is_vector else result
