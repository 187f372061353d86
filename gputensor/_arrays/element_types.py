"""The element types: code, NumPy dtype, size, kind and CUDA name of each, in one table.

The codes are those of ``__init__.pxd``; they are stable because they are keys of kernel caches and
plans. ``ml_dtypes`` provides the types that NumPy lacks. The C twin of sizes and kinds is also in
``__init__.pxd``; a test compares the two.
"""

from typing import NamedTuple

import ml_dtypes
import numpy as np

__all__ = ["CODE_OF", "DTYPES", "KINDS", "ElementType", "dtype_name", "numpy_dtype"]

# The kinds, weakest first. fp8 types are "small": they are stored and cast, never computed with.
KINDS = ("bool", "int", "uint", "float", "complex", "small")


class ElementType(NamedTuple):
    """One row of the table."""

    code: int
    name: str
    numpy: np.dtype
    itemsize: int
    kind: str
    cuda: str  # the C++ type that a kernel stores
    compute: str  # the C++ type that a kernel computes with


def _row(code, name, scalar_type, kind, cuda, compute=None) -> ElementType:
    dtype = np.dtype(scalar_type)
    return ElementType(code, name, dtype, dtype.itemsize, kind, cuda, compute or cuda)


DTYPES = (
    _row(0, "bool", np.bool_, "bool", "bool"),
    _row(1, "int8", np.int8, "int", "int8"),
    _row(2, "int16", np.int16, "int", "int16"),
    _row(3, "int32", np.int32, "int", "int32"),
    _row(4, "int64", np.int64, "int", "int64"),
    _row(5, "uint8", np.uint8, "uint", "uint8"),
    _row(6, "uint16", np.uint16, "uint", "uint16"),
    _row(7, "uint32", np.uint32, "uint", "uint32"),
    _row(8, "uint64", np.uint64, "uint", "uint64"),
    _row(9, "float16", np.float16, "float", "half_t", "float"),
    _row(10, "bfloat16", ml_dtypes.bfloat16, "float", "bfloat_t", "float"),
    _row(11, "float32", np.float32, "float", "float"),
    _row(12, "float64", np.float64, "float", "double"),
    _row(13, "complex64", np.complex64, "complex", "complex_t<float>"),
    _row(14, "complex128", np.complex128, "complex", "complex_t<double>"),
    _row(15, "float8_e4m3", ml_dtypes.float8_e4m3fn, "small", "e4m3_t", "float"),
    _row(16, "float8_e5m2", ml_dtypes.float8_e5m2, "small", "e5m2_t", "float"),
)

#: NumPy dtype -> code.
CODE_OF = {row.numpy: row.code for row in DTYPES}


def numpy_dtype(code):
    """Return the NumPy dtype of a code.

    >>> numpy_dtype(11)
    dtype('float32')
    >>> numpy_dtype(10)
    dtype(bfloat16)
    """
    return DTYPES[code].numpy


def dtype_name(dtype):
    """Return our name of a NumPy dtype, whose own name may differ.

    >>> dtype_name(np.dtype(ml_dtypes.float8_e4m3fn))
    'float8_e4m3'
    """
    return DTYPES[CODE_OF[dtype]].name
