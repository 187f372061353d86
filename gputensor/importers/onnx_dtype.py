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
# Operators whose parameters have the type of their first input, those of one element too.
_TYPED_PARAMETERS = """
BatchNormalization Conv ConvTranspose DeformConv FusedConv FusedGemm FusedMatMul GRU Gemm
InstanceNormalization GroupNormalization LSTM LayerNormalization MatMul MatMulNBits PRelu
RMSNormalization RNN SimplifiedLayerNormalization
""".split()


def narrow(graph, dtype, needed):
    """Replace float32 by `dtype` in a graph, except for values that operators read.

    Single numbers, except for parameters, are not converted: next to a tensor they take its type.
    """

    def narrowed(name, array):
        is_kept = name in needed or (array.size <= 1 and name not in typed)
        return array if is_kept or array.dtype != np.float32 else array.astype(dtype)

    number = element_type(dtype)
    typed = {
        name for step in graph.steps if step.key[1] in _TYPED_PARAMETERS for name in step.inputs
    }
    for name, array in graph.constants.items():
        graph.constants[name] = narrowed(name, array)
    for step in graph.steps:
        key, attributes = step.key[1], step.attributes
        attribute = _TYPED.get(key)
        if attribute and attributes.get(attribute) == _FLOAT:
            attributes[attribute] = number
        value = attributes.get("value")
        if key == "Constant" and isinstance(value, np.ndarray):
            attributes["value"] = narrowed(step.outputs[0], value)
        elif key == "ConstantOfShape" and (value is None or value.dtype == np.float32):
            attributes["value"] = np.zeros(1, dtype) if value is None else value.astype(dtype)
        inside = [step.graph, *attributes.values()]
        for one in inside:
            if isinstance(one, Graph):
                narrow(one, dtype, needed)
