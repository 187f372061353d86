"""Arithmetic on tensors: the operators + - * / // % ** and their kin.

Arguments are tensors of one device, or one tensor and a Python number; they broadcast, and
promotion.py says in which dtype they meet. `out` takes the result instead of a new tensor: it has
the shape of the result and a dtype of the same or a higher kind, and may be an argument itself or
overlap one.
"""


def add(x1, x2, /, *, out=None):
    """Return x1 + x2.

    >>> add(gt.asarray([1, 2], device="host"), 10).numpy()
    array([11, 12])
    """
    return elementwise_tensor(OP_ADD, "add", (x1, x2), out, RULE_SAME)


def subtract(x1, x2, /, *, out=None):
    """Return x1 - x2.

    >>> subtract(gt.asarray([1, 2], device="host"), 10).numpy()
    array([-9, -8])
    """
    return elementwise_tensor(OP_SUB, "subtract", (x1, x2), out, RULE_SAME)


def multiply(x1, x2, /, *, out=None):
    """Return x1 * x2.

    >>> multiply(gt.asarray([1, 2], device="host"), 10).numpy()
    array([10, 20])
    """
    return elementwise_tensor(OP_MUL, "multiply", (x1, x2), out, RULE_SAME)


def divide(x1, x2, /, *, out=None):
    """Return x1 / x2; integers divide as float32.

    >>> divide(gt.asarray([1, 2], device="host"), 4).numpy()
    array([0.25, 0.5 ], dtype=float32)
    """
    return elementwise_tensor(OP_DIV, "divide", (x1, x2), out, RULE_FLOAT)


def floor_divide(x1, x2, /, *, out=None):
    """Return the floor of x1 / x2; an integer divided by 0 gives 0.

    >>> floor_divide(gt.asarray([7, -7], device="host"), 2).numpy()
    array([ 3, -4])
    """
    return elementwise_tensor(OP_FLOORDIV, "floor_divide", (x1, x2), out, RULE_SAME)


def remainder(x1, x2, /, *, out=None):
    """Return x1 % x2, with the sign of x2; an integer modulo 0 gives 0.

    >>> remainder(gt.asarray([7, -7], device="host"), 3).numpy()
    array([1, 2])
    """
    return elementwise_tensor(OP_MOD, "remainder", (x1, x2), out, RULE_SAME)


def pow(x1, x2, /, *, out=None):
    """Return x1 to the power x2.

    Integers to a negative int raise ValueError. Negative powers in an integer *tensor* x2 cannot
    raise without a wait for the device: there the result is the inverse without its fraction, 1 or
    -1 for bases 1 and -1, and 0 for all others.

    >>> pow(gt.asarray([2, 3], device="host"), 2).numpy()
    array([4, 9])
    """
    return elementwise_tensor(OP_POW, "pow", (x1, x2), out, RULE_SAME)


def maximum(x1, x2, /, *, out=None):
    """Return the greater of x1 and x2; NaN wins.

    >>> maximum(gt.asarray([1, 5], device="host"), 3).numpy()
    array([3, 5])
    """
    return elementwise_tensor(OP_MAXIMUM, "maximum", (x1, x2), out, RULE_SAME)


def minimum(x1, x2, /, *, out=None):
    """Return the lesser of x1 and x2; NaN wins.

    >>> minimum(gt.asarray([1, 5], device="host"), 3).numpy()
    array([1, 3])
    """
    return elementwise_tensor(OP_MINIMUM, "minimum", (x1, x2), out, RULE_SAME)


def negative(x, /, *, out=None):
    """Return -x.

    >>> negative(gt.asarray([1, -2], device="host")).numpy()
    array([-1,  2])
    """
    return elementwise_tensor(OP_NEG, "negative", (x,), out, RULE_SAME)


def positive(x, /, *, out=None):
    """Return a copy of x.

    >>> positive(gt.asarray([1, -2], device="host")).numpy()
    array([ 1, -2])
    """
    return elementwise_tensor(OP_POSITIVE, "positive", (x,), out, RULE_SAME)


def abs(x, /, *, out=None):
    """Return the magnitude of x, which is real.

    >>> abs(gt.asarray([1, -2], device="host")).numpy()
    array([1, 2])
    """
    return elementwise_tensor(OP_ABS, "abs", (x,), out, RULE_MAGNITUDE)


def sign(x, /, *, out=None):
    """Return -1, 0 or 1 by the sign of x; x / abs(x) for complex x.

    >>> sign(gt.asarray([-3, 0], device="host")).numpy()
    array([-1,  0])
    """
    return elementwise_tensor(OP_SIGN, "sign", (x,), out, RULE_SAME)


def square(x, /, *, out=None):
    """Return x * x.

    >>> square(gt.asarray([3, -4], device="host")).numpy()
    array([ 9, 16])
    """
    return elementwise_tensor(OP_SQUARE, "square", (x,), out, RULE_SAME)
