"""The form between tracing and running: functions of calls, on values with one writer each.

Everything here is plain data that passes read and rewrite, `text.py` prints and `file.py` keeps.
An *integer* of the form (an extent, a stride, an offset, a size) is an int or an expression of
dims: ``("dim", "batch")``, ``("add", x, y)``, ``("mul", x, y)`` or ``("floordiv", x, y)``, whose
parts are integers of the form again. `dims.py` evaluates and explains them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Argument", "Call", "Function", "Number", "Operand", "ProgramData", "Value", "Weight"]

#: What a value is. Only temporaries and versions of states have a writer in the function.
KINDS = ("input", "weight", "constant", "state", "temporary")


class Operand(NamedTuple):
    """A view of a value, as a call reads or writes it.

    `offset` is in bytes from the first byte of the value, `strides` in elements of `dtype`.
    """

    value: int
    dtype: str
    shape: tuple
    strides: tuple
    offset: Any = 0


class Number(NamedTuple):
    """A Python number in the place of an operand; `dtype` is the one it is used as."""

    value: Any
    dtype: str


@dataclass(slots=True)
class Value:
    """Memory of `nbytes` bytes with one writer; its place in ``Function.values`` is its number.

    A call that writes part of a value makes a new *version*: a value whose `base` is the number of
    the version before. All versions of a value have its kind and its memory, so no call may read a
    version after the call that writes the next one.
    """

    kind: str
    nbytes: Any
    name: str = ""  # of an input, weight, constant or state
    base: int | None = None


@dataclass(slots=True)
class Call:
    """One piece of work: a row of `_kernels/calls.py`, or control flow of `control.py`.

    `reads` holds Operands, Numbers and None for operands that are absent. ``into[i]`` is the
    version that ``writes[i]`` continues, or None when the call writes the whole of a new value.
    `regions` are the functions of control flow.
    """

    name: str
    attributes: dict
    writes: tuple
    reads: tuple
    into: tuple = ()
    stream: int = 0
    line: str = ""  # where the user's code made it: "model.py:31"
    regions: tuple = ()


@dataclass(slots=True)
class Argument:
    """A leaf of the arguments, results or states: its path in the tree, and where it is."""

    path: str  # "x", "mask", "0.1", "layers.0.k"
    operand: Operand


@dataclass
class Function:
    """Calls in order. `tree` and `result` say how leaves make the caller's structures (tree.py).

    Functions of one name that were traced at listed sizes differ in `at` (sizes.py).
    """

    name: str
    dims: dict = field(default_factory=dict)  # name -> Dim
    values: list = field(default_factory=list)  # of Value
    inputs: list = field(default_factory=list)  # of Argument, in the order of the leaves
    outputs: list = field(default_factory=list)  # of Argument
    states: dict = field(default_factory=dict)  # name -> (first version, last version)
    calls: list = field(default_factory=list)
    facts: dict = field(default_factory=dict)  # query of the traced function -> answer
    tree: Any = None
    result: Any = None
    at: dict = field(default_factory=dict)  # name of a dim -> the listed size that it was traced at


@dataclass
class Weight:
    """A weight or constant that the functions of a program share, under its name.

    `source` gives the elements: a Tensor, or a C-contiguous NumPy array, perhaps mapped from a
    file. `sha256` is of the bytes in C order, filled in when it is first needed.
    """

    name: str
    dtype: str
    shape: tuple
    source: Any = None
    sha256: str = ""


@dataclass
class ProgramData:
    """A program without a device: what `compile` makes, a file holds and `Program` runs."""

    functions: dict = field(default_factory=dict)  # name, and sizes of `at` -> Function
    weights: dict = field(default_factory=dict)  # name -> Weight; constants are "constant.N"
    states: dict = field(default_factory=dict)  # name -> (dtype, shape)
    state_tree: Any = None
    metadata: dict = field(default_factory=dict)
    ahead: Any = None  # kernels and launch lists for GPUs: an Ahead (ahead/bindings.py), or None
