"""Equations with triangular matrices and Cholesky factors, named as in PyTorch and SciPy."""

from gputensor._arrays.dtypes import int32
from gputensor.errors import argument_error
from gputensor.linalg.factors import LUFactor, lu_solve
from gputensor.linalg.matrices import square
from gputensor.tensor import functions as fn
from gputensor.tensor.core import spellings, tensor_argument
from gputensor.tensor.manipulation import (
    arange,
    broadcast_to,
    eye,
    matrix_transpose,
    tril,
    triu,
)

__all__ = ["cholesky_solve", "solve_triangular"]


@spellings(unit_diagonal="unitriangular")
def solve_triangular(a, b, /, trans=0, lower=False, *, upper=None, left=True, unitriangular=False):
    """Return the solutions of ``a @ x == b`` with triangular matrices.

    A zero on the diagonal gives infinities, not an error.

    Parameters
    ----------
    a : Tensor
        Square matrices; their other triangle is not read.
    b : Tensor
        A vector if it has one dimension, else matrices.
    trans : {0, 1, 2}
        Solve with `a`, with its transpose, or with its adjoint, as in SciPy.
    lower, upper : bool
        The triangle: SciPy's argument, or PyTorch's, which has precedence.
    left : bool
        False solves ``x @ a == b``.
    unitriangular : bool
        Take the diagonal as ones; SciPy's ``unit_diagonal``.

    >>> import gputensor as gt
    >>> a = gt.asarray([[2.0, 0.0], [1.0, 4.0]], device="host")
    >>> solve_triangular(a, gt.asarray([2.0, 9.0], device="host"), lower=True).tolist()
    [1.0, 2.0]
    """
    if trans not in (0, 1, 2):
        raise argument_error(ValueError, "solve_triangular: trans", trans, "0, 1 or 2")
    lower = lower if upper is None else not upper
    if not left and tensor_argument(b, "solve_triangular").ndim > 1:
        a, lower = matrix_transpose(tensor_argument(a, "solve_triangular")), not lower
        a = fn.conj(a) if trans == 2 and a.dtype.kind == "c" else a
        trans = min(trans, 1)
        options = {"lower": lower, "unitriangular": unitriangular}
        return matrix_transpose(solve_triangular(a, matrix_transpose(b), trans, **options))
    a = square(a, "solve_triangular", "a")
    if unitriangular:
        ones = eye(a.shape[-1], dtype=bool, device=a.device)
        a = fn.where(ones, 1, a)
    # The factors L = 1 and U of an upper triangle; a lower one is the transpose of such.
    pivots = broadcast_to(arange(a.shape[-1], dtype=int32, device=a.device), a.shape[:-1])
    if not lower:
        return lu_solve(LUFactor(triu(a), pivots), b, trans)
    if trans == 2 and a.dtype.kind == "c":
        a = fn.conj(a)
    return lu_solve(LUFactor(matrix_transpose(tril(a)), pivots), b, 0 if trans else 1)


def cholesky_solve(b, factor, /, upper=False):
    """Return the solutions of ``a @ x == b`` from the Cholesky factor of `a`.

    >>> import gputensor as gt
    >>> a = gt.asarray([[4.0, 2.0], [2.0, 5.0]], device="host")
    >>> b = gt.asarray([[8.0], [12.0]], device="host")
    >>> cholesky_solve(b, gt.linalg.cholesky(a)).tolist()
    [[1.0], [2.0]]
    """
    tensor_argument(factor, "cholesky_solve")
    first = solve_triangular(factor, b, 2 if upper else 0, not upper)
    return solve_triangular(factor, first, 0 if upper else 2, not upper)
