"""Runs a program's functions one call at a time, as a simple reference for sessions.

Each value has separate memory, or its offset of a plan; both are poisoned before the value is
written and after it is last read. Calls go through the door, which checks them. No code is shared
with the library's sessions.
"""

from __future__ import annotations

import gputensor as gt
from gputensor._kernels.calls import CALLS, make
from gputensor._kernels.launch import CallOperand
from gputensor.programs import dims as forms
from gputensor.programs.function import Number, Operand
from tests.support.programs.interpreter import root_of

POISON = 0xCB


class Interpreter:
    """Runs the functions of a ProgramData on a device.

    Parameters
    ----------
    data : ProgramData
    device : int
        The number of the device.
    plan : callable, optional
        From a Function and sizes to (bytes of the arena, offset of each value or None).
    """

    def __init__(self, data, device, plan=None):
        self.data = data
        self.device = device
        self.plan = plan
        self.calls = 0
        self.weights = {
            name: None if weight.source is None else self.placed(weight.source)
            for name, weight in data.weights.items()
        }
        self.states = {}
        for name, (dtype, shape) in data.states.items():
            first = self.weights.get(f"state.{name}")
            self.states[name] = (
                gt.zeros(shape, dtype=dtype, device=device) if first is None else gt.copy(first)
            )

    def placed(self, source):
        return gt.asarray(source, device=self.device)

    def run(self, name, tensors):
        """Return the outputs as tensors; `tensors` are the inputs in the function's order."""
        function = self.data.functions[name]
        tensors = [tensor.contiguous() for tensor in tensors]
        sizes = {}
        for argument, tensor in zip(function.inputs, tensors, strict=True):
            assert str(tensor.dtype) == argument.operand.dtype, argument.path
            for extent, found in zip(argument.operand.shape, tensor.shape, strict=True):
                if forms.is_expression(extent):
                    assert sizes.setdefault(extent[1], found) == found, argument.path
                else:
                    assert extent == found, argument.path
        for dim in sizes:
            function.dims[dim].check(sizes[dim])
        frame = _Frame(self, function, sizes)
        frame.enter([address_of(tensor) for tensor in tensors])
        frame.run()
        return frame.outputs()


def address_of(tensor):
    return tensor.data_ptr()


class _Frame:
    """One run of one function or region."""

    def __init__(self, interpreter, function, sizes):
        self.interpreter = interpreter
        self.device = interpreter.device
        self.function = function
        self.sizes = sizes
        self.addresses = {}
        self.kept = []
        self.arena, self.offsets = None, {}
        if interpreter.plan is not None:
            nbytes, self.offsets = interpreter.plan(function, sizes)
            self.arena = self.new(nbytes)

    def integer(self, value):
        return forms.evaluate(value, self.sizes)

    def new(self, nbytes):
        made = gt.full((max(nbytes, 1),), POISON, dtype="uint8", device=self.device)
        self.kept.append(made)
        return made

    def enter(self, addresses):
        for argument, address in zip(self.function.inputs, addresses, strict=True):
            self.addresses[argument.operand.value] = address
        for number, value in enumerate(self.function.values):
            if value.kind in ("weight", "constant"):
                tensor = self.interpreter.weights[value.name]
                self.kept.append(tensor)
                self.addresses[number] = address_of(tensor)
            elif value.kind == "state":
                self.addresses[number] = address_of(self.interpreter.states[value.name])

    def root(self, number):
        return root_of(self.function, number)

    def address(self, number):
        """Return the address of a value; a temporary gets memory at its first write."""
        number = self.root(number)
        found = self.addresses.get(number)
        if found is None:
            nbytes = self.integer(self.function.values[number].nbytes)
            offset = self.offsets.get(number) if self.arena is not None else None
            if offset is None:
                found = address_of(self.new(nbytes))
            else:
                found = address_of(self.arena) + offset
                self.poison(found, nbytes)
            self.addresses[number] = found
        return found

    def poison(self, address, nbytes):
        if nbytes:
            run = CallOperand(address, "uint8", (nbytes,))
            make(
                "elementwise",
                self.device,
                0,
                ("copy", "uint8", run, CallOperand.number("uint8", POISON)),
            )

    def operand(self, given):
        if given is None:
            return None
        if isinstance(given, Number):
            value = given.value
            value = self.integer(value) if forms.is_expression(value) else value
            return CallOperand.number(given.dtype, value)
        shape = tuple(map(self.integer, given.shape))
        strides = tuple(map(self.integer, given.strides))
        address = self.address(given.value) + self.integer(given.offset)
        return CallOperand(address, given.dtype, shape, strides)

    def attribute(self, value):
        if isinstance(value, (tuple, list)) and not forms.is_expression(value):
            return tuple(self.attribute(one) for one in value)
        return self.integer(value) if forms.is_expression(value) else value

    def lasts(self):
        """Return {call number: roots of the temporaries last used by that call}."""
        last = {}
        for index, call in enumerate(self.function.calls):
            for operand in (*call.reads, *call.writes):
                if isinstance(operand, Operand):
                    last[self.root(operand.value)] = index
        outputs = {self.root(argument.operand.value) for argument in self.function.outputs}
        found = {}
        for number, index in last.items():
            if self.function.values[number].kind == "temporary" and number not in outputs:
                found.setdefault(index, []).append(number)
        return found

    def run(self):
        lasts = self.lasts()
        for index, call in enumerate(self.function.calls):
            self.interpreter.calls += 1
            if call.name in CALLS:
                self.make(call)
            else:
                getattr(self, call.name)(call)
            for number in lasts.get(index, ()):
                nbytes = self.integer(self.function.values[number].nbytes)
                self.poison(self.addresses[number], nbytes)

    def make(self, call):
        attributes = [
            value if name == "trees" else self.attribute(value)
            for name, value in call.attributes.items()
        ]
        operands = [self.operand(one) for one in (*call.writes, *call.reads)]
        make(call.name, self.device, 0, (*attributes, *operands))

    def outputs(self):
        made = []
        for argument in self.function.outputs:
            operand = self.operand(argument.operand)
            result = gt.empty(operand.shape, dtype=operand.dtype, device=self.device)
            if result.size:
                target = CallOperand(address_of(result), operand.dtype, operand.shape)
                make("elementwise", self.device, 0, ("copy", operand.dtype, target, operand))
            made.append(result)
        return made

    # ---- control flow

    def region(self, function, addresses):
        """Run a region; return its output operands, whose memory this frame keeps."""
        frame = _Frame(self.interpreter, function, self.sizes)
        frame.enter(addresses)
        frame.run()
        self.kept.append(frame)
        return [frame.operand(argument.operand) for argument in function.outputs]

    def copy(self, target, source):
        if 0 not in target.shape:
            row = CallOperand(target.address, target.dtype, target.shape)
            make("elementwise", self.device, 0, ("copy", target.dtype, row, source))

    def flag(self, operand):
        tensor = gt.empty((), dtype="bool", device=self.device)
        self.copy(CallOperand(address_of(tensor), "bool", ()), operand)
        return bool(tensor)

    def addresses_of(self, call):
        return [self.operand(one).address for one in call.reads]

    def finish(self, call, results):
        for target, source in zip(call.writes, results, strict=True):
            self.copy(self.operand(target), source)

    def cond(self, call):
        predicate, *others = [self.operand(one) for one in call.reads]
        region = call.regions[0 if self.flag(predicate) else 1]
        self.finish(call, self.region(region, [one.address for one in others]))

    def while_loop(self, call):
        reads = [self.operand(one) for one in call.reads]
        count = len(call.writes)
        carry, captured = reads[:count], [one.address for one in reads[count:]]
        condition, body = call.regions
        while True:
            addresses = [one.address for one in carry] + captured
            if not self.flag(self.region(condition, addresses)[0]):
                break
            carry = self.region(body, addresses)
        self.finish(call, carry)

    def fori_loop(self, call):
        reads = [self.operand(one) for one in call.reads]
        count = len(call.writes)
        carry, captured = reads[:count], [one.address for one in reads[count:]]
        lower, upper = (self.integer(call.attributes[name]) for name in ("lower", "upper"))
        for index in range(lower, upper):
            number = gt.asarray(index, dtype="int64", device=self.device)
            self.kept.append(number)
            addresses = [address_of(number), *(one.address for one in carry), *captured]
            carry = self.region(call.regions[0], addresses)
        self.finish(call, carry)

    def scan(self, call):
        reads = [self.operand(one) for one in call.reads]
        count, length = call.attributes["carry"], self.integer(call.attributes["length"])
        arrays = reads[count : count + call.attributes["arrays"]]
        captured = [one.address for one in reads[count + len(arrays) :]]
        carry = reads[:count]
        stacked = [self.operand(one) for one in call.writes[count:]]
        order = range(length)
        for index in reversed(order) if call.attributes["reverse"] else order:
            slices = [one.address + index * nbytes_of(one) // length for one in arrays]
            addresses = [*(one.address for one in carry), *slices, *captured]
            results = self.region(call.regions[0], addresses)
            carry = results[:count]
            for target, source in zip(stacked, results[count:], strict=True):
                at = target.address + index * nbytes_of(target) // length
                self.copy(CallOperand(at, target.dtype, target.shape[1:]), source)
        for target, source in zip(call.writes[:count], carry, strict=True):
            self.copy(self.operand(target), source)


def nbytes_of(operand):
    nbytes = gt.empty((), dtype=operand.dtype, device="host").itemsize
    for extent in operand.shape:
        nbytes *= extent
    return nbytes
