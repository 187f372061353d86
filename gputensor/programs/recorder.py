"""Records the calls of a traced function as values and versions.

A `Recorder` receives the calls that a function queues on the device of a trace, with addresses as
operands, and records them as a Function: one for the function, one for each region of control flow.
A `Place` is the memory of one tensor and its views, with its current value. A call that writes a
place gives it a new value or version, so aliases, views and ``out=`` need no special rules.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from threading import get_ident

import numpy as np

from gputensor._alloc.foreign import uncached_block
from gputensor._arrays.element_types import dtype_name
from gputensor._kernels.launch import by_name
from gputensor.errors import TraceError
from gputensor.programs import dims as forms
from gputensor.programs.function import Call, Function, Number, Operand, Value, Weight
from gputensor.programs.trace_device import user_line
from gputensor.streams.queue import stream_handle
from gputensor.tensor.core import device_number_of, storage_place, view_of
from gputensor.tensor.manipulation import empty

__all__ = ["Recorder", "Trace"]

_EMPTY = "empty"
_new = tuple.__new__  # makes named tuples in half the time of a call of the class


class _Traced(Function):
    """A function while it is traced; `is_own` tells which outputs are whole temporaries."""

    def __init__(self, name):
        super().__init__(name)
        self.is_own = []


class Place:
    """Memory on the device of a trace: [start, start + nbytes)."""

    __slots__ = ("current", "kind", "name", "nbytes", "owner", "start")

    def __init__(self, start, nbytes, kind="temporary", name=""):
        self.start, self.nbytes = start, nbytes
        self.kind = kind  # of function.KINDS, or "upload": a constant until it is written to
        self.name = name
        self.current = None  # the number of its value in `owner`; None if it was never written
        self.owner = None  # the Recorder that wrote it last, or whose input it is


class Trace:
    """The common data of the recorders of one trace: places, and tensors lifted from outside.

    Parameters
    ----------
    tracer : Tracer
        The open trace.

    Attributes
    ----------
    weights : dict
        Name -> Weight, for the constants and weights that the trace used.
    """

    def __init__(self, tracer):
        self.tracer = tracer
        self.starts = []  # of places, in ascending order
        self.end = 0  # the end of the last place
        self.places = {}  # start -> Place
        self.kept = []  # tensors and storages, kept so that their addresses stay in use
        self.outside = {}  # (device, address of the storage) -> [(first, last, tensor), ...]
        self.weights = {}
        self.constants = 0

    def place(self, address):
        """Return the place that contains an address."""
        found = self.places.get(address)
        if found is not None:
            return found
        starts = self.starts
        if starts and address < self.end:
            found = self.places[starts[bisect_right(starts, address) - 1]]
            if found.start <= address < found.start + found.nbytes:
                return found
        block = uncached_block(self.tracer.number, address)
        if block is None:
            way_out = "copy it first, or pass it in state"
            raise TraceError(user_line(), "memory that is no tensor of the trace", way_out)
        return self.add(Place(*block))

    def add(self, place):
        start = place.start
        self.places[start] = place
        if start < self.end:
            insort(self.starts, start)
        else:
            self.starts.append(start)
        self.end = max(self.end, start + place.nbytes)
        return place

    def new(self, kind, name, dtype, shape):
        """Return a tensor of the trace with memory of a kind, and its place."""
        tensor = empty(shape, dtype=dtype, device=self.tracer.number)
        start, nbytes, _offset = storage_place(tensor)
        self.kept.append(tensor)
        if not nbytes:
            return tensor, Place(0, 0, kind, name)
        return tensor, self.add(Place(start, nbytes, kind, name))

    def weight(self, name, dtype, shape, source):
        """Return the tensor of the trace for a weight; later uses of a Tensor `source` find it."""
        tensor, _place = self.new("weight", name, dtype, shape)
        self.weights[name] = Weight(name, dtype, tuple(shape), source)
        if hasattr(source, "data_ptr") and source.is_contiguous:
            self.know(source, tensor)
        return tensor

    def know(self, source, tensor):
        """Treat tensors over the memory of `source` as views of `tensor` from now on."""
        start, _nbytes, offset = storage_place(source)
        key = device_number_of(source), start
        self.outside.setdefault(key, []).append((offset, offset + source.nbytes, tensor))
        self.kept.append(source)

    def lift(self, tensor):
        """Return the tensor of the trace for one from outside: a weight's, or a new constant's."""
        dtype = dtype_name(tensor.dtype)
        shape, itemsize = tensor.shape, tensor.itemsize
        if not tensor.size:
            return empty(shape, dtype=dtype, device=self.tracer.number)
        strides = tuple(stride // itemsize for stride in tensor.strides)
        steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        low = sum(step for step in steps if step < 0) * itemsize
        high = sum(step for step in steps if step > 0) * itemsize + itemsize
        start, _nbytes, offset = storage_place(tensor)
        known = self.outside.get((device_number_of(tensor), start), ())
        for first, last, inside in known:
            if first <= offset + low and offset + high <= last:
                return view_of(inside, offset - first, dtype, shape, strides)
        source = tensor
        if not tensor.is_contiguous:
            source = view_of(tensor, offset + low, dtype, ((high - low) // itemsize,), (1,))
        name = self.constant_name()
        inside, _place = self.new("constant", name, dtype, source.shape)
        self.weights[name] = Weight(name, dtype, source.shape, source)
        self.know(source, inside)
        return self.lift(tensor)

    def upload(self, operand, array):
        """Make new memory a constant with the values of a NumPy array."""
        name = self.constant_name()
        place = self.place(operand.address)
        place.kind, place.name = "upload", name
        values = np.array(array, order="C")
        self.weights[name] = Weight(name, operand.dtype, values.shape, values)

    def constant_name(self):
        self.constants += 1
        return f"constant.{self.constants - 1}"


class Recorder:
    """Keeps the calls of one function or region; see `_kernels.launch.set_recorder`.

    Parameters
    ----------
    trace : Trace
    name : str
    parent : Recorder, optional
        The recorder of the function that contains the region.
    """

    def __init__(self, trace, name, parent=None):
        self.trace = trace
        self.parent = parent
        self.function = _Traced(name)
        self.values = self.function.values
        self.calls = self.function.calls
        self.numbers = {}  # name of a weight or constant -> its value here
        self.captures = {}  # Place of an outer function -> its value here
        self.streams = {0: 0}  # handle -> number
        self.thread = get_ident()

    @classmethod
    def of(cls, tracer, name):
        """Return the first recorder of a trace, which receives the calls from now on."""
        recorder = cls(Trace(tracer), name)
        recorder.function.facts = tracer.facts
        tracer.record(recorder)
        return recorder

    # ---- called by _kernels

    def call(self, row, stream, arguments):
        if get_ident() != self.thread:
            raise TraceError(
                user_line(), "a tensor of a trace in another thread", "use it in the traced thread"
            )
        line = user_line(2)
        attributes, written, read = row.split(arguments)
        if written and all(0 in one.memory()[2] for one in written):
            return  # a product without rows, for example, writes nothing
        reads = tuple(map(self.read, read))
        made, into = [], []
        updates = row.updates
        is_whole = updates is False or (
            type(updates) is not tuple and row.writes_all(attributes, read)
        )
        for place, one in enumerate(written):
            covers = is_whole or row.writes_all(attributes, read, row.writes[place])
            operand, base = self.write(one, covers, line)
            made.append(operand)
            into.append(base)
        number = self.streams.get(stream)
        if number is None:
            number = self.streams[stream] = len(self.streams)
        attributes = by_name(row.names, attributes)
        self.calls.append(Call(row.name, attributes, tuple(made), reads, tuple(into), number, line))

    def upload(self, operand, array):
        self.trace.upload(operand, array)

    def download(self, operand):
        self.trace.tracer.refuse_value("numpy()")

    def refuse(self, problem, way_out):
        raise TraceError(user_line(), problem, way_out)

    def stream_now(self):
        """Return the number of the current stream."""
        handle = stream_handle(self.trace.tracer.number)
        return self.streams.setdefault(handle, len(self.streams))

    # ---- operands

    def value(self, kind, nbytes, name="", base=None):
        self.values.append(Value(kind, nbytes, name, base))
        return len(self.values) - 1

    def weight(self, name, kind, nbytes):
        """Return the value of a weight or constant in this function."""
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = self.value(kind, nbytes, name)
        return number

    def input(self, place):
        """Make a place an input or state of this function; return its value."""
        place.owner = self
        place.current = self.value(place.kind, place.nbytes, place.name)
        return place.current

    def current(self, place):
        """Return the current value of a place, as a value of this function."""
        if place.kind in ("weight", "constant", "upload"):
            kind = "weight" if place.kind == "weight" else "constant"
            return self.weight(place.name, kind, place.nbytes)
        if place.current is None:
            self.clear(place)
        if place.owner is self:
            return place.current
        if place in self.captures:
            return self.captures[place]
        if not self.is_inside(place.owner):
            raise TraceError(
                user_line(), "a tensor of a loop or branch used outside it", "return it from there"
            )
        number = self.value("input", place.nbytes)
        self.captures[place] = number
        return number

    def is_inside(self, owner):
        """Whether this is a region inside `owner`, at any depth."""
        parent = self.parent
        while parent is not None and parent is not owner:
            parent = parent.parent
        return parent is not None

    def read(self, given):
        """Return the Operand or Number for an operand that a call reads."""
        if given is None:
            return None
        memory = given.memory()
        if memory is None:
            return _new(Number, (given.value, given.dtype))
        address, dtype, shape, strides = memory
        if 0 in shape:
            return self.nothing(dtype, shape, strides)
        place = self.trace.places.get(address) or self.trace.place(address)
        value = place.current if place.owner is self else self.current(place)
        return _new(Operand, (value, dtype, shape, strides, address - place.start))

    def nothing(self, dtype, shape, strides):
        """Return an operand without elements."""
        self.trace.weights.setdefault(_EMPTY, Weight(_EMPTY, "uint8", (0,), np.empty(0, np.uint8)))
        return Operand(self.weight(_EMPTY, "constant", 0), dtype, shape, strides, 0)

    def make(self, tensor):
        """Return the operand of a call that writes all of a new tensor."""
        shape, dtype = tensor.shape, dtype_name(tensor.dtype)
        strides = forms.row_major(shape)
        place = self.trace.place(storage_place(tensor)[0]) if tensor.size else Place(0, 0)
        place.owner = self
        place.current = self.value("temporary", place.nbytes)
        return Operand(place.current, dtype, shape, strides)

    def write(self, given, covers, line):
        """Return the operand that a call writes, and the version that it continues."""
        address, dtype, shape, strides = given.memory()
        place = self.trace.places.get(address) or self.trace.place(address)
        if place.kind != "temporary" or place.owner not in (self, None):
            self.check_write(place, line)
        offset = address - place.start
        is_whole = covers and is_dense(given, place)
        if place.kind == "upload":
            self.own(place, is_whole)
        base = None
        if place.kind == "state":
            base = place.current
        elif not is_whole and (place.current is not None or not covers):
            base = self.current(place)
        kind = "state" if place.kind == "state" else "temporary"
        place.owner = self
        number = place.current = len(self.values)
        self.values.append(Value(kind, place.nbytes, place.name, base))
        return _new(Operand, (number, dtype, shape, strides, offset)), base

    def check_write(self, place, line):
        if place.kind in ("temporary", "upload", "state") and place.owner in (self, None):
            return
        if place.kind == "input" and place.owner is self and self.parent is None:
            problem = f"a write to the argument {place.name!r}"
            way_out = "copy it first, or pass it in state"
        elif place.kind in ("weight", "constant"):
            problem = f"a write to the {place.kind} {place.name!r}"
            way_out = "copy it first, or pass it in state"
        else:
            problem = "a write in a loop or branch to a tensor from outside it"
            way_out = "copy it first, and return the copy"
        raise TraceError(line, problem, way_out)

    def own(self, place, is_whole):
        """Turn memory of uploaded values into a temporary with a copy of them, before a write."""
        source = None if is_whole else self.current(place)
        place.kind = "temporary"
        if source is not None:
            run = Operand(source, "uint8", (place.nbytes,), (1,), 0)
            self.fill(place, run)
        place.name = ""

    def clear(self, place):
        """Fill memory with zeros that is read before it was written."""
        self.fill(place, Number(0, "uint8"))

    def fill(self, place, source):
        place.owner = self
        place.current = self.value("temporary", place.nbytes)
        target = Operand(place.current, "uint8", (place.nbytes,), (1,), 0)
        attributes = {"op": "copy", "compute": "uint8"}
        self.calls.append(
            Call("elementwise", attributes, (target,), (source,), (None,), 0, user_line())
        )


def is_dense(given, place):
    """Whether an operand covers each byte of its memory exactly once."""
    return given.covers(place.start, place.nbytes)
