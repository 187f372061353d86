"""The element-wise operations in C++: one expression for each operation and kind.

The expressions see their inputs as ``a``, ``b`` and ``c`` of the arithmetic type ``C``; what needs
more than an expression is a function of ``math.cuh``. Values are NumPy's (``elementwise.pxd``).
"""

__all__ = ["expression"]

# Expressions for every kind that has no own entry below.
_COMMON = {
    "copy": "a",
    "positive": "a",
    "neg": "-a",
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b",
    "floordiv": "integer_divide<C>(a, b)",
    "mod": "integer_modulo<C>(a, b)",
    "pow": "integer_power<C>(a, b)",
    "maximum": "larger<C>(a, b)",
    "minimum": "smaller<C>(a, b)",
    "eq": "a == b",
    "ne": "a != b",
    "lt": "a < b",
    "le": "a <= b",
    "gt": "a > b",
    "ge": "a >= b",
    "and": "a & b",
    "or": "a | b",
    "xor": "a ^ b",
    "not": "~a",
    "lshift": "shift_left<C>(a, b)",
    "rshift": "shift_right<C>(a, b)",
    "where": "a ? b : c",
    "square": "a * a",
    "sign": "sign(a)",
    "abs": "a",
    "floor": "a",
    "ceil": "a",
    "trunc": "a",
    "round": "a",
    "isnan": "false",
    "isinf": "false",
    "isfinite": "true",
    "relu": "a",
    "clip": "smaller<C>(larger<C>(a, b), c)",
    "conj": "a",
}
_OWN = {
    "bool": {"add": "a || b", "mul": "a && b", "not": "!a"},
    "int": {"abs": "a < 0 ? -a : a", "relu": "a < 0 ? (C)0 : a"},
    "uint": {},
    "float": {
        "abs": "fabs(a)",
        "floordiv": "float_divide_floor<C>(a, b)",
        "mod": "float_modulo<C>(a, b)",
        "floor": "floor(a)",
        "ceil": "ceil(a)",
        "trunc": "trunc(a)",
        "round": "rint(a)",
        "isnan": "a != a",
        "isinf": "isinf(a)",
        "isfinite": "isfinite(a)",
        "reciprocal": "1 / a",
        "relu": "a < 0 ? (C)0 : a",
        "silu": "a * sigmoid(a)",
        "pow": "pow(a, b)",
        "atan2": "atan2(a, b)",
        "real": "a",
        "imag": "(C)0",
    },
    "complex": {
        "abs": "magnitude(a)",
        "isnan": "is_nan(a)",
        "isinf": "is_inf(a)",
        "isfinite": "is_finite(a)",
        "pow": "power(a, b)",
        "real": "a.re",
        "imag": "a.im",
        "conj": "make(a.re, -a.im)",
    },
    "small": {},
}


def expression(name, kind):
    """Return the C++ expression of an operation on one kind.

    >>> expression("add", "float"), expression("add", "bool"), expression("sin", "float")
    ('a + b', 'a || b', 'sin(a)')
    """
    return _OWN[kind].get(name) or _COMMON.get(name) or f"{name}(a)"
