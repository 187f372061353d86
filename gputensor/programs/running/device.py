"""Launches bindings on a GPU like eager work, both in captures and call by call.

Calls are launched in sections of at most `MOST_PENDING`. In a capture, control flow becomes nodes
with bodies, and the GPU reads its flags. Outside a capture the host reads them between two
sections; meanwhile the memory of the call is held, so that no other thread writes to it before the
call ends.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

from gputensor._kernels.faces import IS, IS_NOT, OFF, set_conditions
from gputensor._kernels.launch import CallOperand
from gputensor.programs.bind import BoundControl
from gputensor.programs.running.turns import Turns
from gputensor.programs.session import launch_on

__all__ = ["Launches"]

MOST_PENDING = 64


class Launches:
    """The calls of one run of a function.

    Parameters
    ----------
    queue : callable
        Takes a list of (row, arguments) and launches them in one section.
    read_flag : callable, optional
        Takes an address, waits for the stream, and returns the bool at the address.
    conditions : Conditions, optional
        Those of the graph that the stream captures. Control flow needs this or `read_flag`.
    alone : callable, optional
        Takes a row that waits, and its arguments, and executes the call outside a section.
    """

    def __init__(self, queue, read_flag=None, conditions=None, alone=None):
        self.queue = queue
        self.read = read_flag
        self.conditions = conditions
        self.alone = alone
        self.pending = []

    def add(self, row, arguments):
        self.pending.append((row, arguments))
        if len(self.pending) >= MOST_PENDING:
            self.flush()

    def flush(self):
        """Launch the pending calls."""
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
            turns = _DeviceTurns if self.conditions is None else _CapturedTurns
            turns(self, call, addresses, weights).run()
        elif not call.is_empty:
            arguments = list(call.arguments)
            for at, piece, offset in call.patches:
                arguments[at] = arguments[at].at(addresses[piece] + offset)
            if call.row.waits:
                self.flush()
                self.alone(call.row, tuple(arguments))
            else:
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


class _CapturedTurns(_DeviceTurns):
    """Control flow in a capture: a kernel sets conditions, and nodes have bodies."""

    def _cond(self):
        create = self.launches.conditions.create
        true, false = create(), create()
        self._set(self.reads[0], (true, IS), (false, IS_NOT))
        for number, condition in enumerate((true, false)):
            with self._body(condition, False):
                self._region(number, self.reads[1:], self.writes)

    def _while_loop(self):
        # The body is two iterations: from the results to the spare values and, unless the loop
        # ends, back.
        carried = len(self.writes)
        captures, results, spare = self.reads[carried:], self.writes, self.spare[:carried]
        self._copy(results, self.reads[:carried])
        create = self.launches.conditions.create
        goes_on, is_odd = create(), create()
        self._region(0, [*results, *captures], [self.word])
        self._set(self.word, (goes_on, IS), (is_odd, OFF))
        with self._body(goes_on, True):
            self._region(1, [*results, *captures], spare)
            self._region(0, [*spare, *captures], [self.word])
            again = self.launches.conditions.create()
            self._set(self.word, (goes_on, IS), (again, IS), (is_odd, IS_NOT))
            with self._body(again, False):
                self._region(1, [*spare, *captures], results)
                self._region(0, [*results, *captures], [self.word])
                self._set(self.word, (goes_on, IS))
        with self._body(is_odd, False):
            self._copy(results, spare)

    def _set(self, flag, *rules):
        conditions = self.launches.conditions
        self.launches.flush()
        set_conditions(conditions.device, conditions.handle, flag, rules, self.call.setter)

    @contextmanager
    def _body(self, condition, is_loop):
        """Launch into a body that runs if, or while, a condition is true."""
        around = self.launches
        around.flush()
        inner = around.conditions.begin(condition, is_loop)
        try:
            self.launches = Launches(partial(launch_on, inner.stream), None, inner)
            yield
            self.launches.flush()
        finally:
            self.launches = around
            inner.end()
