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

from gputensor._arrays.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    finfo,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    isdtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from gputensor._arrays.dtypes import bool_ as bool
from gputensor._arrays.promotion import can_cast, result_type
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
from gputensor.tensor import functions as _functions
from gputensor.tensor import operators as _operators  # noqa: F401 - binds them to Tensor
from gputensor.tensor.core import Tensor
from gputensor.tensor.functions import *  # noqa: F403 - the table of operations has the names
from gputensor.tensor.interop import asarray, ascontiguous, astype, copy, from_dlpack
from gputensor.tensor.interop.array_api import VERSION as __array_api_version__
from gputensor.tensor.interop.array_api import Info as __array_namespace_info__
from gputensor.tensor.interop.safetensors import (
    load_safetensors,
    map_safetensors,
    save_safetensors,
)
from gputensor.tensor.manipulation import (
    arange,
    broadcast_arrays,
    broadcast_to,
    empty,
    empty_like,
    expand_dims,
    eye,
    flip,
    full,
    full_like,
    linspace,
    matrix_transpose,
    moveaxis,
    nonzero,
    ones,
    ones_like,
    permute_dims,
    reshape,
    squeeze,
    take,
    tril,
    triu,
    zeros,
    zeros_like,
)
from gputensor.tensor.manipulation.composed import copysign, hypot, logaddexp, signbit
from gputensor.tensor.manipulation.joining import (
    concat,
    meshgrid,
    repeat,
    roll,
    stack,
    tile,
    unstack,
)
from gputensor.tensor.products import (
    addmm,
    baddbmm,
    bmm,
    dot,
    grouped_matmul,
    linear,
    matmul,
    mm,
    mv,
    quantized_linear,
    scaled_matmul,
    vecdot,
)
from gputensor.tensor.products.einsum import einsum, tensordot
from gputensor.tensor.products.quantization import (
    pack_int4,
    quantize_int4,
    quantize_int8,
    unpack_int4,
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
    "addmm",
    "arange",
    "asarray",
    "ascontiguous",
    "astype",
    "baddbmm",
    "bfloat16",
    "blas",
    "bmm",
    "bool",
    "bool_",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "can_device_access_peer",
    "complex128",
    "complex64",
    "concat",
    "copy",
    "copysign",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "dot",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "finfo",
    "flip",
    "float16",
    "float32",
    "float64",
    "float8_e4m3",
    "float8_e5m2",
    "from_dlpack",
    "full",
    "full_like",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "graphs",
    "grouped_matmul",
    "hypot",
    "iinfo",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_available",
    "is_bf16_supported",
    "isdtype",
    "linear",
    "linspace",
    "load_safetensors",
    "logaddexp",
    "map_safetensors",
    "matmul",
    "matrix_transpose",
    "memory",
    "meshgrid",
    "mm",
    "moveaxis",
    "mv",
    "nan",
    "newaxis",
    "nonzero",
    "ones",
    "ones_like",
    "ordering",
    "pack_int4",
    "permute_dims",
    "pi",
    "quantize_int4",
    "quantize_int8",
    "quantized_linear",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "save_safetensors",
    "scaled_matmul",
    "set_device",
    "set_stream",
    "signbit",
    "squeeze",
    "stack",
    "stream",
    "synchronize",
    "take",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unpack_int4",
    "unstack",
    "vecdot",
    "zeros",
    "zeros_like",
]
__all__ += _functions.__all__

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
    return sorted({*__all__, *_LAZY_MODULES, *_LAZY_DEVICE_NAMES})
