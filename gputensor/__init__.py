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

# ruff: noqa: F401 - the imports are the public names.

import importlib as _importlib
from math import e, inf, nan, pi

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
from gputensor.tensor import operators as _operators
from gputensor.tensor.activation import erf, gelu, relu, sigmoid, silu
from gputensor.tensor.arithmetic import (
    abs,
    add,
    divide,
    floor_divide,
    maximum,
    minimum,
    multiply,
    negative,
    positive,
    pow,
    remainder,
    sign,
    square,
    subtract,
)
from gputensor.tensor.array_api import VERSION as __array_api_version__
from gputensor.tensor.array_api import Info as __array_namespace_info__
from gputensor.tensor.comparison import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from gputensor.tensor.conversion import asarray, ascontiguous, astype, copy
from gputensor.tensor.creation import (
    arange,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from gputensor.tensor.dlpack import from_dlpack
from gputensor.tensor.dtypes import (
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
from gputensor.tensor.dtypes import bool_ as bool
from gputensor.tensor.gathering import nonzero, take
from gputensor.tensor.joining import concat, meshgrid, repeat, roll, stack, tile, unstack
from gputensor.tensor.mathematics import (
    ceil,
    clip,
    conj,
    exp,
    expm1,
    floor,
    imag,
    log,
    log1p,
    log2,
    log10,
    real,
    reciprocal,
    round,
    rsqrt,
    sqrt,
    trunc,
    where,
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
from gputensor.tensor.promotion import can_cast, result_type
from gputensor.tensor.reduction import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from gputensor.tensor.shape import (
    broadcast_arrays,
    broadcast_to,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    reshape,
    squeeze,
)
from gputensor.tensor.tensor import Tensor
from gputensor.tensor.trigonometry import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)

__version__ = "0.1.0"
newaxis = None

_LAZY_MODULES = ("blas", "device", "graphs", "memory")


def __getattr__(name):
    if name in _LAZY_MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'gputensor' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LAZY_MODULES})
