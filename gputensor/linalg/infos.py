"""Factorizations and solutions that report a number for each matrix in place of raising.

PyTorch's functions whose names end in ``_ex``. The number, ``info``, is 0 for a matrix that could
be factored. Nothing waits for the device unless `check_errors` is true, except that a Cholesky
decomposition on a CUDA device waits as :func:`gputensor.linalg.cholesky` does.
"""

from typing import NamedTuple

from numpy.linalg import LinAlgError

from gputensor._arrays.dtypes import int32
from gputensor._engines import solvers
from gputensor.errors import Described, argument_error
from gputensor.linalg.factors import LUFactor, lu_factor, lu_solve
from gputensor.linalg.matrices import new, rounded, square
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.engine import queue_engine
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import broadcast_to, expand_dims, eye, matrix_transpose, zeros
from gputensor.tensor.manipulation.diagonals import diagonal

__all__ = ["cholesky_ex", "inv_ex", "lu_factor_ex", "solve_ex"]


class CholeskyInfo(NamedTuple):
    """The result of :func:`cholesky_ex`."""

    L: Tensor
    info: Tensor


class InverseInfo(NamedTuple):
    """The result of :func:`inv_ex`."""

    inverse: Tensor
    info: Tensor


class SolutionInfo(NamedTuple):
    """The result of :func:`solve_ex`."""

    result: Tensor
    info: Tensor


class LUInfo(NamedTuple):
    """The result of :func:`lu_factor_ex`."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def _checked(info, name, problem, check_errors):
    """Raise LinAlgError for the first matrix with an info that is not 0, if that is wanted."""
    if not check_errors:
        return
    found = info.numpy().reshape(-1)
    wrong = found.nonzero()[0]
    if wrong.size:
        place = int(wrong[0])
        got = Described(f"matrix {place} with info {int(found[place])}")
        raise argument_error(LinAlgError, f"{name}: x", got, problem)


def cholesky_ex(x, /, *, upper=False, check_errors=False):
    """Return Cholesky factors, and for each matrix the order of the first minor that failed.

    Parameters
    ----------
    x : Tensor
        Symmetric matrices, or Hermitian ones when complex.
    upper : bool
        Return upper triangular factors.
    check_errors : bool
        Wait, and raise LinAlgError if a matrix is not positive definite.

    Returns
    -------
    CholeskyInfo
        The factors, and an int32 info for each matrix: k if the first k rows and columns are the
        smallest part that is not positive definite (the factor is NaN then), otherwise 0.

    >>> import gputensor as gt
    >>> cholesky_ex(gt.asarray([[[4.0]], [[-1.0]]], device="host")).info.tolist()
    [0, 1]
    """
    a = square(x, "cholesky_ex")
    factor, info = new(a, a.shape), zeros(a.shape[:-2], int32, device=a.device)
    if a.size:
        queue_engine(solvers.matrix_pair, ("cholesky_info",), [factor, info], a)
    _checked(info, "cholesky_ex", "positive definite matrices", check_errors)
    if upper:
        factor = matrix_transpose(fn.conj(factor) if factor.dtype.kind == "c" else factor)
    return CholeskyInfo(rounded(factor, x), info)


def _lu_info(factors):
    """Return the place of the first zero on the diagonal of U, counted from 1, or 0."""
    if 0 in factors.shape[-2:]:
        return zeros(factors.shape[:-2], int32, device=factors.device)
    is_zero = fn.equal(diagonal(factors, axis1=-2, axis2=-1), 0)
    first = fn.add(fn.argmax(is_zero, -1), 1)
    return astype(fn.where(fn.any(is_zero, -1), first, 0), int32)


def lu_factor_ex(x, /, *, check_errors=False):
    """Return LU decompositions as :func:`lu_factor` does, and an info for each matrix.

    Parameters
    ----------
    x : Tensor
        Matrices of any shape.
    check_errors : bool
        Wait, and raise LinAlgError if a matrix is singular.

    Returns
    -------
    LUInfo
        The factors, the pivots (counted from 0), and an int32 info for each matrix: k if element
        k, counted from 1, is the first zero on the diagonal of U, otherwise 0.

    >>> import gputensor as gt
    >>> lu_factor_ex(gt.asarray([[1.0, 2.0], [2.0, 4.0]], device="host")).info.item()
    2
    """
    made, pivots = lu_factor(tensor_argument(x, "lu_factor_ex"))
    info = _lu_info(made)
    _checked(info, "lu_factor_ex", "matrices of full rank", check_errors)
    return LUInfo(made, pivots, info)


def _solved(a, b, name, check_errors):
    """Return solutions, NaN for singular matrices, and the infos."""
    made, pivots = lu_factor(a)
    info = _lu_info(made)
    _checked(info, name, "invertible matrices", check_errors)
    is_singular = fn.not_equal(expand_dims(expand_dims(info, -1), -1), 0)
    unit = eye(made.shape[-1], dtype=made.dtype, device=made.device)
    found = lu_solve(LUFactor(fn.where(is_singular, unit, made), pivots), b)
    is_singular = is_singular[..., 0] if b.ndim == 1 else is_singular
    return fn.where(is_singular, float("nan"), found), info


def inv_ex(x, /, *, check_errors=False):
    """Return inverses, and for each matrix where its elimination failed.

    Parameters
    ----------
    x : Tensor
        Square matrices.
    check_errors : bool
        Wait, and raise LinAlgError if a matrix is singular.

    Returns
    -------
    InverseInfo
        The inverses, NaN where a matrix is singular, and the int32 info of :func:`lu_factor_ex`.

    >>> import gputensor as gt
    >>> inverse, info = inv_ex(gt.asarray([[[2.0]], [[0.0]]], device="host"))
    >>> inverse.tolist(), info.tolist()
    ([[[0.5]], [[nan]]], [0, 1])
    """
    a = square(x, "inv_ex")
    unit = broadcast_to(eye(a.shape[-1], dtype=a.dtype, device=a.device), a.shape)
    found, info = _solved(a, unit, "inv_ex", check_errors)
    return InverseInfo(rounded(found, x), info)


def solve_ex(x1, x2, /, *, left=True, check_errors=False):
    """Return the solutions of ``x1 @ x == x2``, and for each matrix where its elimination failed.

    Parameters
    ----------
    x1 : Tensor
        Square matrices.
    x2 : Tensor
        A vector if it has one dimension, else matrices.
    left : bool
        False solves ``x @ x1 == x2``.
    check_errors : bool
        Wait, and raise LinAlgError if a matrix is singular.

    Returns
    -------
    SolutionInfo
        The solutions, NaN where a matrix is singular, and the int32 info of :func:`lu_factor_ex`.

    >>> import gputensor as gt
    >>> x1, x2 = gt.asarray([[2.0]], device="host"), gt.asarray([4.0], device="host")
    >>> result, info = solve_ex(x1, x2)
    >>> result.tolist(), info.item()
    ([2.0], 0)
    """
    a = square(x1, "solve_ex", "x1")
    b = tensor_argument(x2, "solve_ex")
    if left or b.ndim == 1:
        a = a if left else matrix_transpose(a)
        return SolutionInfo(*_solved(a, b, "solve_ex", check_errors))
    found, info = _solved(matrix_transpose(a), matrix_transpose(b), "solve_ex", check_errors)
    return SolutionInfo(matrix_transpose(found), info)
