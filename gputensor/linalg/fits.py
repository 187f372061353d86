"""Polynomials by linear algebra: fitted to points, made from their roots, and their roots."""

from gputensor._arrays.dtypes import complex64, complex128, finfo
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, int_argument
from gputensor.linalg.decompositions import eigvals, qr, svdvals
from gputensor.linalg.solutions import inv, lstsq, solve
from gputensor.tensor import functions as fn
from gputensor.tensor.grids import vander
from gputensor.tensor.interop import astype
from gputensor.tensor.interop.arrays import values_argument
from gputensor.tensor.manipulation import eye, ones, reshape, zeros
from gputensor.tensor.manipulation.joining import concat

__all__ = ["poly", "polyfit", "roots"]


def polyfit(x, y, deg, /, rcond=None, full=False, w=None, cov=False):
    """Return the coefficients of the least-squares polynomial of degree `deg` through points.

    Solved by a QR decomposition; the highest power comes first. `rcond` serves only the rank. Of
    the polynomials through fewer than ``deg + 1`` points it is the one NumPy finds.

    Parameters
    ----------
    x : Tensor or sequence
        One dimension, n points.
    y : Tensor or sequence
        One dimension of n values, or two, with a column for each polynomial.
    deg : int
    w : Tensor or sequence, optional
        One dimension of n weights, by which the distances of the points are multiplied.
    full : bool
        Return also the sum of squared distances, rank and singular values, and `rcond`.
    cov : bool or "unscaled"
        Return also the covariance matrix of the coefficients.

    >>> import gputensor as gt
    >>> x = gt.asarray([0.0, 1.0, 2.0], device="host")
    >>> gt.round(polyfit(x, 2 * x + 1, 1), 3).tolist()
    [2.0, 1.0]
    """
    x = values_argument(x, "polyfit", y)
    y = values_argument(y, "polyfit", x)
    if x.ndim != 1 or x.size == 0:
        got = Described(f"shape {x.shape}")
        raise argument_error(ValueError, "polyfit: x", got, "1 dimension and at least 1 element")
    deg = int_argument("polyfit: deg", deg)
    if deg < 0:
        raise argument_error(ValueError, "polyfit: deg", deg, "an int of 0 or more")
    if not isinstance(cov, bool) and cov != "unscaled":
        raise argument_error(ValueError, "polyfit: cov", cov, "True, False or 'unscaled'")
    dtype = result_type(x, y, 1.0)
    x, y = astype(x, dtype, copy=False), astype(y, dtype, copy=False)
    columns = vander(x, deg + 1)
    if w is not None:
        w = values_argument(w, "polyfit", x)
        if w.shape != x.shape:
            got = Described(f"shape {w.shape}")
            raise argument_error(ValueError, "polyfit: w", got, f"{x.shape}, that of x")
        w = reshape(astype(w, dtype, copy=False), (-1, 1))
        columns = fn.multiply(columns, w)
        y = fn.multiply(y, reshape(w, y.shape[:1] + (1,) * (y.ndim - 1)))
    size = fn.sqrt(fn.sum(fn.square(columns), axis=0))
    columns = fn.divide(columns, size)
    if x.shape[0] <= deg:  # fewer points than coefficients: the smallest coefficients
        found = lstsq(columns, y)[0]
    else:
        q, r = qr(columns)
        found = solve(r, q.mT @ y)
    distances = fn.sum(fn.square(fn.subtract(columns @ found, y)), axis=0)
    found = fn.divide(found, reshape(size, (-1,) + (1,) * (y.ndim - 1)))
    if full:
        values = svdvals(columns)
        rcond = x.shape[0] * float(finfo(dtype).eps) if rcond is None else rcond
        rank = int(fn.count_nonzero(fn.greater(values, fn.multiply(values[0], rcond))))
        is_exact = rank != deg + 1 or x.shape[0] <= deg + 1
        left = zeros(0, dtype, device=x.device) if is_exact else reshape(distances, -1)
        return found, left, rank, values, rcond
    if cov is False:
        return found
    spread = fn.divide(inv(columns.mT @ columns), fn.multiply(reshape(size, (-1, 1)), size))
    if cov != "unscaled":
        if x.shape[0] <= deg + 1:
            got = Described(f"{x.shape[0]} points")
            raise argument_error(ValueError, "polyfit: cov", got, f"more than {deg + 1} points")
        distances = fn.divide(distances, x.shape[0] - deg - 1)
        spread = fn.multiply(reshape(spread, spread.shape + (1,) * (y.ndim - 1)), distances)
    elif y.ndim > 1:
        spread = reshape(spread, (*spread.shape, 1))
    return found, spread


def poly(x, /):
    """Return the coefficients, the highest power first, of the polynomial with these roots.

    For a square matrix it is the characteristic polynomial, whose roots are the eigenvalues.

    >>> import gputensor as gt
    >>> poly(gt.asarray([1.0, 2.0], device="host")).tolist()
    [1.0, -3.0, 2.0]
    """
    x = values_argument(x, "poly")
    was_real = x.dtype.kind != "c"
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.size:
        x = eigvals(x)
    elif x.ndim != 1:
        got = Described(f"shape {x.shape}")
        raise argument_error(ValueError, "poly: x", got, "a vector or a square matrix")
    result = ones(1, result_type(x, 1.0), device=x.device)
    for i in range(x.size):
        below = concat([zeros(1, result.dtype, device=x.device), fn.multiply(result, x[i])])
        result = fn.subtract(concat([result, zeros(1, result.dtype, device=x.device)]), below)
    # Complex eigenvalues of a real matrix come in conjugate pairs.
    return fn.real(result) if was_real and result.dtype.kind == "c" else result


def roots(p, /):
    """Return the roots of a polynomial with coefficients `p`, the highest power first.

    They are the eigenvalues of its companion matrix, as complex numbers. Waits for the device to
    find zeros at both ends of `p`.

    >>> import gputensor as gt
    >>> found = roots(gt.asarray([1.0, -3.0, 2.0], device="host"))
    >>> sorted(round(one.real, 3) for one in found.tolist())
    [1.0, 2.0]
    """
    p = values_argument(p, "roots")
    if p.ndim != 1:
        raise argument_error(ValueError, "roots: p", Described(f"{p.ndim} dimensions"), "1")
    p = astype(p, result_type(p, 1.0), copy=False)
    places = fn.not_equal(p, 0).nonzero()[0]
    is_wide = p.dtype.itemsize == 8 and p.dtype.kind == "f" or p.dtype.itemsize == 16
    dtype = complex128 if is_wide else complex64
    if places.size == 0:
        return zeros(0, dtype, device=p.device)
    first, last = int(places[0]), int(places[-1])
    at_zero = zeros(p.size - 1 - last, dtype, device=p.device)
    count = last - first
    if count == 0:
        return at_zero
    companion = eye(count, k=-1, dtype=p.dtype, device=p.device)
    companion[0] = fn.divide(fn.negative(p[first + 1 : last + 1]), p[first])
    return concat([eigvals(companion), at_zero])
