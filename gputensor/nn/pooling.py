"""Pooling: the maximum or the mean of each window, in one kernel (the call "window")."""

from numbers import Real

from gputensor._arrays.dtypes import isdtype
from gputensor.errors import argument_error
from gputensor.nn import unpooling
from gputensor.nn.extents import Image, Plans, Window, each_axis
from gputensor.tensor import functions
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.engine import queue_call
from gputensor.tensor.manipulation.composed import rounded_once

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "global_avg_pool", "global_max_pool", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool2d", "max_pool3d",
]  # fmt: skip


def _check_dtype(name, image, is_max):
    if not isdtype(image.x.dtype, ("integral", "real floating") if is_max else "real floating"):
        rule = "a real dtype" if is_max else "a floating-point dtype"
        raise argument_error(TypeError, f"{name}: dtype of x", image.x.dtype, rule)


_plans = Plans()


def _pool(name, spatial, x, window, pooling, how):
    key = None
    with_places = how.get("return_indices")
    if type(x) is Tensor and not with_places:
        given = (how["ceil_mode"], how["data_format"])
        key = name, x.shape, x.strides, x.dtype, window, pooling, given
        plan = _plans.find(key)
        if plan is not None:
            seen, view, result = plan.prepare(x)
            queue_call("window", plan.attributes, (view,), (seen,))
            return result
    kernel, stride, padding, dilation = window
    kernel = each_axis(f"{name}: kernel_size", kernel, spatial, 1)
    image = Image(name, x, spatial, how["data_format"])
    _check_dtype(name, image, pooling == "max")
    window = Window(name, kernel, kernel if stride is None else stride, padding, dilation)
    extents = window.results(image.x.shape[2:], how["ceil_mode"])
    for before, after, reach in zip(window.before, window.after, window.reach, strict=True):
        if before >= reach or after >= reach:
            raise argument_error(ValueError, f"{name}: padding", padding,
                                 f"less than the window's extent {reach}")  # fmt: skip
    if with_places:
        places = [
            [range(at * stride - before, at * stride - before + reach, dilation)
             for at in range(count)]
            for count, stride, before, reach, dilation in zip(
                extents, window.stride, window.before, window.reach, window.dilation, strict=True)
        ]  # fmt: skip
        return _with_places(name, image, places)
    return _queue(image, extents, pooling, window, key)


def _with_places(name, image, places):
    if 0 in image.x.shape[2:]:
        raise argument_error(ValueError, f"{name}: shape of x", image.x.shape, "extents above 0")
    return tuple(image.given_back(one) for one in unpooling.greatest(name, image.x, places))


def _queue(image, extents, pooling, window, key=None):
    out = image.result(image.x.shape[1], extents)
    if out.size:
        attributes = (pooling, window.kernel, window.stride, window.before, window.after,
                      window.dilation)  # fmt: skip
        queue_call("window", attributes, (out,), (image.x,))
        if key is not None:
            _plans.keep(key, attributes, image, out)
    return image.given_back(out)


def _average(name, spatial, x, window, how):
    kernel, stride, padding = window
    pooling = "padded_mean" if how.pop("count_include_pad") else "mean"
    divisor = how.pop("divisor_override")
    if divisor is None:
        return _pool(name, spatial, x, (kernel, stride, padding, 1), pooling, how)
    if not isinstance(divisor, Real) or divisor == 0:
        rule = "a number other than 0"
        raise argument_error(ValueError, f"{name}: divisor_override", divisor, rule)
    return _divided(name, spatial, x, (kernel, stride, padding, 1), divisor, how)


@rounded_once
def _divided(name, spatial, x, window, divisor, how):
    return _pool(name, spatial, x, window, "sum", how) / divisor


def _adaptive(name, spatial, x, output_size, pooling, how):
    data_format, with_places = how
    image = Image(name, x, spatial, data_format)
    _check_dtype(name, image, pooling == "max")
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * spatial
    if len(sizes) == spatial:
        sizes = [n if n is not None else m for n, m in zip(sizes, image.x.shape[2:], strict=True)]
    sizes = each_axis(f"{name}: output_size", sizes, spatial, 1)
    if 0 in image.x.shape[2:]:
        raise argument_error(ValueError, f"{name}: shape of x", x.shape, "extents above 0")
    if with_places:
        places = [[range(at * n // m, -(-(at + 1) * n // m)) for at in range(m)]
                  for n, m in zip(image.x.shape[2:], sizes, strict=True)]  # fmt: skip
        return _with_places(name, image, places)
    window = Window(name, (0,) * spatial, 1, 0, 1)
    return _queue(image, sizes, pooling, window)


def _whole(name, x, data_format, function):
    x = tensor_argument(x, name)
    if data_format not in (None, "NCHW", "NHWC"):
        raise argument_error(ValueError, f"{name}: data_format", data_format, "'NCHW' or 'NHWC'")
    if x.ndim < 3:
        raise argument_error(ValueError, f"{name}: shape of x", x.shape, "at least three axes")
    axes = tuple(range(1, x.ndim - 1) if data_format == "NHWC" else range(2, x.ndim))
    return function(x, axis=axes, keepdims=True)


def global_avg_pool(x, *, data_format=None):
    """Return the mean over all axes except batch and channels; these axes get extent 1.

    The batch is axis 0. Channels are axis 1, or the last axis with `data_format` "NHWC", for any
    number of axes.

    >>> global_avg_pool(gt.asarray([[[1.0, 3.0]]], device="host")).numpy()
    array([[[2.]]], dtype=float32)
    """
    return _whole("global_avg_pool", x, data_format, functions.mean)


def global_max_pool(x, *, data_format=None):
    """Return the maximum over all axes except batch and channels; these axes get extent 1.

    Axes are those of :func:`global_avg_pool`.

    >>> global_max_pool(gt.asarray([[[1.0, 3.0]]], device="host")).numpy()
    array([[[3.]]], dtype=float32)
    """
    return _whole("global_max_pool", x, data_format, functions.max)


def max_pool1d(
    x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False, *,
    data_format=None,
):  # fmt: skip
    """Return the largest element of each window; parameters are those of :func:`max_pool2d`.

    >>> x = gt.asarray([[1.0, 2.0, 3.0, 4.0]], device="host")
    >>> max_pool1d(x, 2).tolist()
    [[2.0, 4.0]]
    """
    how = {
        "ceil_mode": bool(ceil_mode),
        "data_format": data_format,
        "return_indices": bool(return_indices),
    }
    window = (kernel_size, stride, padding, dilation)
    return _pool("max_pool1d", 1, x, window, "max", how)


def avg_pool1d(
    x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None, *, data_format=None,
):  # fmt: skip
    """Return the mean of each window; parameters are those of :func:`avg_pool2d`.

    >>> x = gt.asarray([[1.0, 2.0, 3.0, 4.0]], device="host")
    >>> avg_pool1d(x, 2).tolist()
    [[1.5, 3.5]]
    """
    how = {
        "ceil_mode": bool(ceil_mode),
        "data_format": data_format,
        "count_include_pad": count_include_pad,
        "divisor_override": divisor_override,
    }
    return _average("avg_pool1d", 1, x, (kernel_size, stride, padding), how)


def adaptive_avg_pool1d(x, output_size, *, data_format=None):
    """Return the mean of windows that cut x into `output_size` parts along each axis.

    The windows of an axis of n elements for m results begin at i * n // m and end before
    (i + 1) * n / m, rounded up; a size of None keeps an axis as it is.

    >>> adaptive_avg_pool1d(gt.asarray([[1.0, 2.0, 3.0, 4.0]], device="host"), 1).tolist()
    [[2.5]]
    """
    return _adaptive("adaptive_avg_pool1d", 1, x, output_size, "mean", (data_format, False))


def adaptive_max_pool1d(x, output_size, return_indices=False, *, data_format=None):
    """Return the largest element of windows that cut x into `output_size` parts along each axis.

    The windows of an axis of n elements for m results begin at i * n // m and end before
    (i + 1) * n / m, rounded up; a size of None keeps an axis as it is. `return_indices` is that of
    :func:`max_pool2d`.

    >>> adaptive_max_pool1d(gt.asarray([[1.0, 2.0, 3.0, 4.0]], device="host"), 1).tolist()
    [[4.0]]
    """
    how = (data_format, return_indices)
    return _adaptive("adaptive_max_pool1d", 1, x, output_size, "max", how)


def max_pool2d(
    x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False, *,
    data_format=None,
):  # fmt: skip
    """Return the maximum of each window; NaN if the window contains one.

    Parameters
    ----------
    x : Tensor
        Shape (batch, channels, height, width), or without the batch; of a real dtype.
    kernel_size : int or (int, int)
    stride : int or (int, int), optional
        By default `kernel_size`.
    padding : int, (int, int), pair of (before, after) for each axis, "same" or "valid"
        Smaller than the window's extent. Padding is never the maximum.
    dilation : int or (int, int)
    ceil_mode : bool
        Whether a last window that extends beyond x and its padding counts.
    return_indices : bool
        Return the pair (maxima, places). Places are int64 and count the elements of one channel of
        one image, as :func:`max_unpool2d` takes them; the first of several, the last NaN.
    data_format : {"NCHW", "NHWC"}
        "NCHW" by default.

    Raises
    ------
    TypeError
        For a dtype that is not real.
    ValueError
        For other arguments that do not fit.

    >>> x = gt.asarray([[[1.0, 2.0, 3.0, 4.0]]], device="host")
    >>> max_pool2d(x, (1, 2)).tolist()
    [[[2.0, 4.0]]]
    """
    how = {
        "ceil_mode": bool(ceil_mode),
        "data_format": data_format,
        "return_indices": bool(return_indices),
    }
    window = (kernel_size, stride, padding, dilation)
    return _pool("max_pool2d", 2, x, window, "max", how)


def avg_pool2d(
    x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None, *, data_format=None,
):  # fmt: skip
    """Return the mean of each window.

    Parameters
    ----------
    x, kernel_size, stride, padding, ceil_mode, data_format
        As in :func:`max_pool2d`, but x has a floating-point dtype.
    count_include_pad : bool
        Whether padding counts, as zeros. Places beyond the padding never count.
    divisor_override : float, optional
        The divisor of each window's sum, in place of the number of elements that count.

    >>> x = gt.asarray([[[1.0, 2.0, 3.0, 4.0]]], device="host")
    >>> avg_pool2d(x, (1, 2)).tolist()
    [[[1.5, 3.5]]]
    """
    how = {
        "ceil_mode": bool(ceil_mode),
        "data_format": data_format,
        "count_include_pad": count_include_pad,
        "divisor_override": divisor_override,
    }
    return _average("avg_pool2d", 2, x, (kernel_size, stride, padding), how)


def adaptive_avg_pool2d(x, output_size, *, data_format=None):
    """Return the mean of windows that cut x into `output_size` parts along each axis.

    The windows of an axis of n elements for m results begin at i * n // m and end before
    (i + 1) * n / m, rounded up; a size of None keeps an axis as it is.

    >>> adaptive_avg_pool2d(gt.asarray([[[1.0, 2.0, 3.0, 4.0]]], device="host"), 1).tolist()
    [[[2.5]]]
    """
    return _adaptive("adaptive_avg_pool2d", 2, x, output_size, "mean", (data_format, False))


def adaptive_max_pool2d(x, output_size, return_indices=False, *, data_format=None):
    """Return the largest element of windows that cut x into `output_size` parts along each axis.

    The windows of an axis of n elements for m results begin at i * n // m and end before
    (i + 1) * n / m, rounded up; a size of None keeps an axis as it is. `return_indices` is that of
    :func:`max_pool2d`.

    >>> adaptive_max_pool2d(gt.asarray([[[1.0, 2.0, 3.0, 4.0]]], device="host"), 1).tolist()
    [[[4.0]]]
    """
    how = (data_format, return_indices)
    return _adaptive("adaptive_max_pool2d", 2, x, output_size, "max", how)


def max_pool3d(
    x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False, *,
    data_format=None,
):  # fmt: skip
    """Return the largest element of each window; parameters are those of :func:`max_pool2d`.

    >>> x = gt.asarray([[[[1.0, 2.0, 3.0, 4.0]]]], device="host")
    >>> max_pool3d(x, (1, 1, 2)).tolist()
    [[[[2.0, 4.0]]]]
    """
    how = {
        "ceil_mode": bool(ceil_mode),
        "data_format": data_format,
        "return_indices": bool(return_indices),
    }
    window = (kernel_size, stride, padding, dilation)
    return _pool("max_pool3d", 3, x, window, "max", how)


def avg_pool3d(
    x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None, *, data_format=None,
):  # fmt: skip
    """Return the mean of each window; parameters are those of :func:`avg_pool2d`.

    >>> x = gt.asarray([[[[1.0, 2.0, 3.0, 4.0]]]], device="host")
    >>> avg_pool3d(x, (1, 1, 2)).tolist()
    [[[[1.5, 3.5]]]]
    """
    how = {
        "ceil_mode": bool(ceil_mode),
        "data_format": data_format,
        "count_include_pad": count_include_pad,
        "divisor_override": divisor_override,
    }
    return _average("avg_pool3d", 3, x, (kernel_size, stride, padding), how)


def adaptive_avg_pool3d(x, output_size, *, data_format=None):
    """Return the mean of windows that cut x into `output_size` parts along each axis.

    The windows of an axis of n elements for m results begin at i * n // m and end before
    (i + 1) * n / m, rounded up; a size of None keeps an axis as it is.

    >>> adaptive_avg_pool3d(gt.asarray([[[[1.0, 2.0, 3.0, 4.0]]]], device="host"), 1).tolist()
    [[[[2.5]]]]
    """
    return _adaptive("adaptive_avg_pool3d", 3, x, output_size, "mean", (data_format, False))


def adaptive_max_pool3d(x, output_size, return_indices=False, *, data_format=None):
    """Return the largest element of windows that cut x into `output_size` parts along each axis.

    The windows of an axis of n elements for m results begin at i * n // m and end before
    (i + 1) * n / m, rounded up; a size of None keeps an axis as it is. `return_indices` is that of
    :func:`max_pool2d`.

    >>> adaptive_max_pool3d(gt.asarray([[[[1.0, 2.0, 3.0, 4.0]]]], device="host"), 1).tolist()
    [[[[4.0]]]]
    """
    how = (data_format, return_indices)
    return _adaptive("adaptive_max_pool3d", 3, x, output_size, "max", how)


@rounded_once
def _lp_pool(name, spatial, x, norm_type, window):
    kernel_size, stride, ceil_mode = window
    if isinstance(norm_type, bool) or not isinstance(norm_type, Real) or norm_type == 0:
        raise argument_error(ValueError, f"{name}: norm_type", norm_type, "a number other than 0")
    how = {"ceil_mode": bool(ceil_mode), "data_format": None}
    powers = functions.pow(tensor_argument(x, name), norm_type)
    total = _pool(name, spatial, powers, (kernel_size, stride, 0, 1), "sum", how)
    return functions.pow(functions.maximum(total, 0), 1 / norm_type)


def lp_pool1d(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Return the p-norm of each window; parameters are those of :func:`lp_pool2d`.

    >>> lp_pool1d(gt.asarray([[3.0, 4.0, 6.0, 8.0]], device="host"), 2, 2).tolist()
    [[5.0, 10.0]]
    """
    return _lp_pool("lp_pool1d", 1, x, norm_type, (kernel_size, stride, ceil_mode))


def lp_pool2d(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Return the p-norm of each window: the root of the sum of the powers; 0 for negative sums.

    Parameters
    ----------
    x, kernel_size, stride, ceil_mode
        As in :func:`max_pool2d`, but x has a floating-point dtype.
    norm_type : float
        The exponent p, other than 0.

    >>> lp_pool2d(gt.asarray([[[3.0, 4.0, 6.0, 8.0]]], device="host"), 2, (1, 2)).tolist()
    [[[5.0, 10.0]]]
    """
    return _lp_pool("lp_pool2d", 2, x, norm_type, (kernel_size, stride, ceil_mode))


def lp_pool3d(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    """Return the p-norm of each window; parameters are those of :func:`lp_pool2d`.

    >>> lp_pool3d(gt.asarray([[[[3.0, 4.0]]]], device="host"), 2, (1, 1, 2)).tolist()
    [[[[5.0]]]]
    """
    return _lp_pool("lp_pool3d", 3, x, norm_type, (kernel_size, stride, ceil_mode))
