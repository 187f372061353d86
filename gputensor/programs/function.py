"""The form between tracing and running: functions of calls, on values with one writer each.

All classes are plain data that passes read and rewrite, `text.py` prints and `file.py` stores.
An *integer* of the form (an extent, a stride, an offset, a size) is an int or an expression of
dims: ``("dim", "batch")``, ``("add", x, y)``, ``("mul", x, y)`` or ``("floordiv", x, y)``, whose
parts are integers of the form too. `dims.py` evaluates them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

__all__ = ["Argument", "Call", "Function", "Number", "Operand", "ProgramData", "Value", "Weight",
           "with_regions"]  # fmt: skip

#: Kinds of values. Only temporaries and versions of states have a writer in the function.
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
    """A Python number in place of an operand, used as the dtype `dtype`."""

    value: Any
    dtype: str


@dataclass(slots=True)
class Value:
    """Memory of `nbytes` bytes with one writer; its index in ``Function.values`` is its number.

    A call that writes part of a value makes a new *version*: a value whose `base` is the number of
    the previous version. All versions of a value have its kind and its memory, so no call may read
    a version after the call that writes the next one.
    """

    kind: str
    nbytes: Any
    name: str = ""  # of an input, weight, constant or state
    base: int | None = None


@dataclass(slots=True)
class Call:
    """One piece of work: a row of `_kernels/calls.py`, or control flow of `control.py`.

    `reads` contains Operands, Numbers, and None for absent operands. ``into[i]`` is the version
    that ``writes[i]`` continues, or None if the call writes all of a new value. `regions` are the
    functions of control flow.
    """

    name: str
    attributes: dict
    writes: tuple
    reads: tuple
    into: tuple = ()
    stream: int = 0
    line: str = ""  # the line of the user's code: "model.py:31"
    regions: tuple = ()


@dataclass(slots=True)
class Argument:
    """A leaf of the arguments, results or states: its path in the tree, and its operand."""

    path: str  # "x", "mask", "0.1", "layers.0.k"
    operand: Operand


@dataclass
class Function:
    """Calls in order. `tree` and `result` are the structures of arguments and result (tree.py).

    Functions with one name that were traced at listed sizes differ in `at` (sizes.py).
    """

    name: str
    dims: dict = field(default_factory=dict)  # name -> Dim
    values: list = field(default_factory=list)  # of Value
    inputs: list = field(default_factory=list)  # of Argument, in the order of the leaves
    outputs: list = field(default_factory=list)  # of Argument
    states: dict = field(default_factory=dict)  # name -> (first version, last version)
    calls: list = field(default_factory=list)
    facts: dict = field(default_factory=dict)  # query of the traced function -> its result
    tree: Any = None
    result: Any = None
    at: dict = field(default_factory=dict)  # name of a dim -> the listed size that it was traced at


def with_regions(function, change):
    """Return the function with `change(region)` in place of each region of its calls."""
    calls = [replace(call, regions=tuple(map(change, call.regions))) for call in function.calls]
    return replace(function, calls=calls)


@dataclass
class Weight:
    """A weight or constant that the functions of a program share, under its name.

    `source` has the elements: a Tensor, or a C-contiguous NumPy array that may be mapped from a
    file. `sha256` is the hash of the bytes in C order, computed when it is first needed.
    """

    name: str
    dtype: str
    shape: tuple
    source: Any = None
    sha256: str = ""


@dataclass
class ProgramData:
    """A program without a device, as `compile` makes it, a file stores it and `Program` runs it."""

    functions: dict = field(default_factory=dict)  # name, and sizes of `at` -> Function
    weights: dict = field(default_factory=dict)  # name -> Weight; constants are "constant.N"
    states: dict = field(default_factory=dict)  # name -> (dtype, shape)
    state_tree: Any = None
    metadata: dict = field(default_factory=dict)
    ahead: Any = None  # kernels and launch lists for GPUs: an Ahead (ahead/bindings.py), or None
    traced: Any = None  # what weights are prepared from: a Traced (passes/prepare.py), or None
