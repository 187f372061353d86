"""Quantized programs: the pass, its check, and the errors of results on calls that are given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.programs import tree
from gputensor.programs.program import Program
from gputensor.programs.quantization.matrices import quantize
from gputensor.programs.verify import verify_program
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray

__all__ = ["quantized"]


def quantized(data, schemes, calibrate, target):
    """Return a ProgramData with quantized weights; with `calibrate`, the errors of results too.

    Parameters
    ----------
    data : ProgramData
        It is not changed.
    schemes : dict
        As `compile` takes it.
    calibrate : dict or None
        Name of a function -> a tuple or dict of arguments, which get the types of its inputs; the
        calls are made in this order.
    target : int
        The number of the device that calibrating calls are made on.
    """
    found = replace(
        data,
        functions=dict(data.functions),
        weights=dict(data.weights),
        metadata=dict(data.metadata),
    )
    quantize(found, schemes)
    verify_program(found)
    if calibrate is not None:
        results = [_results(one, calibrate, target) for one in (data, found)]
        found.metadata["quantized_results"] = {
            name: [_error(plain, other) for plain, other in zip(*pair, strict=True)]
            for name, *pair in zip(results[0], *(one.values() for one in results), strict=True)
        }
    return found


def _results(data, calls, target):
    """Name -> arrays that a call of each function gives, in one session."""
    found = {}
    with Program(data, target) as program, program.session() as session:
        if not isinstance(calls, dict):
            raise argument_error(TypeError, "calibrate", calls, "{name of a function: arguments}")
        for name, arguments in calls.items():
            if name not in program.functions:
                rule = ", ".join(program.functions)
                raise argument_error(ValueError, "calibrate", Described(repr(name)), rule)
            if not isinstance(arguments, (tuple, list, dict)):
                rule = "a tuple of arguments, or a dict by their names"
                raise argument_error(TypeError, f"calibrate[{name!r}]", arguments, rule)
            named = arguments if isinstance(arguments, dict) else {}
            args = () if isinstance(arguments, dict) else arguments
            leaves = program.leaves(name, args, named)
            wanted = [one.operand.dtype for one in program.functions[name].inputs]
            placed = [
                asarray(leaf, dtype=dtype, device=program.device)
                for leaf, dtype in zip(leaves, wanted, strict=True)
            ]
            structure = program.functions[name].tree
            result = getattr(session, name)(**tree.unflatten(structure, placed))
            found[name] = [leaf.numpy() for _path, leaf in tree.flatten(result, _is_array)[0]]
    return found


def _is_array(value):
    return isinstance(value, (Tensor, np.ndarray, np.generic))


def _error(plain, found):
    """How far a result is from that without quantization."""
    plain, found = (np.asarray(one, np.float64).ravel() for one in (plain, found))
    whole = float(np.sqrt(np.square(plain).sum()))
    lost = float(np.sqrt(np.square(found - plain).sum()))
    most = float(np.abs(found - plain).max(initial=0))
    return {"relative_error": lost / whole if whole else 0.0, "largest_error": most}
