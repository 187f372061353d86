"""Products of several matrices, and sums along diagonals, in the standard's words."""

import operator

from gputensor.errors import argument_error
from gputensor.linalg.matrices import square
from gputensor.linalg.solutions import inv
from gputensor.tensor import manipulation
from gputensor.tensor.interop import copy
from gputensor.tensor.manipulation import diagonals
from gputensor.tensor.products import matmul

__all__ = ["diagonal", "matrix_power", "multi_dot", "trace"]


def diagonal(x, /, *, offset=0):
    """Return diagonal `offset` of the matrices in the last two axes, as a view.

    >>> import gputensor as gt
    >>> diagonal(gt.asarray([[1, 2], [3, 4]], device="host")).tolist()
    [1, 4]
    """
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """Return the sums over diagonal `offset` of the matrices in the last two axes.

    >>> import gputensor as gt
    >>> trace(gt.asarray([[1, 2], [3, 4]], device="host")).item()
    5
    """
    return diagonals.trace(x, offset, -2, -1, dtype)


def matrix_power(x, n, /):
    """Return square matrices multiplied `n` times; a negative `n` takes their inverses.

    >>> import gputensor as gt
    >>> matrix_power(gt.asarray([[1.0, 1.0], [0.0, 1.0]], device="host"), 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    a = square(x, "matrix_power")
    a = x if x.dtype.kind in "iu" or x.dtype.itemsize == 2 else a
    n = operator.index(n)
    if n == 0:
        identity = manipulation.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        return copy(manipulation.broadcast_to(identity, a.shape))
    factor, n = (inv(a), -n) if n < 0 else (a, n)
    result = None
    while n:
        if n & 1:
            result = factor if result is None else matmul(result, factor)
        n >>= 1
        factor = matmul(factor, factor) if n else factor
    return copy(result) if result is a else result


def multi_dot(arrays, /):
    """Return the product of two or more matrices, in the order that takes fewest multiplications.

    The first and the last may be vectors.

    >>> import gputensor as gt
    >>> a = gt.ones((2, 2), device="host")
    >>> multi_dot([a, a, a]).tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """
    arrays = list(arrays)
    if len(arrays) < 2:
        raise argument_error(ValueError, "multi_dot: arrays", len(arrays), "2 or more")
    extents = [one.shape[0] if one.ndim > 1 else 1 for one in arrays[:1]]
    extents += [one.shape[0] for one in arrays[1:]]
    extents.append(arrays[-1].shape[1] if arrays[-1].ndim > 1 else 1)
    return _chain(arrays, _cuts(extents), 0, len(arrays) - 1)


def _cuts(extents):
    """Where the product of matrices i to j is cut last, for each i and j, at the least cost."""
    count = len(extents) - 1
    costs, cuts = {(i, i): 0 for i in range(count)}, {}
    for width in range(1, count):
        for i in range(count - width):
            j = i + width
            costs[i, j], cuts[i, j] = min(
                (costs[i, k] + costs[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k)
                for k in range(i, j)
            )
    return cuts


def _chain(arrays, cuts, first, last):
    if first == last:
        return arrays[first]
    cut = cuts[first, last]
    return matmul(_chain(arrays, cuts, first, cut), _chain(arrays, cuts, cut + 1, last))
