"""PyTorch's activations that are not in the table of operations; each runs as one kernel.

x may have any real dtype; bool and integers give float32. Values are computed in float32 (float64
for float64) and rounded once.
"""

import math
from numbers import Real

from gputensor.errors import argument_error
from gputensor.nn import activated, softmax
from gputensor.tensor.core import axis_argument, spellings, tensor_argument, written_argument
from gputensor.tensor.manipulation import reshape

__all__ = [
    "celu", "elu", "elu_", "finished", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "leaky_relu", "leaky_relu_", "logsigmoid", "mish", "prelu", "relu6", "selu",
    "softmin", "softplus", "softshrink", "softsign", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip

_X, _ZERO, _ONE = ("load", 0), ("number", 0), ("number", 1)
# Klambauer and others, Self-normalizing neural networks, 2017, section 2.
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def _number(name, argument, value):
    if isinstance(value, bool) or not isinstance(value, Real):
        raise argument_error(TypeError, f"{name}: {argument}", value, "a number")
    value = float(value)
    return ("number", value if math.isfinite(value) else str(value))


def _positive(condition, yes, no):
    return ("where", ("gt", condition, _ZERO), yes, no)


def _one(name, tree, x, *further):
    return activated(name, (tree,), (x, *further))


def finished(activation, value):
    """Return the expression tree that applies a convolution's activation, by name, to a value.

    >>> finished("relu", ("load", 0))
    ('relu', ('load', 0))
    """
    if activation == "relu6":
        return ("clip", value, _ZERO, ("number", 6))
    if activation == "hardswish":
        gate = ("clip", ("add", value, ("number", 3)), _ZERO, ("number", 6))
        return ("div", ("mul", value, gate), ("number", 6))
    return value if activation is None else (activation, value)


def relu6(x):
    """Return x clipped to the range 0 to 6.

    >>> relu6(gt.asarray([-1.0, 9.0], device="host")).numpy()
    array([0., 6.], dtype=float32)
    """
    return _one("relu6", ("clip", _X, _ZERO, ("number", 6)), x)


def leaky_relu(x, negative_slope=0.01):
    """Return x where it is positive, and negative_slope * x elsewhere.

    >>> leaky_relu(gt.asarray([-1.0, 9.0], device="host"), 0.5).numpy()
    array([-0.5,  9. ], dtype=float32)
    """
    slope = _number("leaky_relu", "negative_slope", negative_slope)
    return _one("leaky_relu", _positive(_X, _X, ("mul", _X, slope)), x)


def prelu(x, weight):
    """Return x where it is positive, and weight * x elsewhere.

    Parameters
    ----------
    x : Tensor
        Channels are axis 1 of a tensor with two axes or more.
    weight : Tensor
        One element, or one for each channel.

    >>> prelu(gt.asarray([-1.0, 9.0], device="host"), gt.asarray([2.0], device="host")).numpy()
    array([-2.,  9.], dtype=float32)
    """
    x, weight = tensor_argument(x, "prelu"), tensor_argument(weight, "prelu")
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.shape not in ((), (1,), (channels,)):
        raise argument_error(ValueError, "prelu: shape of weight", weight.shape, f"({channels},)")
    along = max(0, x.ndim - 2) if x.ndim > 1 else x.ndim - 1
    weight = reshape(weight, (weight.size, *(1,) * along) if x.ndim else ())
    return _one("prelu", _positive(_X, _X, ("mul", _X, ("load", 1))), x, weight)


def elu(x, alpha=1.0):
    """Return x where it is positive, and alpha * (exp(x) - 1) elsewhere.

    >>> elu(gt.asarray([0.0, 9.0], device="host")).numpy()
    array([0., 9.], dtype=float32)
    """
    scale = _number("elu", "alpha", alpha)
    return _one("elu", _positive(_X, _X, ("mul", scale, ("expm1", _X))), x)


def selu(x):
    """Return scale * elu(x, alpha) with the two constants of self-normalizing networks.

    >>> selu(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    below = ("mul", ("number", _SELU_SCALE * _SELU_ALPHA), ("expm1", _X))
    return _one("selu", _positive(_X, ("mul", ("number", _SELU_SCALE), _X), below), x)


def celu(x, alpha=1.0):
    """Return x where it is positive, and alpha * (exp(x / alpha) - 1) elsewhere.

    >>> celu(gt.asarray([0.0, 9.0], device="host"), 2.0).numpy()
    array([0., 9.], dtype=float32)
    """
    scale = _number("celu", "alpha", alpha)
    if alpha == 0:
        raise argument_error(ValueError, "celu: alpha", alpha, "a number other than 0")
    return _one("celu", _positive(_X, _X, ("mul", scale, ("expm1", ("div", _X, scale)))), x)


def hardtanh(x, min_val=-1.0, max_val=1.0):
    """Return x clipped to the range `min_val` to `max_val`.

    >>> hardtanh(gt.asarray([-3.0, 0.5], device="host")).numpy()
    array([-1. ,  0.5], dtype=float32)
    """
    low, high = (_number("hardtanh", n, v) for n, v in (("min_val", min_val), ("max_val", max_val)))
    return _one("hardtanh", ("clip", _X, low, high), x)


_GATE = ("div", ("clip", ("add", _X, ("number", 3)), _ZERO, ("number", 6)), ("number", 6))


def hardsigmoid(x):
    """Return (x + 3) / 6, clipped to the range 0 to 1.

    >>> hardsigmoid(gt.asarray([0.0, 9.0], device="host")).numpy()
    array([0.5, 1. ], dtype=float32)
    """
    return _one("hardsigmoid", _GATE, x)


def hardswish(x):
    """Return x * hardsigmoid(x).

    >>> hardswish(gt.asarray([-3.0, 9.0], device="host")).numpy()
    array([-0.,  9.], dtype=float32)
    """
    return _one("hardswish", ("mul", _X, _GATE), x)


def softplus(x, beta=1.0, threshold=20.0):
    """Return log(1 + exp(beta * x)) / beta, or x itself where beta * x is above `threshold`.

    >>> softplus(gt.asarray([0.0, 30.0], device="host")).numpy()
    array([ 0.6931472, 30.       ], dtype=float32)
    """
    factor, end = _number("softplus", "beta", beta), _number("softplus", "threshold", threshold)
    if beta == 0:
        raise argument_error(ValueError, "softplus: beta", beta, "a number other than 0")
    scaled = ("mul", _X, factor)
    smooth = ("div", ("log1p", ("exp", scaled)), factor)
    return _one("softplus", ("where", ("gt", scaled, end), _X, smooth), x)


def softsign(x):
    """Return x / (1 + abs(x)).

    >>> softsign(gt.asarray([-1.0, 3.0], device="host")).numpy()
    array([-0.5 ,  0.75], dtype=float32)
    """
    return _one("softsign", ("div", _X, ("add", _ONE, ("abs", _X))), x)


_TAIL = ("log1p", ("exp", ("neg", ("abs", _X))))


def mish(x):
    """Return x * tanh(log(1 + exp(x))).

    >>> mish(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return _one("mish", ("mul", _X, ("tanh", ("add", ("maximum", _X, _ZERO), _TAIL))), x)


def logsigmoid(x):
    """Return log(1 / (1 + exp(-x))).

    >>> logsigmoid(gt.asarray([0.0], device="host")).numpy()
    array([-0.6931472], dtype=float32)
    """
    return _one("logsigmoid", ("sub", ("minimum", _X, _ZERO), _TAIL), x)


def threshold(x, threshold, value):
    """Return x where it is above `threshold`, and `value` elsewhere.

    >>> threshold(gt.asarray([1.0, 3.0], device="host"), 2.0, 0.5).numpy()
    array([0.5, 3. ], dtype=float32)
    """
    end, other = _number("threshold", "threshold", threshold), _number("threshold", "value", value)
    return _one("threshold", ("where", ("le", _X, end), other, _X), x)


def hardshrink(x, lambd=0.5):
    """Return x where its magnitude is above `lambd`, and 0 elsewhere.

    >>> hardshrink(gt.asarray([0.25, 3.0], device="host")).numpy()
    array([0., 3.], dtype=float32)
    """
    end = _number("hardshrink", "lambd", lambd)
    return _one("hardshrink", ("where", ("le", ("abs", _X), end), _ZERO, _X), x)


def softshrink(x, lambd=0.5):
    """Return x moved towards 0 by `lambd`; magnitudes up to `lambd` become 0.

    >>> softshrink(gt.asarray([0.25, 3.0], device="host")).numpy()
    array([0. , 2.5], dtype=float32)
    """
    end = _number("softshrink", "lambd", lambd)
    inside = ("clip", _X, ("neg", end), end)
    return _one("softshrink", ("sub", _X, inside), x)


def tanhshrink(x):
    """Return x - tanh(x).

    >>> tanhshrink(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return _one("tanhshrink", ("sub", _X, ("tanh", _X)), x)


@spellings(dim="axis")
def softmin(x, axis=-1):
    """Return the softmax of -x.

    >>> softmin(gt.asarray([1.0, 1.0], device="host")).numpy()
    array([0.5, 0.5], dtype=float32)
    """
    return softmax(x, axis, scale=-1.0)


@spellings(dim="axis")
def glu(x, axis=-1):
    """Return the first half of x along `axis` times the sigmoid of the second half.

    >>> glu(gt.asarray([4.0, 0.0], device="host")).numpy()
    array([2.], dtype=float32)
    """
    x = tensor_argument(x, "glu")
    axis = axis_argument(axis, x.ndim, "glu")
    if x.shape[axis] % 2:
        raise argument_error(ValueError, "glu: extent of x", x.shape[axis], "an even number")
    half, before = x.shape[axis] // 2, (slice(None),) * axis
    first, second = x[before + (slice(None, half),)], x[before + (slice(half, None),)]
    return _one("glu", ("mul", _X, ("sigmoid", ("load", 1))), first, second)


def _in_place(activation, arguments=""):
    def function(x, /, *parameters, **keywords):
        written_argument(x, f"{name}_", "x")
        x[...] = activation(x, *parameters, **keywords)
        return x

    name = activation.__name__

    function.__name__ = function.__qualname__ = f"{name}_"
    function.__doc__ = f"""Write the result of :func:`{name}` to the tensor and return it.

    >>> import gputensor as gt
    >>> x = gt.asarray([-3.0, 0.5], device="host")
    >>> {name}_(x{arguments}) is x
    True
    """
    return function


elu_, hardtanh_, leaky_relu_ = map(_in_place, (elu, hardtanh, leaky_relu))
threshold_ = _in_place(threshold, ", 0.1, 20.0")
