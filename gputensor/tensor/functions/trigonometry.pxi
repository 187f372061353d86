"""Trigonometric and hyperbolic functions, in radians.

Bool and integer tensors become float32 first. `out` is that of arithmetic.pyx.
"""


def sin(x, /, *, out=None):
    """Return the sine of x.

    >>> sin(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_SIN, "sin", (x,), out, RULE_FLOAT)


def cos(x, /, *, out=None):
    """Return the cosine of x.

    >>> cos(gt.asarray([0.0], device="host")).numpy()
    array([1.], dtype=float32)
    """
    return elementwise_tensor(OP_COS, "cos", (x,), out, RULE_FLOAT)


def tan(x, /, *, out=None):
    """Return the tangent of x.

    >>> tan(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_TAN, "tan", (x,), out, RULE_FLOAT)


def asin(x, /, *, out=None):
    """Return the angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1].

    >>> asin(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_ASIN, "asin", (x,), out, RULE_FLOAT)


def acos(x, /, *, out=None):
    """Return the angle in [0, pi] whose cosine is x; NaN outside [-1, 1].

    >>> acos(gt.asarray([1.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_ACOS, "acos", (x,), out, RULE_FLOAT)


def atan(x, /, *, out=None):
    """Return the angle in [-pi/2, pi/2] whose tangent is x.

    >>> atan(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_ATAN, "atan", (x,), out, RULE_FLOAT)


def sinh(x, /, *, out=None):
    """Return the hyperbolic sine of x.

    >>> sinh(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_SINH, "sinh", (x,), out, RULE_FLOAT)


def cosh(x, /, *, out=None):
    """Return the hyperbolic cosine of x.

    >>> cosh(gt.asarray([0.0], device="host")).numpy()
    array([1.], dtype=float32)
    """
    return elementwise_tensor(OP_COSH, "cosh", (x,), out, RULE_FLOAT)


def tanh(x, /, *, out=None):
    """Return the hyperbolic tangent of x.

    >>> tanh(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_TANH, "tanh", (x,), out, RULE_FLOAT)


def asinh(x, /, *, out=None):
    """Return the inverse hyperbolic sine of x.

    >>> asinh(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_ASINH, "asinh", (x,), out, RULE_FLOAT)


def acosh(x, /, *, out=None):
    """Return the inverse hyperbolic cosine of x; NaN below 1.

    >>> acosh(gt.asarray([1.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_ACOSH, "acosh", (x,), out, RULE_FLOAT)


def atanh(x, /, *, out=None):
    """Return the inverse hyperbolic tangent of x; NaN outside [-1, 1].

    >>> atanh(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_ATANH, "atanh", (x,), out, RULE_FLOAT)


def atan2(x1, x2, /, *, out=None):
    """Return the angle of the point (x2, x1), in [-pi, pi].

    >>> atan2(gt.asarray([0.0], device="host"), 1.0).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_ATAN2, "atan2", (x1, x2), out, RULE_FLOAT)
