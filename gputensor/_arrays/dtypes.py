"""The element types as users name them, and the array API's functions for them.

A dtype is a NumPy dtype instance; ``bfloat16`` and the float8 types come from ``ml_dtypes``.
Arguments named ``dtype`` also take names, NumPy scalar types and Python's ``bool``, ``int``,
``float`` and ``complex``, which stand for bool, int64, float64 and complex128, as in NumPy. (A
Python float as a *value* is float32 unless other operands decide, because GPUs are made for
float32.) `CODES` remembers every spelling that was ever looked up, so that the common case is one
dict lookup.
"""

import builtins
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from gputensor._arrays.element_types import CODE_OF, DTYPES
from gputensor.errors import Described, argument_error

__all__ = [
    "bfloat16",
    "bool_",
    "complex128",
    "complex64",
    "dtype_code",
    "finfo",
    "float16",
    "float32",
    "float64",
    "float8_e4m3",
    "float8_e5m2",
    "iinfo",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

(
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
    float8_e4m3,
    float8_e5m2,
) = (row.numpy for row in DTYPES)

DEFAULT_FLOAT, DEFAULT_INT, DEFAULT_COMPLEX, BOOL = 11, 4, 13, 0

# Every accepted spelling of a dtype -> its code.
CODES: dict[Any, int] = {row.name: row.code for row in DTYPES}
CODES |= {row.numpy: row.code for row in DTYPES}
CODES |= {row.numpy.type: row.code for row in DTYPES}
CODES |= {builtins.bool: BOOL, int: DEFAULT_INT, float: 12, complex: 14}
CODES |= {"float8_e4m3fn": 15, "int": DEFAULT_INT, "float": 12, "complex": 14}


def dtype_code(dtype):
    """Return the code of a dtype given in any accepted form.

    Raises
    ------
    TypeError
        `dtype` is not an element type of the library.
    """
    try:
        code = CODES.get(dtype)
        if code is None:  # None itself is not a dtype here; NumPy reads it as float64
            CODES[dtype] = code = CODE_OF[None if dtype is None else np.dtype(dtype)]
    except (TypeError, KeyError, ValueError):
        allowed = ", ".join(row.name for row in DTYPES)
        raise TypeError(f"dtype: got {dtype!r}; expected {allowed}") from None
    return code


def is_float8(dtype):
    """Return whether a dtype is a float of 8 bits, which has storage but no arithmetic.

    >>> is_float8(float8_e5m2), is_float8(bfloat16)
    (True, False)
    """
    return dtype.itemsize == 1 and dtype.kind in "fV"


def code_of(value):
    """Return the code of a dtype, or of the dtype of an object.

    >>> import numpy as np
    >>> code_of(np.int8) == code_of(np.zeros(1, "int8")) == code_of("int8")
    True
    """
    # The attribute `dtype` of NumPy's scalar classes is a descriptor, not a dtype.
    return dtype_code(value if isinstance(value, type) else getattr(value, "dtype", value))


class finfo_object(NamedTuple):
    """The result of :func:`finfo`."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype

    @property
    def tiny(self):
        """The older name of `smallest_normal`."""
        return self.smallest_normal


class iinfo_object(NamedTuple):
    """The result of :func:`iinfo`."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def _limited(value, kinds, name, rule):
    """Return the dtype of an argument of a function of limits, which is of one of the kinds."""
    try:
        dtype = DTYPES[code_of(value)].numpy
    except TypeError:
        raise argument_error(TypeError, f"{name}: type", value, rule) from None
    if dtype.kind not in kinds:
        raise argument_error(TypeError, f"{name}: type", Described(dtype.name), rule)
    return dtype


def finfo(type, /):
    """Return the limits of a floating-point dtype, or of the parts of a complex one.

    Parameters
    ----------
    type : dtype or Tensor

    Returns
    -------
    finfo_object
        ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal`` as Python numbers, and ``dtype``.

    >>> finfo("bfloat16").eps
    0.0078125
    """
    dtype = _limited(type, "fcV", "finfo", "a floating-point dtype, or a tensor of one")
    facts = ml_dtypes.finfo(dtype)
    return finfo_object(
        int(facts.bits),
        float(facts.eps),
        float(facts.max),
        float(facts.min),
        float(facts.smallest_normal),
        np.dtype(facts.dtype),
    )


def iinfo(type, /):
    """Return the limits of an integer dtype: ``bits``, ``max``, ``min`` and ``dtype``.

    >>> iinfo("int8").max
    127
    """
    dtype = _limited(type, "iu", "iinfo", "an integer dtype, or a tensor of one")
    return _INTEGERS[dtype]


_INTEGERS = {
    row.numpy: iinfo_object(
        8 * row.itemsize, int(np.iinfo(row.numpy).max), int(np.iinfo(row.numpy).min), row.numpy
    )
    for row in DTYPES
    if row.kind in ("int", "uint")
}
KINDS_OF_NAME = {
    "bool": {"bool"},
    "signed integer": {"int"},
    "unsigned integer": {"uint"},
    "integral": {"int", "uint"},
    "real floating": {"float", "small"},
    "complex floating": {"complex"},
    "numeric": {"int", "uint", "float", "small", "complex"},
}


def isdtype(dtype, kind):
    """Return whether `dtype` is of a kind.

    Parameters
    ----------
    dtype : dtype
    kind : str, dtype or tuple of them
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``,
        ``"real floating"``, ``"complex floating"``, ``"numeric"``, or a dtype to equal.

    >>> isdtype(bfloat16, "real floating"), isdtype(int8, ("bool", "unsigned integer"))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    row = DTYPES[dtype_code(dtype)]
    if isinstance(kind, str) and kind in KINDS_OF_NAME:
        return row.kind in KINDS_OF_NAME[kind]
    if isinstance(kind, str) and kind not in CODES:
        allowed = ", ".join(repr(name) for name in KINDS_OF_NAME)
        raise ValueError(f"kind: got {kind!r}; expected {allowed} or a dtype")
    return row.code == dtype_code(kind)
