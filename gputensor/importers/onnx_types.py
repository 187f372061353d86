"""ONNX's TypeProto messages for values."""

import numpy as np

from gputensor.importers.onnx_file import onnx
from gputensor.importers.onnx_values import _DTYPES

__all__ = ["element_type", "type_of"]

_NUMBER_OF = {np.dtype(dtype): number for number, dtype in _DTYPES.items() if dtype is not None}


def element_type(dtype):
    """Return ONNX's number for a NumPy dtype.

    >>> element_type(np.dtype("float32"))
    1
    """
    return _NUMBER_OF[np.dtype(dtype)]


def type_of(value):
    """Return the TypeProto of a value; it is empty for an omitted input."""
    made = onnx.TypeProto()
    if value is None:
        return made
    if isinstance(value, list):
        made.sequence_type.elem_type.CopyFrom(type_of(value[0] if value else np.zeros(0, "f4")))
        return made
    made.tensor_type.elem_type = element_type(value.dtype)
    made.tensor_type.shape.SetInParent()
    for extent in value.shape:
        made.tensor_type.shape.dim.add().dim_value = extent
    return made
