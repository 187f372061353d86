"""Exponentials, logarithms, powers, rounding, complex parts, selection.

Functions that need a float turn bool and integer tensors into float32 first. Arguments,
broadcasting, promotion and `out` are those of arithmetic.pyx.
"""


def exp(x, /, *, out=None):
    """Return e to the power x.

    >>> exp(gt.asarray([0, -1000], device="host")).numpy()
    array([1., 0.], dtype=float32)
    """
    return elementwise_tensor(OP_EXP, "exp", (x,), out, RULE_FLOAT)


def expm1(x, /, *, out=None):
    """Return exp(x) - 1, exact near 0.

    >>> expm1(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_EXPM1, "expm1", (x,), out, RULE_FLOAT)


def log(x, /, *, out=None):
    """Return the natural logarithm of x.

    >>> log(gt.asarray([1.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_LOG, "log", (x,), out, RULE_FLOAT)


def log1p(x, /, *, out=None):
    """Return log(1 + x), exact near 0.

    >>> log1p(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_LOG1P, "log1p", (x,), out, RULE_FLOAT)


def log2(x, /, *, out=None):
    """Return the logarithm of x to base 2.

    >>> log2(gt.asarray([1.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_LOG2, "log2", (x,), out, RULE_FLOAT)


def log10(x, /, *, out=None):
    """Return the logarithm of x to base 10.

    >>> log10(gt.asarray([1.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_LOG10, "log10", (x,), out, RULE_FLOAT)


def sqrt(x, /, *, out=None):
    """Return the square root of x.

    >>> sqrt(gt.asarray([4, 9], device="host")).numpy()
    array([2., 3.], dtype=float32)
    """
    return elementwise_tensor(OP_SQRT, "sqrt", (x,), out, RULE_FLOAT)


def rsqrt(x, /, *, out=None):
    """Return 1 / sqrt(x).

    >>> rsqrt(gt.asarray([4, 16], device="host")).numpy()
    array([0.5 , 0.25], dtype=float32)
    """
    return elementwise_tensor(OP_RSQRT, "rsqrt", (x,), out, RULE_FLOAT)


def reciprocal(x, /, *, out=None):
    """Return 1 / x.

    >>> reciprocal(gt.asarray([4, 8], device="host")).numpy()
    array([0.25 , 0.125], dtype=float32)
    """
    return elementwise_tensor(OP_RECIPROCAL, "reciprocal", (x,), out, RULE_FLOAT)


def floor(x, /, *, out=None):
    """Return the greatest integer not above x, in the dtype of x.

    >>> floor(gt.asarray([1.5, -1.5], device="host")).numpy()
    array([ 1., -2.], dtype=float32)
    """
    return elementwise_tensor(OP_FLOOR, "floor", (x,), out, RULE_SAME)


def ceil(x, /, *, out=None):
    """Return the least integer not below x, in the dtype of x.

    >>> ceil(gt.asarray([1.5, -1.5], device="host")).numpy()
    array([ 2., -1.], dtype=float32)
    """
    return elementwise_tensor(OP_CEIL, "ceil", (x,), out, RULE_SAME)


def trunc(x, /, *, out=None):
    """Return x without its fraction, in the dtype of x.

    >>> trunc(gt.asarray([1.5, -1.5], device="host")).numpy()
    array([ 1., -1.], dtype=float32)
    """
    return elementwise_tensor(OP_TRUNC, "trunc", (x,), out, RULE_SAME)


def round(x, /, *, out=None):
    """Return the integer nearest to x, the even one of two.

    >>> round(gt.asarray([1.5, 2.5], device="host")).numpy()
    array([2., 2.], dtype=float32)
    """
    return elementwise_tensor(OP_ROUND, "round", (x,), out, RULE_SAME)


def real(x, /, *, out=None):
    """Return the real part of a complex tensor.

    >>> real(gt.asarray([1 + 2j], device="host")).numpy()
    array([1.], dtype=float32)
    """
    return elementwise_tensor(OP_REAL, "real", (x,), out, RULE_MAGNITUDE)


def imag(x, /, *, out=None):
    """Return the imaginary part of a complex tensor.

    >>> imag(gt.asarray([1 + 2j], device="host")).numpy()
    array([2.], dtype=float32)
    """
    return elementwise_tensor(OP_IMAG, "imag", (x,), out, RULE_MAGNITUDE)


def conj(x, /, *, out=None):
    """Return the complex conjugate of x; a copy when x is real.

    >>> conj(gt.asarray([1 + 2j], device="host")).numpy()
    array([1.-2.j], dtype=complex64)
    """
    return elementwise_tensor(OP_CONJ, "conj", (x,), out, RULE_SAME)


def where(condition, x1, x2, /, *, out=None):
    """Return x1 where `condition` is true and x2 elsewhere.

    `condition` is a tensor; x1 and x2 are tensors or Python numbers.

    >>> where(gt.asarray([True, False], device="host"), 1, 2).numpy()
    array([1, 2])
    """
    return elementwise_tensor(OP_WHERE, "where", (condition, x1, x2), out, RULE_WHERE)


def clip(x, /, min=None, max=None, *, out=None):
    """Return x, raised to `min` and lowered to `max`; None is no limit.

    >>> clip(gt.asarray([1, 5, 9], device="host"), 2, 8).numpy()
    array([2, 5, 8])
    """
    if min is None and max is None:
        return elementwise_tensor(OP_COPY, "clip", (x,), out, RULE_SAME)
    if max is None:
        return elementwise_tensor(OP_MAXIMUM, "clip", (x, min), out, RULE_SAME)
    if min is None:
        return elementwise_tensor(OP_MINIMUM, "clip", (x, max), out, RULE_SAME)
    return elementwise_tensor(OP_CLIP, "clip", (x, min, max), out, RULE_SAME)
