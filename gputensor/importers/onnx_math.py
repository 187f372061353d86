"""ONNX operators on elements: arithmetic, comparison, bits, rounding, casts, activations."""

import functools
import math

import numpy as np

from gputensor._arrays.dtypes import is_float8
from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_registry import operator
from gputensor.importers.onnx_values import (
    Missing,
    describe,
    has_code,
    is_known,
    known,
    namespace,
    number,
    numpy_dtype,
    operands,
    tensor,
)
from gputensor.importers.public_functions import gt

__all__ = []

# Operators that equal a function with this name in both NumPy and the library.
_ELEMENTWISE = {
    "Abs": "abs", "Acos": "arccos", "Acosh": "arccosh", "Add": "add", "And": "logical_and",
    "Asin": "arcsin", "Asinh": "arcsinh", "Atan": "arctan", "Atanh": "arctanh",
    "BitwiseAnd": "bitwise_and", "BitwiseNot": "invert", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Equal": "equal",
    "Exp": "exp", "Floor": "floor", "Greater": "greater", "GreaterOrEqual": "greater_equal",
    "IsNaN": "isnan", "Less": "less", "LessOrEqual": "less_equal", "Log": "log", "Mul": "multiply",
    "Neg": "negative", "Not": "logical_not", "Or": "logical_or", "Round": "round", "Sign": "sign",
    "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Sub": "subtract", "Tan": "tan", "Tanh": "tanh",
    "Xor": "logical_xor",
}  # fmt: skip
# Activations of one tensor, without attributes.
_ACTIVATIONS = {"Erf": "erf", "Relu": "relu", "Sigmoid": "sigmoid"}


def _elementwise(name):
    def run(*values):
        xp = namespace(*values)
        if xp is np:
            with np.errstate(all="ignore"):
                return np.asarray(getattr(np, name)(*values))
        return getattr(gt, name)(*_aligned(values))

    return run


def _aligned(values):
    """Return values as tensors and numbers, at least one of which is a tensor."""
    found = operands(values)
    if not any(isinstance(one, gt.Tensor) for one in found):
        found[0] = tensor(values[0])
    device = next(one.device for one in found if isinstance(one, gt.Tensor))
    return [
        tensor(value, device) if isinstance(one, gt.Tensor) and is_known(value) else one
        for one, value in zip(found, values, strict=True)
    ]


for _name, _function in _ELEMENTWISE.items():
    operator(_name, folds=True)(_elementwise(_function))
for _name, _function in _ACTIVATIONS.items():
    operator(_name)(getattr(gt, _function))


@operator("Div", folds=True)
def div(x, y):
    xp = namespace(x, y)
    if x.dtype.kind not in "iu":
        return _elementwise("divide")(x, y)
    # ONNX rounds the quotient of integers towards zero.
    if xp is np:
        with np.errstate(all="ignore"):
            floor = np.floor_divide(x, y)
            return np.asarray(floor + ((floor < 0) & (floor * y != x)), x.dtype)
    x, y = _aligned([x, y])
    quotient = gt.floor_divide(x, y)
    if getattr(x, "dtype", getattr(y, "dtype", None)).kind == "u":
        return quotient
    remains = gt.not_equal(gt.multiply(quotient, y), x)
    return quotient + gt.logical_and(gt.less(quotient, 0), remains).astype(quotient.dtype)


@operator("Pow", folds=True)
def power(x, y):
    if namespace(x, y) is np:
        return np.asarray(np.power(x, y)).astype(x.dtype)
    dtype = x.dtype
    if is_known(y) and y.size == 1 and y.ndim <= x.ndim:
        exponent = number(y)
        if exponent in (2, 2.0):
            return gt.square(tensor(x))
        if dtype.kind in "iu" and isinstance(exponent, float) and exponent.is_integer():
            exponent = int(exponent)
        return gt.pow(tensor(x), exponent).astype(dtype, copy=False)
    device = (y if is_known(x) else x).device
    return gt.pow(tensor(x, device), tensor(y, device)).astype(dtype, copy=False)


@operator("Mod", folds=True)
def mod(x, y, *, fmod):
    return _elementwise("fmod" if fmod else "remainder")(x, y)


@operator("Reciprocal", folds=True)
def reciprocal(x):
    return np.asarray(1 / x).astype(x.dtype) if namespace(x) is np else gt.reciprocal(tensor(x))


def _fold_left(name):
    function = _elementwise(name)

    def run(*values):
        return functools.reduce(function, values)

    return run


operator("Min", folds=True)(_fold_left("minimum"))
operator("Max", folds=True)(_fold_left("maximum"))
operator("Sum", folds=True)(_fold_left("add"))


@operator("Mean", folds=True)
def mean(*values):
    total = _fold_left("add")(*values)
    return (total / len(values)).astype(values[0].dtype)


@operator("BitShift")
def bit_shift(x, y, *, direction):
    return gt.bitwise_left_shift(x, y) if direction == "LEFT" else gt.bitwise_right_shift(x, y)


@operator("Where", folds=True)
def where(condition, x, y):
    if namespace(condition, x, y) is np:
        return np.where(condition, x, y).astype(x.dtype)
    if is_known(condition) and condition.size == 1 and condition.ndim <= min(x.ndim, y.ndim):
        chosen = tensor(x if number(condition) else y)
        return gt.broadcast_to(chosen, gt.broadcast_shapes(x.shape, y.shape))
    device = next(one.device for one in (condition, x, y) if not is_known(one))
    condition, dtype = tensor(condition, device), x.dtype
    x, y = (
        number(one) if is_known(one) and one.size == 1 and one.ndim <= condition.ndim
        and one.dtype.kind in "bif" else tensor(one, device)
        for one in (x, y)
    )  # fmt: skip
    if not isinstance(x, gt.Tensor) and not isinstance(y, gt.Tensor):
        x = gt.full((), x, dtype, device=device)
    return gt.where(condition, x, y)


@operator("Clip", 6)
def clip_attributes(x, *, min, max):
    return gt.clip(x, min, max)


@operator("Clip", 11, folds=True)
def clip(x, low=None, high=None):
    if namespace(x, low, high) is np:
        return np.asarray(np.clip(x, low, high)).astype(x.dtype)
    if low is not None:
        x = _elementwise("maximum")(x, low)
    return x if high is None else _elementwise("minimum")(x, high)


@operator("IsInf")
def is_inf(x, *, detect_negative, detect_positive):
    if is_float8(x.dtype):
        x = x.astype("float32")
    if detect_negative and detect_positive:
        return gt.isinf(x)
    if not detect_negative and not detect_positive:
        return gt.zeros(x.shape, dtype="bool", device=x.device)
    return gt.equal(x, math.inf if detect_positive else -math.inf)


# ---- casts

_LIMITS = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float8_e4m3fnuz": 240.0,
           "float8_e5m2fnuz": 57344.0}  # fmt: skip


@operator("Cast", folds=True)
def cast(x, *, to, saturate=1, round_mode="up"):
    return converted(x, numpy_dtype(to), saturate, round_mode)


@operator("CastLike", folds=True)
def cast_like(x, target, *, saturate=1, round_mode="up"):
    return converted(x, target.dtype, saturate, round_mode)


def converted(x, dtype, saturate=1, round_mode="up"):
    """Return a value converted to another element type by the rules of ONNX's Cast."""
    if dtype == x.dtype:
        return x
    if not is_known(x):
        name = dtype.name
        if has_code(dtype) and name not in _LIMITS and not is_float8(x.dtype):
            return x.astype(dtype)
        if has_code(dtype):
            x = x.astype("float32")
            if saturate and name in _LIMITS:
                finite = gt.clip(x, -_LIMITS[name], _LIMITS[name])
                x = finite
            return x.astype(dtype)
    return _array_cast(known(x), dtype, saturate, round_mode)


def _array_cast(x, dtype, saturate, round_mode):
    if dtype.kind == "O" or x.dtype.kind == "O":
        return _text_cast(x, dtype)
    with np.errstate(all="ignore"):
        if dtype.name in _LIMITS:
            x = x.astype(np.float32)
            if saturate:
                x = np.clip(x, -_LIMITS[dtype.name], _LIMITS[dtype.name])
            return x.astype(dtype)
        if dtype.name == "float8_e8m0fnu":
            return _powers_of_two(x.astype(np.float32), dtype, saturate, round_mode)
        if dtype.name in ("int4", "uint4", "int2", "uint2") and x.dtype.kind not in "b":
            bits = int(dtype.name[-1])
            whole = np.rint(x.astype(np.float32)).astype(np.int64) & ((1 << bits) - 1)
            if dtype.name.startswith("i"):
                whole = np.where(whole >> (bits - 1), whole - (1 << bits), whole)
            return whole.astype(np.int8).astype(dtype)
        if x.dtype.name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
            x = x.astype(np.float32)
        return x.astype(dtype)


def _text_cast(x, dtype):
    if dtype.kind == "O":
        return np.array([str(one) for one in x.reshape(-1)], object).reshape(x.shape)
    return np.array([float(one) for one in x.reshape(-1)]).reshape(x.shape).astype(dtype)


def _powers_of_two(x, dtype, saturate, round_mode):
    """Return floats as float8_e8m0: their exponents, rounded according to `round_mode`."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    exponent = (bits >> 23 & 0xFF).astype(np.int64)
    fraction = bits & 0x7FFFFF
    if round_mode == "nearest":
        more = (fraction >> 22 & 1) & ((fraction & 0x3FFFFF > 0) | (exponent > 0))
    else:
        more = (fraction > 0) if round_mode == "up" else np.zeros_like(fraction)
    is_nan = (exponent == 255) & (fraction > 0) | (bits >> 31 > 0) & (bits << 1 > 0)
    exponent = exponent + more.astype(np.int64)
    if saturate:
        exponent = np.minimum(exponent, 254)
    exponent = np.where(is_nan, 255, exponent)
    return exponent.astype(np.uint8).view(dtype)


# ---- activations


@operator("LeakyRelu")
def leaky_relu(x, *, alpha):
    return gt.where(gt.less(x, 0), x * alpha, x)


@operator("PRelu")
def prelu(x, slope):
    return gt.where(gt.less(x, 0), x * slope, x)


@operator("Elu")
def elu(x, *, alpha):
    return gt.where(gt.less(x, 0), gt.expm1(x) * alpha, x)


@operator("Selu")
def selu(x, *, alpha, gamma):
    return gt.where(gt.greater(x, 0), x, gt.expm1(x) * alpha) * gamma


@operator("Celu")
def celu(x, *, alpha):
    return gt.maximum(x, 0) + gt.minimum(gt.expm1(x / alpha) * alpha, 0)


@operator("HardSigmoid")
def hard_sigmoid(x, *, alpha, beta):
    return gt.clip(x * alpha + beta, 0, 1)


@operator("HardSwish")
def hard_swish(x):
    return x * gt.clip(x * (1 / 6) + 0.5, 0, 1)


@operator("Softplus")
def softplus(x):
    return gt.maximum(x, 0) + gt.log1p(gt.exp(-gt.abs(x)))


@operator("Softsign")
def softsign(x):
    return x / (1 + gt.abs(x))


@operator("Gelu")
def gelu(x, *, approximate):
    return gt.gelu(x, approximate=approximate)


@operator("Mish")
def mish(x):
    return x * gt.tanh(softplus(x))


@operator("Swish")
def swish(x, *, alpha):
    return gt.silu(x) if alpha == 1 else x * gt.sigmoid(x * alpha)


@operator("ThresholdedRelu")
def thresholded_relu(x, *, alpha):
    return gt.where(gt.greater(x, alpha), x, 0)


@operator("Shrink")
def shrink(x, *, lambd, bias):
    low = gt.where(gt.less(x, -lambd), x + bias, 0)
    return gt.where(gt.greater(x, lambd), x - bias, low).astype(x.dtype)


@operator("Binarizer", domain="ai.onnx.ml")
def binarizer(x, *, threshold):
    return gt.greater(x, threshold).astype(x.dtype)


@operator("Det")
def det(x):
    return gt.linalg.det(x)


@operator("BitCast", folds=True)
def bit_cast(x, *, to):
    dtype = numpy_dtype(to)
    if dtype.itemsize != x.dtype.itemsize:
        got = Described(f"{describe(x)} as {dtype.name}")
        raise argument_error(Missing, "BitCast", got, "a dtype of the same size")
    return known(x).view(dtype)
