"""Comparisons, logic and bit operations on tensors.

Comparisons and logic give bool. Arguments, broadcasting, promotion and `out` are those of
arithmetic.pyx.
"""


def equal(x1, x2, /, *, out=None):
    """Return x1 == x2.

    >>> equal(gt.asarray([1, 2], device="host"), 2).numpy()
    array([False,  True])
    """
    return elementwise_tensor(OP_EQ, "equal", (x1, x2), out, RULE_COMPARE)


def not_equal(x1, x2, /, *, out=None):
    """Return x1 != x2.

    >>> not_equal(gt.asarray([1, 2], device="host"), 2).numpy()
    array([ True, False])
    """
    return elementwise_tensor(OP_NE, "not_equal", (x1, x2), out, RULE_COMPARE)


def less(x1, x2, /, *, out=None):
    """Return x1 < x2.

    >>> less(gt.asarray([1, 2], device="host"), 2).numpy()
    array([ True, False])
    """
    return elementwise_tensor(OP_LT, "less", (x1, x2), out, RULE_COMPARE)


def less_equal(x1, x2, /, *, out=None):
    """Return x1 <= x2.

    >>> less_equal(gt.asarray([1, 2], device="host"), 2).numpy()
    array([ True,  True])
    """
    return elementwise_tensor(OP_LE, "less_equal", (x1, x2), out, RULE_COMPARE)


def greater(x1, x2, /, *, out=None):
    """Return x1 > x2.

    >>> greater(gt.asarray([1, 2], device="host"), 1).numpy()
    array([False,  True])
    """
    return elementwise_tensor(OP_GT, "greater", (x1, x2), out, RULE_COMPARE)


def greater_equal(x1, x2, /, *, out=None):
    """Return x1 >= x2.

    >>> greater_equal(gt.asarray([1, 2], device="host"), 1).numpy()
    array([ True,  True])
    """
    return elementwise_tensor(OP_GE, "greater_equal", (x1, x2), out, RULE_COMPARE)


def logical_and(x1, x2, /, *, out=None):
    """Return whether both x1 and x2 are nonzero.

    >>> logical_and(gt.asarray([0, 2], device="host"), 1).numpy()
    array([False,  True])
    """
    return elementwise_tensor(OP_AND, "logical_and", (x1, x2), out, RULE_LOGICAL)


def logical_or(x1, x2, /, *, out=None):
    """Return whether x1 or x2 is nonzero.

    >>> logical_or(gt.asarray([0, 2], device="host"), 0).numpy()
    array([False,  True])
    """
    return elementwise_tensor(OP_OR, "logical_or", (x1, x2), out, RULE_LOGICAL)


def logical_xor(x1, x2, /, *, out=None):
    """Return whether just one of x1 and x2 is nonzero.

    >>> logical_xor(gt.asarray([0, 2], device="host"), 1).numpy()
    array([ True, False])
    """
    return elementwise_tensor(OP_XOR, "logical_xor", (x1, x2), out, RULE_LOGICAL)


def logical_not(x, /, *, out=None):
    """Return whether x is zero.

    >>> logical_not(gt.asarray([0, 2], device="host")).numpy()
    array([ True, False])
    """
    return elementwise_tensor(OP_NOT, "logical_not", (x,), out, RULE_LOGICAL)


def bitwise_and(x1, x2, /, *, out=None):
    """Return the bits set in both x1 and x2.

    >>> bitwise_and(gt.asarray([6, 5], device="host"), 3).numpy()
    array([2, 1])
    """
    return elementwise_tensor(OP_AND, "bitwise_and", (x1, x2), out, RULE_BITS)


def bitwise_or(x1, x2, /, *, out=None):
    """Return the bits set in x1 or x2.

    >>> bitwise_or(gt.asarray([6, 5], device="host"), 3).numpy()
    array([7, 7])
    """
    return elementwise_tensor(OP_OR, "bitwise_or", (x1, x2), out, RULE_BITS)


def bitwise_xor(x1, x2, /, *, out=None):
    """Return the bits set in just one of x1 and x2.

    >>> bitwise_xor(gt.asarray([6, 5], device="host"), 3).numpy()
    array([5, 6])
    """
    return elementwise_tensor(OP_XOR, "bitwise_xor", (x1, x2), out, RULE_BITS)


def bitwise_invert(x, /, *, out=None):
    """Return x with every bit inverted; the logical inverse of bool.

    >>> bitwise_invert(gt.asarray([0, 5], device="host")).numpy()
    array([-1, -6])
    """
    return elementwise_tensor(OP_NOT, "bitwise_invert", (x,), out, RULE_BITS)


def bitwise_left_shift(x1, x2, /, *, out=None):
    """Return x1 shifted left by x2 bits; x2 must not be negative.

    >>> bitwise_left_shift(gt.asarray([1, 3], device="host"), 2).numpy()
    array([ 4, 12])
    """
    return elementwise_tensor(OP_LSHIFT, "bitwise_left_shift", (x1, x2), out, RULE_BITS)


def bitwise_right_shift(x1, x2, /, *, out=None):
    """Return x1 shifted right by x2 bits, keeping the sign.

    >>> bitwise_right_shift(gt.asarray([8, -8], device="host"), 2).numpy()
    array([ 2, -2])
    """
    return elementwise_tensor(OP_RSHIFT, "bitwise_right_shift", (x1, x2), out, RULE_BITS)


def isnan(x, /, *, out=None):
    """Return where x is NaN.

    >>> isnan(gt.asarray([1.0, float("nan")], device="host")).numpy()
    array([False,  True])
    """
    return elementwise_tensor(OP_ISNAN, "isnan", (x,), out, RULE_CLASSIFY)


def isinf(x, /, *, out=None):
    """Return where x is infinite.

    >>> isinf(gt.asarray([1.0, float("inf")], device="host")).numpy()
    array([False,  True])
    """
    return elementwise_tensor(OP_ISINF, "isinf", (x,), out, RULE_CLASSIFY)


def isfinite(x, /, *, out=None):
    """Return where x is neither infinite nor NaN.

    >>> isfinite(gt.asarray([1.0, float("inf")], device="host")).numpy()
    array([ True, False])
    """
    return elementwise_tensor(OP_ISFINITE, "isfinite", (x,), out, RULE_CLASSIFY)
