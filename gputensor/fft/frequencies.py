"""The frequencies of a transform's values, and their order."""

from gputensor.errors import argument_error, float_argument, int_argument
from gputensor.tensor.core import axis_argument, spellings, tensor_argument
from gputensor.tensor.functions import divide
from gputensor.tensor.manipulation import arange, empty
from gputensor.tensor.manipulation.joining import roll

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _count(n, name):
    count = int_argument(f"{name}: n", n)
    if count < 1:
        raise argument_error(ValueError, f"{name}: n", count, "1 or more")
    return count


def fftfreq(n, /, d=1.0, *, dtype=None, device=None):
    """Return the sample frequencies of a transform of `n` values with spacing `d`.

    >>> fftfreq(4, device="host").tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    n, d = _count(n, "fftfreq"), float_argument("fftfreq: d", d)
    half = (n - 1) // 2 + 1
    result = empty(n, dtype, device=device)
    result[:half] = arange(half, device=device)
    result[half:] = arange(-(n // 2), 0, device=device)
    return divide(result, n * d, out=result)


def rfftfreq(n, /, d=1.0, *, dtype=None, device=None):
    """Return the sample frequencies of :func:`rfft` of `n` values with spacing `d`.

    >>> rfftfreq(4, device="host").tolist()
    [0.0, 0.25, 0.5]
    """
    n, d = _count(n, "rfftfreq"), float_argument("rfftfreq: d", d)
    result = empty(n // 2 + 1, dtype, device=device)
    result[...] = arange(n // 2 + 1, device=device)
    return divide(result, n * d, out=result)


def _axes(x, axes, name):
    tensor_argument(x, name)
    axes = range(x.ndim) if axes is None else axes if isinstance(axes, (tuple, list)) else (axes,)
    return [axis_argument(axis, x.ndim, name) for axis in axes]


@spellings(dim="axes")
def fftshift(x, /, axes=None):
    """Return `x` with frequency 0 moved to the middle of `axes` (default: all).

    >>> import gputensor as gt
    >>> fftshift(gt.arange(3, device="host")).tolist()
    [2, 0, 1]
    """
    axes = _axes(x, axes, "fftshift")
    return roll(x, [x.shape[axis] // 2 for axis in axes], axes)


@spellings(dim="axes")
def ifftshift(x, /, axes=None):
    """Return `x` with frequency 0 moved from the middle of `axes` to the front (default: all).

    >>> import gputensor as gt
    >>> ifftshift(gt.asarray([2, 0, 1], device="host")).tolist()
    [0, 1, 2]
    """
    axes = _axes(x, axes, "ifftshift")
    return roll(x, [-(x.shape[axis] // 2) for axis in axes], axes)
