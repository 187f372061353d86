"""Decompositions that NumPy lacks: LU, and Cholesky's with a report for each matrix.

LU is a recursive algorithm on the host, and CuPy's on CUDA. A decomposition is one matrix, U with
the strict lower part of L below it, and pivots: row i was exchanged with row ``pivots[i]``, in
order, as in LAPACK but counted from 0.
"""

import importlib
import warnings

import numpy as np

__all__ = ["cholesky", "lu", "lu_solve", "rows"]

_SIDES = {"plain": 0, "transposed": 1, "adjoint": 2}
#: Up to this many columns are eliminated one by one.
_NARROW = 16


def cholesky(module, x):
    """Return Cholesky factors of stacked matrices, and for each the order of its failing minor.

    The order is 0 for a positive definite matrix; the factor is NaN otherwise.

    >>> found, orders = cholesky(np, np.array([[[4.0]], [[-1.0]]]))
    >>> found.tolist(), orders.tolist()
    ([[[2.0]], [[nan]]], [0, 1])
    """
    try:
        return module.linalg.cholesky(x), 0
    except np.linalg.LinAlgError:
        pass
    made = module.full(x.shape, np.nan, x.dtype).reshape(-1, *x.shape[-2:])
    orders = [_failing(module, one) for one in x.reshape(made.shape)]
    for i, order in enumerate(orders):
        if order == 0:
            made[i] = module.linalg.cholesky(x.reshape(made.shape)[i])
    return made.reshape(x.shape), module.asarray(orders, np.int32).reshape(x.shape[:-2])


def _failing(module, x):
    """Return the least k whose first k rows and columns are not positive definite, or 0."""
    low, high = 0, x.shape[-1] + 1  # the first `low` are positive definite, the first `high` not
    while high - low > 1:
        middle = (low + high) // 2
        try:
            is_definite = bool(module.isfinite(module.linalg.cholesky(x[:middle, :middle])).all())
        except np.linalg.LinAlgError:
            is_definite = False
        low, high = (middle, high) if is_definite else (low, middle)
    return high if high <= x.shape[-1] else 0


def lu(module, x):
    """Return the factors of stacked matrices, both in one matrix, and the pivots.

    >>> factors, pivots = lu(np, np.array([[1.0, 2.0], [2.0, 1.0]]))
    >>> factors.tolist(), pivots.tolist()
    ([[2.0, 1.0], [0.5, 1.5]], [1, 1])
    """
    stack = x.reshape(-1, *x.shape[-2:])
    if module is np:
        made = np.array(stack)
        pivots = _eliminate(made, min(x.shape[-2:]))
    else:
        library = importlib.import_module("cupyx.scipy.linalg")
        with warnings.catch_warnings():  # it warns of singular matrices, which have factors, too
            warnings.simplefilter("ignore", RuntimeWarning)
            parts = [library.lu_factor(one, check_finite=False) for one in stack]
        made, pivots = (module.stack(one) for one in zip(*parts, strict=True))
    return made.reshape(x.shape), pivots.reshape(*x.shape[:-2], -1)


def _eliminate(a, count):
    """Eliminate `count` columns of stacked matrices in place and return their pivots.

    Eliminates the left half of the columns, updates the right half, and then eliminates that, so
    that most of the work is products (Toledo 1997).
    """
    if count > _NARROW:
        half = count // 2
        left, right = a[..., :half], a[..., half:]
        pivots = _eliminate(left, half)
        _exchange(right, pivots)
        unit = np.tril(left[:, :half], -1) + np.eye(half, dtype=a.dtype)
        right[:, :half] = np.linalg.solve(unit, right[:, :half])
        right[:, half:] -= left[:, half:] @ right[:, :half]
        rest = _eliminate(right[:, half:], count - half)
        _exchange(left[:, half:], rest)
        return np.concatenate([pivots, rest + half], -1)
    pivots = np.empty((len(a), count), np.int64)
    for i in range(count):
        below = a[:, i:, i]
        # LAPACK compares complex numbers by |re| + |im|.
        pivots[:, i] = place = np.argmax(np.abs(below.real) + np.abs(below.imag), -1) + i
        _exchange(a, place[:, None], i)
        pivot = a[:, i : i + 1, i]
        with np.errstate(divide="ignore", invalid="ignore"):
            a[:, i + 1 :, i] /= np.where(pivot == 0, 1, pivot)
        a[:, i + 1 :, i + 1 :] -= a[:, i + 1 :, i, None] * a[:, i, None, i + 1 :]
    return pivots


def _exchange(a, pivots, first=0, step=1):
    """Exchange rows of stacked matrices in place; a step of -1 undoes it, last pivot first."""
    every = np.arange(len(a))
    for i in range(pivots.shape[-1])[::step]:
        place = pivots[:, i]
        kept = a[every, place]
        a[every, place] = a[:, first + i]
        a[:, first + i] = kept


def rows(module, pivots, count):
    """Return, for each row of the exchanged matrices, its number among the `count` original rows.

    >>> rows(np, np.array([[2, 2]]), 3).tolist()
    [[2, 0, 1]]
    """
    swaps = pivots if module is np else module.asnumpy(pivots)
    order = np.tile(np.arange(count), (*swaps.shape[:-1], 1)).reshape(-1, count, 1)
    _exchange(order, swaps.reshape(-1, swaps.shape[-1]))
    return module.asarray(order.reshape(*swaps.shape[:-1], count))


def lu_solve(module, side, factors, pivots, b):
    """Return the solutions for stacked factors, pivots and right sides.

    >>> x = np.array([[1.0, 2.0], [2.0, 1.0]])
    >>> lu_solve(np, "plain", *lu(np, x), np.array([[5.0], [4.0]])).tolist()
    [[1.0], [2.0]]
    """
    n = factors.shape[-1]
    stacks = factors.reshape(-1, n, n), pivots.reshape(-1, n), b.reshape(-1, *b.shape[-2:])
    if module is not np:
        library = importlib.import_module("cupyx.scipy.linalg")
        solved = [
            library.lu_solve((one, swaps), right, trans=_SIDES[side], check_finite=False)
            for one, swaps, right in zip(*stacks, strict=True)
        ]
        return module.stack(solved).reshape(b.shape)
    both, swaps, right = stacks
    lower, upper = np.tril(both, -1) + np.eye(n, dtype=both.dtype), np.triu(both)
    right = np.array(right)
    if side == "plain":
        _exchange(right, swaps)
        return np.linalg.solve(upper, np.linalg.solve(lower, right)).reshape(b.shape)
    if side == "adjoint":
        lower, upper = lower.conj(), upper.conj()
    right = np.linalg.solve(lower.mT, np.linalg.solve(upper.mT, right))
    _exchange(right, swaps, step=-1)
    return right.reshape(b.shape)
