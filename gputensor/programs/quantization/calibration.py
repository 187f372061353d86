"""Calls of a program on given arguments, in one session."""

from __future__ import annotations

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.programs import tree
from gputensor.programs.program import Program
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray

__all__ = ["results_of_calls"]


def results_of_calls(data, calls, target, add):
    """Make calls of the functions of a ProgramData, and hand on what they give.

    Parameters
    ----------
    data : ProgramData
    calls : dict
        Name of a function -> a tuple or dict of arguments, which get the types of its inputs, or a
        list of such, for several calls. Functions are called in this order.
    target : int
        The number of the device that the calls are made on.
    add : callable
        Takes the name of a function and a list of NumPy arrays, after each call.

    Raises
    ------
    TypeError, ValueError
        `calls` are none of these functions, or their arguments do not fit.
    """
    if not isinstance(calls, dict):
        raise argument_error(TypeError, "calibrate", calls, "{name of a function: arguments}")
    with Program(data, target) as program, program.session() as session:
        for name, given in calls.items():
            if name not in program.functions:
                rule = ", ".join(program.functions)
                raise argument_error(ValueError, "calibrate", Described(repr(name)), rule)
            for arguments in _each(name, given):
                found = _called(program, session, name, arguments)
                add(name, [leaf.numpy() for _path, leaf in tree.flatten(found, _is_array)[0]])


def _each(name, given):
    """The arguments of each call."""
    if isinstance(given, list) and given and all(isinstance(x, (tuple, dict)) for x in given):
        return given
    if not isinstance(given, (tuple, list, dict)):
        rule = "a tuple of arguments, a dict by their names, or a list of these"
        raise argument_error(TypeError, f"calibrate[{name!r}]", given, rule)
    return [given]


def _called(program, session, name, arguments):
    named = arguments if isinstance(arguments, dict) else {}
    args = () if isinstance(arguments, dict) else arguments
    leaves = program.leaves(name, args, named)
    wanted = [one.operand.dtype for one in program.functions[name].inputs]
    placed = [
        asarray(leaf, dtype=dtype, device=program.device)
        for leaf, dtype in zip(leaves, wanted, strict=True)
    ]
    structure = program.functions[name].tree
    return getattr(session, name)(**tree.unflatten(structure, placed))


def _is_array(value):
    return isinstance(value, (Tensor, np.ndarray, np.generic))
