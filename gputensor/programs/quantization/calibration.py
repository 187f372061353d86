"""Calibration: calls a program with given arguments, in one session."""

from __future__ import annotations

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.programs import tree
from gputensor.programs.program import Program
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray

__all__ = ["results_of_calls"]


def results_of_calls(data, calls, target, add):
    """Call functions of a ProgramData, and pass their results to `add`.

    Parameters
    ----------
    data : ProgramData
    calls : dict
        Name of a function -> a tuple or dict of arguments, which are converted to the dtypes of its
        inputs; or a list of these, for several calls. Functions are called in this order.
    target : int
        The number of the device for the calls.
    add : callable
        Receives the name of a function and a list of NumPy arrays, after each call.

    Raises
    ------
    TypeError, ValueError
        If `calls` names other functions, or the arguments do not fit.
    """
    if not isinstance(calls, dict):
        rule = "a dict {name of a function: arguments}"
        raise argument_error(TypeError, "calibrate", calls, rule)
    with Program(data, target) as program, program.session() as session:
        for name, given in calls.items():
            if name not in program.functions:
                rule = ", ".join(program.functions)
                raise argument_error(ValueError, "calibrate", Described(repr(name)), rule)
            for arguments in _each(name, given):
                found = _called(program, session, name, arguments)
                add(name, [leaf.numpy() for _path, leaf in tree.flatten(found, _is_array)[0]])


def _each(name, given):
    """Return a list with the arguments of each call."""
    if isinstance(given, list) and given and all(isinstance(x, (tuple, dict)) for x in given):
        return given
    if not isinstance(given, (tuple, list, dict)):
        rule = "a tuple of arguments, a dict of arguments by name, or a list of these"
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
