"""Statistics of the inputs of products with weights, when a program is called with arguments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.errors import Described, argument_error
from gputensor.programs import dims as forms
from gputensor.programs import tree
from gputensor.programs.function import Argument, Call, Operand, Value
from gputensor.programs.quantization.calibration import results_of_calls

__all__ = ["products_of_inputs"]

_ITEMSIZE = {row.name: row.itemsize for row in DTYPES}


def products_of_inputs(data, names, calibrate, target):
    """Return for weights the sums of ``x.T @ x`` over the inputs x of their products.

    Parameters
    ----------
    data : ProgramData
        Not modified.
    names : container
        Names of weights. Weights of products inside loops and conditions are left out.
    calibrate : dict
        The calls to make, in the form of `compile`.
    target : int
        The number of the device for the calls.

    Returns
    -------
    dict
        Name -> float64 (k, k).
    """
    seen, functions = {}, {}
    for key, function in data.functions.items():
        functions[key], seen[key] = _with_inputs(function, names)
    found = {}

    def add(key, arrays):
        for name, array in zip(seen[key], arrays, strict=True):
            rows = np.asarray(array, np.float64).reshape(-1, array.shape[-1])
            if not np.isfinite(rows).all():
                got = Described(f"calls whose inputs of {name} are not finite")
                raise argument_error(ValueError, f"calibrate[{key!r}]", got, "finite inputs")
            found[name] = found.get(name, 0) + rows.T @ rows

    results_of_calls(replace(data, functions=functions), calibrate, target, add)
    return found


def _with_inputs(function, names):
    """Return a function whose results are the inputs of products with weights, and their names."""
    values, calls, outputs, found = list(function.values), [], [], []
    for call in function.calls:
        calls.append(call)
        weight = values[call.reads[1].value] if call.name == "product" else None
        if weight is None or weight.kind != "weight" or weight.name not in names:
            continue
        read = call.reads[0]
        nbytes = forms.mul(*read.shape, _ITEMSIZE[read.dtype])
        values.append(Value("temporary", nbytes))
        strides = forms.row_major(read.shape)
        copy = Operand(len(values) - 1, read.dtype, read.shape, strides)
        attributes = {"op": "copy", "compute": read.dtype}
        calls.append(
            Call("elementwise", attributes, (copy,), (read,), (None,), call.stream, call.line)
        )
        outputs.append(Argument(str(len(found)), copy))
        found.append(weight.name)
    structure = tree.flatten([0j] * len(found), lambda part: type(part) is complex)[1]
    made = replace(function, values=values, calls=calls, outputs=outputs, result=structure)
    return made, found
