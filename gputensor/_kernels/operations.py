"""The table of operations: everything that one element-wise operation or reduction consists of.

A new operation needs one row. The build makes the public function and its stub from the row
(``tensor/functions/source.py``); CUDA kernels, the host executor, checks, documentation and tests
read it. This file imports no other module of the library, so that a build can run it first.

A row of ``ELEMENTWISE`` has, in this order:

name
    The name of the operation in kernels and tests. A second word is the public function's name, if
    it differs; the function belongs to ``gputensor.special`` if this word begins with ``special.``.
arity
    Number of inputs.
rule
    The rule for the result's dtype: a name in ``RULES``.
cuda
    C++ expressions by kind. The keys are letters of ``LETTERS``; together they are the kinds that
    the operation takes. The inputs are ``a``, ``b`` and ``c`` of the arithmetic type ``C``; code
    beyond an expression is a function of ``math.cuh`` or of a header in ``cuda/special``.
host
    The NumPy function (``np.add``), or the function of ``host/elementwise.py`` (``sigmoid``), that
    computes the same values; or ``loop``: the host device runs the C++ expression of floats.
doc
    The text after the word "Return" in the docstring. Further paragraphs follow a blank line.
example
    Arguments and result, the first argument a list that becomes a tensor; or ``BY_HAND`` if the
    function is written in ``selection.pxi``, because it has a signature of its own.

A row's place is its code. C code that treats an operation specially names the code in
``faces/__init__.pxd``, which is compared with this table at import; new rows go to the end.
"""

from typing import NamedTuple

__all__ = [
    "BY_HAND", "ELEMENTWISE", "LETTERS", "REDUCTIONS", "REDUCTION_RULES", "RULES", "Operation",
    "Reduction", "operation",
]  # fmt: skip

LETTERS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex", "s": "small"}
BY_HAND = "by hand"
#: The result's dtype according to each rule. ``tensor/core`` has the code of each.
RULES = {
    "same": "the common dtype of the arguments",
    "float": "the common dtype of the arguments; float32 for bool and integers",
    "compare": "bool",
    "logical": "bool",
    "bits": "the common dtype of the arguments, bool or an integer dtype",
    "classify": "bool",
    "magnitude": "the dtype of the argument; its real dtype when that is complex",
    "where": "the common dtype of the arguments except the condition",
    "count": "uint8",
}
#: The same of reductions, whose functions are written in ``tensor/functions/reduction.pxi``.
REDUCTION_RULES = {
    "total": "the dtype of the argument; int64 for bool and int, uint64 for uint",
    "same": "the dtype of the argument",
    "index": "int64",
    "truth": "bool",
    "mean": "the dtype of the argument; float32 for bool and integers",
}


class Operation(NamedTuple):
    """One row of ``ELEMENTWISE``; ``kinds`` are the keys of ``cuda``, by name."""

    code: int
    name: str
    public_name: str
    arity: int
    kinds: frozenset
    rule: str
    cuda: dict
    host: str
    doc: str
    example: str
    is_special: bool

    @property
    def parameters(self):
        """The names of the public function's inputs."""
        return ("x",) if self.arity == 1 else tuple(f"x{i + 1}" for i in range(self.arity))

    @property
    def gives_bool(self):
        """Whether the result is a truth value for all inputs."""
        return self.rule in ("compare", "classify")


class Reduction(NamedTuple):
    """One row of ``REDUCTIONS``."""

    code: int
    name: str
    kinds: frozenset
    rule: str
    cuda: dict
    host: str
    doc: str
    is_special: bool = False

    @property
    def arity(self):
        """Number of inputs."""
        return 1

    @property
    def public_name(self):
        """The name of the public function."""
        return self.name


def operation(code, row):
    """Make one row of the table; raise ValueError that names a missing part.

    >>> operation(4, ("add", 2, "same", {"iu": "a + b"}, "np.add", "", "[1], 2 -> array([3])"))
    Traceback (most recent call last):
        ...
    ValueError: operation add: got no doc; expected a sentence that follows "Return"
    """
    names, arity, rule, cuda, host, doc, example = row + (None,) * (7 - len(row))
    name, public_name = (names.split() * 2)[:2]
    is_special = public_name.startswith("special.")
    public_name = public_name.removeprefix("special.")
    letters = "".join(cuda) if isinstance(cuda, dict) else ""
    needs = {
        "arity": (arity in (1, 2, 3), "1, 2 or 3 inputs"),
        "rule": (rule in RULES, f"one of {', '.join(RULES)}"),
        "cuda": (
            letters and set(letters) <= set(LETTERS) and len(set(letters)) == len(letters)
            and all(cuda.values()),
            f"an expression for each kind, the kinds once each from {''.join(LETTERS)}",
        ),
        "host": (host, "a function of NumPy or of host/elementwise.py"),
        "doc": (doc, 'a sentence that follows "Return"'),
        "example": (
            example == BY_HAND or " -> " in (example or ""),
            "'[1, 2], 10 -> array([11, 12])' or BY_HAND",
        ),
    }  # fmt: skip
    for part, (is_there, expected) in needs.items():
        if not is_there:
            got = dict(zip(needs, row[1:], strict=False)).get(part)
            raise ValueError(
                f"operation {name}: got {f'{part} {got!r}' if got else f'no {part}'}; "
                f"expected {expected}"
            )
    by_kind = {LETTERS[letter]: text for group, text in cuda.items() for letter in group}
    return Operation(
        code,
        name,
        public_name,
        arity,
        frozenset(by_kind),
        rule,
        by_kind,
        host,
        doc,
        example,
        is_special,
    )


# fmt: off
_ROWS = (
    ("copy", 1, "same", {"biufcs": "a"}, "identity", "a copy of x.", BY_HAND),
    ("neg negative", 1, "same", {"iufc": "-a"}, "np.negative",
     "-x.", "[1, -2] -> array([-1,  2])"),
    ("positive", 1, "same", {"iufc": "a"}, "identity",
     "a copy of x.", "[1, -2] -> array([ 1, -2])"),
    ("abs", 1, "magnitude",
     {"ub": "a", "i": "a < 0 ? -a : a", "f": "fabs(a)", "c": "magnitude(a)"}, "np.abs",
     "the magnitude of x, which is real.", "[1, -2] -> array([1, 2])"),
    ("add", 2, "same", {"b": "a || b", "iufc": "a + b"}, "np.add",
     "x1 + x2.", "[1, 2], 10 -> array([11, 12])"),
    ("sub subtract", 2, "same", {"iufc": "a - b"}, "np.subtract",
     "x1 - x2.", "[1, 2], 10 -> array([-9, -8])"),
    ("mul multiply", 2, "same", {"b": "a && b", "iufc": "a * b"}, "np.multiply",
     "x1 * x2.", "[1, 2], 10 -> array([10, 20])"),
    ("div divide", 2, "float", {"fc": "a / b"}, "np.true_divide",
     "x1 / x2.", "[1, 2], 4 -> array([0.25, 0.5 ], dtype=float32)"),
    ("floordiv floor_divide", 2, "same",
     {"iu": "integer_divide<C>(a, b)", "f": "float_divide_floor<C>(a, b)"}, "np.floor_divide",
     "the floor of x1 / x2; an integer divided by 0 gives 0.", "[7, -7], 2 -> array([ 3, -4])"),
    ("mod remainder", 2, "same",
     {"iu": "integer_modulo<C>(a, b)", "f": "float_modulo<C>(a, b)"}, "np.remainder",
     "x1 % x2, with the sign of x2; an integer modulo 0 gives 0.", "[7, -7], 3 -> array([1, 2])"),
    ("pow", 2, "same",
     {"iu": "integer_power<C>(a, b)", "f": "float_power(a, b)", "c": "power(a, b)"}, "power",
     """x1 to the power x2.

     Integers to a negative int raise ValueError. Negative powers in an integer *tensor* x2 cannot
     raise without a wait for the device: there the result is the inverse without its fraction, 1
     or -1 for bases 1 and -1, and 0 for all others.""", "[2, 3], 2 -> array([4, 9])"),
    ("maximum", 2, "same", {"biuf": "larger<C>(a, b)"}, "np.maximum",
     "the greater of x1 and x2; NaN wins.", "[1, 5], 3 -> array([3, 5])"),
    ("minimum", 2, "same", {"biuf": "smaller<C>(a, b)"}, "np.minimum",
     "the lesser of x1 and x2; NaN wins.", "[1, 5], 3 -> array([1, 3])"),
    ("eq equal", 2, "compare", {"biufc": "a == b"}, "np.equal",
     "x1 == x2.", "[1, 2], 2 -> array([False,  True])"),
    ("ne not_equal", 2, "compare", {"biufc": "a != b"}, "np.not_equal",
     "x1 != x2.", "[1, 2], 2 -> array([ True, False])"),
    ("lt less", 2, "compare", {"biuf": "a < b"}, "np.less",
     "x1 < x2.", "[1, 2], 2 -> array([ True, False])"),
    ("le less_equal", 2, "compare", {"biuf": "a <= b"}, "np.less_equal",
     "x1 <= x2.", "[1, 2], 2 -> array([ True,  True])"),
    ("gt greater", 2, "compare", {"biuf": "a > b"}, "np.greater",
     "x1 > x2.", "[1, 2], 1 -> array([False,  True])"),
    ("ge greater_equal", 2, "compare", {"biuf": "a >= b"}, "np.greater_equal",
     "x1 >= x2.", "[1, 2], 1 -> array([ True,  True])"),
    ("and bitwise_and", 2, "bits", {"biu": "a & b"}, "np.bitwise_and",
     "the bits set in both x1 and x2.", "[6, 5], 3 -> array([2, 1])"),
    ("or bitwise_or", 2, "bits", {"biu": "a | b"}, "np.bitwise_or",
     "the bits set in x1 or x2.", "[6, 5], 3 -> array([7, 7])"),
    ("xor bitwise_xor", 2, "bits", {"biu": "a ^ b"}, "np.bitwise_xor",
     "the bits set in exactly one of x1 and x2.", "[6, 5], 3 -> array([5, 6])"),
    ("not bitwise_invert", 1, "bits", {"b": "!a", "iu": "~a"}, "np.invert",
     "x with every bit inverted; the logical inverse of bool.", "[0, 5] -> array([-1, -6])"),
    ("lshift bitwise_left_shift", 2, "bits", {"iu": "shift_left<C>(a, b)"}, "shift_left",
     "x1 shifted left by x2 bits; x2 must not be negative.", "[1, 3], 2 -> array([ 4, 12])"),
    ("rshift bitwise_right_shift", 2, "bits", {"iu": "shift_right<C>(a, b)"}, "shift_right",
     "x1 shifted right by x2 bits, keeping the sign.", "[8, -8], 2 -> array([ 2, -2])"),
    ("where", 3, "where", {"biufcs": "a ? b : c"}, "np.where",
     "x1 where `condition` is true and x2 elsewhere.", BY_HAND),
    ("exp", 1, "float", {"fc": "exp(a)"}, "np.exp",
     "e to the power x.", "[0, -1000] -> array([1., 0.], dtype=float32)"),
    ("expm1", 1, "float", {"fc": "expm1(a)"}, "expm1",
     "exp(x) - 1, exact near 0.", "[0.0] -> array([0.], dtype=float32)"),
    ("log", 1, "float", {"fc": "log(a)"}, "np.log",
     "the natural logarithm of x.", "[1.0] -> array([0.], dtype=float32)"),
    ("log1p", 1, "float", {"fc": "log1p(a)"}, "log1p",
     "log(1 + x), exact near 0.", "[0.0] -> array([0.], dtype=float32)"),
    ("log2", 1, "float", {"fc": "log2(a)"}, "np.log2",
     "the logarithm of x to base 2.", "[1.0] -> array([0.], dtype=float32)"),
    ("log10", 1, "float", {"fc": "log10(a)"}, "np.log10",
     "the logarithm of x to base 10.", "[1.0] -> array([0.], dtype=float32)"),
    ("sqrt", 1, "float", {"fc": "sqrt(a)"}, "np.sqrt",
     "the square root of x.", "[4, 9] -> array([2., 3.], dtype=float32)"),
    ("rsqrt", 1, "float", {"f": "rsqrt(a)"}, "rsqrt",
     "1 / sqrt(x).", "[4, 16] -> array([0.5 , 0.25], dtype=float32)"),
    ("square", 1, "same", {"iufc": "a * a"}, "np.square",
     "x * x.", "[3, -4] -> array([ 9, 16])"),
    ("reciprocal", 1, "float", {"f": "1 / a", "c": "reciprocal(a)"}, "np.reciprocal",
     "1 / x.", "[4, 8] -> array([0.25 , 0.125], dtype=float32)"),
    ("sin", 1, "float", {"fc": "sin(a)"}, "np.sin",
     "the sine of x, an angle in radians.", "[0.0] -> array([0.], dtype=float32)"),
    ("cos", 1, "float", {"fc": "cos(a)"}, "np.cos",
     "the cosine of x, an angle in radians.", "[0.0] -> array([1.], dtype=float32)"),
    ("tan", 1, "float", {"fc": "tan(a)"}, "np.tan",
     "the tangent of x, an angle in radians.", "[0.0] -> array([0.], dtype=float32)"),
    ("asin", 1, "float", {"fc": "asin(a)"}, "np.arcsin",
     "the angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1].",
     "[0.0] -> array([0.], dtype=float32)"),
    ("acos", 1, "float", {"fc": "acos(a)"}, "np.arccos",
     "the angle in [0, pi] whose cosine is x; NaN outside [-1, 1].",
     "[1.0] -> array([0.], dtype=float32)"),
    ("atan", 1, "float", {"fc": "atan(a)"}, "np.arctan",
     "the angle in [-pi/2, pi/2] whose tangent is x.", "[0.0] -> array([0.], dtype=float32)"),
    ("sinh", 1, "float", {"fc": "sinh(a)"}, "np.sinh",
     "the hyperbolic sine of x.", "[0.0] -> array([0.], dtype=float32)"),
    ("cosh", 1, "float", {"fc": "cosh(a)"}, "np.cosh",
     "the hyperbolic cosine of x.", "[0.0] -> array([1.], dtype=float32)"),
    ("tanh", 1, "float", {"fc": "tanh(a)"}, "np.tanh",
     "the hyperbolic tangent of x.", "[0.0] -> array([0.], dtype=float32)"),
    ("asinh", 1, "float", {"fc": "asinh(a)"}, "np.arcsinh",
     "the inverse hyperbolic sine of x.", "[0.0] -> array([0.], dtype=float32)"),
    ("acosh", 1, "float", {"fc": "acosh(a)"}, "np.arccosh",
     "the inverse hyperbolic cosine of x; NaN below 1.", "[1.0] -> array([0.], dtype=float32)"),
    ("atanh", 1, "float", {"fc": "atanh(a)"}, "np.arctanh",
     "the inverse hyperbolic tangent of x; NaN outside [-1, 1].",
     "[0.0] -> array([0.], dtype=float32)"),
    ("atan2", 2, "float", {"f": "atan2(a, b)"}, "np.arctan2",
     "the angle of the point (x2, x1), in [-pi, pi].",
     "[0.0], 1.0 -> array([0.], dtype=float32)"),
    ("floor", 1, "same", {"biu": "a", "f": "floor(a)"}, "floor",
     "the greatest integer not above x.", "[1.5, -1.5] -> array([ 1., -2.], dtype=float32)"),
    ("ceil", 1, "same", {"biu": "a", "f": "ceil(a)"}, "ceil",
     "the least integer not below x.", "[1.5, -1.5] -> array([ 2., -1.], dtype=float32)"),
    ("trunc", 1, "same", {"biu": "a", "f": "trunc(a)"}, "trunc",
     "x without its fraction.", "[1.5, -1.5] -> array([ 1., -1.], dtype=float32)"),
    ("round", 1, "same", {"biu": "a", "f": "rint(a)", "c": "make(rint(a.re), rint(a.im))"}, "rint",
     "the integer nearest to x; a half is rounded to the even integer.",
     "[1.5, 2.5] -> array([2., 2.], dtype=float32)"),
    ("sign", 1, "same", {"iufc": "sign(a)"}, "sign",
     "-1, 0 or 1 by the sign of x; x / abs(x) for complex x.", "[-3, 0] -> array([-1,  0])"),
    ("isnan", 1, "classify", {"biu": "false", "f": "a != a", "c": "is_nan(a)"}, "np.isnan",
     "where x is NaN.", '[1.0, float("nan")] -> array([False,  True])'),
    ("isinf", 1, "classify", {"biu": "false", "f": "isinf(a)", "c": "is_inf(a)"}, "np.isinf",
     "where x is infinite.", '[1.0, float("inf")] -> array([False,  True])'),
    ("isfinite", 1, "classify", {"biu": "true", "f": "isfinite(a)", "c": "is_finite(a)"},
     "np.isfinite", "where x is neither infinite nor NaN.",
     '[1.0, float("inf")] -> array([ True, False])'),
    ("erf", 1, "float", {"f": "erf(a)"}, "loop",
     "the error function of x.", "[0.0] -> array([0.], dtype=float32)"),
    ("sigmoid", 1, "float", {"f": "sigmoid(a)"}, "loop",
     "1 / (1 + exp(-x)).", "[0.0] -> array([0.5], dtype=float32)"),
    ("relu", 1, "same", {"u": "a", "if": "a <= 0 ? (C)0 : a"}, "relu",
     "x where it is positive, otherwise 0; NaN stays NaN.",
     "[-1.0, 2.0] -> array([0., 2.], dtype=float32)"),
    ("gelu", 1, "float", {"f": "gelu(a)"}, "loop",
     "x times the normal distribution function of x.", BY_HAND),
    ("silu", 1, "float", {"f": "a * sigmoid(a)"}, "loop",
     "x * sigmoid(x).", "[0.0] -> array([0.], dtype=float32)"),
    ("clip", 3, "same", {"iuf": "smaller<C>(larger<C>(a, b), c)"}, "clip",
     "x, raised to `min` and lowered to `max`; None means no limit.", BY_HAND),
    ("real", 1, "magnitude", {"biuf": "a", "c": "a.re"}, "np.real",
     "the real part of x.", "[1 + 2j] -> array([1.], dtype=float32)"),
    ("imag", 1, "magnitude", {"biuf": "(C)0", "c": "a.im"}, "np.imag",
     "the imaginary part of x.", "[1 + 2j] -> array([2.], dtype=float32)"),
    ("conj", 1, "same", {"biuf": "a", "c": "make(a.re, -a.im)"}, "np.conj",
     "the complex conjugate of x; a copy when x is real.",
     "[1 + 2j] -> array([1.-2.j], dtype=complex64)"),
    ("gelu_tanh gelu", 1, "float", {"f": "gelu_tanh(a)"}, "loop",
     "the tanh approximation of gelu.", BY_HAND),
    ("logical_and", 2, "logical", {"b": "a & b"}, "np.logical_and",
     "whether both x1 and x2 are nonzero.", "[0, 2], 1 -> array([False,  True])"),
    ("logical_or", 2, "logical", {"b": "a | b"}, "np.logical_or",
     "whether x1 or x2 is nonzero.", "[0, 2], 0 -> array([False,  True])"),
    ("logical_xor", 2, "logical", {"b": "a ^ b"}, "np.logical_xor",
     "whether exactly one of x1 and x2 is nonzero.", "[0, 2], 1 -> array([ True, False])"),
    ("logical_not", 1, "logical", {"b": "!a"}, "np.logical_not",
     "whether x is zero.", "[0, 2] -> array([ True, False])"),
    ("cbrt", 1, "float", {"f": "cbrt(a)"}, "np.cbrt",
     "the cube root of x.", "[-1.0, 8.0] -> array([-1.,  2.], dtype=float32)"),
    ("sinc", 1, "float",
     {"f": "a == 0 ? (C)1 : sin((C)3.14159265358979323846 * a) / ((C)3.14159265358979323846 * a)",
      "c": "sinc(a)"},
     "np.sinc", "sin(pi x) / (pi x), and 1 at 0.", "[0.0] -> array([1.], dtype=float32)"),
    ("erfc", 1, "float", {"f": "erfc(a)"}, "loop",
     "1 - erf(x), accurate also where it is small.", "[0.0] -> array([1.], dtype=float32)"),
    ("lgamma", 1, "float", {"f": "lgamma(a)"}, "loop",
     "the logarithm of the magnitude of gamma(x).", "[3.0] -> array([0.6931472], dtype=float32)"),
    ("gcd", 2, "same", {"iu": "greatest_divisor<C>(a, b)"}, "np.gcd",
     "the greatest common divisor of x1 and x2.", "[12, -9], 8 -> array([4, 1])"),
    ("lcm", 2, "same", {"iu": "least_multiple<C>(a, b)"}, "np.lcm",
     "the least common multiple of x1 and x2.", "[4, -3], 6 -> array([12,  6])"),
    ("bitwise_count", 1, "count", {"iu": "bit_count<C>(a)"}, "np.bitwise_count",
     "the number of bits set in the magnitude of x.", "[7, -8] -> array([3, 1], dtype=uint8)"),
    ("erfinv", 1, "float", {"f": "erfinv(a)"}, "loop",
     "the number whose error function is x; NaN outside [-1, 1].",
     "[0.0] -> array([0.], dtype=float32)"),
    ("digamma", 1, "float", {"f": "(C)gammas::digamma(a)"}, "loop",
     "the derivative of log(gamma(x)).", "[1.0] -> array([-0.5772157], dtype=float32)"),
    ("i0", 1, "float", {"f": "bessel::i0(a)"}, "loop",
     "the modified Bessel function of the first kind of order 0, I0(x).",
     "[0.0] -> array([1.], dtype=float32)"),
    ("poisson_quantile", 2, "float", {"f": "(C)gammas::poisson_quantile(a, b)"}, "loop",
     """the least count with cumulative probability x1 or more in a Poisson distribution of mean x2.

     NaN for probabilities outside [0, 1] and negative means. Above a mean of 2**17 the result is
     that of a normal distribution, corrected for skewness.""",
     "[0.1, 0.9], 2 -> array([0., 4.], dtype=float32)"),
    ("igamma", 2, "float", {"f": "(C)gammas::incomplete(a, b, false)"}, "loop",
     """the regularized lower incomplete gamma function P(x1, x2), SciPy's ``gammainc``.

     It is NaN for negative arguments. In float64 its relative error is below 1e-12 (for results
     that are no subnormal numbers); float32 and 16-bit floats are computed in float64.""",
     "[1.0, 2.0], 1.0 -> array([0.63212055, 0.26424113], dtype=float32)"),
    ("igammac", 2, "float", {"f": "(C)gammas::incomplete(a, b, true)"}, "loop",
     """the regularized upper incomplete gamma function Q(x1, x2), SciPy's ``gammaincc``.

     It is 1 - P(x1, x2), and accurate where it is small: as :func:`igamma`.""",
     "[1.0, 2.0], 1.0 -> array([0.36787945, 0.7357589 ], dtype=float32)"),
    ("j0 special.j0", 1, "float", {"f": "bessel::j0(a)"}, "loop",
     """the Bessel function of the first kind of order 0, J0(x).

     Its error is below 8 units in the last place of sqrt(2 / (pi x)), the size of its waves.""",
     "[0.0] -> array([1.], dtype=float32)"),
    ("j1 special.j1", 1, "float", {"f": "bessel::j1(a)"}, "loop",
     "the Bessel function of the first kind of order 1, J1(x); its error is that of :func:`j0`.",
     "[0.0] -> array([0.], dtype=float32)"),
    ("y0 special.y0", 1, "float", {"f": "bessel::y0(a)"}, "loop",
     """the Bessel function of the second kind of order 0, Y0(x): -inf at 0, and NaN below.

     Its error is that of :func:`j0`.""",
     "[0.0] -> array([-inf], dtype=float32)"),
    ("y1 special.y1", 1, "float", {"f": "bessel::y1(a)"}, "loop",
     """the Bessel function of the second kind of order 1, Y1(x): -inf at 0, and NaN below.

     Its error is that of :func:`j0`.""",
     "[0.0] -> array([-inf], dtype=float32)"),
    ("i0e special.i0e", 1, "float", {"f": "bessel::i0e(a)"}, "loop",
     "I0(x) * exp(-abs(x)), which does not overflow.", "[0.0] -> array([1.], dtype=float32)"),
    ("i1 special.i1", 1, "float", {"f": "bessel::i1(a)"}, "loop",
     """the modified Bessel function of the first kind of order 1, I1(x).

     The relative errors of all modified functions are below 8 units in the last place.""",
     "[0.0] -> array([0.], dtype=float32)"),
    ("i1e special.i1e", 1, "float", {"f": "bessel::i1e(a)"}, "loop",
     "I1(x) * exp(-abs(x)), which does not overflow.", "[0.0] -> array([0.], dtype=float32)"),
    ("k0 special.k0", 1, "float", {"f": "bessel::k0(a)"}, "loop",
     "the modified Bessel function of the second kind of order 0, K0(x): inf at 0, and NaN below.",
     "[0.0] -> array([inf], dtype=float32)"),
    ("k1 special.k1", 1, "float", {"f": "bessel::k1(a)"}, "loop",
     "the modified Bessel function of the second kind of order 1, K1(x): inf at 0, and NaN below.",
     "[0.0] -> array([inf], dtype=float32)"),
    ("k0e special.k0e", 1, "float", {"f": "bessel::k0e(a)"}, "loop",
     "K0(x) * exp(x), which does not vanish.", "[0.0] -> array([inf], dtype=float32)"),
    ("k1e special.k1e", 1, "float", {"f": "bessel::k1e(a)"}, "loop",
     "K1(x) * exp(x), which does not vanish.", "[0.0] -> array([inf], dtype=float32)"),
    ("gamma special.gamma", 1, "float", {"f": "tgamma(a)"}, "loop",
     "the gamma function; infinite at 0, and NaN at negative integers.",
     "[1.0, 4.0] -> array([1., 6.], dtype=float32)"),
    ("zeta special.zeta", 2, "float", {"f": "(C)gammas::zeta(a, b)"}, "loop",
     """Hurwitz's zeta function: the sum of ``(x2 + k)**-x1`` over all k from 0.

     inf for x1 of 1, and where x2 is 0 or a negative integer; NaN for smaller x1 and for other
     negative x2. It is computed in float64.""",
     "[2.0], 1.0 -> array([1.644934], dtype=float32)"),
    ("polygamma special.polygamma", 2, "float", {"f": "(C)gammas::polygamma(a, b)"}, "loop",
     "derivative x1 of the digamma function at x2; x1 is a natural number.",
     "[1.0], 1.0 -> array([1.644934], dtype=float32)"),
    ("erfcx special.erfcx", 1, "float", {"f": "(C)normal::erfcx(a)"}, "loop",
     """exp(x**2) * erfc(x), which neither overflows nor vanishes for large x.

     It is computed in float64; the relative error is below 1e-13.""",
     "[0.0] -> array([1.], dtype=float32)"),
    ("erfcinv special.erfcinv", 1, "float", {"f": "(C)normal::erfcinv(a)"}, "loop",
     "the inverse of erfc for x from 0 to 2, computed in float64.",
     "[0.0] -> array([inf], dtype=float32)"),
    ("log_ndtr special.log_ndtr", 1, "float", {"f": "(C)normal::log_ndtr(a)"}, "loop",
     "the logarithm of ndtr, also where that is 0, computed in float64.",
     "[-100.0] -> array([-5005.5244], dtype=float32)"),
    ("ndtri special.ndtri", 1, "float", {"f": "(C)normal::ndtri(a)"}, "loop",
     """the quantile of the standard normal distribution: the inverse of ndtr.

     -inf at 0 and inf at 1; NaN outside. It is computed in float64.""",
     "[0.5] -> array([0.], dtype=float32)"),
    ("betainc special.betainc", 3, "float", {"f": "(C)integrals::betainc(a, b, c)"}, "loop",
     "the regularized incomplete beta function I(x3; x1, x2), computed in float64.",
     "[2.0], 3.0, 0.5 -> array([0.6875], dtype=float32)"),
    ("betaincinv special.betaincinv", 3, "float", {"f": "(C)integrals::betaincinv(a, b, c)"},
     "loop", "the inverse of betainc(x1, x2, x).", "[2.0], 3.0, 1.0 -> array([1.], dtype=float32)"),
    ("gammaincinv special.gammaincinv", 2, "float",
     {"f": "(C)integrals::gammaincinv(a, b, false)"}, "loop",
     "the x at which gammainc(x1, x) is x2, computed in float64.",
     "[1.0], 0.5 -> array([0.6931472], dtype=float32)"),
    ("gammainccinv special.gammainccinv", 2, "float",
     {"f": "(C)integrals::gammaincinv(a, b, true)"}, "loop",
     "the x at which gammaincc(x1, x) is x2, computed in float64.",
     "[1.0], 0.5 -> array([0.6931472], dtype=float32)"),
    ("expi special.expi", 1, "float", {"f": "(C)integrals::expi(a)"}, "loop",
     "the exponential integral Ei(x).", "[1.0] -> array([1.8951178], dtype=float32)"),
    ("expn special.expn", 2, "float", {"f": "(C)integrals::expn(a, b)"}, "loop",
     "the exponential integral E(x2) of order x1.", "[1.0], 0.0 -> array([inf], dtype=float32)"),
    ("ellipkm1 special.ellipkm1", 1, "float", {"f": "(C)integrals::ellipkm1(a)"}, "loop",
     "the complete elliptic integral K(1 - x).", "[1.0] -> array([1.5707964], dtype=float32)"),
    ("binary_fraction", 1, "float", {"f": "digits::fraction<C>(a)"}, "loop",
     "the fraction of magnitude 0.5 to 1 of :func:`frexp`; 0, infinities and NaN as they are.",
     "[6.0] -> array([0.75], dtype=float32)"),
    ("binary_exponent", 1, "float", {"f": "digits::exponent<C>(a)"}, "loop",
     "the exponent of :func:`frexp`, a float.", "[6.0] -> array([3.], dtype=float32)"),
)

ELEMENTWISE = tuple(operation(*numbered) for numbered in enumerate(_ROWS))

# How reductions accumulate: the identity, an element x as an accumulator A, two accumulators
# joined, an accumulator as the result C. Argmax and argmin have only the comparison of elements.
_ANY = ("0", "(A)narrow<bool>(x)", "a | b", "a != 0")
_ALL = ("1", "(A)narrow<bool>(x)", "a & b", "a != 0")
_SUM = ("narrow<A>(0)", "narrow<A>(x)", "a + b", "narrow<C>(a)")
_PROD = ("narrow<A>(1)", "narrow<A>(x)", "a * b", "narrow<C>(a)")
_MEAN_OF_PARTS = "make((decltype(a.re))(a.re / count), (decltype(a.re))(a.im / count))"
_REDUCTIONS = (
    ("sum", "total", {"b": _ANY, "iufc": _SUM}, "np.add",
     "the sum over `axis`; 0 when there are no elements."),
    ("prod", "total", {"b": _ALL, "iufc": _PROD}, "np.multiply",
     "the product over `axis`; 1 when there are no elements."),
    ("max", "same", {"b": _ANY, "iuf": ("(A)LOWEST", "(A)x", "larger<A>(a, b)", "(C)a")},
     "np.maximum", "the greatest element over `axis`; ValueError when there is none."),
    ("min", "same", {"b": _ALL, "iuf": ("(A)HIGHEST", "(A)x", "smaller<A>(a, b)", "(C)a")},
     "np.minimum", "the least element over `axis`; ValueError when there is none."),
    ("argmax", "index", {"biuf": (">",)}, "np.argmax",
     "the index of the first greatest element along `axis` (None: of all elements)."),
    ("argmin", "index", {"biuf": ("<",)}, "np.argmin",
     "the index of the first least element along `axis` (None: of all elements)."),
    ("any", "truth", {"biufc": _ANY}, "np.logical_or",
     "whether any element over `axis` is nonzero; False when there are none."),
    ("all", "truth", {"biufc": _ALL}, "np.logical_and",
     "whether every element over `axis` is nonzero; True when there are none."),
    ("mean", "mean", {"f": (*_SUM[:3], "a / (A)count"), "c": (*_SUM[:3], _MEAN_OF_PARTS)},
     "np.add", "the mean over `axis`; NaN when there are no elements."),
    ("var", "mean",
     {"f": ("no_moments()", "moments_of(x)", "joined(a, b)", "a.squares / (C)count")}, "np.add",
     "the mean squared distance from the mean over `axis`; NaN when there are none."),
)
# fmt: on


def reduction(code, row):
    """Make one row of the reductions from a name, a rule, accumulations by kind, host and doc."""
    name, rule, cuda, host, doc = row
    by_kind = {LETTERS[letter]: texts for group, texts in cuda.items() for letter in group}
    return Reduction(code, name, frozenset(by_kind), rule, by_kind, host, doc)


REDUCTIONS = tuple(reduction(*numbered) for numbered in enumerate(_REDUCTIONS))
