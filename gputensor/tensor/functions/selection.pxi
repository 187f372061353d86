"""Element-wise functions with signatures of their own: selection, limits, gelu.

The others are made from the table of operations (source.py). `out` has the same meaning there.
"""


def where(condition, x1=None, x2=None, /, *, out=None):
    """Return x1 where `condition` is true and x2 elsewhere.

    The three are tensors, Python numbers or lists of numbers. Without x1 and x2 the result
    is that of :func:`nonzero`: one int64 tensor of positions for each axis.

    >>> where(gt.asarray([True, False], device="host"), 1, 2).numpy()
    array([1, 2])
    """
    if x1 is None and x2 is None and out is None:
        if type(condition) is list or type(condition) is tuple:
            condition, = without_lists((condition,))
        return tensor_argument(condition, "where").nonzero()
    for value in (condition, x1, x2):
        if type(value) is Tensor:
            return elementwise_tensor(OP_WHERE, "where", (condition, x1, x2), out, RULE_WHERE)
    return of_other(OP_WHERE, "where", (condition, x1, x2), out, RULE_WHERE)


cdef object bound(object number, object other, Tensor a, bint is_lower):
    """Return a bound for integers, limited to the range of their dtype.

    A bound that admits no value of the dtype is returned as it is, so that it raises an error.
    """
    cdef int kind = dtype_kind(a.dtype_code)
    if number_kind(number) != 1 or kind not in (KIND_INT, KIND_UINT) or number_kind(other) > 1:
        return number
    limits = iinfo(a.dtype)
    if is_lower:
        return limits.min if number < limits.min else number
    return limits.max if number > limits.max else number


def clip(x, /, min=None, max=None, out=None, *, a_min=None, a_max=None, where=True, dtype=None,
         order=None, casting=None):
    """Return x with values below `min` raised to it, and values above `max` lowered to it.

    `min` and `max` are tensors or numbers; None means no limit. An int outside the range of an
    integer dtype is no limit either if all values of the dtype satisfy it. `a_min` and `a_max` are
    NumPy's older names; `where`, `dtype`, `order` and `casting` are as in :func:`maximum`.

    >>> clip(gt.asarray([1, 5, 9], device="host"), 2, 8).numpy()
    array([2, 5, 8])
    """
    if a_min is not None or a_max is not None:
        if min is not None or max is not None:
            got = Described("limits together with min or max")
            raise argument_error(TypeError, "clip: a_min, a_max", got, "one pair of names")
        min, max = a_min, a_max
    if (order is not None or casting is not None) and is_unusual(order, casting, dtype):
        return laid_out(clip, (x, min, max), out, where, dtype, order, casting)
    if dtype is not None:
        return clipped_in(dtype, (x, min, max), out, where)
    if where is not True:
        return merged(clip(x, min, max), out, where)
    if type(x) is Tensor:
        min, max = bound(min, max, <Tensor> x, True), bound(max, min, <Tensor> x, False)
    elif out is None:
        result = of_numbers("clip", (x, min, max))
        if result is not None:
            return result
    if min is None and max is None:
        return elementwise_tensor(OP_COPY, "clip", (x,), out, RULE_SAME)
    if max is None:
        return elementwise_tensor(OP_MAXIMUM, "clip", (x, min), out, RULE_SAME)
    if min is None:
        return elementwise_tensor(OP_MINIMUM, "clip", (x, max), out, RULE_SAME)
    return elementwise_tensor(OP_CLIP, "clip", (x, min, max), out, RULE_SAME)


def clipped_in(dtype, arguments, out, mask):
    """Return :func:`clip` computed in a dtype."""
    has_limit = [value is not None for value in arguments]

    def limited(*given):
        values = iter(given)
        return clip(*[next(values) if is_given else None for is_given in has_limit])

    limited.__name__ = "clip"
    given = tuple([value for value in arguments if value is not None])
    return in_dtype(limited, given, out, mask, dtype, RULE_SAME)


def gelu(x, /, *, approximate="none", out=None):
    """Return x times the cumulative distribution function of the normal distribution at x.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        The exact form, or the usual approximation with tanh.

    >>> gelu(gt.asarray([0.0], device="host")).numpy()
    array([0.], dtype=float32)
    """
    if not isinstance(approximate, str) or approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate: got {approximate!r}; expected 'none' or 'tanh'")
    op = OP_GELU if approximate == "none" else OP_GELU_TANH
    return elementwise_tensor(op, "gelu", (x,), out, RULE_FLOAT)
