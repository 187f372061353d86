"""Times each call of a function: the call is repeated with the operands of a run.

The calls are timed in order, so each reads the same values as in a run. A call that writes its own
operands continues from its results, and the state is a separate copy.
"""

from __future__ import annotations

import time
from functools import partial
from math import prod
from typing import NamedTuple

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.launch import CallOperand
from gputensor.programs.bind import BoundControl
from gputensor.programs.running.device import Launches
from gputensor.programs.running.host import prepare
from gputensor.programs.session import launch_on
from gputensor.streams.capture import CUDAGraph, graph

__all__ = ["CallTime", "call_times"]

ITEMSIZES = {row.name: row.itemsize for row in DTYPES}
LEAST = 1e-3  # least seconds to repeat a call
MOST = 1000  # most repetitions
REPEATS = 20  # repetitions in one graph


class CallTime(NamedTuple):
    """One call: its name, its source line, the bytes of its operands, and its time."""

    name: str
    line: str
    nbytes: int
    seconds: float | None  # None for a call with conditions, whose time depends on values


def call_times(binding, addresses, weights, stream):
    """Return the CallTimes of a binding.

    Parameters
    ----------
    binding : Binding
    addresses : tuple of int
        The addresses of its pieces.
    weights : dict
        Name of a weight -> address, for regions.
    stream : Stream
        Not the default stream of a GPU, which cannot capture. The function waits for its work.
    """
    if stream.device_number < 0:
        steps = prepare(binding, addresses, weights)
        makers = [partial(function, *arguments) for function, arguments in steps]
    else:
        launches = Launches(partial(launch_on, stream))
        makers = [partial(_launch, launches, call, addresses, weights) for call in binding.calls]
    found = []
    for call, make in zip(binding.calls, makers, strict=True):
        is_control = type(call) is BoundControl
        name = call.name if is_control else call.row.name
        nbytes = _control_nbytes(call) if is_control else _nbytes(call)
        seconds = None if _has_conditions(call) else _seconds(make, stream)
        found.append(CallTime(name, call.line, nbytes, seconds))
    return found


def _launch(launches, call, addresses, weights):
    launches.launch(call, addresses, weights)
    launches.flush()


def _captured(make, stream):
    """Return the replay of a graph of REPEATS calls, so launching is faster than the GPU's work."""
    made = CUDAGraph()
    with graph(made, stream=stream):
        for _ in range(REPEATS):
            make()
    return made.replay


def _seconds(make, stream):
    """Return the mean time of a call among many that are queued together."""
    make()
    stream.synchronize()
    repeats = 1
    if stream.device_number >= 0:
        repeats, make = REPEATS, _captured(make, stream)
        make()
        stream.synchronize()
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            make()
        stream.synchronize()
        spent = time.perf_counter() - start
        if spent >= LEAST or count >= MOST:
            return spent / count / repeats
        count = min(MOST, max(2 * count, int(count * LEAST / max(spent, 1e-9))))


def _has_conditions(call):
    if type(call) is not BoundControl:
        return False
    return call.name in ("cond", "while_loop") or any(r.has_conditions for r in call.regions)


def _nbytes(call):
    """Return the bytes of the elements that a call reads and writes; broadcast ones count once."""
    total = 0
    for at, _piece, _offset in call.patches:
        operand = call.arguments[at]
        if type(operand) is CallOperand and operand.shape is not None:
            extents = zip(operand.shape, operand.strides, strict=True)
            count = prod(extent for extent, stride in extents if stride or not extent)
            total += count * ITEMSIZES[operand.dtype]
    return total


def _control_nbytes(call):
    return sum(place.nbytes for place in (*call.reads, *call.writes))
