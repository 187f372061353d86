"""The dtype in which an operation on mixed operands computes.

`promote` works on dtype codes; `TABLE` has all its results, as rows of `COUNT` codes, for the C
code in tensor/core/call.pxi. The rules, in order:

- bool with any other type becomes that type; types of one kind become the wider one, as in NumPy;
- signed with unsigned becomes the signed type that holds both; uint64 with a signed type has none
  and is refused (NumPy's result is float64, which represents neither exactly);
- an integer with a float becomes the float, whatever the widths: int64 + float16 is float16. This
  is PyTorch's rule, not NumPy's: on a GPU accidental float64 costs a factor of 2 to 64;
- float16 with bfloat16 becomes float32, the smallest type that holds both;
- float8 types are for storage and have no common type with any other;
- a Python number is weak: the tensor beside it keeps its dtype, unless the number's kind is higher;
  then the result has the default dtype of that kind (int64, float32, complex64).
"""

import numpy as np

from gputensor._arrays.dtypes import BOOL, DEFAULT_COMPLEX, DEFAULT_FLOAT, DEFAULT_INT, code_of
from gputensor._arrays.element_types import DTYPES

__all__ = ["NONE", "TABLE", "can_cast", "promote", "promote_scalar", "result_type"]

COUNT = len(DTYPES)
NONE = 255  # "no common dtype" in TABLE

_CODE = {row.name: row.code for row in DTYPES}
_RANK = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}


def _common(a, b):
    """Return the code of the common dtype of two rows, or NONE."""
    if a.code == b.code:
        return a.code
    if "small" in (a.kind, b.kind):
        return NONE
    low, high = sorted((a, b), key=lambda row: _RANK[row.kind])
    rank = _RANK[low.kind], _RANK[high.kind]
    if rank[0] < 2 and rank[1] >= 2 or rank[0] == 0:
        return high.code
    if rank == (1, 1):
        common = np.result_type(a.numpy, b.numpy)
        return NONE if common.kind == "f" else _CODE[common.name]
    if rank == (2, 2):
        if {a.name, b.name} == {"float16", "bfloat16"}:
            return DEFAULT_FLOAT
        return max(a, b, key=lambda row: row.itemsize).code
    is_double = "float64" in (a.name, b.name) or "complex128" in (a.name, b.name)
    return _CODE["complex128" if is_double else "complex64"]


TABLE = bytes(_common(a, b) for a in DTYPES for b in DTYPES)


def promote(a, b):
    """Return the code to which dtype codes `a` and `b` promote; TypeError if there is none."""
    code = TABLE[a * COUNT + b]
    if code == NONE:
        raise TypeError(
            f"dtypes: got {DTYPES[a].name} and {DTYPES[b].name}, which have no common dtype; "
            "expected a common dtype: convert one with astype"
        )
    return code


def promote_scalar(code, kind):
    """Return the code for a tensor of dtype `code` with a Python number of type `kind`."""
    rank = _RANK.get(DTYPES[code].kind, 2)
    if kind is bool or (kind is int and rank >= 1) or (kind is float and rank >= 2):
        return code
    if kind is int:
        return DEFAULT_INT
    if kind is float:
        return DEFAULT_FLOAT
    if rank == 3:
        return code
    return _CODE["complex128"] if DTYPES[code].name == "float64" else DEFAULT_COMPLEX


_WEAK = {bool: BOOL, int: DEFAULT_INT, float: DEFAULT_FLOAT, complex: DEFAULT_COMPLEX}
_NUMBERS = (int, float, complex, np.generic)
_WEAK_OF_KIND = {"b": bool, "i": int, "u": int, "f": float, "V": float, "c": complex}


def _weak_kind(value):
    """Return the Python type of a number, or of a NumPy scalar; None for everything else."""
    if not isinstance(value, _NUMBERS):
        return None
    if isinstance(value, np.generic):
        return _WEAK_OF_KIND.get(value.dtype.kind)
    return next(kind for kind in _WEAK if isinstance(value, kind))


def result_type(*arrays_and_dtypes):
    """Return the dtype that an operation on the arguments would have.

    Parameters
    ----------
    *arrays_and_dtypes : Tensor, dtype or Python number
        At least one. Python numbers and NumPy scalars are weak: only their kind counts.

    >>> result_type("int64", "float16"), result_type("bfloat16", "float16")
    (dtype('float16'), dtype('float32'))
    >>> result_type("int8", 3), result_type("int8", 2.5)
    (dtype('int8'), dtype('float32'))
    """
    if not arrays_and_dtypes:
        raise ValueError(
            "result_type: got no argument; expected at least one tensor, dtype or number"
        )
    strong, weak = [], []
    for one in arrays_and_dtypes:
        kind = _weak_kind(one)
        if kind is not None:
            weak.append(kind)
        else:
            strong.append(code_of(one))
    if not strong:
        strong.append(_WEAK[weak.pop()])
    code = strong[0]
    for other in strong[1:]:
        code = promote(code, other)
    for kind in weak:
        code = promote_scalar(code, kind)
    return DTYPES[code].numpy


def can_cast(from_, to, /):
    """Return whether `from_` (a Tensor or a dtype) and `to` promote to `to`.

    >>> can_cast("int8", "int32"), can_cast("float32", "int32"), can_cast("int64", "float32")
    (True, False, True)
    """
    source = code_of(from_)
    target = code_of(to)
    return TABLE[source * COUNT + target] == target


def is_same_kind(source, target):
    """Return whether a result of dtype code `source` may be written to an output of `target`.

    The kind (bool, integer, float, complex) may only rise; the width may shrink.
    """
    a, b = DTYPES[source].kind, DTYPES[target].kind
    rank = {"bool": 0, "int": 1, "uint": 1, "float": 2, "small": 2, "complex": 3}
    return rank[a] <= rank[b]
