"""Least squares for functions of one variable."""

from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error
from gputensor.linalg.decompositions import qr
from gputensor.linalg.solutions import solve
from gputensor.tensor import functions as fn
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.grids import vander
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import reshape

__all__ = ["polyfit"]


def polyfit(x, y, deg, /):
    """Return the coefficients of the polynomial of degree `deg` closest to the points, by QR.

    >>> import gputensor as gt
    >>> x = gt.asarray([0.0, 1.0, 2.0], device="host")
    >>> gt.round(polyfit(x, 2 * x + 1, 1), 3).tolist()
    [2.0, 1.0]
    """
    tensor_argument(y, "polyfit")
    if tensor_argument(x, "polyfit").ndim != 1 or x.size == 0:
        got = Described(f"shape {x.shape}")
        raise argument_error(ValueError, "polyfit: x", got, "1 dimension, 1 element at least")
    dtype = result_type(x, y, 1.0)
    x, y = astype(x, dtype, copy=False), astype(y, dtype, copy=False)
    columns = vander(x, deg + 1)
    size = fn.sqrt(fn.sum(fn.square(columns), axis=0))
    q, r = qr(fn.divide(columns, size))
    found = solve(r, q.mT @ y)
    return fn.divide(found, reshape(size, (-1,) + (1,) * (y.ndim - 1)))
