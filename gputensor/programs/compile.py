"""Specs and functions in, a Program out: `trace` and `compile`, and the order of the passes."""

from __future__ import annotations

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.programs.function import ProgramData, Weight
from gputensor.programs.program import Program
from gputensor.programs.tracing import Source, arguments_of, leaves_of, trace_function
from gputensor.streams.queue import device_number
from gputensor.tensor.core import device_number_of, storage_place

__all__ = ["compile", "data_of", "passes", "sources_of", "target_of", "trace"]


def trace(fn, *specs, weights=None, state=None, target=None, **named):
    """Return a function as it is traced, before any pass, to print.

    The arguments are those of :func:`compile`.

    Examples
    --------
    >>> import gputensor as gt
    >>> len(gt.programs.trace(lambda x: x + 1, gt.spec((3,))).calls)
    1
    """
    source = sources_of(fn, specs, weights, state, named)[0]
    return trace_function(source, target_of(target))[0]


def compile(fn, *specs, weights=None, state=None, target=None, **named):
    """Trace a function, or several, and return the :class:`Program` that makes their calls.

    Parameters
    ----------
    fn : callable or dict
        The function; or from names to tuples of a function and its specs, for a program of several.
    *specs
        For each parameter of `fn`, in order, a tree of :func:`spec` and Python values, which the
        program keeps as constants. Specs of keyword parameters are given by name.
    weights : tree, optional
        Of tensors or arrays, or of specs where they are given when the program is loaded. A
        parameter named `weights` receives it. Weights are read only.
    state : tree, optional
        Of specs, or of tensors with the first values. A parameter named `state` receives it; it may
        be written in place, and lives in a session.
    target : str, int or Device, optional
        The device that the program is for; the current device by default.

    Raises
    ------
    TraceError
        The function does something that a program cannot hold. The message names its line.

    Examples
    --------
    >>> import gputensor as gt
    >>> program = gt.compile(lambda x: 2 * x, gt.spec((gt.Dim("n", 1, 64),)), target="host")
    >>> program(gt.ones(3, device="host")).numpy()
    array([2., 2., 2.], dtype=float32)
    """
    number = target_of(target)
    sources = sources_of(fn, specs, weights, state, named)
    return Program(data_of(sources, number), number)


def target_of(target):
    """The number of the device that a program is for."""
    if isinstance(target, (list, tuple)):
        raise argument_error(TypeError, "target", target, "a device of this machine")
    return device_number(target)


def sources_of(fn, specs, weights, state, named):
    """The functions to trace, with their trees."""
    if isinstance(fn, dict):
        if specs or named:
            got = Described("specs beside a dict")
            raise argument_error(TypeError, "fn", got, "{name: (function, *specs)}")
        entries = [(name, *_entry(name, entry)) for name, entry in fn.items()]
    else:
        entries = [(_name_of(fn), fn, specs, named)]
    for name, function, _specs, _named in entries:
        if not name.isidentifier():
            raise argument_error(ValueError, "fn", name, "names that are identifiers")
        if not callable(function):
            raise argument_error(TypeError, name, function, "a function")
    weights = leaves_of("weights", {} if weights is None else weights)
    state = leaves_of("state", {} if state is None else state)
    return [
        Source(name, function, arguments_of(name, function, given, keywords), *weights, *state)
        for name, function, given, keywords in entries
    ]


def _entry(name, entry):
    if not isinstance(name, str):
        raise argument_error(TypeError, "fn", name, "names that are strings")
    function, *specs = entry if isinstance(entry, (tuple, list)) else (entry,)
    return function, tuple(specs), {}


def _name_of(function):
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "main"


def data_of(sources, target):
    """Trace, check and clean functions; return the ProgramData that they make."""
    data = ProgramData()
    constants = {}
    for source in sources:
        function, weights = trace_function(source, target)
        _share(function, weights, data.weights, constants)
        data.functions[source.name] = function
    first = sources[0]
    data.states = {name: (dtype, shape) for name, dtype, shape, _first in first.state}
    data.state_tree = first.state_tree
    return passes(_with_states(data, first.state))


def _with_states(data, states):
    for name, dtype, shape, given in states:
        if given is not None:
            data.weights[f"state.{name}"] = Weight(f"state.{name}", dtype, shape, given)
    return data


def passes(data):
    """Run the passes over all functions, and drop the weights that none of them reads."""
    used = {f"state.{name}" for name in data.states}
    for function in data.functions.values():
        _names(function, used)
    data.weights = {name: weight for name, weight in data.weights.items() if name in used}
    return data


def _names(function, found):
    found.update(v.name for v in function.values if v.kind in ("weight", "constant"))
    for call in function.calls:
        for region in call.regions:
            _names(region, found)


def _share(function, weights, shared, constants):
    """Add weights to those of the program; equal constants of its functions are one."""
    renamed = {}
    for name, weight in weights.items():
        if not name.startswith("constant."):
            shared.setdefault(name, weight)
            continue
        key = _identity(weight)
        if key not in constants:
            constants[key] = f"constant.{len(constants)}"
            weight.name = constants[key]
            shared[weight.name] = weight
        renamed[name] = constants[key]
    _rename(function, renamed)


def _identity(weight):
    source = weight.source
    if isinstance(source, np.ndarray):
        return weight.dtype, weight.shape, source.tobytes()
    place = storage_place(source)
    return weight.dtype, weight.shape, device_number_of(source), place[0] + place[2]


def _rename(function, names):
    for value in function.values:
        if value.kind == "constant":
            value.name = names.get(value.name, value.name)
    for call in function.calls:
        for region in call.regions:
            _rename(region, names)
