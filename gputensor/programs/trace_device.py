"""The device of a trace: a phantom host device that stands for the one a program is made for.

Tensors on it have shapes, dtypes and addresses, and no memory. Its calls go to a recorder
(recorder.py). Addresses never repeat, since the device defers and the allocator does not cache:
what is freed stays reserved until the device closes. The functions that user code reaches ask the
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
_NAMES: dict[str, str] = {}  # file name -> how it is shown; "" inside of the library

#: What needs a value -> what to do instead.
WAYS_OUT = {
    "bool()": "use gt.where, gt.cond or gt.while_loop",
    "numpy()": "return the tensor and read it outside",
    "print": "return the tensor, or print its shape and dtype",
    "nonzero()": "its shape depends on values: use gt.where",
    "a mask as an index": "its shape depends on values: use gt.where",
    "index()": "use gt.take, or an index of one element",
    "DLPack": "return the tensor and share the result",
    "data_ptr()": "return the tensor and share the result",
}
_OTHERWISE = "keep it as a tensor, or pass the number in as a Python value"


def user_line(depth=1):
    """Return where the nearest frame outside of the library is: ``"model.py:31"``.

    Frames below `depth` (1: the caller) are known to be inside.
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
    """Return where the frame at a depth is (1: the caller), or "" inside of the library."""
    frame = sys._getframe(depth)
    name = _shown(frame.f_code.co_filename)
    return f"{name}:{frame.f_lineno}" if name else ""


def _shown(file):
    """How a file is named in messages; "" inside of the library."""
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
        The number of the device that the program is for; a phantom GPU stands for one that is not
        there.
    facts : dict
        Takes what the traced function asks of its device, and the answers.

    Attributes
    ----------
    number : int
        The number of the phantom device.
    recorder : Recorder
        Keeps the calls; set by :meth:`record`.
    notes : Notes or None
        Of the extents that the function compares (sampling/extents.py), where it has dims.
    """

    def __init__(self, target, facts):
        self.notes = None
        self.target = target
        self.is_absent = device_name(target) == "phantom"
        self.facts = facts
        self.number = None
        self.recorder = None
        self.written = set()  # storages that the function made on other devices
        self.streams = {}  # (device, handle) of outside -> Stream of this device
        self.thread = threading.get_ident()

    def __enter__(self):
        if active() is not None:
            self.refuse("a trace inside of a trace", "call the function itself")
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
        """Give the calls to `recorder` from now on; return the one before."""
        before, self.recorder = self.recorder, recorder
        set_recorder(self.number, recorder)
        return before

    # ---- what core, streams and transfers ask (streams/order/traces.pxi)

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
        """Tensors that meet on several devices, as tensors of this one."""
        numbers = [device_number_of(one) for one in (*operands, out) if type(one) is Tensor]
        if len(set(numbers)) == 1:
            return operands
        if self.number not in numbers:
            # Not of the trace: what happens is what happens without one.
            names = sorted({str(device_of(number)) for number in numbers})
            raise ValueError(
                f"{function}: operands: got devices {' and '.join(names)}; expected one device "
                "(move a tensor with to_device)"
            )
        if out is not None and device_number_of(out) != self.number:
            self.refuse("a write to a tensor from outside", "pass it in state")
        return tuple(self.inside(one) if type(one) is Tensor else one for one in operands)

    def inside(self, tensor):
        """The tensor of the trace for one that may be from outside."""
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
        """The shape of a tensor, or its size, as the traced function gets to see it."""
        line = calling_line(2) if self.notes is not None and number == self.number else ""
        return self.notes.read(line, values) if line else values

    def length(self, number, extent):
        """The function asks for `len` of a tensor, which has to be a plain int.

        What it is compared with cannot be seen; the ints in the code around it may be that.
        """
        line = calling_line(2) if self.notes is not None and number == self.number else ""
        if line:
            self.notes.read_length(line, extent, sys._getframe(1).f_code)

    def check_write(self, number, storage):
        if number != self.number and storage not in self.written:
            self.refuse("a write to a tensor from outside", "pass it in state")

    def fact(self, name, device):
        """The target's answer to a question about a device."""
        if device is not None:
            self.device(Device(device).number)
        if name not in facts.FACTS:
            self.refuse(f"{name}() on a device of a program", "ask before, or for its capability")
        if name not in self.facts:
            try:
                self.facts[name] = facts.answer(name, self.target)
            except DeviceError:
                self.refuse(f"{name}() of a GPU that is not there", "ask for its capability")
        return self.facts[name]

    def refuse(self, problem, way_out):
        raise TraceError(user_line(), problem, way_out)

    def refuse_value(self, what):
        self.refuse(f"{what} needs a value", WAYS_OUT.get(what, _OTHERWISE))
