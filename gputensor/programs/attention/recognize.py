"""The pass that replaces a product, a softmax of scores and a product by one attention call.

From Function to Function. Intermediate results are rounded in another way, so the pass is skipped
if programs must equal eager execution bit for bit. A change is made only if the products and the
softmax then become unused: if attention weights are also a result, they would be computed twice.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.programs import dims as forms
from gputensor.programs.attention.masks import LEAST_FILL, before_not, known_window
from gputensor.programs.attention.scores import Mask, scores_of, softmax_of
from gputensor.programs.attention.views import Graph, four_axes, swapped
from gputensor.programs.function import Call, Number, Operand, Value, with_regions
from gputensor.programs.passes.clean import clean

__all__ = ["recognize_attention"]

_ITEMSIZE = {row.name: row.itemsize for row in DTYPES}
_FLOATS = ("float16", "bfloat16", "float32", "float64")


def recognize_attention(function, weights):
    """Return a function with attention calls in place of equivalent calls.

    Parameters
    ----------
    function : Function
    weights : dict
        The weights and constants of the program by name.
    """
    function = with_regions(function, lambda one: recognize_attention(one, weights))
    graph = Graph(function, weights)
    values, instead = list(function.values), {}
    for index, call in enumerate(function.calls):
        if call.name == "attention":
            flagged = _with_flags(graph, call)
            if flagged is not call:
                instead[index] = (flagged,)
        if call.name != "product":
            continue
        match = _Match(graph, call, index, len(values))
        made = match.calls()
        if made is None:
            continue
        tried = {**instead, index: made}
        if not _needed(function, _flat(function.calls, tried)) & match.spared:
            instead = tried
            values += match.values
    if not instead:
        return function
    return clean(replace(function, values=values, calls=_flat(function.calls, instead)), weights)


def _with_flags(graph, call):
    """Return an attention call with flags in place of a mask that is a suitable constant."""
    mask, length = call.reads[3:]
    attributes = call.attributes
    if mask is None or length is not None or attributes["is_causal"]:
        return call
    is_bool = mask.dtype == "bool"
    given = Mask(mask, -np.inf if is_bool else None)
    window = known_window(graph, given, mask, mask.shape[-2:])
    if window is None:
        return call
    attributes = {**attributes, "is_causal": True, "window": window}
    return replace(call, attributes=attributes, reads=(*call.reads[:3], None, None))


def _flat(calls, instead):
    """Return the calls in order, with replacements."""
    return [one for i, call in enumerate(calls) for one in instead.get(i, (call,))]


def _needed(function, calls):
    """Return the values that calls with an effect read or write."""
    needed = {one.operand.value for one in function.outputs}
    for versions in function.states.values():
        needed.update(versions)
    for call in reversed(calls):
        written = {operand.value for operand in call.writes}
        if not written or needed & written or any(into is not None for into in call.into):
            needed |= written
            needed.update(read.value for read in call.reads if isinstance(read, Operand))
    return needed


class _Match:
    """A candidate for attention that ends with a given product.

    Attributes
    ----------
    values : list
        New values, numbered from `first`.
    spared : set
        The values of the scores and their softmax, which should become unused.
    """

    def __init__(self, graph, call, index, first):
        self.graph, self.call, self.index, self.first = graph, call, index, first
        self.values, self.made, self.spared = [], [], set()

    def calls(self):
        """Return the calls in place of the last product, or None."""
        call, graph = self.call, self.graph
        rest = any(operand is not None for operand in call.reads[2:])
        if rest or call.attributes["activation"] or call.attributes["alpha"] != 1:
            return None
        weights, value, out = call.reads[0], call.reads[1], call.writes[0]
        softmax = softmax_of(graph, weights)
        scores = softmax and scores_of(graph, softmax[0])
        if not scores or value.dtype != out.dtype or out.dtype not in _FLOATS:
            return None
        query, key = scores.product.reads[:2]
        if not query.dtype == key.dtype == value.dtype or not self.is_alike(scores.product):
            return None
        lead = self.lead([*scores.shapes, weights.shape, out.shape])
        # A product of one query is the same memory as its transpose, whose rows are the keys.
        shapes = {one.shape[-2:] for one in (weights, softmax[1], scores.product.writes[0])}
        if lead is None or len(shapes) > 1:
            return None
        mask, is_causal, window = self.masked(scores.mask, lead, weights.shape[-2:])
        if mask is False:
            return None
        operands, factor = self.operands(query, key, value, lead)
        result = four_axes(out, lead)
        if operands is None or result is None:
            return None
        if not all(graph.holds_until(one, self.index) for one in (*operands, mask) if one):
            return None
        attributes = {
            "scale": float(scores.scale * factor),
            "is_causal": is_causal,
            "window": window,
            "soft_cap": float(scores.soft_cap),
            "precision": call.attributes["precision"],
        }
        reads = (*operands, mask, None)
        self.made.append(
            Call("attention", attributes, (result,), reads, call.into, call.stream, call.line)
        )
        self.spared = {softmax[1].value, scores.product.writes[0].value}
        return self.made

    def is_alike(self, product):
        """Whether both products have the same stream and precision flags."""
        flags = [one.attributes["precision"] for one in (self.call, product)]
        return product.stream == self.call.stream and flags[0] == flags[1]

    @staticmethod
    def lead(shapes):
        """Return the common (batch, heads) of shapes of equal or merged leading axes, or None."""
        four = {shape[:-2] for shape in shapes if len(shape) == 4}
        if len(four) == 1:
            return four.pop()
        ranks = {len(shape) for shape in shapes}
        if ranks == {3} and len({shape[0] for shape in shapes}) == 1:
            return (1, shapes[0][0])
        return (1, 1) if ranks == {2} else None

    def operands(self, query, key, value, lead):
        """Return ((query, key, value), factor of the scores), before copies if that is equivalent.

        The given key is (size, keys), as the product reads it; the returned one is (keys, size).
        """
        graph = self.graph
        query, key, value = (four_axes(one, lead) for one in (query, key, value))
        if query is None or key is None or value is None:
            return None, 1.0
        found, of_query = graph.source(query)
        keys, of_key = graph.source(key)
        keys, again = graph.source(swapped(keys))
        values, of_value = graph.source(value)
        fits = all(graph.holds_until(one, self.index) for one in (found, keys, values))
        fits = fits and of_value == 1 and of_query * of_key * again > 0
        if not fits or keys.shape[1] != values.shape[1]:
            return (query, swapped(key), value), 1.0
        return (found, keys, values), of_query * of_key * again

    # ---- masks

    def masked(self, mask, lead, last):
        """Return (mask operand or None, is causal, window); the operand is False if none fits."""
        if mask is None:
            return None, False, 0
        operand = four_axes(mask.operand, lead) if len(mask.operand.shape) > 1 else None
        if operand is None or operand.shape[-2:] != last:
            return False, False, 0
        if mask.fill is not None:
            before = before_not(self.graph, operand)
            if before is not None:
                operand, mask = before, Mask(before, mask.fill, not mask.is_seen)
        known = known_window(self.graph, mask, operand, last)
        if known is not None:
            return None, True, known
        if mask.fill is None:
            return operand, False, 0
        if mask.fill > LEAST_FILL:
            return False, False, 0
        if mask.fill == -np.inf:
            if mask.is_seen:
                return operand, False, 0
            return self.small("logical_not", "bool", (operand,)), False, 0
        # A score plus -1e30 is -1e30, so a row that is all masked weighs keys equally, as before.
        zero, fill = Number(0.0, "float32"), Number(-1e30, "float32")
        choice = (zero, fill) if mask.is_seen else (fill, zero)
        return self.small("where", "float32", (operand, *choice)), False, 0

    def small(self, op, dtype, reads):
        """Add an element-wise call on a mask without its broadcast axes; return its result."""
        operand = reads[0]
        steps = list(zip(operand.shape, operand.strides, strict=True))
        shape = tuple(1 if stride == 0 else extent for extent, stride in steps)
        own = operand._replace(shape=shape)
        nbytes = forms.mul(_ITEMSIZE[dtype], *shape)
        self.values.append(Value("temporary", nbytes))
        number = self.first + len(self.values) - 1
        made = Operand(number, dtype, shape, forms.row_major(shape))
        attributes = {"op": op, "compute": dtype}
        where = self.call.stream, self.call.line
        self.made.append(
            Call("elementwise", attributes, (made,), (own, *reads[1:]), (None,), *where)
        )
        strides = tuple(
            0 if stride == 0 else new for (_n, stride), new in zip(steps, made.strides, strict=True)
        )
        return made._replace(shape=operand.shape, strides=strides)
