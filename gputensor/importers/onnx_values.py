"""The values in an ONNX graph: tensors on a device, and known values as NumPy arrays.

A known value is an initializer, a constant, a shape, or a result computed from these alone. With
`namespace` one function serves both. `known` returns a value as an array; for a tensor, it waits
for the device.
"""

import ml_dtypes
import numpy as np

from gputensor._arrays.dtypes import dtype_code
from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.public_functions import gt

__all__ = [
    "MOST_FOLDED", "Missing", "describe", "has_code", "ints", "is_known", "known", "namespace",
    "number", "numpy_dtype", "operands", "tensor",
]  # fmt: skip

#: Known arrays of more elements are computed on the device like tensors.
MOST_FOLDED = 1 << 22

# TensorProto.DataType, by number. Strings are NumPy arrays of objects.
_DTYPES = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
    8: np.object_, 9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
    14: np.complex64, 15: np.complex128, 16: ml_dtypes.bfloat16, 17: ml_dtypes.float8_e4m3fn,
    18: ml_dtypes.float8_e4m3fnuz, 19: ml_dtypes.float8_e5m2, 20: ml_dtypes.float8_e5m2fnuz,
    21: ml_dtypes.uint4, 22: ml_dtypes.int4, 23: getattr(ml_dtypes, "float4_e2m1fn", None),
    24: getattr(ml_dtypes, "float8_e8m0fnu", None), 25: getattr(ml_dtypes, "uint2", None),
    26: getattr(ml_dtypes, "int2", None),
}  # fmt: skip


class Missing(ModelError):
    """Raised for an operator, or a form of it, that the library lacks."""


def numpy_dtype(number):
    """Return the NumPy dtype of an ONNX element type.

    >>> numpy_dtype(16).name
    'bfloat16'
    """
    dtype = _DTYPES.get(number)
    if dtype is None:
        rule = "a TensorProto.DataType that the installed ml_dtypes supports"
        raise argument_error(ModelError, "element type", number, rule)
    return np.dtype(dtype)


def has_code(dtype):
    """Whether tensors support this dtype."""
    try:
        dtype_code(dtype)
    except TypeError:
        return False
    return True


def is_known(value):
    return not isinstance(value, gt.Tensor)


def namespace(*values):
    """Return the module whose functions take these values: `numpy` or `gputensor`.

    >>> namespace(np.ones(3)).__name__
    'numpy'
    """
    for value in values:
        if isinstance(value, gt.Tensor):
            return gt
        if isinstance(value, np.ndarray) and value.size > MOST_FOLDED and has_code(value.dtype):
            return gt
    return np


def known(value):
    """Return a value as a NumPy array; waits for a tensor's device, and raises in a trace."""
    return value.numpy() if isinstance(value, gt.Tensor) else value


def ints(value):
    """Return a known value of integers as a list of ints."""
    return [int(one) for one in np.asarray(known(value)).reshape(-1)]


def number(value):
    """Return a known value of one element as a Python number."""
    return np.asarray(known(value)).reshape(-1)[0].item()


def tensor(value, device=None):
    """Return a value as a tensor on a device.

    An array that repeats one element becomes a fill, so that a program does not store it.
    """
    if value is None or isinstance(value, gt.Tensor):
        return value
    if not isinstance(value, np.ndarray) or not has_code(value.dtype):
        got = Described(describe(value))
        raise argument_error(Missing, "value", got, "an element type that tensors support")
    if value.size > 1 and not any(value.strides):
        one = value.reshape(-1)[0] if value.flags.c_contiguous else value[(0,) * value.ndim]
        fill = one.item() if value.dtype.kind in "biufc" else float(one)
        return gt.full(value.shape, fill, value.dtype, device=device)
    return gt.asarray(value, device=device)


def operands(values, device=None):
    """Return the values of an element-wise call as tensors or Python numbers.

    An array of one element becomes a number if a tensor has at least as many dimensions.
    """
    ndim = max((value.ndim for value in values if isinstance(value, gt.Tensor)), default=-1)
    found = []
    for value in values:
        if isinstance(value, np.ndarray) and value.size == 1 and value.ndim <= ndim:
            is_plain = value.dtype.kind in "biufc"
            found.append(value.reshape(-1)[0].item() if is_plain else float(value.reshape(-1)[0]))
        else:
            found.append(tensor(value, device))
    return found


def describe(value):
    """Return a short text for a value's type, such as `float32[2, 3]`."""
    if isinstance(value, (gt.Tensor, np.ndarray)):
        return f"{value.dtype.name}{list(value.shape)}"
    return type(value).__name__
