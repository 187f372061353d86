"""The rules of every function, checked after each pass and for functions from files.

`verify` checks rules that do not depend on sizes once: forms of integers, one writer for each value
before its readers, no reader of an older version, regions, trees, names. It checks rules that
depend on sizes (verify_sizes.py) at the corners of the dims' ranges and at the samples of tracing;
a session checks the sizes that it binds, which is exact. The message names the call and its line.
"""

from __future__ import annotations

import itertools
import re
from math import prod

from gputensor._kernels.calls import CALLS
from gputensor.errors import Described
from gputensor.programs import dims as forms
from gputensor.programs import tree
from gputensor.programs.function import KINDS, Number, Operand
from gputensor.programs.sampling.samples import samples
from gputensor.programs.sizes import difference, key_of
from gputensor.programs.verify_sizes import CONTROL, ITEMSIZES, check_sizes, refuse

__all__ = ["check_sizes", "verify", "verify_program"]

MAX_CALLS = 10**6
MAX_RANK = 16
MAX_DIMS = 16
MAX_REGIONS = 16  # nested levels
_MAX_CORNERS = 4  # dims whose corners are all checked
_NAMED = ("input", "weight", "constant", "state")


def verify(function):
    """Raise `ProgramError` unless a function obeys every rule of DESIGN.md.

    Parameters
    ----------
    function : Function
    """
    _Structure(function, function.dims, function.name, 0).check()
    for sizes in sizes_to_check(list(function.dims.values())):
        check_sizes(function, sizes)


def verify_program(program):
    """Raise `ProgramError` unless functions, weights and states of a ProgramData are valid."""
    for name, weight in program.weights.items():
        _check_array(f"weights.{name}", weight.name == name, weight.dtype, weight.shape)
        if weight.sha256 and not re.fullmatch("[0-9a-f]{64}", weight.sha256):
            refuse(f"weights.{name}.sha256", weight.sha256[:80], "64 hexadecimal digits")
    for name, (dtype, shape) in program.states.items():
        _check_array(f"states.{name}", bool(name), dtype, shape)
        first = program.weights.get(f"state.{name}")
        if first is not None and (first.dtype, tuple(first.shape)) != (dtype, tuple(shape)):
            got = Described(f"{first.dtype} {first.shape}")
            refuse(f"weights.state.{name}", got, f"{dtype} {shape}, as the state")
    if program.state_tree is not None:
        is_leaf = program.state_tree == tree.LEAF  # a state of one tensor has the name "state"
        names = [""] if is_leaf and list(program.states) == ["state"] else list(program.states)
        _check_paths("state_tree", program.state_tree, names)
    firsts = {}
    for name, function in program.functions.items():
        if key_of(function.name, function.at) != name:
            refuse(f"functions.{name}.name", function.name, name)
        found = difference(firsts.setdefault(function.name, function), function)
        if found is not None:
            refuse(f"functions.{name}.{found[0]}", *found[1:])
        verify(function)
        _check_memory(function, program, name)


def _check_array(path, is_named, dtype, shape):
    if not is_named:
        refuse(path, Described("another name"), "the name that it is stored under")
    if dtype not in ITEMSIZES:
        refuse(f"{path}.dtype", dtype, "the name of a dtype")
    whole = all(type(extent) is int and extent >= 0 for extent in shape)
    if not whole or len(shape) > MAX_RANK or prod(shape) * ITEMSIZES[dtype] > forms.LIMIT:
        refuse(f"{path}.shape", tuple(shape), "an array of at most 16 axes and 2**62 bytes")


def _check_memory(function, program, path):
    """Compare sizes of weights, constants and states with the program's, also in regions."""
    known = {"weight": program.weights, "constant": program.weights, "state": program.states}
    for index, value in enumerate(function.values):
        if value.kind not in known or value.base is not None:
            continue
        place = f"{path}.values[{index}]"
        found = known[value.kind].get(value.name)
        is_first = value.kind != "state" and value.name.startswith("state.")
        if found is None or is_first:  # the first value of a state is no weight of a function
            refuse(f"{place}.name", value.name, f"a {value.kind} of the program")
        dtype, shape = found if value.kind == "state" else (found.dtype, found.shape)
        if value.nbytes != prod(shape) * ITEMSIZES[dtype]:
            got = Described(forms.text(value.nbytes)[:80])
            refuse(f"{place}.nbytes", got, f"{prod(shape) * ITEMSIZES[dtype]}, as its array")
    for index, call in enumerate(function.calls):
        for at, region in enumerate(call.regions):
            _check_memory(region, program, f"{path}.calls[{index}].regions[{at}]")


def sizes_to_check(dims):
    """Return the sizes to check at: corners of the ranges, and the samples."""
    if len(dims) <= _MAX_CORNERS:
        ends = [sorted({dim.low, dim.high}) for dim in dims]
        found = [
            {dim.name: size for dim, size in zip(dims, corner, strict=True)}
            for corner in itertools.product(*ends)
        ]
    else:
        low, high = forms.ends(dims)[0], forms.ends(dims)[-1]
        found = [low, high]
        found += [low | {name: high[name]} for name in low]
        found += [high | {name: low[name]} for name in low]
    return found + [sizes for sizes in samples(dims) if sizes not in found]


def _check_paths(path, structure, wanted):
    found = tree.paths(structure)
    if found != wanted:
        got = Described(f"a structure with {tree.shown(found)}")
        refuse(path, got, f"leaves {tree.shown(wanted)}")


class _Structure:
    """One function or region; `latest` maps the first version of memory to the current one."""

    def __init__(self, function, dims, path, depth):
        self.function, self.dims, self.path, self.depth = function, dims, path, depth
        self.first = []  # value -> its first version
        self.latest = {}
        self.written = set()

    def fail(self, place, got, rule, call=None):
        made = f" ({', '.join(filter(None, (call.name, call.line)))})" if call else ""
        got = got if isinstance(got, Described) else Described(repr(got)[:200])
        refuse(f"{self.path}.{place}{made}", got, rule)

    def check(self):
        function = self.function
        if self.depth > MAX_REGIONS:
            self.fail("regions", Described("more nested levels"), f"at most {MAX_REGIONS} levels")
        if len(function.calls) > MAX_CALLS:
            self.fail("calls", len(function.calls), f"at most {MAX_CALLS}")
        if len(function.dims) > MAX_DIMS:
            self.fail("dims", len(function.dims), f"at most {MAX_DIMS}")
        for name, dim in function.dims.items():
            if not isinstance(dim, forms.Dim) or dim.name != name or self.depth:
                self.fail(f"dims.{name}", dim, "a Dim with this name, and no dims in a region")
        for index, value in enumerate(function.values):
            self.value(value, index)
        self.inputs()
        for index, call in enumerate(function.calls):
            self.call(call, index)
        self.states()
        self.outputs()
        for index, value in enumerate(function.values):
            is_made = value.kind == "temporary" or value.base is not None
            if is_made and index not in self.written:
                self.fail(f"values[{index}]", Described("no writer"), "one call that writes it")

    def value(self, value, index):
        place = f"values[{index}]"
        if value.kind not in KINDS or (self.depth and value.kind == "state"):
            self.fail(f"{place}.kind", value.kind, "a kind of value, but no state in a region")
        self.integer(value.nbytes, f"{place}.nbytes")
        if value.base is None:
            self.first.append(index)
            if value.kind in _NAMED and not value.name:
                self.fail(f"{place}.name", value.name, f"the name of the {value.kind}")
            if value.kind != "temporary":
                self.latest[index] = index
            return
        if type(value.base) is not int or not 0 <= value.base < index:
            self.fail(f"{place}.base", value.base, "an earlier value")
        if value.kind not in ("temporary", "state"):
            self.fail(f"{place}.base", value.base, f"None for a {value.kind}")
        if self.function.values[value.base].kind != value.kind:
            self.fail(f"{place}.kind", value.kind, "the kind of its base")
        self.first.append(self.first[value.base])

    def inputs(self):
        found = []
        for index, item in enumerate(self.function.inputs):
            place = f"inputs[{index}]"
            self.operand(item.operand, place)
            value = self.function.values[item.operand.value]
            if value.kind != "input":
                self.fail(place, Described(f"memory of the kind {value.kind!r}"), "an input")
            found.append(item.operand.value)
        wanted = [i for i, value in enumerate(self.function.values) if value.kind == "input"]
        if sorted(found) != wanted:
            self.fail("inputs", Described(f"values {found}"), f"each of {wanted} once")
        if self.function.tree is not None:
            paths = [item.path for item in self.function.inputs]
            _check_paths(f"{self.path}.tree", self.function.tree, paths)

    def outputs(self):
        found = set()
        for index, item in enumerate(self.function.outputs):
            place = f"outputs[{index}]"
            self.operand(item.operand, place)
            self.read(item.operand.value, place)
            first = self.first[item.operand.value]
            if self.function.values[first].kind != "temporary":
                kind = self.function.values[first].kind
                self.fail(place, Described(f"memory of the kind {kind!r}"), "a temporary")
            if first in found:
                self.fail(place, Described("memory of another output"), "separate memory")
            found.add(first)
        if self.function.result is not None:
            paths = [item.path for item in self.function.outputs]
            _check_paths(f"{self.path}.result", self.function.result, paths)

    def states(self):
        values, found = self.function.values, {}
        for name, versions in self.function.states.items():
            place = f"states.{name}"
            if not all(type(i) is int and 0 <= i < len(values) for i in versions):
                self.fail(place, versions, "two values")
            first, last = versions
            value = values[first]
            if value.kind != "state" or value.base is not None or value.name != name:
                self.fail(place, first, "the first version of the state")
            if self.latest[first] != last:
                self.fail(place, last, f"{self.latest[first]}, its last version")
            found[first] = name
        for index, value in enumerate(values):
            if value.kind == "state" and value.base is None and index not in found:
                self.fail(f"values[{index}]", Described("another state"), "a state of the function")

    def integer(self, integer, place, call=None):
        """Check the form of an integer; its magnitude is checked at sizes."""
        if type(integer) is int:
            if not -forms.LIMIT <= integer <= forms.LIMIT:
                self.fail(place, integer, "an int within ±2**62", call)
            return
        if not forms.is_expression(integer):
            self.fail(place, integer, "an int or an expression of dims", call)
        head, first, *rest = integer
        if head == "dim":
            if type(first) is not str or first not in self.dims:
                self.fail(place, first, "a dim of the function", call)
            return
        if head == "floordiv" and (type(rest[0]) is not int or rest[0] < 1):
            self.fail(place, rest[0], "a positive int as divisor", call)
        self.integer(first, place, call)
        self.integer(rest[0], place, call)

    def attribute(self, value, place, call):
        if forms.is_expression(value):
            self.integer(value, place, call)
        elif type(value) is tuple:
            for part in value:
                self.attribute(part, place, call)

    def operand(self, operand, place, call=None):
        if not isinstance(operand, Operand):
            self.fail(place, operand, "a view of a value", call)
        if type(operand.value) is not int or not 0 <= operand.value < len(self.first):
            self.fail(f"{place}.value", operand.value, "the number of a value", call)
        if operand.dtype not in ITEMSIZES:
            self.fail(f"{place}.dtype", operand.dtype, "the name of a dtype", call)
        rank = len(operand.shape)
        if rank > MAX_RANK or rank != len(operand.strides):
            got = Described(f"{rank} extents and {len(operand.strides)} strides")
            self.fail(f"{place}.shape", got, f"equal numbers, at most {MAX_RANK}", call)
        for integer in (*operand.shape, *operand.strides, operand.offset):
            self.integer(integer, place, call)

    def read(self, number, place, call=None):
        """Check a read: the value has been written, and no later version has."""
        latest = self.latest.get(self.first[number])
        if latest == number:
            return
        got = f"value {number}"
        if latest is None or number > latest:
            got = Described(f"{got}, which no earlier call writes")
            self.fail(place, got, "a value that has been written", call)
        rule = f"value {latest}, the current version"
        self.fail(place, Described(f"{got}, an older version"), rule, call)

    def call(self, call, index):
        place = f"calls[{index}]"
        known, regions = CONTROL.get(call.name), 0
        if known is not None:
            names, regions = known
        elif call.name in CALLS:
            names = tuple(CALLS[call.name].attributes)
        else:
            self.fail(f"{place}.name", call.name, "the name of a call")
        if call.attributes.keys() != set(names):
            got = Described(tree.shown(call.attributes) or "none")
            self.fail(f"{place}.attributes", got, tree.shown(names) or "none", call)
        for name, value in call.attributes.items():
            self.attribute(value, f"{place}.attributes.{name}", call)
        if type(call.stream) is not int or call.stream < 0:
            self.fail(f"{place}.stream", call.stream, "an int of at least 0", call)
        for at, operand in enumerate(call.reads):
            where = f"{place}.reads[{at}]"
            if isinstance(operand, Operand):
                self.operand(operand, where, call)
                self.read(operand.value, where, call)
            elif known is not None or not (operand is None or isinstance(operand, Number)):
                self.fail(where, operand, "a view of a value", call)
            elif operand is not None:
                self.number(operand, where, call)
        self.writes(call, place)
        if len(call.regions) != regions:
            self.fail(f"{place}.regions", len(call.regions), str(regions), call)
        if known is not None:
            self.control(call, place)

    def number(self, number, place, call):
        if number.dtype not in ITEMSIZES:
            self.fail(f"{place}.dtype", number.dtype, "the name of a dtype", call)
        if forms.is_expression(number.value):
            self.integer(number.value, place, call)
        elif type(number.value) not in (bool, int, float, complex):
            self.fail(place, number.value, "a bool, a number or an integer of the form", call)

    def writes(self, call, place):
        if len(call.into) != len(call.writes):
            self.fail(f"{place}.into", len(call.into), f"{len(call.writes)}, as writes", call)
        values, made = self.function.values, {}
        for at, (operand, into) in enumerate(zip(call.writes, call.into, strict=True)):
            where = f"{place}.writes[{at}]"
            self.operand(operand, where, call)
            number = operand.value
            value, first = values[number], self.first[number]
            if number in self.written or (value.kind != "temporary" and value.base is None):
                got = f"value {number}, which has a writer or must not have one"
                self.fail(where, Described(got), "a value without a writer", call)
            if value.base != into:
                self.fail(f"{place}.into[{at}]", into, f"{value.base}, the base", call)
            if into is not None:
                self.read(into, f"{place}.into[{at}]", call)
            if first in made:
                self.fail(where, Described("memory that the call writes twice"), "once", call)
            made[first] = number
            self.written.add(number)
        self.latest.update(made)

    def control(self, call, place):
        """Check regions, and the counts in attributes; shapes are checked at sizes."""
        attributes = call.attributes
        if any(into is not None for into in call.into):
            self.fail(f"{place}.into", call.into, "new values", call)
        if call.name in ("while_loop", "fori_loop") and len(call.reads) < len(call.writes):
            rule = f"at least the {len(call.writes)} carried values"
            self.fail(f"{place}.reads", len(call.reads), rule, call)
        for name in ("lower", "upper", "length"):
            if name in attributes:
                self.integer(attributes[name], f"{place}.attributes.{name}", call)
        if call.name == "scan":
            carry, arrays = attributes["carry"], attributes["arrays"]
            whole = all(type(part) is int and part >= 0 for part in (carry, arrays))
            if not whole or carry + arrays > len(call.reads) or carry > len(call.writes):
                self.fail(f"{place}.attributes", (carry, arrays), "operands of the call", call)
            if type(attributes["reverse"]) is not bool:
                self.fail(f"{place}.attributes.reverse", attributes["reverse"], "a bool", call)
        for at, region in enumerate(call.regions):
            path = f"{self.path}.{place}.regions[{at}]"
            _Structure(region, self.dims, path, self.depth + 1).check()
            if region.states:
                self.fail(f"{place}.regions[{at}].states", len(region.states), "none", call)
