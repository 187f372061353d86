"""Runs bindings on a host device: the NumPy functions of their calls, one after another.

A whole function is one piece of work of its stream, so either all of it is queued or none.
The operands of its calls are fixed when it is queued: a deferred device may run it after the
session's next call was queued. Branches on several streams run in the order of the calls.

For control flow, a region is prepared for the addresses of each iteration.
"""

from __future__ import annotations

from gputensor._kernels.calls import CALLS
from gputensor._kernels.launch import CallOperand
from gputensor.programs.bind import BoundControl
from gputensor.programs.running.turns import Turns
from gputensor.programs.session import host_arguments, read_word, write_word

__all__ = ["prepare"]

COPY = CALLS["elementwise"]
MOST_KNOWN = 8  # prepared regions that a loop keeps, by addresses


def prepare(binding, addresses, weights, before=None):
    """Return the steps of a binding: one (function, arguments) for each call.

    Parameters
    ----------
    binding : Binding
    addresses : tuple of int
        The addresses of its pieces.
    weights : dict
        Name of a weight -> address, for regions.
    before : (addresses, steps), optional
        Steps of the same binding that were prepared for other addresses.
    """
    steps = []
    moved = ()
    if before is not None:
        moved = {i for i, (a, b) in enumerate(zip(addresses, before[0], strict=True)) if a != b}
    for number, call in enumerate(binding.calls):
        if before is not None and type(call) is not BoundControl:
            if not any(piece in moved for _at, piece, _offset in call.patches):
                steps.append(before[1][number])
                continue
        if type(call) is BoundControl:
            steps.append((_run_control, (call, addresses, weights)))
        elif call.is_empty:
            steps.append((_nothing, ()))
        else:
            steps.append((call.row.run, host_arguments(call.arguments, call.patches, addresses)))
    return tuple(steps)


def _nothing():
    pass


def _run_control(call, addresses, weights):
    _HostTurns(call, addresses, weights).run()


class _HostTurns(Turns):
    """Control flow inside a host function."""

    def __init__(self, call, addresses, weights):
        super().__init__(call, addresses, weights)
        self.known = {}  # steps of regions, by region and addresses

    def run_region(self, number, binding, addresses):
        steps = self.known.get((number, addresses))
        if steps is None:
            steps = prepare(binding, addresses, self.weights)
            if len(self.known) < MOST_KNOWN:
                self.known[number, addresses] = steps
        for function, arguments in steps:
            function(*arguments)

    def read_flag(self, address):
        return read_word(address, 1) != 0

    def write_index(self, value):
        write_word(self.word, value)

    def copy_bytes(self, target, source, nbytes):
        out, given = (CallOperand(address, "uint8", (nbytes,)) for address in (target, source))
        COPY.run("copy", "uint8", *host_arguments((out, given), (), ()))
