"""Factorizations of matrices: Cholesky, QR, eigenvalues, singular values."""

from typing import NamedTuple

from gputensor._arrays.dtypes import complex64, complex128
from gputensor._engines import solvers
from gputensor.errors import argument_error
from gputensor.linalg.matrices import matrices, new, real_dtype, rounded, square
from gputensor.tensor.core import Tensor
from gputensor.tensor.engine import queue_engine
from gputensor.tensor.functions import conj
from gputensor.tensor.manipulation import eye, matrix_transpose

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class EigenDecomposition(NamedTuple):
    """The result of :func:`eigh` and :func:`eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """The result of :func:`qr`."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """The result of :func:`svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _adjoint(x):
    return conj(matrix_transpose(x)) if x.dtype.kind == "c" else matrix_transpose(x)


def cholesky(x, /, *, upper=False):
    """Return the lower triangular L with ``L @ conj(L.mT)`` equal to `x`, or its adjoint.

    Parameters
    ----------
    x : Tensor
        Symmetric positive definite matrices, or Hermitian ones when complex.
    upper : bool
        Return the adjoint of L, an upper triangular matrix.

    >>> import gputensor as gt
    >>> cholesky(gt.asarray([[4.0]], device="host")).tolist()
    [[2.0]]
    """
    a = square(x, "cholesky")
    result = new(a, a.shape)
    if a.size:
        queue_engine(solvers.matrix, ("cholesky",), [result], a)
    result = rounded(result, x)
    return _adjoint(result) if upper else result


def qr(x, /, mode="reduced"):
    """Return Q with orthonormal columns and upper triangular R, whose product is `x`.

    Parameters
    ----------
    mode : {"reduced", "complete", "r"}
        Q has as many columns as the shorter side of `x` ("reduced") or as many as it has rows
        ("complete"). With "r" the result is only the reduced R.

    >>> import gputensor as gt
    >>> q, r = qr(gt.asarray([[2.0]], device="host"))
    >>> (q @ r).tolist()
    [[2.0]]
    """
    if mode not in ("reduced", "complete", "r"):
        raise argument_error(ValueError, "qr: mode", mode, "'reduced', 'complete' or 'r'")
    a = matrices(x, "qr")
    *batch, rows, columns = a.shape
    inner = rows if mode == "complete" else min(rows, columns)
    q, r = new(a, (*batch, rows, inner)), new(a, (*batch, inner, columns))
    if a.size:
        word = "qr_complete" if mode == "complete" else "qr"
        queue_engine(solvers.matrix_pair, (word,), [q, r], a)
    elif q.size:
        q[...] = eye(rows, inner, dtype=q.dtype, device=q.device)
    return rounded(r, x) if mode == "r" else QR(rounded(q, x), rounded(r, x))


def _word(UPLO, name):
    """Return the attribute of the call for a function that reads one triangle."""
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise argument_error(ValueError, f"{name}: UPLO", UPLO, "'L' or 'U'")
    return f"{name}_{UPLO.lower()}"


def eigh(x, /, UPLO="L"):
    """Return the eigenvalues, in ascending order, and eigenvectors of symmetric matrices.

    Complex matrices are taken as Hermitian. `UPLO` is the triangle that is read: "L" or "U".

    >>> import gputensor as gt
    >>> eigh(gt.asarray([[2.0, 0.0], [0.0, 1.0]], device="host")).eigenvalues.tolist()
    [1.0, 2.0]
    """
    a, word = square(x, "eigh"), _word(UPLO, "eigh")
    values, vectors = new(a, a.shape[:-1], real_dtype(a.dtype)), new(a, a.shape)
    if a.size:
        queue_engine(solvers.matrix_pair, (word,), [values, vectors], a)
    return EigenDecomposition(rounded(values, x), rounded(vectors, x))


def eigvalsh(x, /, UPLO="L"):
    """Return the eigenvalues of symmetric matrices in ascending order; see :func:`eigh`.

    >>> import gputensor as gt
    >>> eigvalsh(gt.asarray([[2.0, 0.0], [0.0, 1.0]], device="host")).tolist()
    [1.0, 2.0]
    """
    a, word = square(x, "eigvalsh"), _word(UPLO, "eigvalsh")
    values = new(a, a.shape[:-1], real_dtype(a.dtype))
    if a.size:
        queue_engine(solvers.matrix, (word,), [values], a)
    return rounded(values, x)


def _complex(dtype):
    return (
        complex128
        if dtype.itemsize == 8 and dtype.kind == "f" or dtype == complex128
        else complex64
    )


def eig(x, /):
    """Return the eigenvalues and eigenvectors of square matrices, as complex numbers.

    >>> import gputensor as gt
    >>> eig(gt.asarray([[2.0]], device="host")).eigenvalues.tolist()
    [(2+0j)]
    """
    a = square(x, "eig")
    dtype = _complex(a.dtype)
    values, vectors = new(a, a.shape[:-1], dtype), new(a, a.shape, dtype)
    if a.size:
        queue_engine(solvers.matrix_pair, ("eig",), [values, vectors], a)
    return EigenDecomposition(values, vectors)


def eigvals(x, /):
    """Return the eigenvalues of square matrices, as complex numbers.

    >>> import gputensor as gt
    >>> eigvals(gt.asarray([[2.0]], device="host")).tolist()
    [(2+0j)]
    """
    a = square(x, "eigvals")
    values = new(a, a.shape[:-1], _complex(a.dtype))
    return queue_engine(solvers.matrix, ("eigvals",), [values], a) if a.size else values


def svd(x, /, full_matrices=True, compute_uv=True):
    """Return U, the singular values S in descending order, and Vh: ``U @ diag(S) @ Vh`` is `x`.

    Parameters
    ----------
    x : Tensor
        Matrices of any shape.
    full_matrices : bool
        U and Vh are square; otherwise they have as many columns and rows as S has values.
    compute_uv : bool
        Without it the result is S alone.

    >>> import gputensor as gt
    >>> svd(gt.asarray([[3.0]], device="host")).S.tolist()
    [3.0]
    """
    if not compute_uv:
        return svdvals(x)
    a = matrices(x, "svd")
    *batch, rows, columns = a.shape
    inner = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (inner, inner)
    u, vh = new(a, (*batch, rows, left)), new(a, (*batch, right, columns))
    s = new(a, (*batch, inner), real_dtype(a.dtype))
    if a.size:
        queue_engine(solvers.svd, (bool(full_matrices),), [u, s, vh], a)
    else:
        for part in (u, vh):
            if part.size:
                part[...] = eye(*part.shape[-2:], dtype=a.dtype, device=a.device)
    return SVD(rounded(u, x), rounded(s, x), rounded(vh, x))


def svdvals(x, /):
    """Return the singular values in descending order; see :func:`svd`.

    >>> import gputensor as gt
    >>> svdvals(gt.asarray([[3.0]], device="host")).tolist()
    [3.0]
    """
    a = matrices(x, "svdvals")
    s = new(a, (*a.shape[:-2], min(a.shape[-2:])), real_dtype(a.dtype))
    return rounded(queue_engine(solvers.matrix, ("svdvals",), [s], a) if a.size else s, x)
