"""gputensor: tensors on NVIDIA GPUs and on an embedded host device.

The array API standard's names are here at the top level; ``gputensor.memory``, ``gputensor.blas``,
``gputensor.graphs`` and ``gputensor.device`` are imported when they are first used. Importing the
package makes no CUDA call: a device is opened by the first tensor on it.

>>> import gputensor as gt
>>> x = gt.asarray([[1.0, 2.0], [3.0, 4.0]], device="host")
>>> (x @ x).numpy()
array([[ 7., 10.],
       [15., 22.]], dtype=float32)
"""

import importlib as _importlib
from math import e, inf, nan, pi
from typing import TYPE_CHECKING as _TYPE_CHECKING

from gputensor._driver.environment import report as _report_environment
from gputensor.errors import DeviceError, DriverError, GpuTensorError, OutOfMemoryError
from gputensor.streams import (
    Device,
    Event,
    ExternalStream,
    Stream,
    current_stream,
    default_stream,
    ordering,
    set_stream,
    stream,
    synchronize,
)
from gputensor.streams.queue import set_device
from gputensor.tensor import operators as _operators  # noqa: F401 - binds them to Tensor
from gputensor.tensor.functions import erf, gelu, relu, sigmoid, silu
from gputensor.tensor.functions import (
    abs, add, divide, floor_divide, maximum, minimum, multiply, negative, positive, pow,
    remainder, sign, square, subtract,
)
from gputensor.tensor.interop.array_api import VERSION as __array_api_version__
from gputensor.tensor.interop.array_api import Info as __array_namespace_info__
from gputensor.tensor.functions import (
    bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or, bitwise_right_shift,
    bitwise_xor, equal, greater, greater_equal, isfinite, isinf, isnan, less, less_equal,
    logical_and, logical_not, logical_or, logical_xor, not_equal,
)
from gputensor.tensor.manipulation.composed import copysign, hypot, logaddexp, signbit
from gputensor.tensor.interop import asarray, ascontiguous, astype, copy
from gputensor.tensor.manipulation import (
    arange, empty, empty_like, eye, full, full_like, linspace, ones, ones_like, tril, triu,
    zeros, zeros_like,
)
from gputensor.tensor.interop import from_dlpack
from gputensor._arrays.dtypes import (
    bfloat16, bool_, complex64, complex128, finfo, float8_e4m3, float8_e5m2, float16, float32,
    float64, iinfo, int8, int16, int32, int64, isdtype, uint8, uint16, uint32, uint64,
)
from gputensor._arrays.dtypes import bool_ as bool
from gputensor.tensor.products.einsum import einsum, tensordot
from gputensor.tensor.manipulation import nonzero, take
from gputensor.tensor.products import grouped_matmul
from gputensor.tensor.manipulation.joining import (
    concat, meshgrid, repeat, roll, stack, tile, unstack,
)
from gputensor.tensor.functions import (
    ceil, clip, conj, exp, expm1, floor, imag, log, log1p, log2, log10, real, reciprocal, round,
    rsqrt, sqrt, trunc, where,
)
from gputensor.tensor.products import (
    addmm,
    baddbmm,
    bmm,
    dot,
    linear,
    matmul,
    mm,
    mv,
    vecdot,
)
from gputensor._arrays.promotion import can_cast, result_type
from gputensor.tensor.products.quantization import (
    pack_int4, quantize_int4, quantize_int8, unpack_int4,
)
from gputensor.tensor.products import quantized_linear
from gputensor.tensor.functions import (
    all, any, argmax, argmin, count_nonzero, max, mean, min, prod, std, sum, var,
)
from gputensor.tensor.interop.safetensors import load_safetensors, save_safetensors
from gputensor.tensor.products import scaled_matmul
from gputensor.tensor.manipulation import (
    broadcast_arrays, broadcast_to, expand_dims, flip, matrix_transpose, moveaxis, permute_dims,
    reshape, squeeze,
)
from gputensor.tensor.core import Tensor
from gputensor.tensor.functions import (
    acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, sin, sinh, tan, tanh,
)

__all__ = [
    "Device",
    "DeviceError",
    "DriverError",
    "Event",
    "ExternalStream",
    "GpuTensorError",
    "OutOfMemoryError",
    "Stream",
    "Tensor",
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "abs",
    "acos",
    "acosh",
    "add",
    "addmm",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "asarray",
    "ascontiguous",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "baddbmm",
    "bfloat16",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blas",
    "bmm",
    "bool",
    "bool_",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "can_device_access_peer",
    "ceil",
    "clip",
    "complex128",
    "complex64",
    "concat",
    "conj",
    "copy",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "divide",
    "dot",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "flip",
    "float16",
    "float32",
    "float64",
    "float8_e4m3",
    "float8_e5m2",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "gelu",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "graphs",
    "greater",
    "greater_equal",
    "grouped_matmul",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_available",
    "is_bf16_supported",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linear",
    "linspace",
    "load_safetensors",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "memory",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "moveaxis",
    "multiply",
    "mv",
    "nan",
    "negative",
    "newaxis",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "ordering",
    "pack_int4",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "quantize_int4",
    "quantize_int8",
    "quantized_linear",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "rsqrt",
    "save_safetensors",
    "scaled_matmul",
    "set_device",
    "set_stream",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "stream",
    "subtract",
    "sum",
    "synchronize",
    "take",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unpack_int4",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]

__version__ = "0.1.0"
newaxis = None
_report_environment()

# Imported at first use: they cost time, and many programs use none of them.
_LAZY_MODULES = ("blas", "device", "graphs", "memory")
_LAZY_DEVICE_NAMES = (
    "can_device_access_peer",
    "current_device",
    "device_count",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "is_bf16_supported",
)
if _TYPE_CHECKING:
    from gputensor import blas, device, graphs, memory
    from gputensor.device import (
        can_device_access_peer,
        current_device,
        device_count,
        get_device_capability,
        get_device_name,
        get_device_properties,
        is_available,
        is_bf16_supported,
    )


def __getattr__(name):
    if name in _LAZY_MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY_DEVICE_NAMES:
        value = getattr(_importlib.import_module(f"{__name__}.device"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gputensor' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LAZY_MODULES, *_LAZY_DEVICE_NAMES})
