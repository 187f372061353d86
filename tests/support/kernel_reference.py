"""References of element-wise operations and reductions: NumPy in float64, and sample inputs.

The references take arrays that are already of the compute dtype, widened (16-bit floats and float32
to float64, complex64 to complex128); integers stay as they are and wrap.
"""

import math

import numpy as np
import scipy.special

from gputensor._arrays.element_types import DTYPES

BOOLEAN = {"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite"}
PARTS = {"abs", "real", "imag"}
REAL_OF = {13: 11, 14: 12}
# Relative error of one operation: float32 and float64 a few units of the last place of the GPU's
# own functions (CUDA programming guide, mathematical functions), the 16-bit floats one rounding.
TOLERANCE = {9: 1.1e-3, 10: 8.5e-3, 11: 3e-6, 12: 4e-14, 13: 2e-5, 14: 1e-12}
BESSEL = ("j0", "j1", "y0", "y1", "i0", "i0e", "i1", "i1e", "k0", "k0e", "k1", "k1e")
SPECIAL = ("gamma", "zeta", "erfcx", "erfcinv", "log_ndtr", "ndtri", "betainc", "betaincinv")
SPECIAL += ("gammaincinv", "gammainccinv", "expi", "ellipkm1")
#: Functions whose last argument is a share, and whose others are positive.
SHARES = ("betainc", "betaincinv", "gammaincinv", "gammainccinv")
_erf = np.vectorize(math.erf, otypes=[np.float64])


def _integer_power(base, exponent):
    modulus = 1 << (8 * base.dtype.itemsize)
    values = [pow(int(x), int(n), modulus) for x, n in zip(base.flat, exponent.flat, strict=True)]
    unsigned = np.array(values, dtype=np.uint64).reshape(base.shape)
    return unsigned.astype(base.dtype)


def _shift(x, count, left):
    width = 8 * x.dtype.itemsize
    results = []
    for value, n in zip(x.flat, count.flat, strict=True):
        value, n = int(value), int(n)
        if 0 <= n < width:
            results.append((value << n if left else value >> n) & ((1 << width) - 1))
        else:
            results.append(0 if left or value >= 0 else (1 << width) - 1)
    return np.array(results, dtype=np.uint64).reshape(x.shape).astype(x.dtype)


def _poisson_quantile(share, mean):
    count = np.ceil(scipy.special.pdtrik(share, mean))
    below = np.maximum(count - 1, 0)
    count = np.where(scipy.special.pdtr(below, mean) >= share, below, count)
    count = np.where((share == 0) | (mean == 0), 0, np.where(share == 1, np.inf, count))
    return np.where((share >= 0) & (share <= 1) & (mean >= 0), count, np.nan)


def _is_integer(x):
    return x.dtype.kind in "biu"


REFERENCE = {
    "copy": lambda x: x,
    "positive": lambda x: x,
    "neg": np.negative,
    "abs": np.abs,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": lambda x, y: _integer_power(x, y) if _is_integer(x) else x**y,
    "lshift": lambda x, y: _shift(x, y, True),
    "rshift": lambda x, y: _shift(x, y, False),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "where": lambda c, x, y: np.where(c != 0, x, y),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "floor": lambda x: x if _is_integer(x) else np.floor(x),
    "ceil": lambda x: x if _is_integer(x) else np.ceil(x),
    "trunc": lambda x: x if _is_integer(x) else np.trunc(x),
    "round": lambda x: x if _is_integer(x) else np.round(x),
    "erf": _erf,
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "lgamma": np.vectorize(
        lambda x: math.lgamma(x) if x > 0 or x % 1 else math.inf, otypes=[np.float64]
    ),
    "erfinv": scipy.special.erfinv,
    "digamma": scipy.special.digamma,
    **{name: getattr(scipy.special, name) for name in (*BESSEL, *SPECIAL)},
    "polygamma": lambda n, x: scipy.special.polygamma(n.astype(int), x),
    "binary_fraction": lambda x: np.frexp(x)[0],
    "binary_exponent": lambda x: np.frexp(x)[1].astype(np.float64),
    "expn": lambda n, x: scipy.special.expn(n.astype(int), x),
    "poisson_quantile": _poisson_quantile,
    "igamma": scipy.special.gammainc,
    "igammac": scipy.special.gammaincc,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.where(x > 0, x, np.where(x != x, x, 0)).astype(x.dtype),
    "gelu": lambda x: x / 2 * (1 + _erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "real": np.real,
    "imag": np.imag,
    "sign": lambda x: np.where(x == 0, 0, x / np.abs(x)) if x.dtype.kind == "c" else np.sign(x),
}


def reference(name, inputs):
    """Return the exact result of operation `name`, in float64 where it is a float."""
    function = REFERENCE.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        return function(*inputs)


def widen(array):
    """Return floats as float64 and complex numbers as complex128."""
    if array.dtype.kind in "biu":
        return array
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


_POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt", "y0", "y1", "k0", "k0e", "k1", "k1e"}
_WITHIN_ONE = {"asin", "acos", "atanh", "erfinv"}
# Operations whose every input may be infinite or NaN.
_WILD = {"copy", "positive", "neg", "add", "sub", "mul", "maximum", "minimum", "eq", "ne", "lt"}
_WILD |= {"le", "gt", "ge", "where", "isnan", "isinf", "isfinite", "sign", "relu", "exp", "floor"}
_WILD |= {"ceil", "trunc", "round", "tanh", "atan", "sqrt"}


def _sample_integer(rng, name, number, dtype, shape):
    info = np.iinfo(dtype)
    if name == "pow" and number == 1:
        return rng.integers(0, 6, shape).astype(dtype)
    if name in ("lshift", "rshift") and number == 1:
        return rng.integers(-2 if info.min else 0, info.bits + 3, shape).astype(dtype)
    values = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if name in ("floordiv", "mod", "eq", "le", "maximum") and number == 1:
        small = rng.integers(-3 if info.min else 0, 4, shape).astype(dtype)
        values = np.where(rng.random(shape) < 0.5, small, values)
    return values.astype(dtype)


def _sample_real(rng, name, number, shape):
    values = rng.standard_normal(shape) * 3
    if name in _POSITIVE or (name == "pow" and number == 0):
        return np.abs(values) + 0.1
    if name == "poisson_quantile":
        return rng.uniform(0.001, 0.999, shape) if number == 0 else np.exp2(values)
    if name in SHARES:
        is_last = number == (2 if name.startswith("beta") else 1)
        return rng.uniform(0.1, 0.9, shape) if is_last else np.exp2(values / 2) + 1
    if name == "expn":
        return np.exp2(values / 2) if number else rng.integers(0, 6, shape).astype(float)
    if name == "ellipkm1":
        return rng.uniform(0.01, 2, shape)
    if name == "polygamma":
        return np.abs(values) + 0.2 if number else rng.integers(0, 5, shape).astype(float)
    if name == "zeta":
        return np.exp2(values / 2) + (number == 0)
    if name in ("ndtri", "erfcinv"):
        return rng.uniform(0.01, 0.99, shape) * (1 + (name == "erfcinv"))
    if name in ("gamma", "erfcx"):
        return np.abs(values) + 0.1 if name == "gamma" else values / 3
    if name in ("igamma", "igammac"):
        return np.exp2(values / 2) + (number == 0)  # SciPy is less accurate below 1, above 200
    if name in _WITHIN_ONE:
        return rng.uniform(-0.98, 0.98, shape)
    if name == "log1p":
        return np.abs(values) - 0.5
    if name == "acosh":
        return np.abs(values) + 1.05
    if name == "reciprocal" or (name in ("div", "floordiv", "mod") and number == 1):
        return values + np.copysign(0.2, values)
    if name == "tan":
        return rng.uniform(-1.4, 1.4, shape)
    return values


def sample(rng, name, number, code, shape):
    """Return input `number` of operation `name`: a fresh random array of the dtype `code`."""
    element = DTYPES[code]
    if element.kind == "bool" or (name == "where" and number == 0):
        return rng.random(shape) < 0.5
    if element.kind in ("int", "uint"):
        return _sample_integer(rng, name, number, element.numpy, shape)
    values = _sample_real(rng, name, number, shape)
    if element.kind == "complex":
        values = values + 1j * _sample_real(rng, name, number, shape)
    elif name in _WILD:
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], shape)
        if name == "sqrt":
            special = np.abs(special)
        values = np.where(rng.random(shape) < 0.2, special, values)
    if name in ("eq", "le", "ge", "maximum", "clip"):
        values = np.round(values)
    return values.astype(element.numpy)


def assert_close(got, expected, code, what, scale=None):
    """Compare an array of dtype `code` with its exact value; `scale` replaces its magnitude."""
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected, err_msg=what)
        return
    wide = widen(got)
    with np.errstate(all="ignore"):
        exact = np.asarray(expected).astype(got.dtype).astype(wide.dtype)
        error = np.abs(wide - expected)
        bound = TOLERANCE[code] * np.maximum(np.abs(expected) if scale is None else scale, 1e-3)
    same = (wide == exact) | ((wide != wide) & (exact != exact))
    bad = ~(same | (error <= bound))
    if np.any(bad):
        where = tuple(np.argwhere(bad)[0])
        raise AssertionError(
            f"{what}: {bad.sum()} of {bad.size} wrong, at {where} got {wide[where]!r}, "
            f"expected {np.asarray(expected)[where]!r}"
        )
