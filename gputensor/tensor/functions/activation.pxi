"""Functions of neural networks, which the array API does not have.

Bool and integer tensors become float32 first (relu keeps integers). `out` is that of
arithmetic.pyx.
"""


def sigmoid(x, /, *, out=None):
    """Return 1 / (1 + exp(-x)).

    >>> sigmoid(gt.asarray([0.0], device="host")).numpy()
    array([0.5], dtype=float32)
    """
    return elementwise_tensor(OP_SIGMOID, "sigmoid", (x,), out, RULE_FLOAT)


def relu(x, /, *, out=None):
    """Return x where it is positive, else 0; NaN stays.

    >>> relu(gt.asarray([-1.0, 2.0], device="host")).numpy()
    array([0., 2.], dtype=float32)
    """
    return elementwise_tensor(OP_RELU, "relu", (x,), out, RULE_SAME)


def silu(x, /, *, out=None):
    """Return x * sigmoid(x).

    >>> silu(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_SILU, "silu", (x,), out, RULE_FLOAT)


def erf(x, /, *, out=None):
    """Return the error function of x.

    >>> erf(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    return elementwise_tensor(OP_ERF, "erf", (x,), out, RULE_FLOAT)


def gelu(x, /, *, approximate="none", out=None):
    """Return x times the normal distribution function of x.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        The exact form, or the usual approximation by tanh.

    >>> gelu(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate is {approximate!r}; 'none' or 'tanh' is allowed")
    op = OP_GELU if approximate == "none" else OP_GELU_TANH
    return elementwise_tensor(op, "gelu", (x,), out, RULE_FLOAT)
