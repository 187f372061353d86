"""What the standard says of operators and values: the form of nodes, TypeProto messages."""

import numpy as np

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.onnx_file import onnx
from gputensor.importers.onnx_values import _DTYPES

__all__ = ["check_form", "element_type", "type_of"]

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


def check_form(label, inputs, schema, protos):
    """Raise ModelError for a node that lacks what the standard requires, or has too many inputs.

    Too many would reach further parameters of the operator's function, such as `out`.
    """
    if schema is None:
        return
    for i, declared in enumerate(schema.inputs):
        is_given = i < len(inputs) and inputs[i]
        if declared.option == _SINGLE and not is_given:
            got = Described(f"no input {declared.name!r}")
            raise argument_error(ModelError, label, got, "all inputs that are not optional")
    count = max((i + 1 for i, name in enumerate(inputs) if name), default=0)
    if count > schema.max_input:
        got = Described(f"{count} inputs")
        raise argument_error(ModelError, label, got, f"at most {schema.max_input}")
    for name, declared in schema.attributes.items():
        proto = protos.get(name)
        if proto is None and declared.required:
            got = Described(f"no attribute {name!r}")
            raise argument_error(ModelError, label, got, "all attributes without a default")
        if proto is not None and proto.type != int(declared.type.value):
            kinds = onnx.AttributeProto.AttributeType
            got = Described(f"{kinds.Name(proto.type)} as attribute {name!r}")
            raise argument_error(ModelError, label, got, declared.type.name)


_SINGLE = onnx.defs.OpSchema.FormalParameterOption.Single
