"""The device of a trace: a phantom host device in place of the device a program is made for.

Tensors on it have shapes, dtypes and addresses, but no memory. Its calls go to a recorder
(recorder.py). Addresses never repeat, because the device is deferred and the allocator does not
cache: freed memory stays reserved until the device closes. Functions of the library consult the
`Tracer` of their thread where an eager call would raise, or where a device is named.
"""

from __future__ import annotations

import os
import sys
import threading

from gputensor._alloc.allocator import open_allocator, set_caching
from gputensor._driver.registry import close_host, device_name, open_host
from gputensor._kernels.launch import set_recorder
from gputensor.errors import DeviceError, TraceError
from gputensor.programs import facts
from gputensor.streams.order import set_tracer, tracer
from gputensor.streams.queue import Device, Stream, default_stream, device_of, stand_for
from gputensor.tensor.core import Tensor, device_number_of, watch_writes

__all__ = ["Tracer", "active", "user_line"]

CAPACITY = 1 << 62
_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NAMES: dict[str, str] = {}  # file name -> its text in messages; "" inside the library

#: Operation that needs a value -> what to do instead.
WAYS_OUT = {
    "bool()": "use gt.where, gt.cond or gt.while_loop",
    "numpy()": "return the tensor and read it outside",
    "print": "return the tensor, or print its shape and dtype",
    "nonzero()": "use gt.where, because its shape depends on values",
    "a mask as an index": "use gt.where, because its shape depends on values",
    "index()": "use gt.take, or an index of one element",
    "DLPack": "return the tensor and share the result",
    "data_ptr()": "return the tensor and share the result",
}
_OTHERWISE = "keep it as a tensor, or pass the number in as a Python value"


def user_line(depth=1):
    """Return the line of the nearest frame outside the library, such as ``"model.py:31"``.

    The search begins at `depth` (1 is the caller); nearer frames are known to be inside.
    """
    frame = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        name = _NAMES.get(file)
        if name is None:
            name = _shown(file)
        if name:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def calling_line(depth):
    """Return the line of the frame at a depth (1 is the caller), or "" inside the library."""
    frame = sys._getframe(depth)
    name = _shown(frame.f_code.co_filename)
    return f"{name}:{frame.f_lineno}" if name else ""


def _shown(file):
    """Return the name of a file in messages, or "" inside the library."""
    if file not in _NAMES:
        _NAMES[file] = "" if file.startswith(_LIBRARY) else os.path.basename(file)
    return _NAMES[file]


def active():
    """Return the Tracer of this thread, or None."""
    return tracer()


class Tracer:
    """An open trace; a context manager. A trace belongs to the thread that opened it.

    Parameters
    ----------
    target : int
        The number of the device that the program is for, or of a phantom GPU in its place.
    facts : dict
        Receives the facts that the traced function queries.

    Attributes
    ----------
    number : int
        The number of the phantom device.
    recorder : Recorder
        Receives the calls; set by :meth:`record`.
    notes : Notes or None
        The comparisons of extents (sampling/extents.py), for a function with dims.
    """

    def __init__(self, target, facts):
        self.notes = None
        self.target = target
        self.is_absent = device_name(target) == "phantom"
        self.facts = facts
        self.number = None
        self.recorder = None
        self.written = set()  # storages that the function made on other devices
        self.streams = {}  # (device, handle) of an outside stream -> Stream of this device
        self.thread = threading.get_ident()

    def __enter__(self):
        if active() is not None:
            self.refuse("a trace inside a trace", "call the function itself")
        self.number = open_host(capacity=CAPACITY, seed=0, phantom=True)
        try:
            open_allocator(self.number)
            set_caching(self.number, False)
            stand_for(self.number, device_of(0 if self.is_absent else self.target))
            self.context = Device(self.number)
            self.context.__enter__()
        except BaseException:
            close_host(self.number)
            raise
        watch_writes(True)
        set_tracer(self)
        return self

    def __exit__(self, kind, value, trace):
        set_tracer(None)
        watch_writes(False)
        self.context.__exit__(kind, value, trace)
        self.written.clear()
        self.streams.clear()
        self.recorder = None
        set_recorder(self.number, None)
        stand_for(self.number, None)
        close_host(self.number)

    def record(self, recorder):
        """Send the calls to `recorder` from now on; return the previous one."""
        before, self.recorder = self.recorder, recorder
        set_recorder(self.number, recorder)
        return before

    # ---- called by core, streams and transfers (streams/order/traces.pxi)

    def device(self, number):
        if number in (self.number, self.target, 0, -1):
            return self.number
        name = device_of(number)
        target = device_of(self.target)
        self.refuse(f"device {str(name)!r} in a program for {str(target)!r}", "leave it out")

    def outside(self, number):
        if number != self.number:
            return number
        return -1 if self.is_absent else self.target

    def stream(self, stream):
        if stream.device_number == self.number:
            return stream
        handle = stream.cuda_stream
        if handle == 0:
            return default_stream(self.number)
        key = stream.device_number, handle
        if key not in self.streams:
            self.streams[key] = Stream(self.number)
        return self.streams[key]

    def lift(self, function, operands, out):
        """Return operands on several devices as tensors of this device."""
        numbers = [device_number_of(one) for one in (*operands, out) if type(one) is Tensor]
        if len(set(numbers)) == 1:
            return operands
        if self.number not in numbers:
            # No tensor of the trace: raise the error of an eager call.
            names = sorted({str(device_of(number)) for number in numbers})
            raise ValueError(
                f"{function}: operands: got devices {' and '.join(names)}; expected one device "
                "(move a tensor with to_device)"
            )
        if out is not None and device_number_of(out) != self.number:
            self.refuse("a write to a tensor from outside", "pass it in state")
        return tuple(self.inside(one) if type(one) is Tensor else one for one in operands)

    def inside(self, tensor):
        """Return the tensor of the trace for a tensor that may be from outside."""
        if device_number_of(tensor) == self.number:
            return tensor
        return self.recorder.trace.lift(tensor)

    def moved(self, tensor, number):
        if number == self.number:
            return self.inside(tensor)
        self.refuse_value("a copy to another device")

    def made(self, number, storage):
        if number != self.number:
            self.written.add(storage)

    def extents(self, number, values):
        """Return the shape of a tensor, or its size, as the traced function sees it."""
        line = calling_line(2) if self.notes is not None and number == self.number else ""
        return self.notes.read(line, values) if line else values

    def length(self, number, extent):
        """Note that the function takes `len` of a tensor, which must be a plain int.

        Its comparisons cannot be observed; the int constants of the calling code are candidates.
        """
        line = calling_line(2) if self.notes is not None and number == self.number else ""
        if line:
            self.notes.read_length(line, extent, sys._getframe(1).f_code)

    def check_write(self, number, storage):
        if number != self.number and storage not in self.written:
            self.refuse("a write to a tensor from outside", "pass it in state")

    def fact(self, name, device):
        """Return a fact of the target, and record it."""
        if device is not None:
            self.device(Device(device).number)
        if name not in facts.FACTS:
            self.refuse(
                f"{name}() on a device of a program", "call it before, or query the capability"
            )
        if name not in self.facts:
            try:
                self.facts[name] = facts.answer(name, self.target)
            except DeviceError:
                self.refuse(f"{name}() of a GPU that is not present", "query its capability")
        return self.facts[name]

    def refuse(self, problem, way_out):
        raise TraceError(user_line(), problem, way_out)

    def refuse_value(self, what):
        self.refuse(f"{what} needs a value", WAYS_OUT.get(what, _OTHERWISE))
