"""Element-wise functions whose signatures are their own: selection, limits, gelu.

The others are made from the table of operations (source.py). `out` is as there.
"""


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
