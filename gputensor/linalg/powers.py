"""Products of several matrices, and diagonals and their sums with the standard's arguments."""

import math

from gputensor.errors import Described, argument_error, int_argument, list_argument
from gputensor.linalg.matrices import rounded, square
from gputensor.linalg.solutions import inv, solve
from gputensor.tensor import functions as fn
from gputensor.tensor import grids, manipulation
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import copy
from gputensor.tensor.interop.arrays import tensors
from gputensor.tensor.manipulation import diagonals
from gputensor.tensor.products import matmul

__all__ = ["diagonal", "matrix_exp", "matrix_power", "multi_dot", "trace", "vander"]


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
    """Return square matrices to the power `n`; a negative `n` takes powers of their inverses.

    >>> import gputensor as gt
    >>> matrix_power(gt.asarray([[1.0, 1.0], [0.0, 1.0]], device="host"), 3).tolist()
    [[1.0, 3.0], [0.0, 1.0]]
    """
    a = square(x, "matrix_power")
    a = x if x.dtype.kind in "iu" or x.dtype.itemsize == 2 else a
    if not hasattr(n, "__index__"):
        raise argument_error(TypeError, "matrix_power: n", n, "an int")
    n = int_argument("matrix_power: n", n)
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


# The numerator of the diagonal Pade approximant of exp of degree 13, and the 1-norm up to which it
# is exact to float64's precision (Higham, The scaling and squaring method revisited, 2005).
_NUMERATOR = [
    math.factorial(26 - j) * math.factorial(13) / (
        math.factorial(26) * math.factorial(j) * math.factorial(13 - j)
    ) for j in range(14)
]  # fmt: skip
_REACH = 5.371920351148152


def matrix_exp(x, /):
    """Return the exponentials of square matrices, by scaling and squaring.

    The number of squarings follows from the 1-norm, which waits for the device.

    >>> import gputensor as gt
    >>> matrix_exp(gt.zeros((2, 2), device="host")).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    a = square(x, "matrix_exp")
    if a.size == 0:
        return copy(a)
    size = float(fn.max(fn.sum(fn.abs(a), -2)))
    if not size < math.inf:
        return rounded(fn.multiply(a, math.nan), x)
    times = max(0, math.ceil(math.log2(size / _REACH))) if size > _REACH else 0
    a = fn.multiply(a, 0.5**times)
    identity = manipulation.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    second = matmul(a, a)
    powers = [identity, second, matmul(second, second)]
    powers.append(matmul(powers[2], second))

    def total(first):
        """Return every second term, beginning with `first`, as a polynomial of the square."""
        low = _sum_of(_NUMERATOR[first:8:2], powers)
        high = _sum_of([0.0, *_NUMERATOR[first + 8 :: 2]], powers)
        return fn.add(low, matmul(powers[3], high))

    odd, even = matmul(a, total(1)), total(0)
    result = solve(fn.subtract(even, odd), fn.add(even, odd))
    for _ in range(times):
        result = matmul(result, result)
    return rounded(result, x)


def _sum_of(factors, matrices):
    """Return the sum of matrices, each times its factor."""
    result = fn.multiply(matrices[0], factors[0])
    for factor, one in zip(factors[1:], matrices[1:], strict=False):
        result = fn.add(result, fn.multiply(one, factor))
    return result


def multi_dot(arrays, /):
    """Return the product of two or more matrices, in the order with the fewest multiplications.

    The first and the last may be vectors.

    >>> import gputensor as gt
    >>> a = gt.ones((2, 2), device="host")
    >>> multi_dot([a, a, a]).tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """
    arrays = tensors(list_argument("multi_dot: arrays", arrays, "a sequence of Tensors"))
    if len(arrays) < 2:
        raise argument_error(ValueError, "multi_dot: arrays", len(arrays), "2 or more")
    ends = (1, 2), *[(2,)] * (len(arrays) - 2), (1, 2)
    for one, allowed in zip(arrays, ends, strict=True):
        if tensor_argument(one, "multi_dot").ndim not in allowed:
            got, rule = Described(f"{one.ndim} dimensions"), " or ".join(map(str, allowed))
            raise argument_error(ValueError, "multi_dot: arrays", got, rule)
    extents = [one.shape[0] if one.ndim > 1 else 1 for one in arrays[:1]]
    extents += [one.shape[0] for one in arrays[1:]]
    extents.append(arrays[-1].shape[1] if arrays[-1].ndim > 1 else 1)
    return _chain(arrays, _cuts(extents), 0, len(arrays) - 1)


def _cuts(extents):
    """Return, for each i and j, where the cheapest product of matrices i to j is split last."""
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


def vander(x, /, N=None):
    """Return the powers 0 to N - 1 of each element along a new last axis.

    :func:`gputensor.vander`, NumPy's function, takes one vector and begins with the highest power.

    Parameters
    ----------
    x : Tensor
        At least one dimension.
    N : int, optional
        The number of powers; by default the extent of the last axis.

    >>> import gputensor as gt
    >>> vander(gt.asarray([[2, 3]], device="host"), 3).tolist()
    [[[1, 2, 4], [1, 3, 9]]]
    """
    if tensor_argument(x, "vander").ndim == 0:
        raise argument_error(ValueError, "vander: x", Described("0 dimensions"), "1 or more")
    count = x.shape[-1] if N is None else int_argument("vander: N", N)
    if count < 0:
        raise argument_error(ValueError, "vander: N", count, "0 or more")
    powers = grids.vander(manipulation.reshape(x, -1), count, increasing=True)
    return manipulation.reshape(powers, (*x.shape, count))
