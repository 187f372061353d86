"""Bindings on a GPU call by call: functions with control flow, and what is part of a capture.

Calls are launched like eager work, in sections of at most `MOST_PENDING`. Between two sections the
host may read a flag; the memory of the call is held meanwhile, so that no other thread writes to it
before the call is over.
"""

from __future__ import annotations

from gputensor._kernels.launch import CallOperand
from gputensor.programs.bind import BoundControl
from gputensor.programs.running.turns import Turns

__all__ = ["Launches"]

MOST_PENDING = 64


class Launches:
    """The calls of one call of a function.

    Parameters
    ----------
    queue : callable
        Takes a list of (row, arguments) and launches them in one section.
    read_flag : callable
        Takes an address, waits for the stream, and returns the bool there.
    """

    def __init__(self, queue, read_flag):
        self.queue = queue
        self.read = read_flag
        self.pending = []

    def add(self, row, arguments):
        self.pending.append((row, arguments))
        if len(self.pending) >= MOST_PENDING:
            self.flush()

    def flush(self):
        """Launch what is pending."""
        pending, self.pending = self.pending, []
        if pending:
            self.queue(pending)

    def run(self, binding, addresses, weights):
        """Launch the calls of a binding at the addresses of its pieces."""
        for call in binding.calls:
            self.launch(call, addresses, weights)

    def launch(self, call, addresses, weights):
        """Launch one call of a binding."""
        if type(call) is BoundControl:
            _DeviceTurns(self, call, addresses, weights).run()
        elif not call.is_empty:
            arguments = list(call.arguments)
            for at, piece, offset in call.patches:
                arguments[at] = arguments[at].at(addresses[piece] + offset)
            self.add(call.row, tuple(arguments))


class _DeviceTurns(Turns):
    def __init__(self, launches, call, addresses, weights):
        super().__init__(call, addresses, weights)
        self.launches = launches

    def run_region(self, number, binding, addresses):
        self.launches.run(binding, addresses, self.weights)

    def read_flag(self, address):
        self.launches.flush()
        return self.launches.read(address)

    def write_index(self, value):
        self.launches.add(self.call.rows[1], (value, 1, CallOperand(self.word, "int64", (1,))))

    def copy_bytes(self, target, source, nbytes):
        out, given = (CallOperand(address, "uint8", (nbytes,)) for address in (target, source))
        self.launches.add(self.call.rows[0], ("copy", "uint8", out, given))
