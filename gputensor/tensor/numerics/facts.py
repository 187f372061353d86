"""Properties of tensors and dtypes, mostly known without the device, under NumPy's names."""

import math
from numbers import Number

import numpy as np

from gputensor._arrays.dtypes import float32
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor, axis_argument, may_share, tensor_argument
from gputensor.tensor.interop.arrays import host_array

__all__ = [
    "array2string", "asnumpy", "common_type", "get_array_module",
    "is_complex", "is_floating_point", "is_nonzero", "is_tensor", "iscomplexobj", "isfortran",
    "isrealobj", "isscalar", "item", "may_share_memory", "min_scalar_type", "ndim", "shape", "size",
]  # fmt: skip


def isfortran(x, /):
    """Return whether the memory is column-major and not also row-major.

    >>> import gputensor as gt
    >>> isfortran(gt.ones((2, 3), device="host").T)
    True
    """
    x = tensor_argument(x, "isfortran")
    return x.T.is_contiguous and not x.is_contiguous


def shape(x, /):
    """Return the extents of a tensor, number or nested list.

    >>> shape([[1, 2, 3]])
    (1, 3)
    """
    return x.shape if isinstance(x, Tensor) else host_array("shape: x", x).shape


def ndim(x, /):
    """Return the number of axes of a tensor, number or nested list.

    >>> ndim([[1, 2, 3]])
    2
    """
    return len(shape(x))


def size(x, /, axis=None):
    """Return the number of elements, or the extent of one or several axes.

    >>> size([[1, 2, 3]]), size([[1, 2, 3]], 1)
    (3, 3)
    """
    extents = shape(x)
    if axis is None:
        return math.prod(extents)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return math.prod(extents[axis_argument(one, len(extents), "size")] for one in axes)


def get_array_module(*args):
    """Return gputensor if an argument is a tensor, otherwise NumPy, as CuPy's function does.

    >>> import gputensor as gt
    >>> get_array_module(gt.ones(2, device="host")) is gt, get_array_module([1]).__name__
    (True, 'numpy')
    """
    found = next((one for one in args if isinstance(one, Tensor)), None)
    return np if found is None else found.__array_namespace__()


def item(x, /):
    """Return the only element of a tensor as a Python number.

    >>> import gputensor as gt
    >>> item(gt.asarray([2.5], device="host"))
    2.5
    """
    return tensor_argument(x, "item").item()


def asnumpy(x, /, stream=None, order="C", out=None, *, blocking=True):
    """Return a tensor, list or number as a NumPy array, as ``x.get`` with the same arguments.

    >>> import gputensor as gt
    >>> asnumpy(gt.ones(2, device="host"))
    array([1., 1.], dtype=float32)
    """
    if isinstance(x, Tensor):
        return x.get(stream, order, out, blocking)
    array = np.asarray(host_array("asnumpy: x", x), order=order)
    if out is None:
        return array
    out[...] = array
    return out


def is_tensor(x, /):
    """Return whether `x` is a tensor.

    >>> is_tensor([1.0])
    False
    """
    return isinstance(x, Tensor)


def isscalar(x, /):
    """Return whether `x` is a number or a string, and not a tensor or list.

    >>> isscalar(3.0), isscalar([3.0])
    (True, False)
    """
    return isinstance(x, (Number, np.generic, str, bytes))


def iscomplexobj(x, /):
    """Return whether the dtype of `x` is complex.

    >>> iscomplexobj(1j), iscomplexobj([1.0])
    (True, False)
    """
    return (
        x.dtype.kind == "c"
        if isinstance(x, Tensor)
        else np.iscomplexobj(host_array("iscomplexobj: x", x))
    )


def isrealobj(x, /):
    """Return whether the dtype of `x` is not complex.

    >>> isrealobj(1j), isrealobj([1.0])
    (False, True)
    """
    return not iscomplexobj(x)


def is_complex(x, /):
    """Return whether the dtype of a tensor is complex: PyTorch's name.

    >>> import gputensor as gt
    >>> is_complex(gt.ones(1, device="host"))
    False
    """
    return tensor_argument(x, "is_complex").dtype.kind == "c"


def is_floating_point(x, /):
    """Return whether a tensor has a real floating-point dtype.

    >>> import gputensor as gt
    >>> is_floating_point(gt.ones(1, device="host"))
    True
    """
    return tensor_argument(x, "is_floating_point").dtype.kind in "fV"


def is_nonzero(x, /):
    """Return whether the only element of a tensor is not zero: ``bool(x)``, which waits.

    >>> import gputensor as gt
    >>> is_nonzero(gt.ones(1, device="host"))
    True
    """
    return bool(tensor_argument(x, "is_nonzero"))


def common_type(*tensors):
    """Return the common floating-point dtype of all tensors; integers count as float32.

    >>> import gputensor as gt
    >>> common_type(gt.ones(1, "int8", device="host"), gt.ones(1, "float64", device="host"))
    dtype('float64')
    """
    dtypes = []
    for x in tensors:
        kind = tensor_argument(x, "common_type").dtype.kind
        if kind == "b":
            got = Described("bool")
            raise argument_error(TypeError, "common_type: dtype", got, "numbers")
        dtypes.append(float32 if kind in "iu" else x.dtype)
    return result_type(*dtypes) if dtypes else float32


def min_scalar_type(x, /):
    """Return the smallest dtype that can hold a number, or the dtype of a tensor.

    >>> min_scalar_type(300), min_scalar_type(-1)
    (dtype('uint16'), dtype('int8'))
    """
    if isinstance(x, Tensor):
        return x.dtype
    return np.min_scalar_type(host_array("min_scalar_type: x", x))


def may_share_memory(x1, x2, /):
    """Return whether the address ranges of two tensors overlap.

    >>> import gputensor as gt
    >>> x = gt.ones(4, device="host")
    >>> may_share_memory(x[:2], x[1:]), may_share_memory(x[:2], x[2:])
    (True, False)
    """
    x1, x2 = (tensor_argument(one, "may_share_memory") for one in (x1, x2))
    return x1.device == x2.device and bool(may_share(x1, x2))


def array2string(x, /, **options):
    """Return the values as text, with the options of ``numpy.array2string``.

    >>> import gputensor as gt
    >>> array2string(gt.asarray([1.25, 2.0], device="host"), precision=1, separator=", ")
    '[1.2, 2. ]'
    """
    return np.array2string(asnumpy(x), **options)
