"""Quantized programs: the pass, its check, and the errors of the results of given calls."""

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

    With `calibrate`, weights are rounded so that products lose little with the inputs of these
    calls, and the report contains the errors of the calls' results.

    Parameters
    ----------
    data : ProgramData
        Not modified.
    schemes : dict
        In the form of `compile`.
    calibrate : dict or None
        Calls in the form of `compile`.
    target : int
        The number of the device for the calibrating calls.
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
    """Return {name of a function: for each result, the flat arrays of all calls}."""
    found = {}

    def add(name, arrays):
        parts = found.setdefault(name, [[] for _array in arrays])
        for part, array in zip(parts, arrays, strict=True):
            part.append(np.asarray(array, np.float64).ravel())

    results_of_calls(data, calls, target, add)
    return {name: [np.concatenate(part) for part in parts] for name, parts in found.items()}


def _error(plain, found):
    """Return the errors of a result relative to the result without quantization."""
    whole = float(np.sqrt(np.square(plain).sum()))
    lost = float(np.sqrt(np.square(found - plain).sum()))
    most = float(np.abs(found - plain).max(initial=0))
    return {"relative_error": lost / whole if whole else 0.0, "largest_error": most}
