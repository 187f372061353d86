"""Writes small ONNX models, and reads those that must be refused."""

import pytest
from onnx import TensorProto, helper

import gputensor as gt

__all__ = ["FLOAT", "info", "node", "refused", "written"]

FLOAT = TensorProto.FLOAT


def info(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def written(path, nodes, inputs, outputs, weights=(), opset=21, **more):
    graph = helper.make_graph(nodes, "main", inputs, outputs, list(weights))
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, **more)
    path.write_bytes(model.SerializeToString())
    return path


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def refused(path):
    with pytest.raises(gt.ModelError) as caught:
        gt.load_onnx(path)
    text = str(caught.value)
    assert "\n" not in text
    return text
