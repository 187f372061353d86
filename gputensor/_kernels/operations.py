"""The element-wise operations and reductions: code, name, number of inputs, allowed kinds.

The codes are those of ``elementwise.pxd`` and ``reduction.pxd``. Both executors (CUDA and the host
device) obey this table, so an operation that one of them lacks raises the same TypeError on both.
"""

from typing import NamedTuple

from gputensor._arrays.element_types import DTYPES, KINDS

__all__ = ["ELEMENTWISE", "REDUCTIONS", "Operation", "check_kind", "kind_table"]

# What users call the operations whose name here is another one.
_PUBLIC_NAMES = {
    "neg": "negative",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "not": "bitwise_invert",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "gelu_tanh": "gelu",
}
_LETTERS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex", "s": "small"}


class Operation(NamedTuple):
    """One row: what an operation is called, how many inputs it takes, and on which kinds."""

    code: int
    name: str
    arity: int
    kinds: frozenset

    @property
    def public_name(self):
        """The function of the library that does it, for messages."""
        return _PUBLIC_NAMES.get(self.name, self.name)


_ELEMENTWISE_TEXT = """
copy 1 biufcs, neg 1 iufc, positive 1 iufc, abs 1 biufc, add 2 biufc, sub 2 iufc, mul 2 biufc,
div 2 fc, floordiv 2 iuf, mod 2 iuf, pow 2 iufc, maximum 2 biuf, minimum 2 biuf,
eq 2 biufc, ne 2 biufc, lt 2 biuf, le 2 biuf, gt 2 biuf, ge 2 biuf,
and 2 biu, or 2 biu, xor 2 biu, not 1 biu, lshift 2 iu, rshift 2 iu, where 3 biufcs,
exp 1 fc, expm1 1 f, log 1 fc, log1p 1 f, log2 1 f, log10 1 f, sqrt 1 fc, rsqrt 1 f,
square 1 iufc, reciprocal 1 fc, sin 1 fc, cos 1 fc, tan 1 fc, asin 1 f, acos 1 f, atan 1 f,
sinh 1 fc, cosh 1 fc, tanh 1 fc, asinh 1 f, acosh 1 f, atanh 1 f, atan2 2 f,
floor 1 biuf, ceil 1 biuf, trunc 1 biuf, round 1 biuf, sign 1 iufc,
isnan 1 biufc, isinf 1 biufc, isfinite 1 biufc, erf 1 f, sigmoid 1 f, relu 1 iuf, gelu 1 f,
silu 1 f, clip 3 iuf, real 1 fc, imag 1 fc, conj 1 biufc, gelu_tanh 1 f
"""

_REDUCTION_TEXT = """
sum 1 biufc, prod 1 biufc, max 1 biuf, min 1 biuf, argmax 1 biuf, argmin 1 biuf, any 1 biufc,
all 1 biufc, mean 1 fc
"""


def _rows(text):
    rows = []
    for code, entry in enumerate(text.replace("\n", " ").split(",")):
        name, arity, letters = entry.split()
        kinds = frozenset(_LETTERS[letter] for letter in letters)
        rows.append(Operation(code, name, int(arity), kinds))
    return tuple(rows)


ELEMENTWISE = _rows(_ELEMENTWISE_TEXT)
REDUCTIONS = _rows(_REDUCTION_TEXT)


def kind_table(operations):
    """Return the table as bytes: bit k of byte i is set when operation i takes kind k.

    >>> kind_table(REDUCTIONS)[8] == (1 << KINDS.index("float")) | (1 << KINDS.index("complex"))
    True
    """
    return bytes(sum(1 << KINDS.index(kind) for kind in row.kinds) for row in operations)


def check_kind(row, dtype, count=None):
    """Raise TypeError or ValueError when `row` cannot take `count` inputs computed as `dtype`.

    >>> check_kind(ELEMENTWISE[36], 3)
    Traceback (most recent call last):
        ...
    TypeError: sin is not defined for int32; it takes float, complex
    """
    element = DTYPES[dtype]
    if element.kind not in row.kinds:
        allowed = ", ".join(kind for kind in KINDS if kind in row.kinds)
        raise TypeError(f"{row.public_name} is not defined for {element.name}; it takes {allowed}")
    if count is not None and count != row.arity:
        raise ValueError(f"{row.public_name} takes {row.arity} inputs; got {count}")
