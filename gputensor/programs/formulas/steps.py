"""Element-wise calls as trees over their loads, and the fusion of two of them.

All loads of a formula have its shape; broadcasting is a stride of 0. So a consumer absorbs a
producer by giving each of the producer's loads the strides with which the consumer reads it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.formula import MAX_LOADS, MAX_RESULTS, OPERATIONS, formula
from gputensor.programs import dims as forms
from gputensor.programs.function import Call, Number, Operand

__all__ = ["Steps", "is_complete", "joined", "steps_of"]

_FLOATS = ("float16", "bfloat16", "float32")
_TYPES = (*_FLOATS, "bool")
_ITEMSIZE = {row.name: row.itemsize for row in DTYPES}


@dataclass
class Steps:
    """The formula of a call's results, which contains `parts` calls.

    `place` is the call's index in its function; `row_ndim` is None if no step needs a row.
    """

    call: Call
    place: int
    trees: tuple
    loads: tuple
    row_ndim: int | None
    is_cast: bool = False  # only a cast to a type that represents all values
    parts: int = 1

    @property
    def shape(self):
        return self.loads[0].shape

    def made(self):
        """Return the call."""
        if self.parts == 1:
            return self.call
        row_ndim = len(self.shape) if self.row_ndim is None else self.row_ndim
        attributes = {"trees": self.trees, "row_ndim": row_ndim}
        call = self.call
        return Call(
            "formula", attributes, call.writes, self.loads, call.into, call.stream, call.line
        )


def steps_of(call, place):
    """Return the Steps of a call; None for a call of another kind or other dtypes."""
    if call.name not in ("elementwise", "formula"):
        return None
    operands = [one for one in (*call.reads, *call.writes) if isinstance(one, Operand)]
    shape = call.writes[0].shape
    if any(one.dtype not in _TYPES for one in operands) or not shape:
        return None
    loads = tuple(one for one in call.reads if isinstance(one, Operand))
    if not loads or any(one.shape != loads[0].shape for one in loads):
        return None
    if call.name == "formula":
        trees, row_ndim = call.attributes["trees"], call.attributes["row_ndim"]
        if len(loads) != len(call.reads):
            return None
        return Steps(call, place, trees, loads, None if formula(trees).is_map else row_ndim)
    parts, kept = [], []
    for one in call.reads:
        if isinstance(one, Operand):
            kept.append(one)
            parts.append(("load", len(kept) - 1))
        else:
            parts.append(_number(one))
    tree = _tree(call, parts)
    if tree is None or None in parts or loads[0].shape != shape:
        return None
    source, target = loads[0].dtype, call.writes[0].dtype
    is_cast = call.attributes["op"] == "copy" and (
        source == target or (source in _FLOATS and target == "float32")
    )
    return Steps(call, place, (tree,), loads, None, is_cast)


def _number(one):
    """Return the tree of a number; None if it is not a number or depends on sizes."""
    value = one.value if isinstance(one, Number) else None
    if type(value) is bool:
        return ("number", value)
    if type(value) not in (int, float) or (type(value) is int and abs(value) >= 1 << 64):
        return None
    return ("number", value if math.isfinite(value) else str(float(value)))


def _tree(call, parts):
    """Return the tree of an element-wise call on the trees of its operands, or None."""
    op, compute = call.attributes["op"], call.attributes["compute"]
    target = call.writes[0].dtype
    if op == "copy":
        if not isinstance(call.reads[0], Operand):
            return None
        source = call.reads[0].dtype
        if source == target or (source in _FLOATS and target == "float32"):
            return parts[0]
        return ("round", target, parts[0]) if {source, target} <= {*_FLOATS} else None
    if op not in OPERATIONS or compute not in _TYPES or len(parts) != OPERATIONS[op].arity:
        return None
    if op == "add" and compute == "bool":  # of truth values; a formula would add numbers
        op = "or"
    return (op, *parts)


def joined(producer, consumer, has_result):
    """Return the Steps of a consumer that absorbs its producer, or None if they stay two kernels.

    With `has_result` it also returns the producer's result.
    """
    written = producer.call.writes[0]
    if len(producer.trees) != 1 or formula(producer.trees).row_results()[0]:
        return None
    if has_result and len(consumer.trees) == MAX_RESULTS:
        return None
    row_ndim, trees, loads = consumer.row_ndim, [], []
    if producer.row_ndim is not None:
        row_ndim = producer.row_ndim
        if consumer.row_ndim is not None:
            return None

    def load(operand):
        if operand not in loads:
            loads.append(operand)
        return ("load", loads.index(operand))

    inside = None
    for one in consumer.loads:
        if one.value != written.value:
            trees.append(load(one))
            continue
        axes = _axes(one, written, producer.is_cast)
        is_moved = axes != list(range(len(one.shape)))
        if axes is None or (is_moved and (has_result or producer.row_ndim is not None)):
            return None
        turned = [load(_turned(each, one.shape, axes)) for each in producer.loads]
        inside = _replaced(producer.trees[0], turned)
        trees.append(inside)
    if len(loads) > MAX_LOADS or inside is None:
        return None
    found = tuple(_replaced(tree, trees) for tree in consumer.trees)
    call = consumer.call
    if has_result:
        found = (*found, inside)
        into = (*(call.into or (None,) * len(call.writes)), None)
        call = Call(
            call.name, call.attributes, (*call.writes, written), call.reads, into, call.stream,
            call.line,
        )  # fmt: skip
    if not _fits(found, len(loads)):
        return None
    parts = consumer.parts + producer.parts
    return Steps(call, consumer.place, found, tuple(loads), row_ndim, False, parts)


def _axes(read, written, is_free):
    """Return the written axis for each axis that is read (None: broadcast); or None if none fits.

    With a broadcast axis work would be repeated, which is allowed only for casts (`is_free`).
    """
    if read.offset != 0 or read.dtype != written.dtype:
        return None
    left = {
        axis: stride
        for axis, (extent, stride) in enumerate(zip(written.shape, written.strides, strict=True))
        if extent != 1
    }
    axes = []
    for axis, (extent, stride) in enumerate(zip(read.shape, read.strides, strict=True)):
        if extent == 1:
            is_own = axis < len(written.shape) and written.shape[axis] == 1
            axes.append(axis if is_own else None)
            continue
        if stride == 0:
            axes.append(None)
            if not is_free:
                return None
            continue
        found = [one for one, step in left.items() if step == stride]
        if not found or written.shape[found[0]] != extent:
            return None
        del left[found[0]]
        axes.append(found[0])
    return None if left else axes


def _turned(load, shape, axes):
    """Return a producer's load along the axes of its consumer."""
    strides = tuple(0 if axis is None else load.strides[axis] for axis in axes)
    return load._replace(shape=shape, strides=strides)


def _replaced(tree, parts):
    """Return a tree with other trees in place of its loads."""
    if tree[0] == "load":
        return parts[tree[1]]
    return tuple(_replaced(one, parts) if isinstance(one, tuple) else one for one in tree)


def _fits(trees, loads):
    try:
        return formula(trees).loads == loads
    except ValueError:
        return False


def is_complete(value, operand):
    """Whether an operand is all of a value."""
    nbytes = forms.mul(_ITEMSIZE[operand.dtype], *operand.shape)
    return operand.offset == 0 and value.nbytes == nbytes
