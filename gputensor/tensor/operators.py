"""Gives Tensor its operators and methods: the functions that are built on the type.

Imported once by gputensor/__init__.py. A method is the function of the same name with the tensor
as its first argument.
"""

from gputensor._arrays.dtypes import dtype_code
from gputensor._arrays.promotion import is_same_kind
from gputensor.tensor import (
    functions as arithmetic,
)
from gputensor.tensor import (
    functions as comparison,
)
from gputensor.tensor import (
    functions as reduction,
)
from gputensor.tensor import (
    interop as conversion,
)
from gputensor.tensor import (
    interop as cuda_interface,
)
from gputensor.tensor import (
    interop as dlpack,
)
from gputensor.tensor import (
    interop as foreign,
)
from gputensor.tensor import (
    manipulation as indexing,
)
from gputensor.tensor import (
    manipulation as shape,
)
from gputensor.tensor import (
    products,
)
from gputensor.tensor import (
    transfer as host_transfer,
)
from gputensor.tensor.core import bind_methods, bind_operators
from gputensor.tensor.interop import array_api
from gputensor.tensor.printing import represent


def matmul_in_place(x, other):
    """Write ``x @ other`` to `x`: what ``x @= other`` does."""
    product = products.matmul(x, other)
    if product.shape != x.shape:
        raise ValueError(f"@=: the product has shape {product.shape}; the tensor has {x.shape}")
    if not is_same_kind(dtype_code(product.dtype), dtype_code(x.dtype)):
        raise TypeError(f"@=: dtype {x.dtype} cannot take a product of dtype {product.dtype}")
    x[...] = product
    return x


bind_operators(
    add=arithmetic.add,
    subtract=arithmetic.subtract,
    multiply=arithmetic.multiply,
    divide=arithmetic.divide,
    floor_divide=arithmetic.floor_divide,
    remainder=arithmetic.remainder,
    pow=arithmetic.pow,
    negative=arithmetic.negative,
    positive=arithmetic.positive,
    abs=arithmetic.abs,
    matmul=products.matmul,
    matmul_in_place=matmul_in_place,
    equal=comparison.equal,
    not_equal=comparison.not_equal,
    less=comparison.less,
    less_equal=comparison.less_equal,
    greater=comparison.greater,
    greater_equal=comparison.greater_equal,
    bitwise_and=comparison.bitwise_and,
    bitwise_or=comparison.bitwise_or,
    bitwise_xor=comparison.bitwise_xor,
    bitwise_invert=comparison.bitwise_invert,
    bitwise_left_shift=comparison.bitwise_left_shift,
    bitwise_right_shift=comparison.bitwise_right_shift,
    getitem=indexing.getitem,
    setitem=indexing.setitem,
    transpose=shape.transpose,
    matrix_transpose=shape.matrix_transpose,
    numpy=host_transfer.numpy,
    to_device=host_transfer.to_device,
    copy=conversion.copy,
    reduce=conversion.reduce,
    represent=represent,
    namespace=array_api.namespace,
    dlpack=dlpack.dlpack,
    dlpack_device=dlpack.device_pair,
    array_interface=cuda_interface.array_interface,
)


def tolist(x, /):
    """Return the values as nested Python lists of Python numbers; a number for 0 dimensions.

    >>> import gputensor as gt
    >>> gt.asarray([[1, 2]], device="host").tolist()
    [[1, 2]]
    """
    return host_transfer.numpy(x).tolist()


def fill(x, value, /):
    """Set every element to a Python number and return the tensor.

    >>> import gputensor as gt
    >>> gt.zeros(2, device="host").fill(3).tolist()
    [3.0, 3.0]
    """
    x[...] = value
    return x


def reshape(x, /, *new_shape):
    """Return the elements in another shape, given as one tuple or as ints; see ``gt.reshape``.

    >>> import gputensor as gt
    >>> gt.zeros(6, device="host").reshape(2, -1).shape
    (2, 3)
    """
    return shape.reshape(x, new_shape[0] if len(new_shape) == 1 else new_shape)


REDUCTIONS = "all any argmax argmin max mean min prod std sum var"

bind_methods(
    {name: getattr(reduction, name) for name in REDUCTIONS.split()}
    | {
        "astype": conversion.astype,
        "contiguous": conversion.ascontiguous,
        "copy": conversion.copy,
        "fill": fill,
        "flip": shape.flip,
        "numpy": host_transfer.numpy,
        "permute": shape.permute_dims,
        "record_stream": foreign.record_stream,
        "reshape": reshape,
        "squeeze": shape.squeeze,
        "to": conversion.to,
        "tolist": tolist,
    }
)
