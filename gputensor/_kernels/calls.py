"""The registry of calls: all kinds of work on a device.

A call is a row of `CALLS` and a flat tuple of arguments: the row's attributes, the operands that it
writes, the operands that it reads. On a host device the operands are NumPy views and the row's
`run` computes them; a recorder gets descriptions instead (launch/call_operand.pxi), and `make`
makes a recorded call on any device. An absent optional operand is None; an operand whose name
begins with ``*`` is the last one and may repeat. A call whose only written operand is ``*results``
writes as many operands as its first attribute has elements.

The room that owns the C face of a call binds the row when it is imported. `Row.check` is for
programs that come from files: for any values it returns or raises ValueError, at once.
"""

import importlib
from collections.abc import Sequence

from gputensor._kernels.call_rules import (
    ACTIVATIONS,
    ATTRIBUTE_TYPES,
    CONVOLUTION_ACTIVATIONS,
    MAX_NDIM,
    POOLINGS,
    RULES,
    Spec,
    is_extent,
    refuse,
    shown,
    updates_product,
)  # fmt: skip
from gputensor._kernels.engine_rules import ENGINE_RULES
from gputensor._kernels.fused_rules import FUSED_RULES
from gputensor._kernels.order_rules import ORDER_RULES
from gputensor.errors import Described

__all__ = [
    "ACTIVATIONS", "CALLS", "CONVOLUTION_ACTIVATIONS", "POOLINGS", "Row", "Spec", "bind",
    "bound_row", "make",
]  # fmt: skip

# ---- rows


class Row:
    """One call.

    Attributes
    ----------
    name : str
    attributes : dict
        Names of attributes -> names in `ATTRIBUTE_TYPES`.
    names : tuple of str
        The names of the attributes.
    counts : (int, int or None)
        The number of attributes, and that of attributes and written operands if it is fixed.
    writes, reads : tuple of str
        Names of operands; names of optional operands end with ``?``.
    room : str
        The module that binds the row.
    updates : bool, callable or tuple of str
        Whether it updates its written operand in place; or a function of attributes and reads that
        says so; or the names of the operands that it updates.
    waits : bool
        Whether another library computes it, which may compile and wait for a GPU; such a call is
        not part of a section or a graph.
    run : callable
        The host function; takes NumPy views.
    door : callable
        ``door(device, stream, arguments)`` queues the call on any device. It trusts its arguments;
        `make` checks them first.
    """

    __slots__ = (
        "attributes", "counts", "door", "name", "names", "reads", "room", "rule", "run", "updates",
        "waits", "writes",
    )  # fmt: skip

    def __init__(self, name, room, *, attributes, writes, reads, updates=False, waits=False):
        self.name = name
        self.room = f"gputensor.{room}"
        self.attributes = dict(part.split(":") for part in attributes.split())
        self.writes = tuple(writes.split())
        self.reads = tuple(reads.split())
        self.names = tuple(self.attributes)
        count = len(self.names)
        self.counts = count, None if self.writes == ("*results",) else count + len(self.writes)
        self.rule = (RULES | ORDER_RULES | ENGINE_RULES | FUSED_RULES)[name]
        self.updates = updates
        self.waits = waits
        self.run = self.door = None

    def __repr__(self):
        return f"<call {self.name}>"

    def split(self, arguments):
        """Return the attributes, the written and the read operands of a tuple of arguments."""
        first, second = self.counts
        if second is None:
            second = first + len(arguments[0])
        return arguments[:first], arguments[first:second], arguments[second:]

    def _count_writes(self, attributes):
        return len(attributes[0]) if self.writes == ("*results",) else len(self.writes)

    def writes_all(self, attributes, reads, name=None):
        """Whether the call overwrites every element of its written operand without reading any.

        Otherwise it updates the operand in place. `name` chooses one of several written operands.
        """
        if type(self.updates) is tuple:
            return bool(name) and name not in self.updates
        return not (self.updates(attributes, reads) if callable(self.updates) else self.updates)

    def check(self, attributes, writes, reads):
        """Raise ValueError if attributes or operands do not fit the call.

        Parameters
        ----------
        attributes : sequence
            Values, in the row's order.
        writes, reads : sequence
            A `Spec`, or a pair like one, for each operand; None for an absent operand.
        """
        _check_count(self, "attributes", attributes, len(self.attributes))
        for value, (name, kind) in zip(attributes, self.attributes.items(), strict=True):
            test, rule = ATTRIBUTE_TYPES[kind]
            if not test(value):
                refuse(f"{self.name}: {name}", shown(value), rule)
        writing = self.writes
        if writing == ("*results",):
            writing *= self._count_writes(attributes)
        _check_count(self, "written operands", writes, len(writing))
        repeats = self.reads[-1:] and self.reads[-1][0] == "*"
        _check_count(self, "read operands", reads, len(self.reads), MAX_NDIM if repeats else 0)
        written = [_spec(self, name, one) for name, one in zip(writing, writes, strict=True)]
        names = self.reads + self.reads[-1:] * (len(reads) - len(self.reads))
        read = [_spec(self, name, one) for name, one in zip(names, reads, strict=True)]
        for name, one in zip(writing, written, strict=True):
            if one.shape is None:
                refuse(f"{self.name}: {name}", Described("a number"), "memory")
        if self.name != "elementwise":
            for name, one in zip(names, read, strict=True):
                if one is not None and one.shape is None:
                    refuse(f"{self.name}: {name}", Described("a number"), "memory")
        self.rule(self.name, attributes, written, read)


def _check_count(row, what, values, least, more=0):
    if not isinstance(values, Sequence) or isinstance(values, str):
        refuse(f"{row.name}: {what}", shown(values), "a sequence")
    if not least <= len(values) <= least + more:
        refuse(f"{row.name}: {what}", len(values), f"{least}{' or more' if more else ''}")


def _spec(row, name, value):
    if value is None and name.endswith("?"):
        return None
    title = f"{row.name}: {name.strip('*?')}"
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        refuse(title, shown(value), "a dtype and a shape")
    dtype, shape = value
    if not ATTRIBUTE_TYPES["dtype"][0](dtype):
        refuse(f"{title}.dtype", shown(dtype), "the name of a dtype")
    if shape is None:
        return Spec(dtype, None)
    if not isinstance(shape, (tuple, list)) or len(shape) > MAX_NDIM:
        refuse(f"{title}.shape", shown(shape), "at most 16 extents")
    if not all(map(is_extent, shape)):
        refuse(f"{title}.shape", Described("an invalid extent"), "integers from 0 to 2**62")
    return Spec(dtype, tuple(shape))


# fmt: off
_ROWS = (
    Row("elementwise", "_kernels.faces", attributes="op:operation compute:dtype",
        writes="out", reads="*x"),
    Row("reduce", "_kernels.faces", attributes="op:reduction compute:dtype axes:axes",
        writes="out", reads="x"),
    Row("gather", "_kernels.faces", attributes="first_axis:axis",
        writes="out", reads="source *indices"),
    Row("scatter", "_kernels.faces", attributes="first_axis:axis",
        writes="target", reads="values *indices", updates=True),
    # Writes no operand: an index out of range raises on a host device.
    Row("check_indices", "_kernels.faces", attributes="extents:extents",
        writes="", reads="*indices"),
    Row("arange", "_kernels.faces", attributes="start:number step:number",
        writes="out", reads=""),
    # Draws from a distribution with two numbers (call_rules.py) and advances the state.
    Row("random", "_kernels.faces", attributes="distribution:distribution a:number b:number",
        writes="out state", reads="", updates=("state",)),
    # Row-major matrices, sorted along rows; equal elements keep their order, NaN is the greatest.
    Row("sort", "_kernels.orders", attributes="is_descending:flag", writes="out", reads="x"),
    Row("argsort", "_kernels.orders", attributes="is_descending:flag", writes="out", reads="x"),
    # Rows with the elements at some places where `sort` would write them, the others anywhere.
    Row("partition", "_kernels.orders", attributes="places:extents", writes="out", reads="x"),
    Row("topk", "_kernels.orders", attributes="is_largest:flag",
        writes="values order", reads="x"),
    Row("search", "_kernels.orders", attributes="is_right:flag", writes="out", reads="x values"),
    # Adds to the counts of 0, 1, ...; ignores other numbers.
    Row("count", "_kernels.orders", attributes="", writes="counts", reads="x", updates=True),
    # Adds the number of elements of x between neighbouring edges, the last edge included.
    Row("histogram", "_kernels.orders", attributes="is_even:flag", writes="counts",
        reads="x edges", updates=True),
    # Adds rows of source to the rows that the index names along the middle one of three axes.
    Row("add_at", "_kernels.orders", attributes="", writes="target", reads="index source",
        updates=True),
    # A bit for each chosen element of x (one that is true, or that differs from the one before),
    # and the number of chosen elements before each tile. Then the chosen elements, or their places
    # by axes.
    Row("mark", "_kernels.orders", attributes="rule:mark", writes="bits starts", reads="x"),
    Row("pick", "_kernels.orders", attributes="", writes="out", reads="x bits starts"),
    # The same bits and starts, of the integers from `least` on that are elements of x.
    Row("seen", "_kernels.orders", attributes="", writes="bits starts", reads="x least"),
    Row("places", "_kernels.orders", attributes="shape:extents", writes="out",
        reads="bits starts"),
    # Along the middle one of three axes.
    Row("cumulate", "_kernels.orders", attributes="op:scan", writes="out", reads="x"),
    # Computed by other libraries: functions of matrices in the last two axes; transforms along
    # axes.
    Row("matrix", "tensor.engine", attributes="what:matrix", writes="out", reads="x", waits=True),
    Row("matrix_pair", "tensor.engine", attributes="what:matrix_pair", writes="first second",
        reads="x", waits=True),
    Row("svd", "tensor.engine", attributes="is_full:flag", writes="u s vh", reads="x", waits=True),
    Row("solve", "tensor.engine", attributes="", writes="out", reads="a b", waits=True),
    Row("lu_solve", "tensor.engine", attributes="side:side", writes="out", reads="a pivots b",
        waits=True),
    Row("transform", "tensor.engine",
        attributes="what:transform lengths:extents along:places norm:norm",
        writes="out", reads="x", waits=True),
    # Trees of formula.py; the last row_ndim axes are the columns, 1 in a result without them.
    Row("formula", "_kernels.formulas", attributes="trees:trees row_ndim:axis",
        writes="*results", reads="*x"),
    # (batch, channels, one to three spatial axes); a kernel of 0 cuts an axis into as many windows
    # as the result has. Only padded_mean uses `ends`; elements beyond x are padding.
    Row("window", "_kernels.faces",
        attributes="pooling:pooling kernel:extents stride:extents padding:extents ends:extents "
                   "dilation:extents",
        writes="out", reads="x"),
    # activation(convolution + bias + addend); weight is (outputs, channels / groups, kernel).
    # Elements beyond x are 0; `padding` is the number of them before x.
    Row("convolution", "blas.convolution",
        attributes="stride:extents padding:extents dilation:extents groups:extent "
                   "activation:finish precision:precision",
        writes="out", reads="x weight bias? addend?"),
    # Operands have four axes: batch, heads, rows, size. A window or soft_cap of 0 means none.
    Row("attention", "blas.attention",
        attributes="scale:number is_causal:flag window:extent soft_cap:number precision:precision",
        writes="out", reads="query key value mask? length?"),
    # activation(alpha * scale * (a @ b) + beta * addend + bias) + residual
    Row("product", "blas.product",
        attributes="alpha:number beta:number activation:activation conj_a:flag conj_b:flag "
                   "precision:precision",
        writes="out", reads="a b addend? bias? scale? residual?",
        updates=updates_product),
    # activation((a * scale_a) @ (b * scale_b) + bias) * scale_result
    Row("scaled_product", "blas.product",
        attributes="activation:activation is_fast:flag precision:precision",
        writes="out", reads="a b scale_a? scale_b? scale_result? bias?"),
    # Rows offsets[g - 1] to offsets[g] of a times b[g]; all sums are float32, so there are no
    # flags.
    Row("offset_products", "blas.product", attributes="",
        writes="out", reads="a b offsets"),
    # x @ (weight * scales).T + bias
    Row("quantized_product", "blas.product", attributes="precision:precision",
        writes="out", reads="x weight scales bias?"),
    # activation(r @ (weight * scales).T + bias + addend), where r is x, or with a gain
    # x * rsqrt(mean(x * x) + epsilon) * gain + shift; if centered, of x - mean(x) instead of x. If
    # gated: activation(first half) * second half. If steady, the call before it on the stream does
    # not write weight, scales, gain or shift.
    Row("fused_product", "blas.product",
        attributes="epsilon:number is_centered:flag activation:activation is_gated:flag "
                   "is_steady:flag precision:precision",
        writes="out", reads="x weight scales? gain? shift? bias? addend?"),
    # The same without scales and gate; it also writes r.
    Row("normed_product", "blas.product",
        attributes="epsilon:number is_centered:flag activation:activation is_steady:flag "
                   "precision:precision",
        writes="out normed", reads="x weight gain shift? bias? addend?"),
    # A map (formula.py) of x @ (weight * scales).T + bias, its load 0, and other operands. If
    # paired, load 0 is the first half of the product's columns and load 1 the second half.
    Row("formula_product", "blas.product",
        attributes="trees:trees is_paired:flag precision:precision",
        writes="out", reads="x weight scales? bias? first? second? third?"),
    # A formula with folds of the rows of x @ weight.T + bias, its only load. If steady, the call
    # before it on the stream does not write weight or bias.
    Row("row_product", "blas.product",
        attributes="trees:trees is_steady:flag precision:precision",
        writes="out", reads="x weight bias?"),
    # The product of fused_product; its columns are heads of queries, keys and values. Cosines and
    # sines rotate elements i and i + size / 2 of queries and keys. Keys and values are written to
    # `places`.
    Row("rotary_product", "blas.product",
        attributes="epsilon:number is_steady:flag precision:precision",
        writes="out keys values",
        reads="x weight scales? gain? bias? cosines sines places", updates=("keys", "values")),
)
# fmt: on

CALLS = {row.name: row for row in _ROWS}


def bind(name, run, door):
    """Give a row its host function and its door, and return it; called by the face's room."""
    row = CALLS[name]
    row.run, row.door = run, door
    return row


def bound_row(name):
    """Return the row of a call with its functions; imports its room if needed."""
    row = CALLS[name]
    if row.door is None:
        importlib.import_module(row.room)
    return row


def make(name, device, stream, arguments):
    """Queue one call on any device.

    The caller is responsible for memory: it must be large enough, live until the work is done, and
    be ordered after earlier work on other streams.

    Parameters
    ----------
    name : str
        A key of `CALLS`.
    device, stream : int
        The number of an open device, and a handle of a stream of it.
    arguments : sequence
        In the row's order: attributes, and a `CallOperand` for each operand, or None.

    Raises
    ------
    ValueError
        The arguments do not fit the call.
    """
    row = bound_row(name)
    arguments = tuple(arguments)
    attributes, writes, reads = row.split(arguments)
    specs = [[one and (one.dtype, one.shape) for one in part] for part in (writes, reads)]
    row.check(attributes, *specs)
    row.door(device, stream, arguments)
