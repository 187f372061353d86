"""Joins the call after a convolution or product with it, as its epilogue.

A convolution is ``activation(sums + bias + addend)``; a product
``activation(alpha * scale * sums + beta * addend + bias) + residual``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gputensor._kernels.calls import ACTIVATIONS, CONVOLUTION_ACTIVATIONS
from gputensor.programs.attention.views import is_whole
from gputensor.programs.function import Number, Operand, Value

__all__ = ["joined"]

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_X, _ZERO, _SIX = ("load", 0), ("number", 0), ("number", 6)
_GATE = ("div", ("clip", ("add", _X, ("number", 3)), _ZERO, _SIX), _SIX)
#: Trees of `gt.relu6` and `gt.hardswish`.
_FORMULAS = {(("clip", _X, _ZERO, _SIX),): "relu6", (("mul", _X, _GATE),): "hardswish"}


def joined(join, call, following, at):
    """Return a call that also does the step of `following`, or None if it cannot.

    `following` reads the call's result as its operand number `at`.

    Parameters
    ----------
    join : object
        Has `known`, `prepared`, and `values`, to which new weights are appended.
    """
    if call.writes[0].dtype not in _FLOATS:
        return None
    steps = (_copied, _activated, _shifted, _added, _scaled)
    found = next((new for step in steps if (new := step(join, call, following, at))), None)
    return found and replace(found, writes=following.writes, into=following.into)


def _copied(join, call, following, at):
    """Write the result to the target of a copy; exporters' in-place operators end with a copy."""
    is_copy = following.name == "elementwise" and following.attributes["op"] == "copy"
    return call if is_copy else None


# ---- activations


def _activated(join, call, following, at):
    before = call.attributes["activation"]
    residual = call.reads[5] if call.name == "product" else None
    name = _activation(following, at, before)
    known = CONVOLUTION_ACTIVATIONS if call.name == "convolution" else ACTIVATIONS
    if name not in known or name is None or residual is not None:
        return None
    return replace(call, attributes={**call.attributes, "activation": name})


def _activation(following, at, before):
    """Return the activation that a call with activation `before` gets by the next call, or None."""
    if following.name == "formula":
        return _FORMULAS.get(following.attributes["trees"]) if before is None else None
    if following.name != "elementwise":
        return None
    op = following.attributes["op"]
    numbers = [one.value for one in following.reads if isinstance(one, Number)]
    if before == "relu" and (op, numbers) == ("minimum", [6]):
        return "relu6"
    if before is not None:
        return None
    if (op, numbers) == ("maximum", [0]):
        return "relu"
    if (op, numbers, at) == ("clip", [0, 6], 0):
        return "relu6"
    return op if op in ACTIVATIONS and len(following.reads) == 1 else None


# ---- sums


def _added(join, call, following, at):
    is_sum = following.name == "elementwise" and following.attributes["op"] == "add"
    other = following.reads[1 - at] if is_sum and len(following.reads) == 2 else None
    out = call.writes[0]
    if not isinstance(other, Operand) or (other.dtype, other.shape) != (out.dtype, out.shape):
        return None
    place, axis = (2, 1) if call.name == "convolution" else (3, len(out.shape) - 1)
    bias = _along(other, axis) if call.reads[place] is None else None
    if bias is not None and call.attributes["activation"] is None and not any(call.reads[5:]):
        return replace(call, reads=(*call.reads[:place], bias, *call.reads[place + 1 :]))
    return _with_addend(call, other) if is_whole(other) else None


def _shifted(join, call, following, at):
    """Add a vector that depends only on weights to the bias, or use it as the bias."""
    is_sum = following.name == "elementwise" and following.attributes["op"] == "add"
    if call.name != "convolution" or not is_sum or call.attributes["activation"] is not None:
        return None
    other, (x, weight, bias, addend) = following.reads[1 - at], call.reads
    if not isinstance(other, Operand) or other.shape != call.writes[0].shape:
        return None
    shift = None if _along(other, 1) is None else join.known.vector(other, 1)
    source = weight if bias is None else bias
    value = join.values[source.value]
    if shift is None or value.kind != "weight" or addend is not None:
        return None
    if bias is not None and tuple(join.prepared.weights[value.name].shape) != bias.shape:
        return None

    def shifted(array):
        return ((0 if bias is None else array.astype(np.float32)) + shift).astype(array.dtype)

    vector = source._replace(shape=shift.shape, strides=(1,), offset=0)
    new = _of_new_weight(join, value.name, "bias", shift, shifted, vector)
    return replace(call, reads=(x, weight, new, addend))


def _along(operand, axis):
    """Return the vector along an axis that an operand broadcasts, as an operand; or None."""
    steps = enumerate(zip(operand.shape, operand.strides, strict=True))
    if any(step != 0 and n != 1 for i, (n, step) in steps if i != axis):
        return None
    if len(operand.shape) < 2 or operand.strides[axis] == 0:
        return None
    return operand._replace(shape=(operand.shape[axis],), strides=(operand.strides[axis],))


def _with_addend(call, other):
    reads, attributes = call.reads, call.attributes
    is_free = attributes["activation"] is None
    if call.name == "convolution":
        return replace(call, reads=(*reads[:3], other)) if is_free and reads[3] is None else None
    if reads[5] is not None or attributes["beta"] != 0:
        return None  # at most one of an addend and a residual
    if is_free and reads[2] is None and reads[4] is None:
        new = (*reads[:2], other, *reads[3:])
        return replace(call, reads=new, attributes={**attributes, "beta": 1})
    return replace(call, reads=(*reads[:5], other))


# ---- factors of channels, such as those of a normalisation with known statistics


def _scaled(join, call, following, at):
    is_product = following.name == "elementwise" and following.attributes["op"] == "mul"
    if call.name != "convolution" or not is_product:
        return None
    other = following.reads[1 - at]
    if not isinstance(other, Operand) or other.shape != call.writes[0].shape:
        return None
    x, weight, bias, addend = call.reads
    value = join.values[weight.value]
    is_plain = call.attributes["activation"] is None and addend is None
    if not is_plain or value.kind != "weight" or _along(other, 1) is None:
        return None
    stored = join.prepared.weights[value.name]
    if not is_whole(weight) or tuple(stored.shape) != weight.shape:
        return None
    factors = join.known.vector(other, 1)
    beside = None if bias is None else join.known.vector(bias, 0)
    is_named = bias is None or join.values[bias.value].kind == "weight"
    if factors is None or (bias is not None and (beside is None or not is_named)):
        return None

    def scaled(array):
        wide = array.astype(np.float32)
        return (wide * factors.reshape(-1, *(1,) * (wide.ndim - 1))).astype(array.dtype)

    reads = [x, _of_new_weight(join, value.name, "scaled", factors, scaled, weight), bias, addend]
    if bias is not None:
        name = join.values[bias.value].name
        if tuple(join.prepared.weights[name].shape) != bias.shape:
            return None
        reads[2] = _of_new_weight(join, name, "scaled", factors, scaled, bias)
    return replace(call, reads=tuple(reads))


def _of_new_weight(join, name, suffix, factors, make, operand):
    """Return an operand of a new weight, which `make` makes from a weight."""
    weight = join.prepared.made(name, suffix, factors.tobytes(), make)
    join.values.append(Value("weight", weight.source.nbytes, weight.name))
    return operand._replace(value=len(join.values) - 1)
