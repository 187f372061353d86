"""The rules of a function at given sizes of its dims: memory, shapes, attributes.

The checks are exact at these sizes, and are the only ones that keep the calls of a function inside
their memory: a session checks the sizes that it binds. Integers are not expanded, so the time is
linear in the size of the function for any file. verify.py checks the other rules.
"""

from __future__ import annotations

from math import prod

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.calls import CALLS
from gputensor.errors import Described, ProgramError, argument_error
from gputensor.programs import dims as forms
from gputensor.programs.function import Number

__all__ = ["CONTROL", "check_sizes"]

ITEMSIZES = {row.name: row.itemsize for row in DTYPES}
#: Calls of control flow: their attributes and the number of their regions.
CONTROL = {
    "cond": ((), 2),
    "while_loop": ((), 2),
    "fori_loop": (("lower", "upper"), 1),
    "scan": (("length", "reverse", "carry", "arrays"), 1),
}


def refuse(path, got, rule):
    """Raise the error for a fault at a path."""
    raise argument_error(ProgramError, path, got, rule)


def check_sizes(function, sizes, path=""):
    """Raise `ProgramError` unless every operand and call of a function is valid at these sizes.

    Parameters
    ----------
    function : Function
    sizes : dict
        Maps the name of each dim to its size, which `Dim.check` accepts.
    path : str
        The name of the function in messages.
    """
    _Sizes(function, sizes, path or function.name).check()


class _Sizes:
    def __init__(self, function, sizes, path):
        self.function, self.sizes, self.path = function, sizes, path
        self.nbytes = ()
        at = ", ".join(f"{name}={size}" for name, size in sizes.items())
        self.at = f" at {at}" if at else ""

    def check(self):
        function = self.function
        self.nbytes = [
            self.integer(value.nbytes, f"values[{index}].nbytes")
            for index, value in enumerate(function.values)
        ]
        for index, value in enumerate(function.values):
            if self.nbytes[index] < 0:
                self.fail(f"values[{index}].nbytes", self.nbytes[index], "at least 0")
            if value.base is not None and self.nbytes[index] != self.nbytes[value.base]:
                rule = f"{self.nbytes[value.base]}, as its base"
                self.fail(f"values[{index}].nbytes", self.nbytes[index], rule)
        for name in ("inputs", "outputs"):
            for index, item in enumerate(getattr(function, name)):
                self.whole(item.operand, f"{name}[{index}]")
        for index, call in enumerate(function.calls):
            self.call(call, index)

    def fail(self, place, got, rule, call=None):
        """Raise the error; the name and line of a call follow its place."""
        made = f" ({', '.join(filter(None, (call.name, call.line)))})" if call else ""
        refuse(f"{self.path}.{place}{made}", Described(f"{got}{self.at}"), rule)

    def integer(self, integer, place, call=None):
        if type(integer) is int:
            return integer
        try:
            return forms.evaluate(integer, self.sizes)
        except ValueError:
            self.fail(place, forms.text(integer)[:80], "a result within ±2**62", call)

    def view(self, operand, place, call=None):
        """Return (dtype, shape, strides) of an operand, which must be inside its value."""
        shape = tuple(self.integer(extent, f"{place}.shape", call) for extent in operand.shape)
        strides = tuple(self.integer(step, f"{place}.strides", call) for step in operand.strides)
        first = self.integer(operand.offset, f"{place}.offset", call)
        itemsize, nbytes = ITEMSIZES[operand.dtype], self.nbytes[operand.value]
        if any(extent < 0 for extent in shape) or prod(shape) * itemsize > forms.LIMIT:
            self.fail(f"{place}.shape", shape, "extents of an array of at most 2**62 bytes", call)
        if first % itemsize:
            self.fail(f"{place}.offset", first, f"a multiple of {itemsize}", call)
        low = high = first
        if 0 not in shape:
            high += itemsize
            for extent, stride in zip(shape, strides, strict=True):
                if stride < 0:
                    low += (extent - 1) * stride * itemsize
                else:
                    high += (extent - 1) * stride * itemsize
        if low < 0 or high > nbytes:
            self.fail(place, f"bytes {low} to {high}", f"bytes within 0 to {nbytes}", call)
        if any(abs(stride) * itemsize > forms.LIMIT for stride in strides):
            self.fail(f"{place}.strides", strides, "at most 2**62 bytes", call)
        return operand.dtype, shape, strides

    def whole(self, operand, place, call=None):
        """Return (dtype, shape) of an operand, which must be its whole value in row-major order."""
        dtype, shape, strides = self.view(operand, place, call)
        nbytes = prod(shape) * ITEMSIZES[dtype]
        if nbytes != self.nbytes[operand.value]:
            rule = f"its whole value, {self.nbytes[operand.value]} bytes"
            self.fail(place, f"{nbytes} bytes", rule, call)
        self.dense(shape, strides, place, call)
        return dtype, shape

    def dense(self, shape, strides, place, call):
        wanted = forms.row_major(shape)
        pairs = zip(shape, strides, wanted, strict=True)
        if 0 not in shape and any(extent > 1 and a != b for extent, a, b in pairs):
            self.fail(f"{place}.strides", strides, f"{wanted}, row-major", call)

    def attribute(self, value, place, call):
        if forms.is_expression(value):
            return self.integer(value, place, call)
        if type(value) is tuple:
            return tuple(self.attribute(part, place, call) for part in value)
        return value

    def call(self, call, index):
        place = f"calls[{index}]"
        attributes = {
            name: self.attribute(value, f"{place}.attributes.{name}", call)
            for name, value in call.attributes.items()
        }
        if call.name in CONTROL:
            self.control(call, place, attributes)
            return
        writes, reads = [], []
        for at, operand in enumerate(call.writes):
            dtype, shape, strides = self.view(operand, f"{place}.writes[{at}]", call)
            if _overlaps(shape, strides):
                rule = "strides that give each index its own element"
                self.fail(f"{place}.writes[{at}].strides", strides, rule, call)
            writes.append((dtype, shape))
        for at, operand in enumerate(call.reads):
            if operand is None:
                reads.append(None)
            elif isinstance(operand, Number):
                self.attribute(operand.value, f"{place}.reads[{at}]", call)
                reads.append((operand.dtype, None))
            else:
                reads.append(self.view(operand, f"{place}.reads[{at}]", call)[:2])
        row = CALLS[call.name]
        try:
            row.check([attributes[name] for name in row.attributes], writes, reads)
        except ValueError as error:
            line = f" ({call.line})" if call.line else ""
            raise ProgramError(f"{self.path}.{place}{line}: {error}{self.at}") from None

    def control(self, call, place, attributes):
        """Check control flow: the inputs and outputs of regions."""
        reads = []
        for at, operand in enumerate(call.reads):
            dtype, shape, strides = self.view(operand, f"{place}.reads[{at}]", call)
            self.dense(shape, strides, f"{place}.reads[{at}]", call)
            reads.append((dtype, shape))
        writes = [
            self.whole(operand, f"{place}.writes[{at}]", call)
            for at, operand in enumerate(call.writes)
        ]
        carry, arrays = len(writes), 0
        if call.name == "scan":
            carry, arrays = attributes["carry"], attributes["arrays"]
        takes, gives = list(reads), [writes, writes]
        if call.name == "cond":
            if reads[:1] != [("bool", ())]:
                self.fail(f"{place}.reads[0]", reads[:1], "one bool without axes", call)
            takes = takes[1:]
        else:
            if reads[:carry] != writes[:carry]:
                self.fail(f"{place}.reads", reads[:carry], f"the carry {writes[:carry]}", call)
            if call.name == "while_loop":
                gives = [[("bool", ())], writes]
            elif call.name == "fori_loop":
                takes = [("int64", ()), *reads]
            else:
                length = attributes["length"]
                for at in range(carry, carry + arrays):
                    takes[at] = self.element(takes[at], length, f"{place}.reads[{at}]", call)
                for at in range(carry, len(writes)):
                    element = self.element(writes[at], length, f"{place}.writes[{at}]", call)
                    gives[0] = [*gives[0][:at], element, *gives[0][at + 1 :]]
        for at, region in enumerate(call.regions):
            inner = _Sizes(region, self.sizes, f"{self.path}.{place}.regions[{at}]")
            inner.check()
            for name, wanted in (("inputs", takes), ("outputs", gives[at])):
                found = [
                    inner.whole(item.operand, f"{name}[{i}]")
                    for i, item in enumerate(getattr(region, name))
                ]
                if found != wanted:
                    self.fail(f"{place}.regions[{at}].{name}", found, wanted, call)

    def element(self, spec, length, place, call):
        dtype, shape = spec
        if not shape or shape[0] != length:
            self.fail(f"{place}.shape", shape, f"{length} elements along the first axis", call)
        return dtype, shape[1:]


def _overlaps(shape, strides):
    """Whether indices may share an element; strides of views of arrays are nested."""
    if 0 in shape:
        return False
    reach = 0
    axes = (pair for pair in zip(strides, shape, strict=True) if pair[1] > 1)
    for stride, extent in sorted((abs(stride), extent) for stride, extent in axes):
        if stride <= reach:
            return True
        reach += (extent - 1) * stride
    return False
