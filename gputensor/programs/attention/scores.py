"""Finds the product of a softmax's scores, with the scale, soft cap and mask in between."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.programs.attention.views import is_same_memory
from gputensor.programs.function import Call, Number, Operand

__all__ = ["Mask", "Scores", "constant", "number", "scores_of", "softmax_of"]

_NUMPY = {row.name: row.numpy for row in DTYPES}
_X = ("load", 0)
_AWAY = ("sub", _X, ("fold", "max", _X))
SOFTMAX = tuple(
    ("mul", (power, _AWAY), ("div", ("number", 1.0), ("fold", "sum", (power, _AWAY))))
    for power in ("exp", "rough_exp")
)


class Mask(NamedTuple):
    """A mask: `operand` is added to the scores, or is a bool that selects scores to be `fill`.

    `is_seen` tells whether true elements keep their score, or false ones do.
    """

    operand: Operand
    fill: float | None = None
    is_seen: bool = True


class Scores(NamedTuple):
    """``scale * product``, capped, then masked. `shapes` lists all intermediate shapes."""

    product: Call
    scale: float
    soft_cap: float
    mask: Mask | None
    shapes: list


def softmax_of(graph, operand):
    """Return (scores, weights) of the softmax along the last axis that made an operand, or None.

    Skips later casts, and a choice that replaces rows of only -inf by zeros, as attention does.
    """
    while True:
        call = graph.maker(operand)
        if call is None or not is_same_memory(operand, call.writes[0]):
            return None
        if call.name == "elementwise" and call.attributes["op"] == "copy":
            operand = call.reads[0]
        elif call.name == "elementwise" and call.attributes["op"] == "where":
            found = softmax_of(graph, call.reads[2])
            is_safe = found is not None and _is_zero(graph, call.reads[1])
            condition = call.reads[0]
            is_safe = is_safe and (
                _all_masked(graph, condition, found[0]) or _is_nan(graph, condition, call.reads[2])
            )
            return found if is_safe else None
        elif call.name == "formula":
            is_softmax = any(call.attributes == {"trees": (one,), "row_ndim": 1} for one in SOFTMAX)
            return (call.reads[0], call.writes[0]) if is_softmax else None
        else:
            return _written_out(graph, call)
        if not isinstance(operand, Operand):
            return None


def _written_out(graph, call):
    """Return the same for a softmax written as exponentials divided by their sum."""
    if call.name != "elementwise" or call.attributes["op"] != "div":
        return None
    powers, total = call.reads
    power, summed = graph.maker(powers, "elementwise"), graph.maker(total, "reduce")
    if power is None or power.attributes["op"] != "exp" or summed is None:
        return None
    if not _folds(summed, "sum", power.writes[0]) or not is_same_memory(powers, power.writes[0]):
        return None
    x = power.reads[0]
    less = graph.maker(x, "elementwise")
    if less is not None and less.attributes["op"] == "sub":
        most = graph.maker(less.reads[1], "reduce")
        if most is not None and _folds(most, "max", less.reads[0]):
            x = less.reads[0]
    return (x, call.writes[0]) if isinstance(x, Operand) else None


def _folds(call, op, source):
    """Whether a call reduces an operand along its last axis."""
    axes = (len(call.reads[0].shape) - 1,)
    return (
        call.attributes["op"] == op
        and tuple(call.attributes["axes"]) == axes
        and is_same_memory(call.reads[0], source)
        and call.reads[0].shape[-1] == source.shape[-1]
    )


def _is_zero(graph, operand):
    if isinstance(operand, Number):
        return operand.value == 0
    call = graph.maker(operand, "elementwise")
    if call is not None and call.attributes["op"] == "copy" and isinstance(call.reads[0], Number):
        return call.reads[0].value == 0
    array = constant(graph, operand)
    return array is not None and not array.any()


def _all_masked(graph, operand, scores):
    """Whether an operand is ``not any(not (scores == -inf))`` along the last axis."""
    for op in ("logical_not", None, "logical_not"):
        call = graph.maker(operand)
        if call is None:
            return False
        if op is None:
            if call.name != "reduce" or call.attributes["op"] != "any":
                return False
            if tuple(call.attributes["axes"]) != (len(call.reads[0].shape) - 1,):
                return False
        elif call.name != "elementwise" or call.attributes["op"] != op:
            return False
        operand = call.reads[0]
    call = graph.maker(operand, "elementwise")
    if call is None or call.attributes["op"] != "eq":
        return False
    return is_same_memory(call.reads[0], scores) and number(graph, call.reads[1]) == -np.inf


def _is_nan(graph, operand, weights):
    """Whether an operand is ``isnan(weights)``; a softmax is NaN if all scores are masked."""
    call = graph.maker(operand, "elementwise")
    is_nan = call is not None and call.attributes["op"] == "isnan"
    return is_nan and is_same_memory(call.reads[0], weights)


def scores_of(graph, operand):
    """Return the Scores of an operand, or None if other calls precede it."""
    scale, cap, mask, shapes = 1.0, 0.0, None, [operand.shape]
    while True:
        call = graph.maker(operand)
        if call is None or not is_same_memory(operand, call.writes[0]):
            return None
        shapes.append(call.writes[0].shape)
        if call.name == "product":
            scale *= call.attributes["alpha"] * (cap or 1)
            return Scores(call, scale, cap, mask, shapes) if _is_plain(call) else None
        if call.name != "elementwise":
            return None
        op, reads = call.attributes["op"], call.reads
        if op in ("mul", "div"):
            factor, other = number(graph, reads[1]), reads[0]
            if factor is None and op == "mul":
                factor, other = number(graph, reads[0]), reads[1]
            if not factor or not np.isfinite(factor) or not isinstance(other, Operand):
                return None
            scale *= factor if op == "mul" else 1 / factor
            operand = other
        elif op == "copy":
            operand = reads[0]
        elif op == "tanh" and not cap and scale > 0:
            cap, scale, operand = scale, 1.0, reads[0]
        elif op in ("add", "where") and mask is None and scale == 1 and not cap:
            found = _added(graph, call) if op == "add" else _chosen(graph, call)
            if found is None:
                return None
            operand, mask = found
        else:
            return None
        if not isinstance(operand, Operand):
            return None
        shapes.append(operand.shape)


def _is_plain(call):
    """Whether a product has no epilogue except multiplication by a number."""
    attributes = call.attributes
    rest = any(operand is not None for operand in call.reads[2:])
    return not rest and not attributes["activation"] and type(attributes["alpha"]) in (int, float)


def _added(graph, call):
    """Return (scores, mask) of a sum: the scores come from a product."""
    for operand, other in (call.reads, call.reads[::-1]):
        if isinstance(other, Operand) and isinstance(operand, Operand):
            if _leads_to_product(graph, operand):
                return operand, Mask(other)
    return None


def _leads_to_product(graph, operand):
    for _step in range(8):
        call = graph.maker(operand)
        if call is None or not is_same_memory(operand, call.writes[0]):
            return False
        if call.name == "product":
            return True
        if call.name != "elementwise":
            return False
        operand = next((one for one in call.reads if graph.maker(one) is not None), None)
    return False


def _chosen(graph, call):
    """Return (scores, mask) of a choice between scores and one number."""
    condition, one, other = call.reads
    for operand, fill, is_seen in ((one, other, True), (other, one, False)):
        value = number(graph, fill)
        if value is not None and value < 0 and isinstance(operand, Operand):
            return operand, Mask(condition, value, is_seen)
    return None


def number(graph, operand):
    """Return the number that all elements of an operand have, or None."""
    if isinstance(operand, Number):
        return operand.value if type(operand.value) in (int, float) else None
    if any(
        stride != 0 and n != 1 for n, stride in zip(operand.shape, operand.strides, strict=True)
    ):
        return None
    array = constant(graph, operand._replace(shape=(), strides=()))
    return None if array is None or array.dtype.kind in "bc" else float(array)


def constant(graph, operand):
    """Return the elements of an operand with fixed extents, without broadcast axes, or None.

    The operand must be a constant, or a bool weight (models store masks among their weights).
    """
    if not isinstance(operand, Operand):
        return None
    kind = graph.values[operand.value].kind
    if kind != "constant" and not (kind == "weight" and operand.dtype == "bool"):
        return None
    steps = zip(operand.shape, operand.strides, strict=True)
    shape = tuple(1 if stride == 0 else extent for extent, stride in steps)
    if not all(type(n) is int for n in (*shape, *operand.strides, operand.offset)):
        return None
    source = graph.weights[graph.values[operand.value].name].source
    array = source if isinstance(source, np.ndarray) else source.numpy()
    dtype = _NUMPY[operand.dtype]
    memory = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    strides = [stride * dtype.itemsize for stride in operand.strides]
    return np.ndarray(shape, dtype, memory, operand.offset, strides)
