"""Binds the operators and methods of Tensor to functions that are built on the type.

gputensor/__init__.py imports it once. A method is the function of the same name with the tensor as
its first argument.
"""

import importlib

from gputensor._arrays.dtypes import dtype_code
from gputensor._arrays.promotion import is_same_kind
from gputensor.tensor import functions, interop, manipulation, methods, products, transfer
from gputensor.tensor.core import bind_methods, bind_operators
from gputensor.tensor.import_hooks import watch
from gputensor.tensor.interop import array_api
from gputensor.tensor.parameter_names import find
from gputensor.tensor.printing import format_number, represent, text

PROTOCOLS = "gputensor.tensor.numpy_protocols"  # imported at the first call of a NumPy function
LAYOUTS = "gputensor.tensor.manipulation.castings"
COMPLEX_ORDER = "gputensor.tensor.numerics.complex_order"  # imported at the first use of this order


def matmul_in_place(x, other):
    """Write ``x @ other`` to `x`; the implementation of ``x @= other``."""
    product = products.matmul(x, other)
    if product.shape != x.shape:
        raise ValueError(
            f"@=: product: got shape {product.shape}; expected {x.shape}, that of the tensor"
        )
    if not is_same_kind(dtype_code(product.dtype), dtype_code(x.dtype)):
        raise TypeError(
            f"@=: product: got dtype {product.dtype}; expected a dtype that {x.dtype} can take"
        )
    x[...] = product
    return x


bind_operators(
    any=functions.any,
    matmul=products.matmul,
    matmul_in_place=matmul_in_place,
    getitem=manipulation.getitem,
    setitem=manipulation.setitem,
    transpose=manipulation.transpose,
    matrix_transpose=manipulation.matrix_transpose,
    numpy=transfer.numpy,
    to_device=transfer.to_device,
    copy=interop.copy,
    reduce=interop.reduce,
    represent=represent,
    text=text,
    namespace=array_api.namespace,
    dlpack=interop.dlpack,
    dlpack_device=interop.device_pair,
    array_interface=interop.array_interface,
)


functions.find_ufunc_methods_with(lambda: importlib.import_module(PROTOCOLS).ufunc_method)
functions.find_layouts_with(lambda: importlib.import_module(LAYOUTS).laid_out)
for _name in functions.__all__:
    functions.add_ufunc_methods(getattr(functions, _name), _name)


def tolist(x, /):
    """Return the values as nested lists of Python numbers; a number for 0 dimensions.

    >>> import gputensor as gt
    >>> gt.asarray([[1, 2]], device="host").tolist()
    [[1, 2]]
    """
    return transfer.numpy(x).tolist()


def fill(x, value, /):
    """Set every element to a Python number and return the tensor.

    >>> import gputensor as gt
    >>> gt.zeros(2, device="host").fill(3).tolist()
    [3.0, 3.0]
    """
    x[...] = value
    return x


def reshape(x, /, *new_shape, order="C", copy=None):
    """Return the elements in another shape, given as one tuple or as ints; see ``gt.reshape``.

    >>> import gputensor as gt
    >>> gt.zeros(6, device="host").reshape(2, -1).shape
    (2, 3)
    """
    shape = new_shape[0] if len(new_shape) == 1 else new_shape
    return manipulation.reshape(x, shape, order, copy=copy)


def _divmod(x1, x2, /):
    return functions.floor_divide(x1, x2), functions.remainder(x1, x2)


def _round(x, decimals=None, /):
    return x.round(decimals or 0)


def _order(*call):
    return importlib.import_module(COMPLEX_ORDER).elementwise(*call)


def _array_ufunc(x, /, ufunc, method, *inputs, **keywords):
    return importlib.import_module(PROTOCOLS).array_ufunc(x, ufunc, method, *inputs, **keywords)


def _array_function(x, /, function, types, arguments, keywords):
    return importlib.import_module(PROTOCOLS).array_function(
        x, function, types, arguments, keywords
    )


bind_operators(divmod=_divmod, order=_order)
watch()
bind_methods(
    {"__array_ufunc__": _array_ufunc, "__array_function__": _array_function}
    | {"__array_priority__": 100.0, "__dlpack_c_exchange_api__": interop.exchange_capsule()}
    | {"contiguous": find("gputensor.tensor.interop", "ascontiguous")}
    | {"fill": fill, "record_stream": interop.record_stream}
    | {"reshape": reshape, "tolist": tolist}
    | {"__format__": format_number, "__round__": _round}
    | methods.table()
)
