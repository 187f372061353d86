"""Masks of scores: what a constant one means, and the mask before a negation."""

from __future__ import annotations

import numpy as np

from gputensor.programs.attention.scores import constant
from gputensor.programs.function import Operand

__all__ = ["LEAST_FILL", "before_not", "known_window"]

#: Scores of at most this have no weight next to others.
LEAST_FILL = -1e4


def known_window(graph, mask, operand, last):
    """Return the window (0: none) of a constant causal mask; None for any other mask."""
    array = constant(graph, operand)
    if array is None or 0 in array.shape or not (array == array[:1, :1]).all():
        return None
    rows, columns = array.shape[-2:]
    if last != (rows, columns) or rows > columns:
        return None
    array = array[0, 0]
    if mask.fill is None:
        array = array.astype(np.float64)
        if not ((array == 0) | (array <= LEAST_FILL)).all():
            return None
        seen = array == 0
    elif mask.fill > LEAST_FILL or array.dtype != np.bool_:
        return None
    else:
        seen = array if mask.is_seen else ~array
    ahead = np.arange(columns) - np.arange(rows)[:, None] - (columns - rows)
    if (seen == (ahead <= 0)).all():
        return 0
    window = int(seen[-1].sum())
    is_band = window > 0 and (seen == ((ahead <= 0) & (ahead > -window))).all()
    return window if is_band else None


def before_not(graph, operand):
    """Return the mask whose negation an operand is, or None."""
    call = graph.maker(operand, "elementwise")
    if call is None or call.attributes["op"] not in ("not", "logical_not"):
        return None
    (read,), (written,) = call.reads, call.writes
    if not isinstance(read, Operand) or read.dtype != "bool" or operand.offset != 0:
        return None
    if len(written.shape) != len(operand.shape):
        return None
    strides = []
    for step, own, source in zip(operand.strides, written.strides, read.strides, strict=True):
        if step not in (0, own):
            return None
        strides.append(0 if step == 0 else source)
    return read._replace(shape=operand.shape, strides=tuple(strides))
