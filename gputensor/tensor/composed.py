"""Functions of the array API that are put together from kernels instead of having their own.

Each costs a few kernels; none is in the inner loop of anything we know of. Bool and integer tensors
become float32 first (signbit takes integers as they are); one of two arguments may be a number.
"""

from gputensor.tensor.arguments import tensor_argument
from gputensor.tensor.arithmetic import abs, maximum, minimum, negative
from gputensor.tensor.comparison import equal, less, logical_and, logical_or
from gputensor.tensor.conversion import astype
from gputensor.tensor.creation import full
from gputensor.tensor.dtypes import float32
from gputensor.tensor.mathematics import exp, log1p, reciprocal, sqrt, where
from gputensor.tensor.promotion import result_type
from gputensor.tensor.tensor import Tensor

__all__ = ["copysign", "hypot", "logaddexp", "signbit"]


def _floating(x1, x2, name):
    """Both as tensors of the dtype that they meet in, which is float32 for bool and integers."""
    first = tensor_argument(x1 if type(x1) is Tensor else x2, name)
    dtype = result_type(x1, x2)
    if dtype.kind in "iub":
        dtype = float32
    return [
        astype(x, dtype, copy=False)
        if type(x) is Tensor
        else full((), x, dtype=dtype, device=first.device)
        for x in (x1, x2)
    ]


def signbit(x, /):
    """Return where the sign of floating-point `x` is minus, also of -0.0; NaN counts as plus.

    >>> import gputensor as gt
    >>> signbit(gt.asarray([-1.5, -0.0, 0.0], device="host")).numpy()
    array([ True,  True, False])
    """
    if tensor_argument(x, "signbit").dtype.kind in "iub":
        return less(x, 0)
    return logical_or(less(x, 0), logical_and(equal(x, 0), less(reciprocal(x), 0)))


def copysign(x1, x2, /):
    """Return the magnitude of x1 with the sign of x2.

    >>> import gputensor as gt
    >>> x, y = gt.asarray([1.0, 2.0], device="host"), gt.asarray([-0.0, 3.0], device="host")
    >>> copysign(x, y).numpy()
    array([-1.,  2.], dtype=float32)
    """
    x1, x2 = _floating(x1, x2, "copysign")
    size = abs(x1)
    return where(signbit(x2), negative(size), size)


def hypot(x1, x2, /):
    """Return sqrt(x1**2 + x2**2) without overflow on the way.

    >>> import gputensor as gt
    >>> hypot(gt.asarray([3.0, 0.0], device="host"), gt.asarray([4.0, 0.0], device="host")).numpy()
    array([5., 0.], dtype=float32)
    """
    x1, x2 = _floating(x1, x2, "hypot")
    a, b = abs(x1), abs(x2)
    large, small = maximum(a, b), minimum(a, b)
    ratio = where(equal(large, small), large * 0 + 1, small / large)
    size = large * sqrt(1 + ratio * ratio)
    size = where(equal(large, 0), large, size)
    return where(logical_or(equal(a, float("inf")), equal(b, float("inf"))), float("inf"), size)


def logaddexp(x1, x2, /):
    """Return log(exp(x1) + exp(x2)) without overflow on the way.

    >>> import gputensor as gt
    >>> x = gt.asarray([-1000.0, 1000.0], device="host")
    >>> logaddexp(x, -x).numpy()
    array([1000., 1000.], dtype=float32)
    """
    x1, x2 = _floating(x1, x2, "logaddexp")
    large, small = maximum(x1, x2), minimum(x1, x2)
    # Equal infinities have no difference: their sum is the infinity itself.
    distance = where(equal(large, small), large * 0, small - large)
    distance = where(equal(distance, distance), distance, 0)
    return large + log1p(exp(distance))
