"""ATen operators that compute element by element."""

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.aten.table import aten, find, operands
from gputensor.importers.public_functions import gt

__all__ = []


def _promoted(function):
    def run(*values, **options):
        return function(*operands(values), **options)

    return run


# Functions of one tensor with the same name, and functions that take the same arguments.
_UNARY = """
abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
ceil conj cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac i0 imag isfinite
isinf isnan isneginf isposinf isreal lgamma log log10 log1p log2 logical_not mish negative positive
rad2deg real reciprocal relu rsqrt selu sgn sigmoid sign signbit silu sin sinc sinh sqrt square tan
tanh tanhshrink trunc view_as_complex view_as_real
celu diag_embed diff flip hardshrink hardsigmoid hardswish logit pixel_shuffle pixel_unshuffle
roll rot90 softshrink swapaxes swapdims tensor_split threshold unfold ravel fliplr flipud
"""
# Functions of several operands, whose common dtype follows PyTorch's rules.
_BINARY = """
addcdiv addcmul arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift
bitwise_xor complex copysign divide eq float_power floor_divide fmax fmin fmod gcd ge greater
greater_equal gt heaviside hypot isclose lcm ldexp le lerp less less_equal logaddexp logaddexp2
logical_and logical_or logical_xor lt masked_fill maximum minimum mul multiply ne nextafter
not_equal polar pow remainder true_divide xlogy
"""
_OTHER_NAMES = {
    "__and__": "bitwise_and", "__lshift__": "bitwise_left_shift", "__or__": "bitwise_or",
    "__rshift__": "bitwise_right_shift", "__xor__": "bitwise_xor", "bitwise_not": "bitwise_invert",
    "conj_physical": "conj", "moveaxis": "moveaxis", "movedim": "moveaxis", "neg": "negative",
}  # fmt: skip
for _name in _UNARY.split():
    aten(_name)(getattr(gt, _name))
for _name in _BINARY.split():
    aten(_name)(_promoted(getattr(gt, _name)))
for _name, _function in _OTHER_NAMES.items():
    aten(_name)(find(_function) or getattr(gt, _function))


def _scaled(x, alpha):
    return x if alpha == 1 else x * alpha


@aten("add")
def add(x, y, *, alpha=1):
    return gt.add(*operands([x, _scaled(y, alpha)]))


@aten("sub subtract")
def sub(x, y, *, alpha=1):
    return gt.subtract(*operands([x, _scaled(y, alpha)]))


@aten("rsub")
def rsub(x, y, alpha=1):
    return gt.subtract(*operands([y, _scaled(x, alpha)]))


@aten("div")
def div(x, y, *, rounding_mode=None):
    x, y = operands([x, y])
    if rounding_mode is None:
        return gt.divide(x, y)
    if rounding_mode == "floor":
        return gt.floor_divide(x, y)
    kind = gt.result_type(x, y)
    if not gt.isdtype(kind, "integral"):
        return gt.trunc(gt.divide(x, y))
    floors = gt.floor_divide(x, y)
    below = gt.logical_and(gt.less(floors, 0), gt.not_equal(floors * y, x))
    return floors + below.astype(floors.dtype)


@aten("round")
def round(x, *, decimals=0):
    return gt.round(x, decimals)


@aten("nan_to_num")
def nan_to_num(x, nan=None, posinf=None, neginf=None):
    return gt.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


@aten("clamp clip")
def clamp(x, min=None, max=None):
    x, min, max = operands([x, min, max])
    return gt.clip(x, min, max)


@aten("clamp_min")
def clamp_min(x, least):
    return gt.maximum(*operands([x, least]))


@aten("clamp_max")
def clamp_max(x, most):
    return gt.minimum(*operands([x, most]))


@aten("where")
def where(condition, x=None, y=None):
    if x is None:
        return gt.nonzero(condition)
    return gt.where(condition, *operands([x, y]))


@aten("gelu")
def gelu(x, *, approximate="none"):
    return gt.gelu(x, approximate=approximate)


@aten("relu6")
def relu6(x):
    return gt.clip(x, 0, 6)


@aten("hardtanh")
def hardtanh(x, low=-1, high=1):
    return gt.clip(x, low, high)


@aten("leaky_relu")
def leaky_relu(x, slope=0.01):
    return gt.where(x < 0, x * slope, x)


@aten("rrelu")
def rrelu(x, lower=1 / 8, upper=1 / 3, training=False):
    if training:
        raise argument_error(ModelError, "rrelu", Described("training"), "model.eval()")
    return leaky_relu(x, (lower + upper) / 2)


@aten("rrelu_with_noise_functional")
def rrelu_with_noise(x, noise, *options):
    return rrelu(x, *options), noise


@aten("elu")
def elu(x, alpha=1, scale=1, input_scale=1):
    return gt.where(x < 0, gt.expm1(x * input_scale) * alpha, x) * scale


@aten("prelu _prelu_kernel")
def prelu(x, weight):
    if weight.ndim == 1 and weight.shape[0] > 1 and x.ndim > 2:
        weight = gt.reshape(weight, (-1,) + (1,) * (x.ndim - 2))
    return gt.where(x < 0, x * weight, x)


@aten("softplus")
def softplus(x, beta=1, threshold=20):
    wide = x * beta
    return gt.where(wide > threshold, x, gt.log1p(gt.exp(gt.minimum(wide, threshold))) / beta)


@aten("log_sigmoid")
def log_sigmoid(x):
    return gt.logsigmoid(x)


@aten("log_sigmoid_forward")
def log_sigmoid_forward(x):
    return gt.logsigmoid(x), None


@aten("glu")
def glu(x, dim=-1):
    return gt.glu(x, dim)
