"""Programs: functions of tensors that are traced once, stored, and run without their Python code.

The public names are also names of ``gputensor``. DESIGN.md has the words and invariants.
"""

from gputensor.programs.compile import compile, trace
from gputensor.programs.control import cond, fori_loop, scan, while_loop
from gputensor.programs.dims import Dim
from gputensor.programs.fuse import fuse
from gputensor.programs.jit import jit
from gputensor.programs.program import load_program
from gputensor.programs.tracing import spec

__all__ = [
    "Dim",
    "compile",
    "cond",
    "fori_loop",
    "fuse",
    "jit",
    "load_program",
    "scan",
    "spec",
    "trace",
    "while_loop",
]
