"""Convolutions with PyTorch's arguments; each is one call (blas/convolution).

A transposed convolution is one call for each phase of its strides.
"""

import itertools
import math

from gputensor._arrays.dtypes import isdtype
from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.calls import CONVOLUTION_ACTIVATIONS
from gputensor.errors import Described, argument_error, plain_int
from gputensor.nn import activated, activations, current_precision, on_device_of
from gputensor.nn.extents import Image, Plans, Window, each_axis
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.engine import queue_call
from gputensor.tensor.manipulation import moveaxis, permute_dims, reshape

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


class _Finish:
    """The checked bias, addend and activation of a convolution."""

    def __init__(self, name, outputs, bias, addend, activation):
        if activation not in CONVOLUTION_ACTIVATIONS:
            known = ", ".join(CONVOLUTION_ACTIVATIONS[1:])
            raise argument_error(
                ValueError, f"{name}: activation", activation, f"None or one of {known}"
            )
        self.bias = None if bias is None else tensor_argument(bias, name)
        self.addend = None if addend is None else tensor_argument(addend, name)
        self.activation = activation
        if bias is not None and bias.shape != (outputs,):
            raise argument_error(ValueError, f"{name}: shape of bias", bias.shape, f"({outputs},)")


def _dtype_name(x):
    return next(row.name for row in DTYPES if row.numpy == x.dtype)


def _checked(name, image, weight, groups, is_turned):
    """Return the weight as a tensor, after comparing its dtype and channels with those of x."""
    weight, x = tensor_argument(weight, name), image.x
    if weight.ndim != x.ndim:
        raise argument_error(ValueError, f"{name}: shape of weight", weight.shape, f"{x.ndim} axes")
    if not isdtype(x.dtype, "real floating") or weight.dtype != x.dtype:
        got = Described(f"{_dtype_name(x)} and {_dtype_name(weight)}")
        raise argument_error(
            TypeError, f"{name}: dtypes of x and weight", got, "one floating-point dtype"
        )
    if type(groups) is not int or groups < 1 or weight.shape[0] % groups:
        rule = f"a divisor of the {weight.shape[0]} {'channels' if is_turned else 'outputs'}"
        raise argument_error(ValueError, f"{name}: groups", groups, rule)
    wanted = weight.shape[0] if is_turned else weight.shape[1] * groups
    if x.shape[1] != wanted:
        raise argument_error(ValueError, f"{name}: channels of x", x.shape[1], wanted)
    if 0 in weight.shape:
        rule = "extents above 0"
        raise argument_error(ValueError, f"{name}: shape of weight", weight.shape, rule)
    return weight


def _check_beside(name, image, finish, out):
    """Check that bias and addend have the dtype of x, and the addend the shape of the result."""
    for argument, one in (("bias", finish.bias), ("addend", finish.addend)):
        if one is not None and one.dtype != image.x.dtype:
            got, rule = Described(_dtype_name(one)), _dtype_name(image.x)
            raise argument_error(TypeError, f"{name}: dtype of {argument}", got, rule)
    if finish.addend is not None:
        shape = image.given_back(out).shape
        if finish.addend.shape != shape:
            raise argument_error(ValueError, f"{name}: shape of addend", finish.addend.shape, shape)
        addend = finish.addend[None] if image.is_single else finish.addend
        finish.addend = moveaxis(addend, -1, 1) if image.is_last else addend


def _queue(name, x, weight, out, finish, how, groups):
    x, weight, bias, addend = on_device_of(name, (x, weight, finish.bias, finish.addend))
    attributes = (*how, groups, finish.activation, current_precision())
    queue_call("convolution", attributes, (out,), (x, weight, bias, addend))


_plans = Plans()


def _key_of(name, tensors, window, how):
    """Return the key of a call's plan, or None for a call whose plan is not kept."""
    x, weight, bias = tensors
    if type(x) is not Tensor or type(weight) is not Tensor or how["addend"] is not None:
        return None
    if bias is not None and type(bias) is not Tensor:
        return None
    beside = None if bias is None else (bias.shape, bias.dtype)
    given = (how["groups"], how["data_format"], how["activation"])
    return name, x.shape, x.strides, x.dtype, weight.shape, weight.dtype, beside, window, given


def _convolution(name, x, weight, bias, window, how):
    key = _key_of(name, (x, weight, bias), window, how)
    plan = None if key is None else _plans.find(key)
    if plan is not None:
        x, weight, bias = on_device_of(name, (x, weight, bias))
        seen, view, result = plan.prepare(x)
        attributes = (*plan.attributes, current_precision())
        queue_call("convolution", attributes, (view,), (seen, weight, bias, None))
        return result
    spatial, groups = how["spatial"], how["groups"]
    image = Image(name, x, spatial, how["data_format"])
    weight = _checked(name, image, weight, groups, False)
    window = Window(name, weight.shape[2:], *window)
    finish = _Finish(name, weight.shape[0], bias, how["addend"], how["activation"])
    extents = window.results(image.x.shape[2:])
    out = image.result(weight.shape[0], extents)
    _check_beside(name, image, finish, out)
    if out.size:
        call = (window.stride, window.before, window.dilation)
        _queue(name, image.x, weight, out, finish, call, groups)
        if key is not None:
            _plans.keep(key, (*call, groups, finish.activation), image, out)
    return image.given_back(out)


def _how(spatial, groups, data_format, activation, addend):
    return {
        "spatial": spatial,
        "groups": plain_int(groups),
        "data_format": data_format,
        "activation": activation,
        "addend": addend,
    }


def conv1d(
    x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, data_format=None,
    activation=None, addend=None,
):  # fmt: skip
    """Return the convolution along one axis; parameters are those of :func:`conv2d`.

    `x` is (batch, channels, length), or (batch, length, channels) with `data_format` "NLC".

    >>> x = gt.ones((1, 1, 3), device="host")
    >>> conv1d(x, x, padding=1).numpy()
    array([[[2., 3., 2.]]], dtype=float32)
    """
    how = _how(1, groups, data_format, activation, addend)
    return _convolution("conv1d", x, weight, bias, (stride, padding, dilation), how)


def conv2d(
    x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, data_format=None,
    activation=None, addend=None,
):  # fmt: skip
    """Return activation(convolution(x, weight) + bias + addend).

    As in PyTorch, the kernel is not flipped: ``out[o, y, x]`` is the sum over channels and taps of
    ``weight[o, c, i, j] * x[c, y * stride + i * dilation - padding, ...]``, where x is 0 outside.
    16-bit floats are summed in float32 and rounded once; only the bias of a single output may be
    added after a rounding. If the channels of x are adjacent in memory, those of the result are
    too, whatever `data_format` is; 16-bit convolutions are fastest in that order, with weights
    whose channels are adjacent too.

    Parameters
    ----------
    x : Tensor
        Shape (batch, channels, height, width), or without the batch; of a floating-point dtype.
    weight : Tensor
        Shape (outputs, channels / groups, height, width) for either `data_format`, of x's dtype.
    bias : Tensor, optional
        One element for each output, of x's dtype.
    stride, dilation : int or (int, int)
    padding : int, (int, int), pair of (before, after) for each axis, "same" or "valid"
        "same" gives extents / stride results, rounded up; "valid" is 0.
    groups : int
        An output sees only the channels of its group.
    data_format : {"NCHW", "NHWC"}
        The order of the axes of `x`, `addend` and the result; "NCHW" by default.
    activation : {"relu", "gelu", "gelu_tanh", "silu", "relu6", "hardswish"}, optional
    addend : Tensor, optional
        Shape and dtype of the result.

    Raises
    ------
    TypeError
        For dtypes that are not one floating-point dtype.
    ValueError
        For other arguments that do not fit; the message names the argument.

    >>> x = gt.ones((1, 2, 3, 3), device="host")
    >>> conv2d(x, gt.ones((1, 2, 2, 2), device="host")).numpy()[0, 0]
    array([[8., 8.],
           [8., 8.]], dtype=float32)
    """
    how = _how(2, groups, data_format, activation, addend)
    return _convolution("conv2d", x, weight, bias, (stride, padding, dilation), how)


def conv3d(
    x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, data_format=None,
    activation=None, addend=None,
):  # fmt: skip
    """Return the convolution along three axes; parameters are those of :func:`conv2d`.

    `x` is (batch, channels, depth, height, width), or channels last with `data_format` "NDHWC".

    >>> x = gt.ones((1, 1, 2, 2, 2), device="host")
    >>> conv3d(x, x).item()
    8.0
    """
    how = _how(3, groups, data_format, activation, addend)
    return _convolution("conv3d", x, weight, bias, (stride, padding, dilation), how)


# ---- transposed


def _phases(extent, count, window, axis):
    """Yield the convolutions along one axis that make up a transposed convolution.

    Results that are a stride apart are a convolution of x with the taps that reach them, reversed.
    Yields (slice of the results, slice of the taps or None, first element, padding, dilation).
    """
    stride, dilation = window.stride[axis], window.dilation[axis]
    common = math.gcd(stride, dilation)
    for start in range(min(stride, count)):
        place = start + window.before[axis]
        results = slice(start, None, stride)
        first = next(
            (k for k in range(stride // common) if (k * dilation - place) % stride == 0), None
        )
        if first is None or first >= window.kernel[axis]:
            yield results, None, 0, 0, 1
            continue
        step, apart = stride // common, dilation // common
        last = first + (window.kernel[axis] - 1 - first) // step * step
        padding = (last - first) // step * apart - (place - first * dilation) // stride
        taps = slice(last, first - 1 if first else None, -step)
        begin = max(0, -padding)
        yield results, (None if begin >= extent else taps), begin, max(0, padding), apart


def _transposed_weight(weight, groups):
    """Return a weight (channels, outputs / groups, ...) as (outputs, channels / groups, ...)."""
    channels, outputs = weight.shape[:2]
    apart = reshape(weight, (groups, channels // groups, *weight.shape[1:]))
    order = (0, 2, 1, *range(3, apart.ndim))
    return reshape(
        permute_dims(apart, order), (groups * outputs, channels // groups, *weight.shape[2:])
    )


def _without_taps(out, finish, part):
    """Write the results that no element of x reaches: bias and addend only."""
    bias = finish.bias
    given = [] if finish.addend is None else [finish.addend[part]]
    given += [] if bias is None else [reshape(bias, (-1, *(1,) * (out.ndim - 2)))]
    if not given:
        out[part] = 0  # every activation maps 0 to 0
        return
    value = ("load", 0) if len(given) == 1 else ("add", ("load", 0), ("load", 1))
    tree = activations.finished(finish.activation, value)
    out[part] = activated("conv_transpose", (tree,), tuple(given))


def _transposed(name, x, weight, bias, window, how):
    spatial, groups = how["spatial"], how["groups"]
    image = Image(name, x, spatial, how["data_format"])
    weight = _checked(name, image, weight, groups, True)
    stride, padding, extra, dilation = window
    window = Window(name, weight.shape[2:], stride, padding, dilation)
    extra = each_axis(f"{name}: output_padding", extra, spatial, 0)
    extents = image.x.shape[2:]
    counts = tuple(
        (n - 1) * s + reach + more - before - after
        for n, s, reach, more, before, after in zip(
            extents, window.stride, window.reach, extra, window.before, window.after, strict=True
        )
    )
    if window.is_same or min(counts) < 1:
        rule = "padding that leaves a result along each axis"
        raise argument_error(ValueError, f"{name}: padding", padding, rule)
    outputs = weight.shape[1] * groups
    finish = _Finish(name, outputs, bias, how["addend"], how["activation"])
    out = image.result(outputs, counts)
    _check_beside(name, image, finish, out)
    if out.size:
        _by_phases(name, image.x, _transposed_weight(weight, groups), out, finish, window, groups)
    return image.given_back(out)


def _by_phases(name, x, weight, out, finish, window, groups):
    spatial = out.ndim - 2
    each = [_phases(x.shape[2 + i], out.shape[2 + i], window, i) for i in range(spatial)]
    whole, addend = (slice(None),) * 2, finish.addend
    for phases in itertools.product(*map(list, each)):
        results, taps, begins, padding, dilation = zip(*phases, strict=True)
        part = (*whole, *results)
        if None in taps:
            _without_taps(out, finish, part)
            continue
        finish.addend = None if addend is None else addend[part]
        seen = x[whole + tuple(slice(begin, None) for begin in begins)]
        call = ((1,) * spatial, padding, dilation)
        _queue(name, seen, weight[whole + taps], out[part], finish, call, groups)
        finish.addend = addend


def conv_transpose1d(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, *, dilation=1,
    data_format=None, activation=None, addend=None,
):  # fmt: skip
    """Return the transposed convolution along one axis; see :func:`conv_transpose2d`.

    >>> x = gt.ones((1, 1, 2), device="host")
    >>> conv_transpose1d(x, x, stride=2).numpy()
    array([[[1., 1., 1., 1.]]], dtype=float32)
    """
    how = _how(1, groups, data_format, activation, addend)
    window = (stride, padding, output_padding, dilation)
    return _transposed("conv_transpose1d", x, weight, bias, window, how)


def conv_transpose2d(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, *, dilation=1,
    data_format=None, activation=None, addend=None,
):  # fmt: skip
    """Return the transpose of :func:`conv2d`: each element of x adds its kernel to the result.

    Parameters
    ----------
    x : Tensor
        Shape (batch, channels, height, width), or without the batch; of a floating-point dtype.
    weight : Tensor
        Shape (channels, outputs / groups, height, width), of x's dtype.
    bias : Tensor, optional
        One element for each output, of x's dtype.
    stride, dilation : int or (int, int)
    padding : int, (int, int) or pair of (before, after) for each axis
        The number of elements cut off the result at each end.
    output_padding : int or (int, int)
        The number of elements added at the end of each axis of the result.
    groups : int
    data_format, activation, addend
        As in :func:`conv2d`.

    Raises
    ------
    TypeError, ValueError
        As :func:`conv2d`; also for padding that leaves no result.

    >>> x = gt.ones((1, 1, 2, 2), device="host")
    >>> conv_transpose2d(x, x).numpy()[0, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]], dtype=float32)
    """
    how = _how(2, groups, data_format, activation, addend)
    window = (stride, padding, output_padding, dilation)
    return _transposed("conv_transpose2d", x, weight, bias, window, how)


def conv_transpose3d(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, *, dilation=1,
    data_format=None, activation=None, addend=None,
):  # fmt: skip
    """Return the transposed convolution along three axes; see :func:`conv_transpose2d`.

    >>> x = gt.ones((1, 1, 1, 1, 2), device="host")
    >>> conv_transpose3d(x, x).numpy()[0, 0]
    array([[[1., 2., 1.]]], dtype=float32)
    """
    how = _how(3, groups, data_format, activation, addend)
    window = (stride, padding, output_padding, dilation)
    return _transposed("conv_transpose3d", x, weight, bias, window, how)
