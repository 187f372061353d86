"""CUDA C++ text of what a reduction accumulates: its type, identity, combination and result.

The text defines, for one operation and compute dtype:

    A                       the accumulator, whole 32-bit words
    identity()              what an empty reduction accumulates
    accumulator(x, index)   one element of the arithmetic type C, at its reduced index
    combine(a, b)           associative up to rounding; for arguments also commutative
    finish(a, count)        the stored result of type TO

Sums of 16-bit floats are float; integers are added modulo 2^64 and so wrap to any narrower type.
"""

from gputensor._kernels.dtypes import DTYPES
from gputensor._kernels.operations import REDUCTIONS

__all__ = ["accumulator_nbytes", "accumulator_source"]

_HEAD = "__device__ __forceinline__"

# name -> identity, element x -> A, two accumulators -> A, accumulator -> result
_RULES = {
    "sum": ("narrow<A>(0)", "narrow<A>(x)", "a + b", "narrow<C>(a)"),
    "prod": ("narrow<A>(1)", "narrow<A>(x)", "a * b", "narrow<C>(a)"),
    "max": ("(A)LOWEST", "(A)x", "larger<A>(a, b)", "(C)a"),
    "min": ("(A)HIGHEST", "(A)x", "smaller<A>(a, b)", "(C)a"),
    "any": ("0", "(A)narrow<bool>(x)", "a | b", "a != 0"),
    "all": ("1", "(A)narrow<bool>(x)", "a & b", "a != 0"),
    "mean": ("narrow<A>(0)", "narrow<A>(x)", "a + b", "a / (A)count"),
}
_COMPLEX_MEAN = "make((decltype(a.re))(a.re / count), (decltype(a.re))(a.im / count))"
# Sums and extremes of truth values are OR and AND.
_OF_BOOL = {"sum": "any", "max": "any", "prod": "all", "min": "all"}

_ARGUMENT = r"""
struct A { C value; long long index; };
__device__ __forceinline__ A identity() { A a; a.value = (C)0; a.index = -1; return a; }
__device__ __forceinline__ A accumulator(C x, long long index) {
    A a; a.value = x; a.index = index; return a;
}
__device__ __forceinline__ A combine(A a, A b) {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
    if (a_is_nan || a.value == b.value) return a.index < b.index ? a : b;
    return a.value %s b.value ? a : b;
}
__device__ __forceinline__ TO finish(A a, double) { return narrow<TO>(a.index); }
"""

# kind -> the values below and above every other, as accumulators
_RANGES = {
    "int": ("(-1ll << (8 * sizeof(C) - 1))", "(~(-1ll << (8 * sizeof(C) - 1)))"),
    "uint": ("0", "~0ull"),
    "float": ("-__int_as_float(0x7f800000)", "__int_as_float(0x7f800000)"),
}


def _type_of(name, element):
    """Return the C++ type and the size in bytes of an accumulator."""
    if name.startswith("arg"):
        return "A", 16
    if name in ("any", "all") or element.kind == "bool":
        return "int32", 4
    if element.kind in ("int", "uint"):
        return ("int64" if element.kind == "int" else "uint64"), 8
    return element.compute, 4 if element.compute == "float" else element.itemsize


def accumulator_nbytes(op, compute):
    """Return the size of one accumulator of an operation.

    >>> accumulator_nbytes(0, 9), accumulator_nbytes(4, 11)
    (4, 16)
    """
    return _type_of(REDUCTIONS[op].name, DTYPES[compute])[1]


def accumulator_source(name, element):
    """Return the CUDA C++ text for operation `name` computed as `element`.

    Parameters
    ----------
    name : str
        The name of a reduction.
    element : gputensor._kernels.dtypes.ElementType
        The compute dtype.

    Examples
    --------
    >>> from gputensor._kernels.dtypes import DTYPES
    >>> "typedef int64 A;" in accumulator_source("sum", DTYPES[3])
    True
    """
    if name.startswith("arg"):
        return _ARGUMENT % (">" if name == "argmax" else "<")
    type_name = _type_of(name, element)[0]
    if element.kind == "bool":
        name = _OF_BOOL.get(name, name)
    identity, lift, combine, finish = _RULES[name]
    if name == "mean" and element.kind == "complex":
        finish = _COMPLEX_MEAN
    result = "bool" if name in ("any", "all") else element.cuda
    low, high = _RANGES.get(element.kind, ("0", "0"))
    return "\n".join(
        [
            f"#define LOWEST {low}\n#define HIGHEST {high}\ntypedef {type_name} A;",
            f"{_HEAD} A identity() {{ return {identity}; }}",
            f"{_HEAD} A accumulator(C x, long long) {{ return {lift}; }}",
            f"{_HEAD} A combine(A a, A b) {{ return {combine}; }}",
            f"{_HEAD} TO finish(A a, double count)",
            f"{{ return convert<TO>(narrow<{result}>({finish})); }}",
        ]
    )
