"""ONNX operators on quantized values: scales, zero points, blocks, integer products."""

import numpy as np

from gputensor._arrays.dtypes import is_float8
from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_math import converted
from gputensor.importers.onnx_reduction import centred
from gputensor.importers.onnx_registry import operator
from gputensor.importers.onnx_values import Missing, has_code, is_known, numpy_dtype, tensor
from gputensor.importers.public_functions import gt

__all__ = []

_RANGES = {
    "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535),
    "int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3),
}  # fmt: skip


def _spread(value, shape, axis, block):
    """Return scales or zero points broadcast to the elements that they belong to."""
    if value.ndim == 0 or value.size == 1 and not block:
        return gt.reshape(value, ())
    axis = axis % len(shape)
    if block:
        wide = gt.repeat(value, block, axis=axis)
        return wide[tuple(slice(extent) for extent in shape)]
    return gt.reshape(value, [-1 if i == axis else 1 for i in range(len(shape))])


def _plain(value, device):
    """Return quantized integers as a tensor; int8 or uint8 for types of less than a byte."""
    if value is None or isinstance(value, gt.Tensor):
        return value
    if value.dtype.name in _RANGES and not has_code(value.dtype):
        return tensor(value.astype(np.int8 if value.dtype.name[0] == "i" else np.uint8), device)
    if not has_code(value.dtype):
        return tensor(value.astype(np.float32), device)
    return tensor(value, device)


@operator("QuantizeLinear", folds=True)
def quantize_linear(
    x, scale, zero=None, *, axis=1, saturate=1, block_size=0, output_dtype=0, precision=0
):
    dtype = zero.dtype if zero is not None else numpy_dtype(output_dtype or 2)
    device = next((one.device for one in (x, scale) if not is_known(one)), None)
    x, scale, points = tensor(x, device), tensor(scale, device), _plain(zero, device)
    kind = numpy_dtype(precision) if precision else scale.dtype
    scales = _spread(scale, x.shape, axis, block_size).astype(kind)
    y = x.astype(kind) / scales
    if dtype.name not in _RANGES:
        if points is not None:
            y = y + _spread(points.astype("float32"), x.shape, axis, block_size).astype(kind)
        return converted(y.astype("float32"), dtype, saturate)
    y = gt.round(y.astype("float32"))
    if points is not None:
        y = y + _spread(points, x.shape, axis, block_size).astype("float32")
    y = gt.clip(y, *_RANGES[dtype.name])
    return y.astype(dtype) if has_code(dtype) else y.astype("int32").numpy().astype(dtype)


@operator("DequantizeLinear", folds=True)
def dequantize_linear(x, scale, zero=None, *, axis=1, block_size=0, output_dtype=0):
    device = next((one.device for one in (x, scale) if not is_known(one)), None)
    scale, points = tensor(scale, device), _plain(zero, device)
    dtype = numpy_dtype(output_dtype) if output_dtype else scale.dtype
    x = _plain(x, device)
    if is_float8(x.dtype):
        points = None
    kind = "float32" if x.dtype.kind not in "iu" or x.dtype.itemsize < 4 else "float64"
    y = x.astype(kind)
    if points is not None:
        y = y - _spread(points, x.shape, axis, block_size).astype(kind)
    return (y * _spread(scale, x.shape, axis, block_size).astype(kind)).astype(dtype)


def requantized(y, scale, zero):
    """Return a product of quantized integers, rescaled and rounded to the type of `zero`."""
    low, high = _RANGES[zero.dtype.name]
    y = gt.round(y * scale) + zero.astype("float32")
    return gt.clip(y, low, high).astype(zero.dtype)


@operator("QLinearMatMul")
def q_linear_mat_mul(a, a_scale, a_zero, *others):
    b, b_scale, b_zero, y_scale, y_zero = others
    if not {a_zero.dtype.name, b_zero.dtype.name, y_zero.dtype.name} <= set(_RANGES):
        got = Described(f"zero points of {a_zero.dtype.name}")
        raise argument_error(Missing, "QLinearMatMul", got, "integers")
    products = gt.matmul(centred(a, a_zero, 0), centred(b, b_zero, 1)).astype("float32")
    scale = a_scale.astype("float32") * b_scale.astype("float32") / y_scale.astype("float32")
    return requantized(products, scale, y_zero)
