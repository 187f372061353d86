"""The weights of attention as a formula along rows."""

__all__ = ["weight_trees"]


def weight_trees(scale, is_causal, window, cap, mask, has_length):
    """Return the formula of the weights, whose operands are the scores, then any mask and length.

    >>> len(weight_trees(0.5, True, 0, 0.0, None, False))
    1
    """
    x = ("mul", ("load", 0), ("number", scale))
    if cap:
        x = ("mul", ("tanh", ("mul", ("load", 0), ("number", scale / cap))), ("number", cap))
    end = ("columns",)
    if has_length:
        end = ("minimum", ("load", 1 + (mask is not None)), end)
    # The last query is the one at the last key.
    ahead = ("sub", ("column",), ("add", ("row",), ("sub", end, ("rows",))))
    seen = [("lt", ("column",), end)] if has_length else []
    if is_causal:
        seen.append(("le", ahead, ("number", 0)))
    if window:
        seen.append(("gt", ahead, ("number", -window)))
    if mask == "bool":
        seen.append(("load", 1))
    elif mask is not None:
        x = ("add", x, ("load", 1))
    for one in seen:
        x = ("where", one, x, ("number", "-inf"))
    # Where everything is masked, all powers are 0, and so is the row.
    largest = ("fold", "max", x)
    shift = ("where", ("eq", largest, ("number", "-inf")), ("number", 0), largest)
    powers = ("exp", ("sub", x, shift))
    total = ("fold", "sum", powers)
    total = ("where", ("eq", total, ("number", 0)), ("number", 1), total)
    return [("mul", powers, ("div", ("number", 1), total))]
