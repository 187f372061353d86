"""The gamma function's derivatives, and its multivariate form as a sum of logarithms."""

import math

from gputensor._arrays.dtypes import float32, isdtype
from gputensor.errors import Described, argument_error, plain_int
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import astype

__all__ = ["mvlgamma", "polygamma"]


def computed(x, name):
    """Return x in a dtype to compute in, and the dtype of the result."""
    x = tensor_argument(x, name)
    if not isdtype(x.dtype, ("bool", "integral", "real floating")):
        raise argument_error(TypeError, f"{name}: x", Described(x.dtype.name), "a real dtype")
    is_float = isdtype(x.dtype, "real floating")
    dtype = x.dtype if is_float else float32
    return astype(x, float32 if dtype.itemsize < 4 else dtype, copy=False), dtype


def polygamma(n, x, /):
    """Return derivative `n` of the digamma function; infinite at 0 and at negative integers.

    Parameters
    ----------
    n : int or Tensor
        0 to 100; 0 is the digamma function itself. A tensor holds whole numbers from 0 on.
    x : Tensor
        Of a real dtype.

    >>> import gputensor as gt
    >>> round(polygamma(1, gt.asarray([1.0], device="host")).item(), 4)
    1.6449
    """
    if isinstance(n, Tensor):
        return fn.polygamma(n, x)
    n = plain_int(n)
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= 100:
        raise argument_error(ValueError, "polygamma: n", n, "an int from 0 to 100")
    x = tensor_argument(x, "polygamma")
    return fn.digamma(x) if n == 0 else fn.polygamma(n, x)


def mvlgamma(x, /, p):
    """Return the logarithm of the multivariate gamma function of dimension `p`.

    Parameters
    ----------
    x : Tensor
        Of a real dtype; above ``(p - 1) / 2``, elsewhere the results mean nothing.
    p : int
        1 or more.

    >>> import gputensor as gt
    >>> round(mvlgamma(gt.asarray([2.0], device="host"), 2).item(), 4)
    0.4516
    """
    p = plain_int(p)
    if isinstance(p, bool) or not isinstance(p, int) or not 1 <= p <= 10_000:
        raise argument_error(ValueError, "mvlgamma: p", p, "an int from 1 to 10000")
    x, dtype = computed(x, "mvlgamma")
    total = fn.lgamma(x)
    for k in range(1, p):
        total = total + fn.lgamma(x - k / 2)
    return astype(total + p * (p - 1) / 4 * math.log(math.pi), dtype, copy=False)
