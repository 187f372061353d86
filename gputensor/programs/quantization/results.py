"""Quantized programs: the pass, its check, and the errors of results on calls that are given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gputensor.programs.quantization.calibration import results_of_calls
from gputensor.programs.quantization.inputs import products_of_inputs
from gputensor.programs.quantization.matrices import quantize
from gputensor.programs.verify import verify_program

__all__ = ["quantized"]


def quantized(data, schemes, calibrate, target):
    """Return a ProgramData with quantized weights.

    With `calibrate` they are rounded so that they lose little on what the products read in these
    calls, and the errors of the calls' results are in the report.

    Parameters
    ----------
    data : ProgramData
        It is not changed.
    schemes : dict
        As `compile` takes it.
    calibrate : dict or None
        Calls as `compile` takes them.
    target : int
        The number of the device that calibrating calls are made on.
    """
    found = replace(
        data,
        functions=dict(data.functions),
        weights=dict(data.weights),
        metadata=dict(data.metadata),
    )
    products = None
    if calibrate is not None:

        def products(names):
            return products_of_inputs(data, names, calibrate, target)

    quantize(found, schemes, products)
    verify_program(found)
    if calibrate is not None:
        plain, other = (_results(one, calibrate, target) for one in (data, found))
        found.metadata["quantized_results"] = {
            name: [_error(*pair) for pair in zip(plain[name], other[name], strict=True)]
            for name in plain
        }
    return found


def _results(data, calls, target):
    """Name -> for each result of a function, the arrays that all its calls give, flat."""
    found = {}

    def add(name, arrays):
        parts = found.setdefault(name, [[] for _array in arrays])
        for part, array in zip(parts, arrays, strict=True):
            part.append(np.asarray(array, np.float64).ravel())

    results_of_calls(data, calls, target, add)
    return {name: [np.concatenate(part) for part in parts] for name, parts in found.items()}


def _error(plain, found):
    """How far a result is from that without quantization."""
    whole = float(np.sqrt(np.square(plain).sum()))
    lost = float(np.sqrt(np.square(found - plain).sum()))
    most = float(np.abs(found - plain).max(initial=0))
    return {"relative_error": lost / whole if whole else 0.0, "largest_error": most}
