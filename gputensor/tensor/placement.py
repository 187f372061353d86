"""Methods for the device and dtype of a tensor, under the names of PyTorch and CuPy.

``x.to`` takes a dtype, a device or a tensor in any order; ``x.cpu()``, ``x.float()`` and the like
are shorthands.
"""

import builtins
import operator

import numpy as np

from gputensor._arrays import dtypes
from gputensor._arrays.dtypes import CODES, dtype_code
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor, axis_argument, spellings, tensor_argument
from gputensor.tensor.interop import astype, part_view, reinterpreted
from gputensor.tensor.interop import copy as copy_of
from gputensor.tensor.manipulation import reshape, zeros_like
from gputensor.tensor.manipulation.axes import transpose
from gputensor.tensor.transfer import numpy

__all__ = [
    "bfloat16", "bool", "byte", "char", "copy_", "cpu", "cuda", "dim", "double", "element_size",
    "float", "get", "get_device", "half", "imag", "int", "is_cuda", "long", "memoryview", "numel",
    "real", "short", "stride", "to", "toDlpack", "tobytes", "view",
]  # fmt: skip


def _is_dtype(value):
    try:
        return value in CODES or (not isinstance(value, str) and dtype_code(value) is not None)
    except TypeError:
        return False


def to(x, /, *targets, device=None, dtype=None, non_blocking=False, copy=False):
    """Return `x` converted to a dtype and moved to a device, or `x` itself if nothing changes.

    Parameters
    ----------
    *targets : dtype, device or Tensor
        In any order; a tensor means its dtype and its device.
    non_blocking : bool
        Accepted without effect, as in `cuda`, `cpu` and `copy_`: copies between devices are always
        queued, except those that involve the host device.
    copy : bool
        Always copy.

    >>> import gputensor as gt
    >>> x = gt.ones(2, device="host")
    >>> to(x, "host", gt.float16).dtype
    dtype('float16')
    >>> to(x, "float32") is x
    True
    """
    for target in targets:
        if isinstance(target, Tensor):
            device = target.device if device is None else device
            dtype = target.dtype if dtype is None else dtype
        elif target is None:
            continue
        elif dtype is None and _is_dtype(target):
            dtype = target
        elif isinstance(target, str) and not target.startswith(("cuda", "host", "cpu")):
            rule = "a dtype such as 'float32', or a device such as 'cuda:0' or 'host'"
            raise argument_error(ValueError, "to: targets", target, rule)
        elif device is None:
            device = target
        else:
            rule = "one dtype and one device"
            raise argument_error(TypeError, "to: targets", target, rule)
    result = tensor_argument(x, "to")
    if dtype is not None:
        result = astype(result, dtype, copy=False)
    if device is not None:
        result = result.to_device(device)
    return copy_of(result) if copy and result is x else result


def toDlpack(x, /):  # noqa: N802 - CuPy's name
    """Return a DLPack capsule of the tensor, for one import.

    >>> import gputensor as gt
    >>> gt.fromDlpack(gt.ones(2, device="host").toDlpack()).tolist()
    [1.0, 1.0]
    """
    return x.__dlpack__()


def cpu(x, /, *, non_blocking=False):
    """Return the tensor on the host device; ``numpy()`` gives a NumPy array.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").cpu().device
    device('host')
    """
    return x.to_device("host")


def cuda(x, /, device=None, non_blocking=False):
    """Return the tensor on a CUDA device: a number, a name or a Device; default: ``cuda:0``.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").cuda(2.5)
    Traceback (most recent call last):
        ...
    TypeError: device: got float; expected None, a str, an int or a device
    """
    if device is None:
        device = x.device if x.device.type == "cuda" else "cuda:0"
    return x.to_device(device)


def get(x, /, stream=None, order="C", out=None, blocking=True):
    """Return the values as a NumPy array: CuPy's name for ``numpy()``, with its arguments.

    Parameters
    ----------
    x : Tensor
    stream, blocking
        Without effect: the copy waits for earlier work on `x`, whatever its stream.
    order : str
        ``"F"`` returns column-major memory; other orders are row-major.
    out : numpy.ndarray, optional
        An array of the same shape and dtype, which receives the values and is returned.

    >>> import gputensor as gt
    >>> gt.zeros(2, device="host").get()
    array([0., 0.], dtype=float32)
    """
    if order not in ("C", "F", "A", "K"):
        raise argument_error(ValueError, "get: order", order, "'C', 'F', 'A' or 'K'")
    if out is None:
        return np.asarray(numpy(x), order=order)
    if not isinstance(out, np.ndarray) or (out.shape, out.dtype) != (x.shape, x.dtype):
        rule = f"an array of {x.dtype.name} and shape {x.shape}"
        raise argument_error(TypeError, "get: out", out, rule)
    out[...] = numpy(x)
    return out


def set(x, array, /):
    """Write the values of a host array of the same shape and dtype kind: CuPy's ``x.set(array)``.

    >>> import numpy as np
    >>> import gputensor as gt
    >>> x = gt.zeros(2, device="host")
    >>> x.set(np.ones(2))
    >>> x.tolist()
    [1.0, 1.0]
    """
    if np.shape(array) != x.shape:
        got = Described(f"shape {np.shape(array)}")
        raise argument_error(ValueError, "set: array", got, f"{x.shape}")
    x[...] = array


def _cast(name, dtype):
    def method(x, /):
        return astype(x, dtype, copy=False)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""Return the tensor as {dtype.name}; itself if it has this dtype.

    >>> import gputensor as gt
    >>> gt.zeros(2, device="host").{name}().dtype.name
    '{dtype.name}'
    """
    return method


bfloat16 = _cast("bfloat16", dtypes.bfloat16)
bool = _cast("bool", dtypes.bool_)
byte = _cast("byte", dtypes.uint8)
char = _cast("char", dtypes.int8)
double = _cast("double", dtypes.float64)
float = _cast("float", dtypes.float32)
half = _cast("half", dtypes.float16)
int = _cast("int", dtypes.int32)
long = _cast("long", dtypes.int64)
short = _cast("short", dtypes.int16)


def numel(x, /):
    """Return the number of elements: ``size``.

    >>> import gputensor as gt
    >>> gt.zeros((2, 3), device="host").numel()
    6
    """
    return x.size


def dim(x, /):
    """Return the number of axes: ``ndim``.

    >>> import gputensor as gt
    >>> gt.zeros((2, 3), device="host").dim()
    2
    """
    return x.ndim


def element_size(x, /):
    """Return the bytes of one element: ``itemsize``.

    >>> import gputensor as gt
    >>> gt.zeros(2, device="host").element_size()
    4
    """
    return x.itemsize


@spellings(dim="axis")
def stride(x, /, axis=None):
    """Return the strides in elements, or that of one axis; ``strides`` counts bytes.

    >>> import gputensor as gt
    >>> gt.zeros((2, 3), device="host").stride()
    (3, 1)
    """
    strides = tuple(one // x.itemsize for one in x.strides)
    return strides if axis is None else strides[axis_argument(axis, x.ndim, "stride")]


def memoryview(x, /):
    """Return Python's memoryview of the memory of a tensor on a host device, without a copy.

    Files, ``struct``, ``hashlib``, ``numpy.frombuffer`` and sockets take it. The call waits for the
    work queued on the tensor; wait for later work on the tensor before you read again. The view
    keeps the memory, and is read-only exactly if the tensor is.

    Raises
    ------
    BufferError
        The tensor is on a GPU, or the buffer protocol lacks its dtype (bfloat16, float8).

    >>> import gputensor as gt
    >>> x = gt.zeros((2, 3), dtype="int16", device="host")
    >>> m = x.T.memoryview()
    >>> m.format, m.shape, m.strides
    ('h', (3, 2), (2, 6))
    >>> x[0, 1] = 7
    >>> m[1, 0]
    7
    """
    if x.device.type != "host":
        given = Described(f"a tensor on {x.device}")
        rule = "one on a host device (numpy() and cpu() copy)"
        raise argument_error(BufferError, "memoryview", given, rule)
    if x.dtype.isbuiltin != 1:
        given = Described(f"dtype {x.dtype}")
        rule = "one that Python's buffers have, such as float16 (view() changes the dtype)"
        raise argument_error(BufferError, "memoryview", given, rule)
    return builtins.memoryview(np.from_dlpack(x))


def tobytes(x, /, order="C"):
    """Return the values as bytes, in row-major order or, with "F", the first axis fastest.

    >>> import gputensor as gt
    >>> gt.ones(2, dtype="int8", device="host").tobytes()
    b'\\x01\\x01'
    """
    if order not in ("C", "F", "A", None):
        raise argument_error(ValueError, "tobytes: order", order, "C, F or A")
    if order == "A":
        order = "F" if not x.is_contiguous and transpose(x).is_contiguous else "C"
    return numpy(x).tobytes(order)


def view(x, /, *shape_or_dtype, dtype=None):
    """Return a view in another shape (PyTorch) or with another dtype (NumPy).

    Without an argument it has the shape and dtype of `x`. With a dtype of another size the last
    axis, which must be contiguous, gets another extent.

    >>> import gputensor as gt
    >>> gt.zeros((2, 3), device="host").view(3, -1).shape
    (3, 2)
    >>> gt.ones(1, device="host").view("int32").tolist()
    [1065353216]
    """
    if dtype is not None:
        if shape_or_dtype:
            raise argument_error(TypeError, "view: shape", shape_or_dtype, "none beside dtype=")
        return reinterpreted(x, dtype)
    if not shape_or_dtype:
        return x[...]
    first = shape_or_dtype[0] if len(shape_or_dtype) == 1 else None
    if len(shape_or_dtype) == 1 and not hasattr(first, "__iter__") and not _is_index(first):
        return reinterpreted(x, first)
    if isinstance(first, str):
        return reinterpreted(x, first)
    return reshape(x, first if hasattr(first, "__iter__") else shape_or_dtype, copy=False)


def _is_index(value):
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def copy_(x, source, /, non_blocking=False):
    """Write a tensor or a number, broadcast and converted, to the tensor, and return it.

    >>> import gputensor as gt
    >>> gt.zeros(2, device="host").copy_(gt.ones(2, device="host")).tolist()
    [1.0, 1.0]
    """
    if isinstance(source, Tensor) and source.device != x.device:
        source = source.to_device(x.device)
    x[...] = source
    return x


def _is_cuda(x):
    """Whether the tensor is on a CUDA device."""
    return x.device.type == "cuda"


def get_device(x, /):
    """Return the number of the tensor's CUDA device; -1 for a host device.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").get_device()
    -1
    """
    return max(x.device.number, -1)


def _real(x):
    """The real parts as a view; the tensor itself if it is real."""
    return part_view(x, False) if x.dtype.kind == "c" else x


def _set_real(x, value):
    _real(x)[...] = value


def _imag(x):
    """The imaginary parts as a view; zeros if the tensor is real."""
    return part_view(x, True) if x.dtype.kind == "c" else zeros_like(x)


def _set_imag(x, value):
    if x.dtype.kind != "c":
        raise argument_error(TypeError, "imag: x", Described(x.dtype.name), "a complex dtype")
    part_view(x, True)[...] = value


imag = property(_imag, _set_imag)
is_cuda = property(_is_cuda)
real = property(_real, _set_real)
