"""Runs the calls of a checked session one by one, and checks the result of each.

The first call that fails, or that makes a NaN, stops the function with the user's line. Memory that
a call updates in part is also checked before the call, so earlier NaN are not attributed to it.
"""

from __future__ import annotations

import numpy as np

from gputensor._kernels.launch import CallOperand
from gputensor.errors import Described, ProgramRunError, argument_error
from gputensor.programs.bind import BoundControl
from gputensor.programs.running.device import Launches

__all__ = ["CheckedLaunches"]

WITH_NAN = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
OUTSIDE = ("input", "weight", "state")


class CheckedLaunches(Launches):
    """The calls of one run of a function.

    Parameters
    ----------
    sections : Sections
        Launches calls, waits for them, and reads elements back.
    """

    def __init__(self, sections):
        super().__init__(sections.queue, sections.read_flag, None, sections.alone)
        self.sections = sections
        self.binding = None

    def run(self, binding, addresses, weights):
        around, self.binding = self.binding, binding
        super().run(binding, addresses, weights)
        self.binding = around

    def launch(self, call, addresses, weights):
        if type(call) is BoundControl:  # the calls of its regions are launched here too
            super().launch(call, addresses, weights)
            return
        row = getattr(call.row, "row", call.row)  # the original row of a call bound ahead
        arguments = list(call.arguments)
        for at, piece, offset in call.patches:
            arguments[at] = arguments[at].at(addresses[piece] + offset)
        attributes, writes, reads = row.split(arguments)
        what = _label(row, attributes, call.line)
        specs = [one and (one.dtype, one.shape) for one in reads]
        try:
            names = row.writes * len(writes) if len(row.writes) == 1 else row.writes
            before = [
                None if row.writes_all(attributes, specs, name.rstrip("?")) else self.nans(one)
                for name, one in zip(names, writes, strict=True)
            ]
            super().launch(call, addresses, weights)
            self.flush()
            self.sections.wait()
        except Exception as error:  # from the driver, a library, or NumPy
            raise ProgramRunError(f"{what}: {error}") from error
        for operand, known in zip(writes, before, strict=True):
            found = None if call.is_empty else self.nans(operand)
            if found is not None and known is not None:
                found &= ~known
            if found is not None and found.any():
                where = [int(index) for index in np.argwhere(found)[0]]
                got = f"NaN in {found.sum()} of {found.size} elements, the first at {where}"
                got += self.origin(call, arguments, len(attributes) + len(writes))
                raise argument_error(ProgramRunError, what, Described(got), "numbers")

    def nans(self, operand):
        """Return a mask of the NaN elements of an operand, or None if it cannot have any."""
        if operand is None or operand.dtype not in WITH_NAN or 0 in operand.shape:
            return None
        array = self.sections.elements(operand)
        return np.asarray(array != array)

    def origin(self, call, arguments, first):
        """Return a text that names memory from outside the function whose NaN the call reads."""
        pieces = self.binding.pieces
        written = {piece for at, piece, _offset in call.patches if at < first}
        for at, piece, _offset in call.patches:
            is_read = at >= first and piece not in written and pieces[piece].kind in OUTSIDE
            operand = arguments[at]
            if is_read and type(operand) is CallOperand and operand.shape is not None:
                found = self.nans(operand)
                if found is not None and found.any():
                    return f", read from {self.name_of(pieces[piece])}"
        return ""

    def name_of(self, piece):
        if piece.kind == "input":
            return self.binding.function.inputs[piece.name].path or "a carried value of a loop"
        return piece.name


def _label(row, attributes, line):
    """Return the user's line and the name of the operation."""
    name = attributes[0] if row.names[:1] in (("op",), ("what",)) else row.name
    return f"{line}: {name}" if line else name
