"""Functions with quantized weights: the calls that replace products.

A formula after the quantized product computes the epilogue of the replaced product (a factor, an
activation, a residual). With offsets, the product that adds them does so if it can:
``x @ (q * scales + offsets).T`` is the quantized product plus ``(sums of groups of x) @ offsets``.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from gputensor._arrays.element_types import DTYPES
from gputensor.programs import dims as forms
from gputensor.programs.function import Call, Number, Operand, Value
from gputensor.programs.quantization.schemes import part_name

__all__ = ["Rewrite", "same_strides"]

_ITEMSIZE = {row.name: row.itemsize for row in DTYPES}


class Rewrite:
    """Rewrites one function, or region, with quantized products.

    Parameters
    ----------
    function : Function
        Not modified.
    weights : dict
        Name -> Weight, with quantized weights in place of plain ones.
    names : container
        The names of the quantized weights.
    """

    def __init__(self, function, weights, names):
        self.function, self.weights, self.names = function, weights, names
        self.values, self.calls, self.numbers = list(function.values), [], {}

    def run(self):
        """Return the function."""
        for number, value in enumerate(self.values):
            if value.kind == "weight" and value.name in self.names:
                self.values[number] = replace(value, nbytes=self.nbytes_of(value.name))
        for call in self.function.calls:
            regions = tuple(Rewrite(one, self.weights, self.names).run() for one in call.regions)
            name = self.name_of(call)
            if name is None:
                self.calls.append(replace(call, regions=regions))
            else:
                self.quantized(call, name)
        return replace(self.function, values=self.values, calls=self.calls)

    def name_of(self, call):
        """Return the name of the quantized weight that a call reads, or None."""
        if call.name != "product":
            return None
        value = self.values[call.reads[1].value]
        return value.name if value.kind == "weight" and value.name in self.names else None

    def nbytes_of(self, name):
        weight = self.weights[name]
        return prod(weight.shape) * _ITEMSIZE[weight.dtype]

    def whole(self, name):
        """Return the operand of a whole weight."""
        weight = self.weights[name]
        if name not in self.numbers:
            self.values.append(Value("weight", self.nbytes_of(name), name))
            self.numbers[name] = len(self.values) - 1
        strides = forms.row_major(weight.shape)
        return Operand(self.numbers[name], weight.dtype, weight.shape, strides)

    def quantized(self, call, name):
        """Add the calls that replace a product with a weight."""
        call = _with_residual(call)
        a, b, addend, bias, scale, residual = call.reads
        out, attributes = call.writes[0], call.attributes
        number, weight = b.value, self.weights[name]
        k, n = b.shape[-2:]
        rows = forms.mul(*a.shape[:-1])
        x = self.dense(a, call)._replace(shape=(rows, k), strides=(k, 1))
        q = Operand(number, weight.dtype, weight.shape, forms.row_major(weight.shape))
        has_offsets = part_name(name, "offsets") in self.weights
        is_plain = attributes["alpha"] == 1 and scale is None and attributes["beta"] == 0
        is_sum = is_plain and bias is not None and bias.dtype == a.dtype
        rest = not is_plain or attributes["activation"] or residual is not None
        rest = rest or out.dtype != a.dtype or (bias is not None and not is_sum)
        one_call = not rest and not has_offsets and self.is_dense(out)
        goal = out._replace(shape=(rows, n), strides=(n, 1)) if one_call else self.new(a, rows, n)
        into = call.into if one_call else (None,)
        given = None
        if is_sum and not has_offsets:
            given = bias._replace(shape=(n,), strides=(1,))
        precision = {"precision": attributes["precision"]}
        reads = (x, q, self.whole(part_name(name, "scales")), given)
        self.calls.append(Call("quantized_product", precision, (goal,), reads, into, *_from(call)))
        if one_call:
            return
        if has_offsets:
            goal = self.with_offsets(call, name, x, goal, is_plain)
            if goal is None:
                return
        left = None if is_sum and not has_offsets else bias
        self.finish(call, goal, (addend, left, scale, residual))

    def with_offsets(self, call, name, x, product, is_plain):
        """Add the offsets to a product; return the sum, or None if it is the final result."""
        _addend, bias, _scale, residual = call.reads[2:]
        offsets = self.whole(part_name(name, "offsets"))
        groups, n = offsets.shape
        (rows, k), out = x.shape, call.writes[0]
        sums = self.new(x, rows, groups)
        view = x._replace(shape=(rows, groups, k // groups), strides=(k, k // groups, 1))
        attributes = {"op": "sum", "compute": "float32", "axes": (2,)}
        self.calls.append(Call("reduce", attributes, (sums,), (view,), (None,), *_from(call)))
        plain = {"alpha": 1, "beta": 1, "activation": None}
        attributes = {**call.attributes, **plain}
        if not is_plain or residual is not None or out.dtype != x.dtype:
            goal = self.new(x, rows, n)
            reads = (sums, offsets, product, None, None, None)
            self.calls.append(Call("product", attributes, (goal,), reads, (None,), *_from(call)))
            return goal
        attributes["activation"] = call.attributes["activation"]
        lead = out.shape[:-1]

        def spread(one, last):
            """Return a matrix with the leading axes of the result."""
            return one._replace(shape=(*lead, last), strides=forms.row_major((*lead, last)))

        ones = (0,) * (len(lead) - 1)
        right = offsets._replace(shape=(groups, n), strides=(n, 1))
        if len(call.reads[1].shape) > 2:
            right = right._replace(shape=(*lead[:-1], groups, n), strides=(*ones, n, 1))
        reads = (spread(sums, groups), right, spread(product, n), bias, None, None)
        self.calls.append(Call("product", attributes, call.writes, reads, call.into, *_from(call)))
        return None

    def finish(self, call, product, others):
        """Add the epilogue, activation(alpha*scale*product + beta*addend + bias) + residual."""
        out, attributes = call.writes[0], call.attributes
        loads = [product._replace(shape=out.shape, strides=forms.row_major(out.shape))]

        def load(operand):
            if isinstance(operand, Number):
                return ("number", operand.value)
            lead = len(out.shape) - len(operand.shape)
            steps = zip(out.shape[lead:], operand.shape, operand.strides, strict=True)
            strides = tuple(0 if s == 1 and w != 1 else step for w, s, step in steps)
            loads.append(operand._replace(shape=out.shape, strides=(0,) * lead + strides))
            return ("load", len(loads) - 1)

        addend, bias, scale, residual = others
        tree = ("load", 0)
        if attributes["alpha"] != 1:
            tree = ("mul", tree, ("number", attributes["alpha"]))
        if scale is not None:
            tree = ("mul", tree, load(scale))
        if addend is not None and attributes["beta"] != 0:
            tree = ("add", tree, ("mul", load(addend), ("number", attributes["beta"])))
        if bias is not None:
            tree = ("add", tree, load(bias))
        if attributes["activation"]:
            tree = (attributes["activation"], tree)
        if residual is not None:
            tree = ("add", tree, load(residual))
        if tree == ("load", 0):
            tree = ("copy", tree)
        formula = {"trees": (tree,), "row_ndim": 1}
        self.calls.append(
            Call("formula", formula, call.writes, tuple(loads), call.into, *_from(call))
        )

    # ---- values

    def new(self, like, rows, columns):
        """Return a new matrix with the dtype of `like`."""
        nbytes = forms.mul(rows, columns * _ITEMSIZE[like.dtype])
        self.values.append(Value("temporary", nbytes))
        return Operand(len(self.values) - 1, like.dtype, (rows, columns), (columns, 1))

    def is_dense(self, operand):
        return same_strides(operand.shape, operand.strides, forms.row_major(operand.shape))

    def dense(self, operand, call):
        """Return a row-major operand with the elements of an operand, copied if necessary."""
        if self.is_dense(operand):
            return operand
        nbytes = forms.mul(*operand.shape, _ITEMSIZE[operand.dtype])
        self.values.append(Value("temporary", nbytes))
        strides = forms.row_major(operand.shape)
        copy = Operand(len(self.values) - 1, operand.dtype, operand.shape, strides)
        attributes = {"op": "copy", "compute": operand.dtype}
        self.calls.append(
            Call("elementwise", attributes, (copy,), (operand,), (None,), *_from(call))
        )
        return copy


def _with_residual(call):
    """Return a product with its addend as the residual, if that is equivalent."""
    a, b, addend, bias, scale, residual = call.reads
    attributes = call.attributes
    if attributes["beta"] != 1 or attributes["activation"] or residual is not None:
        return call
    reads = (a, b, None, bias, scale, addend)
    return replace(call, reads=reads, attributes={**attributes, "beta": 0})


def _from(call):
    """Return the stream and line for calls that replace a call."""
    return call.stream, call.line


def same_strides(shape, strides, wanted):
    """Whether two tuples of strides address the same elements."""
    return all(n == 1 or s == w for n, s, w in zip(shape, strides, wanted, strict=True))
