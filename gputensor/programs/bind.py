"""Bindings: a function at given sizes, with its integers evaluated and each value given a place.

A *place* is an offset in one of the pieces of memory of a session: the arena, and one piece for
each weight, state, input and output. `Binding.pieces` lists them, the arena first. A session has an
address for each piece, and a bound call reads and writes at addresses plus offsets. This module
uses no device.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.calls import CALLS, bound_row
from gputensor._kernels.launch import CallOperand
from gputensor.errors import Described, argument_error
from gputensor.programs import dims
from gputensor.programs.function import Number, Operand
from gputensor.programs.passes.branches import waits_of
from gputensor.programs.passes.plan import plan
from gputensor.programs.passes.plan_check import check_plan
from gputensor.programs.verify_sizes import check_sizes

__all__ = ["CONTROL", "Binding", "BoundCall", "BoundControl", "Piece", "bind", "evaluated"]

ITEMSIZES = {row.name: row.itemsize for row in DTYPES}
CONTROL = ("cond", "while_loop", "fori_loop", "scan")


class Piece(NamedTuple):
    """Memory with its own address. `name` is that of a weight or state, or a number."""

    kind: str  # "arena", "weight", "state", "input", "output"
    name: Any
    nbytes: int


class Place(NamedTuple):
    """A range of bytes in a piece."""

    piece: int
    offset: int
    nbytes: int


class BoundCall(NamedTuple):
    """A row of the registry with its arguments; ``patches`` are (argument, piece, offset)."""

    row: Any
    arguments: tuple
    patches: tuple
    is_empty: bool  # it writes no element
    line: str


class BoundControl(NamedTuple):
    """Control flow: the places that it reads and writes, and its regions as bindings.

    `arenas` and `scratch` are offsets in the arena: of the regions' arenas; and of a second copy
    of each carried value, then of the flag of a `while_loop` or the index of a `fori_loop`. On a
    GPU, `rows` are the calls that copy bytes and write the index, and `setter` is the handle of a
    kernel that sets conditions, or 0.
    """

    name: str
    attributes: dict
    reads: tuple
    writes: tuple
    regions: tuple
    arenas: tuple
    scratch: tuple
    line: str
    rows: tuple = (CALLS["elementwise"], CALLS["arange"])
    setter: int = 0

    @property
    def turns(self):
        """How often the regions run, if that is known."""
        if self.name == "fori_loop":
            return max(self.attributes["upper"] - self.attributes["lower"], 0)
        return self.attributes.get("length", 1)


@dataclass
class Binding:
    """A function, or region, at given sizes."""

    function: Any
    sizes: dict
    plan: Any
    pieces: list = field(default_factory=list)
    calls: list = field(default_factory=list)
    #: for each call outside regions: its stream, and the calls of other streams it waits for
    streams: list = field(default_factory=list)
    waits: list = field(default_factory=list)
    #: (dtype, shape) of each input and output
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    #: the kind of a session's graph, or why there is none
    graph: str = "none: a host device runs the calls as one piece of work"
    #: on a GPU: conditions are nodes of the graph
    has_bodies: bool = False
    #: on a GPU: the function is launched call by call
    is_by_calls: bool = False
    #: names of states that are written
    written: set = field(default_factory=set)

    @property
    def arena_nbytes(self):
        return self.pieces[0].nbytes

    @property
    def inputs_nbytes(self):
        return [piece.nbytes for piece in self.pieces if piece.kind == "input"]

    @property
    def outputs_nbytes(self):
        return [piece.nbytes for piece in self.pieces if piece.kind == "output"]

    @property
    def region_weights(self):
        """The names of weights that regions read, at any depth."""
        names = set()
        for call in self.calls:
            for region in getattr(call, "regions", ()):
                names |= {piece.name for piece in region.pieces if piece.kind == "weight"}
                names |= set(region.region_weights)
        return sorted(names)

    @property
    def has_conditions(self):
        """Whether the host or the device must read a condition while the function runs."""
        controls = [call for call in self.calls if type(call) is BoundControl]
        return any(
            call.name in ("cond", "while_loop") or any(r.has_conditions for r in call.regions)
            for call in controls
        )

    @property
    def has_waits(self):
        """Whether another library computes a call, which cannot be part of a graph."""
        return any(
            any(region.has_waits for region in call.regions)
            if type(call) is BoundControl
            else call.row.waits
            for call in self.calls
        )

    @property
    def call_count(self):
        """The number of calls in a run, including all iterations of `fori_loop` and `scan`."""
        count = 0
        for call in self.calls:
            turns = 1
            if type(call) is BoundControl:
                turns = call.turns * sum(region.call_count + 1 for region in call.regions)
            count += turns
        return count


def evaluated(value, sizes):
    """Return an attribute or a number of the form with its integers evaluated."""
    if dims.is_expression(value):
        return dims.evaluate(value, sizes)
    if isinstance(value, (tuple, list)):
        return tuple(evaluated(part, sizes) for part in value)
    return value


def bind(function, sizes):
    """Return the Binding of a function for these sizes (name of a dim -> int)."""
    if function.dims:  # without dims, verify has already checked the only sizes
        check_sizes(function, sizes)
    planned = plan(function, sizes)
    check_plan(function, sizes, planned)
    found = _Binder(function, sizes, planned).bind()
    found.streams = [call.stream for call in function.calls]
    found.waits = waits_of(function)
    return found


class _Binder:
    def __init__(self, function, sizes, planned):
        self.function = function
        self.sizes = sizes
        self.plan = planned
        self.binding = Binding(function, sizes, planned)
        self.places = {}  # number of a root value -> Place
        self.roots = []  # number of each value's first version
        for number, value in enumerate(function.values):
            self.roots.append(number if value.base is None else self.roots[value.base])

    def bind(self):
        binding, function = self.binding, self.function
        binding.pieces.append(Piece("arena", None, self.plan.nbytes))
        for group in ("inputs", "outputs"):
            kind = group[:-1]
            for number, argument in enumerate(getattr(function, group)):
                nbytes = self._nbytes(argument.operand.value)
                self._piece(kind, number, nbytes, argument.operand.value)
                shape = tuple(self._evaluate(extent) for extent in argument.operand.shape)
                getattr(binding, group).append((argument.operand.dtype, shape))
        for number, value in enumerate(function.values):
            if value.base is None and value.kind in ("weight", "constant", "state"):
                kind = "state" if value.kind == "state" else "weight"
                self._piece(kind, value.name, self._evaluate(value.nbytes), number)
        for number, offset in self.plan.offsets.items():
            self.places[number] = Place(0, offset, self._nbytes(number))
        for index, call in enumerate(function.calls):
            bound = self._control(index, call) if call.regions else self._call(call)
            binding.calls.append(bound)
        return binding

    def _evaluate(self, integer):
        return dims.evaluate(integer, self.sizes)

    def _nbytes(self, number):
        return self._evaluate(self.function.values[self.roots[number]].nbytes)

    def _piece(self, kind, name, nbytes, number):
        self.places[self.roots[number]] = Place(len(self.binding.pieces), 0, nbytes)
        self.binding.pieces.append(Piece(kind, name, nbytes))

    def _place(self, operand, line):
        """Return an operand's piece, offset in bytes, and (dtype, shape, strides)."""
        place = self.places[self.roots[operand.value]]
        shape = tuple(self._evaluate(extent) for extent in operand.shape)
        strides = tuple(self._evaluate(stride) for stride in operand.strides)
        offset = self._evaluate(operand.offset)
        itemsize = ITEMSIZES[operand.dtype]
        low = high = offset
        for extent, stride in zip(shape, strides, strict=True):
            reach = (extent - 1) * stride * itemsize
            low, high = low + min(reach, 0), high + max(reach, 0)
        if 0 not in shape and (low < 0 or high + itemsize > place.nbytes):
            got = Described(f"bytes {low} to {high + itemsize} of a value of {place.nbytes}")
            raise argument_error(ValueError, line or "operand", got, "bytes inside the value")
        return place.piece, place.offset + offset, (operand.dtype, shape, strides)

    def _call(self, call):
        row = bound_row(call.name)
        attributes = [evaluated(call.attributes[name], self.sizes) for name in row.attributes]
        arguments, patches, specs = list(attributes), [], []
        for operand in (*call.writes, *call.reads):
            if operand is None:
                arguments.append(None)
                specs.append(None)
            elif isinstance(operand, Number):
                value = evaluated(operand.value, self.sizes)
                arguments.append(CallOperand.number(operand.dtype, value))
                specs.append((operand.dtype, None))
            else:
                piece, offset, (dtype, shape, strides) = self._place(operand, call.line)
                patches.append((len(arguments), piece, offset))
                arguments.append(CallOperand(0, dtype, shape, strides))
                specs.append((dtype, shape))
        count = len(call.writes)
        row.check(attributes, specs[:count], specs[count:])
        for operand in call.writes:
            piece = self.binding.pieces[self.places[self.roots[operand.value]].piece]
            if piece.kind == "state":
                self.binding.written.add(piece.name)
        is_empty = bool(count) and all(0 in shape for _dtype, shape in specs[:count])
        return BoundCall(row, tuple(arguments), tuple(patches), is_empty, call.line)

    # ---- control flow

    def _control(self, index, call):
        attributes = {name: evaluated(v, self.sizes) for name, v in call.attributes.items()}
        reads = tuple(self._whole(operand, call.line) for operand in call.reads)
        writes = tuple(self._whole(operand, call.line) for operand in call.writes)
        plans = self.plan.regions[index]
        regions = tuple(
            _Binder(region, self.sizes, planned).bind()
            for region, (_offset, planned) in zip(call.regions, plans, strict=True)
        )
        arenas = tuple(offset for offset, _planned in plans)
        scratch = self.plan.scratch.get(index, ())
        return BoundControl(
            call.name, attributes, reads, writes, regions, arenas, tuple(scratch), call.line
        )

    def _whole(self, operand, line):
        """Return the place of a row-major operand."""
        if not isinstance(operand, Operand):
            raise argument_error(ValueError, line or "operand", operand, "memory")
        piece, offset, (dtype, shape, strides) = self._place(operand, line)
        for extent, stride, wanted in zip(shape, strides, dims.row_major(shape), strict=True):
            if extent != 1 and stride != wanted and 0 not in shape:
                got = Described(f"strides {strides}")
                raise argument_error(ValueError, line or "operand", got, "a row-major operand")
        return Place(piece, offset, prod(shape) * ITEMSIZES[dtype])
