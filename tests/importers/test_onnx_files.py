"""`load_onnx` of hostile files: wrong facts, external data, limits; each error is one line."""

import os

import numpy as np
import pytest
from onnx import TensorProto, helper

import gputensor as gt
from gputensor.importers import onnx_graph
from tests.importers.onnx_builder import FLOAT, info, node, refused, written


def test_files_that_are_not_models_are_refused(tmp_path):
    path = tmp_path / "m.onnx"
    assert "expected an ONNX file" in refused(path)
    path.write_bytes(b"no model at all")
    assert "expected an ONNX file" in refused(path)
    path.write_bytes(b"")
    assert "expected an ONNX model" in refused(path)
    os.mkfifo(tmp_path / "pipe.onnx")
    assert "got a pipe, a socket or a device; expected" in refused(tmp_path / "pipe.onnx")
    assert "got a folder; expected an ONNX file" in refused(tmp_path)
    nodes = [node("Relu", "x", "y")]
    written(path, nodes, [info("x", [2])], [info("y", [2])], opset=5)
    assert "operator set 5; expected operator sets 7 to" in refused(path)
    data = path.read_bytes()
    for length in range(0, len(data), 3):
        path.write_bytes(data[:length])
        refused(path)


def weight(**fields):
    proto = TensorProto(name="w", data_type=FLOAT, dims=[2])
    for name, value in fields.items():
        if name in ("dims", "float_data"):
            del proto.dims[:]
            getattr(proto, name).extend(value)
        else:
            setattr(proto, name, value)
    return proto


def with_weight(tmp_path, proto):
    nodes = [node("Add", "x w", "y")]
    return written(tmp_path / "m.onnx", nodes, [info("x", [2])], [info("y", [2])], [proto])


@pytest.mark.parametrize(
    ("proto", "words"),
    [
        (weight(raw_data=b"123"), "3 bytes; expected 8 for float32"),
        (weight(name="w" * 9999, raw_data=b"123"), "www...: got 3 bytes; expected 8 for float32"),
        (weight(dims=[1 << 40, 1 << 40]), "expected extents of at least 0"),
        (weight(dims=[-2]), "expected extents of at least 0"),
        (weight(dims=[1 << 38]), f"0 elements; expected {1 << 38}"),
        (weight(data_type=99, raw_data=b"12345678"), "element type: got 99"),
    ],
)
def test_weights_with_wrong_facts_are_refused(tmp_path, proto, words):
    assert words in refused(with_weight(tmp_path, proto))


def test_a_weight_whose_name_is_no_text_is_named(tmp_path):
    path = with_weight(tmp_path, weight(name="odd", raw_data=b"123"))
    path.write_bytes(path.read_bytes().replace(b"odd", b"\xc8dd"))
    assert r"\xc8dd: got 3 bytes; expected 8" in refused(path)


def external(tmp_path, location, **facts):
    proto = weight(data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **facts}.items():
        proto.external_data.add(key=key, value=str(value))
    return with_weight(tmp_path, proto)


def test_external_data_is_mapped(tmp_path):
    (tmp_path / "sub").mkdir()
    np.float32([9, 9, 1, 2]).tofile(tmp_path / "sub" / "w.bin")
    path = external(tmp_path, "sub/w.bin", offset=8, length=8)
    y = gt.load_onnx(path).run(gt.asarray([1.0, 1.0], device="host"))
    assert y.tolist() == [2, 3]


@pytest.mark.parametrize(
    "location", ["../w.bin", "/etc/hostname", "", "sub/../../w.bin", "link", 999 * "w"]
)
def test_external_data_stays_inside_the_folder(tmp_path, location):
    np.float32([1, 2]).tofile(tmp_path / "w.bin")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "w.bin")
    path = external(folder, location)
    message = refused(path)
    assert "a file inside the folder of the model" in message and len(message) < 500


def test_external_data_that_became_shorter_is_refused(tmp_path):
    np.float32([1, 2] * 4096).tofile(tmp_path / "w.bin")
    proto = weight(data_location=TensorProto.EXTERNAL, dims=[8192])
    proto.external_data.add(key="location", value="w.bin")
    nodes = [node("Add", "x w", "y")]
    path = tmp_path / "m.onnx"
    written(path, nodes, [info("x", [1])], [info("y", [8192])], [proto])
    model = gt.load_onnx(path)
    with pytest.raises(ValueError, match="weights: got 'w.bin'; expected another file than one"):
        model.compile().save(tmp_path / "m.gtp", weights="w.bin")
    os.truncate(tmp_path / "w.bin", 100)
    for use in (lambda: model.run(gt.ones(1, device="host")), model.compile):
        with pytest.raises(gt.errors.GpuTensorError, match="w.bin: got 100 bytes; expected the 32"):
            use()
    np.float32([1, 2] * 4096).tofile(tmp_path / "w.bin")
    assert gt.load_onnx(path).run(gt.ones(1, device="host")).tolist() == [2, 3] * 4096


@pytest.mark.parametrize("facts", [{"offset": 4}, {"length": 4}, {"offset": -8}, {"offset": "x"}])
def test_external_data_with_wrong_facts_is_refused(tmp_path, facts):
    np.float32([1, 2]).tofile(tmp_path / "w.bin")
    assert "w: got" in refused(external(tmp_path, "w.bin", **facts))


def test_nested_graphs_have_a_limit(tmp_path):
    flat = helper.make_graph([node("Identity", "x", "y")], "flat", [], [info("y", [2])])
    graph = flat
    for _level in range(28):
        inside = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=flat)
        graph = helper.make_graph([inside], "deep", [], [info("y", [2])])
    inputs = [info("x", [2]), info("c", [], TensorProto.BOOL)]
    path = written(tmp_path / "m.onnx", list(graph.node), inputs, [info("y", [2])])
    assert "at most 24 levels" in refused(path)


def test_functions_that_double_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_graph, "MOST_NODES", 1000)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    functions = []
    for level in range(20):
        kind, domain = (f"F{level + 1}", "mine") if level < 19 else ("Relu", "")
        calls = [
            helper.make_node(kind, ["x"], ["a"], domain=domain),
            helper.make_node(kind, ["a"], ["y"], domain=domain),
        ]
        functions.append(helper.make_function("mine", f"F{level}", ["x"], ["y"], calls, opsets))
    call = helper.make_node("F0", ["x"], ["y"], domain="mine")
    graph = helper.make_graph([call], "main", [info("x", [2])], [info("y", [2])])
    model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert "more than 1000 nodes" in refused(tmp_path / "m.onnx")


def test_a_function_that_calls_itself_is_refused(tmp_path):
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    call = helper.make_node("F", ["x"], ["y"], domain="mine")
    function = helper.make_function("mine", "F", ["x"], ["y"], [call], opsets)
    graph = helper.make_graph([call], "main", [info("x", [2])], [info("y", [2])])
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert "at most 24 levels" in refused(tmp_path / "m.onnx")
