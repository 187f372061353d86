"""Converts a model to another floating-point type: `load_onnx(path, dtype="float16")`."""

import numpy as np

from gputensor.importers.onnx_graph import Graph
from gputensor.importers.onnx_types import element_type

__all__ = ["narrow"]

_FLOAT = 1
# The attributes that name an element type, by operator.
_TYPED = {
    "Cast": "to",
    "EyeLike": "dtype",
    "RandomNormalLike": "dtype",
    "RandomUniformLike": "dtype",
}


def narrow(graph, dtype, needed):
    """Replace float32 by `dtype` in a graph, except for values that operators read.

    Single numbers are not converted: next to a tensor they take its type.
    """
    number = element_type(dtype)
    for name, array in graph.constants.items():
        graph.constants[name] = narrowed(name, array, dtype, needed)
    for step in graph.steps:
        key, attributes = step.key[1], step.attributes
        typed = _TYPED.get(key)
        if typed and attributes.get(typed) == _FLOAT:
            attributes[typed] = number
        value = attributes.get("value")
        if key == "Constant" and isinstance(value, np.ndarray):
            attributes["value"] = narrowed(step.outputs[0], value, dtype, needed)
        elif key == "ConstantOfShape" and (value is None or value.dtype == np.float32):
            attributes["value"] = np.zeros(1, dtype) if value is None else value.astype(dtype)
        inside = [step.graph, *attributes.values()]
        for one in inside:
            if isinstance(one, Graph):
                narrow(one, dtype, needed)


def narrowed(name, array, dtype, needed):
    """Return an array of the file in the model's type."""
    if array is None or array.dtype != np.float32 or array.size <= 1 or name in needed:
        return array
    return array.astype(dtype)
