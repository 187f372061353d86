"""Interpolation, convolution, cumulative sums without NaN, and values of polynomials."""

from gputensor._arrays.dtypes import complex64, complex128, float32, float64
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, float_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import (
    Tensor,
    axis_argument,
    spellings,
    storage_place,
    tensor_argument,
    view_of,
)
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop.arrays import beside, widest
from gputensor.tensor.manipulation import flip, ones, take, zeros
from gputensor.tensor.manipulation.differences import areas
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.products import matmul
from gputensor.tensor.scans import cumprod, cumsum
from gputensor.tensor.sorting import argsort, searchsorted

__all__ = [
    "convolve",
    "correlate",
    "cumulative_trapezoid",
    "interp",
    "nancumprod",
    "nancumsum",
    "polyval",
]


#: The most elements of windows that a product copies at once.
MOST_ELEMENTS = 1 << 22


def _vector(x, name):
    if tensor_argument(x, name).ndim != 1 or x.size == 0:
        got = Described(f"shape {x.shape}")
        raise argument_error(ValueError, f"{name}: x", got, "1 dimension and at least 1 element")
    return x


def interp(x, xp, fp, /, left=None, right=None, period=None):
    """Return the piecewise linear function through points ``(xp, fp)``, evaluated at `x`.

    `xp` must ascend. Outside its range the result is `left` or `right`; default: the first or last
    element of `fp`. With a `period`, x and `xp` are taken modulo it, `xp` may have any order, and
    `left` and `right` are ignored.

    >>> import gputensor as gt
    >>> xp, fp = gt.asarray([0.0, 1.0], device="host"), gt.asarray([0.0, 10.0], device="host")
    >>> interp(gt.asarray([0.25, 2.0], device="host"), xp, fp).tolist()
    [2.5, 10.0]
    """
    if not type(x) is type(xp) is type(fp) is Tensor:
        first = widest((x, xp, fp))
        first = asarray(xp) if first is None else first
        x, xp, fp = (beside(one, first) for one in (x, xp, fp))
    xp, fp = _vector(xp, "interp"), _vector(fp, "interp")
    if xp.shape != fp.shape:
        raise argument_error(
            ValueError, "interp: fp", Described(f"shape {fp.shape}"), f"{xp.shape}"
        )
    if "c" in (x.dtype.kind, xp.dtype.kind):
        got = Described(f"{x.dtype.name}, {xp.dtype.name}")
        raise argument_error(TypeError, "interp: x, xp", got, "real dtypes")
    is_one = x.dtype.kind == "f" and x.dtype == xp.dtype == fp.dtype
    dtype = x.dtype if is_one else result_type(x, xp, fp, 1.0)
    real = {complex64: float32, complex128: float64}.get(dtype, dtype)
    x, xp = (astype(one, real, copy=False) for one in (x, xp))
    fp = astype(fp, dtype, copy=False)
    if period is not None:
        period = float_argument("interp: period", period)
        if not period:
            raise argument_error(ValueError, "interp: period", period, "a number that is not 0")
        period, left, right = abs(period), None, None
        x, xp = fn.remainder(x, period), fn.remainder(xp, period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp = concat([xp[-1:] - period, xp, xp[:1] + period])
        fp = concat([fp[-1:], fp, fp[:1]])
    # The last point has a line of its own, a level one, which no x is beyond.
    low, high = xp[0], xp[-1]
    widths, rises = ones(xp.size, real, device=x.device), zeros(xp.size, dtype, device=x.device)
    fn.subtract(xp[1:], xp[:-1], out=widths[:-1])
    fn.subtract(fp[1:], fp[:-1], out=rises[:-1])
    inside = fn.clip(x, low, high)
    places = fn.subtract(searchsorted(xp, inside, side="right"), 1)
    start, width, level, rise = (take(one, places) for one in (xp, widths, fp, rises))
    share = fn.divide(fn.subtract(inside, start), width)
    result = fn.add(level, fn.multiply(share, rise))
    # Exactly at a point the line beyond it does not count, not even one to infinity.
    result = fn.where(fn.equal(inside, start), level, result)
    if left is not None:
        result = fn.where(fn.less(x, low), left, result)
    return result if right is None else fn.where(fn.greater(x, high), right, result)


def convolve(a, v, /, mode="full"):
    """Return the discrete convolution of two vectors, as a product with shifted copies of one.

    Parameters
    ----------
    a, v : Tensor or list
    mode : {"full", "same", "valid"}
        All overlaps, the central part with the length of the longer vector, or only complete
        overlaps.

    Notes
    -----
    Infinities and NaN among more than 16 elements of the shorter vector make the first and last
    elements NaN, where only a part of it overlaps the other.

    >>> import gputensor as gt
    >>> convolve(gt.asarray([1, 2, 3], device="host"), gt.asarray([1, 1], device="host")).tolist()
    [1, 3, 5, 3]
    """
    a, v = _without_lists(a, v)
    return _convolved(a, v, mode, "convolve")


def correlate(a, v, /, mode="valid"):
    """Return the cross-correlation of two vectors, with the second one conjugated.

    >>> import gputensor as gt
    >>> correlate(gt.asarray([1, 2, 3], device="host"), gt.asarray([0, 1], device="host")).tolist()
    [2, 3]
    """
    a, v = _without_lists(a, v)
    v = fn.conj(flip(_vector(v, "correlate")))
    return _convolved(a, v, mode, "correlate")


def _without_lists(a, v):
    """Return lists of coefficients as tensors, on the device of the other argument."""
    first = next((one for one in (a, v) if isinstance(one, Tensor)), None)
    return (
        one if not isinstance(one, (list, tuple)) else asarray(one) if first is None
        else beside(one, first) for one in (a, v)
    )  # fmt: skip


def _convolved(a, v, mode, name):
    a, v = _vector(a, name), _vector(v, name)
    if mode not in ("full", "same", "valid"):
        raise argument_error(ValueError, f"{name}: mode", mode, "'full', 'same' or 'valid'")
    is_swapped = v.size > a.size
    a, v = (v, a) if is_swapped else (a, v)
    dtype = a.dtype if a.dtype == v.dtype else result_type(a, v)
    a, v = astype(a, dtype, copy=False), astype(v, dtype, copy=False)
    count, extent = v.size, a.size + v.size - 1
    if count <= 16 or dtype.kind in "bu":
        result = zeros(extent, dtype, device=a.device)
        for i in range(count):
            part = result[i : i + a.size]
            join = fn.logical_or if dtype.kind == "b" else fn.add
            join(part, fn.multiply(a, v[i]), out=part)
    else:
        # Products with the windows of one padded vector, a few MiB of them at a time.
        padded = zeros(extent + count - 1, dtype, device=a.device)
        padded[count - 1 : count - 1 + a.size] = a
        windows = view_of(padded, storage_place(padded)[2], dtype, (extent, count), (1, 1))
        v = flip(v)
        step = max(1, MOST_ELEMENTS // count)
        parts = [matmul(windows[i : i + step], v) for i in range(0, extent, step)]
        result = parts[0] if len(parts) == 1 else concat(parts)
    if mode == "full":
        return result
    if mode == "valid":
        return result[count - 1 : a.size]
    first = (count - 1) // 2
    # NumPy centres by the longer vector, regardless of the order.
    return (
        result[first : first + a.size]
        if not is_swapped or name == "convolve"
        else (result[count - 1 - first : count - 1 - first + a.size])
    )


def nancumsum(x, /, axis=None, dtype=None):
    """Return :func:`cumsum` with NaN counted as 0.

    >>> import gputensor as gt
    >>> nancumsum(gt.asarray([1.0, float("nan"), 2.0], device="host")).tolist()
    [1.0, 1.0, 3.0]
    """
    return cumsum(_without_nan(x, 0, "nancumsum"), axis, dtype)


def nancumprod(x, /, axis=None, dtype=None):
    """Return :func:`cumprod` with NaN counted as 1.

    >>> import gputensor as gt
    >>> nancumprod(gt.asarray([2.0, float("nan"), 3.0], device="host")).tolist()
    [2.0, 2.0, 6.0]
    """
    return cumprod(_without_nan(x, 1, "nancumprod"), axis, dtype)


def _without_nan(x, value, name):
    if tensor_argument(x, name).dtype.kind in "biu":
        return x
    return fn.where(fn.isnan(x), value, x)


def polyval(p, x, /):
    """Return the polynomial with coefficients `p`, the highest power first, evaluated at `x`.

    Both may be lists or numbers, which become tensors on the device of the other one.

    >>> import gputensor as gt
    >>> polyval(gt.asarray([1, 0, 2], device="host"), gt.asarray([3, 4], device="host")).tolist()
    [11, 18]
    """
    first = p if isinstance(p, Tensor) else x if isinstance(x, Tensor) else asarray(p)
    p, x = beside(p, first), beside(x, first)
    if x.dtype.kind == "b" and p.dtype.kind in "iu":
        x = astype(x, p.dtype)
    if p.ndim == 1 and not p.size:
        return fn.multiply(x, astype(zeros((), device=x.device), p.dtype))
    p = _vector(p, "polyval")
    result = fn.add(fn.multiply(x, 0), p[0])
    for i in range(1, p.size):
        result = fn.add(fn.multiply(result, x), p[i])
    return result


@spellings(dim="axis")
def cumulative_trapezoid(y, /, x=None, dx=1.0, axis=-1):
    """Return the integrals of `y` along `axis` up to each place but the first; see `trapezoid`.

    >>> import gputensor as gt
    >>> cumulative_trapezoid(gt.asarray([1.0, 2.0, 4.0], device="host")).tolist()
    [1.5, 4.5]
    """
    name = "cumulative_trapezoid"
    axis = axis_argument(axis, tensor_argument(y, name).ndim, name)
    return fn.divide(cumsum(areas(y, x, dx, axis, name), axis), 2.0)
