"""`load_onnx`: running and compiling models, and errors of damaged ones."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gputensor as gt
from tests.importers.onnx_builder import FLOAT, info, node, refused, written


@pytest.fixture
def perceptron(tmp_path, rng):
    """(path, w, b) of a reshape, whose target is computed from shapes, and a dense layer."""
    w = rng.standard_normal((12, 5), np.float32)
    b = rng.standard_normal(5, np.float32)
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "rows", axis=0),
        node("Unsqueeze", "rows zeros", "row"),
        node("Concat", "row rest", "flat", axis=0),
        node("Reshape", "x flat", "y"),
        node("Gemm", "y layer.0/w layer.0/b", "z"),
        node("Relu", "z", "out"),
    ]
    weights = [
        numpy_helper.from_array(np.array(0), "zero"),
        numpy_helper.from_array(np.array([0]), "zeros"),
        numpy_helper.from_array(np.array([-1]), "rest"),
        numpy_helper.from_array(w, "layer.0/w"),
        numpy_helper.from_array(b, "layer.0/b"),
    ]
    path = written(
        tmp_path / "m.onnx", nodes, [info("x", ["n", 3, 4])], [info("out", ["n", 5])], weights
    )
    return path, w, b


def expected(x, w, b):
    return np.maximum(x.reshape(len(x), -1).astype(np.float64) @ w + b, 0)


def test_a_model_runs_eagerly(perceptron, device, rng):
    path, w, b = perceptron
    model = gt.load_onnx(path)
    assert model.inputs == ("x",) and model.outputs == ("out",)
    assert set(model.weights) == {"layer.0/w", "layer.0/b"}
    x = rng.standard_normal((2, 3, 4), np.float32)
    y = model.run(gt.asarray(x, device=device))
    np.testing.assert_allclose(y.numpy(), expected(x, w, b), rtol=1e-5, atol=1e-5)
    y = model.run(x=gt.asarray(x, device=device))
    np.testing.assert_allclose(y.numpy(), expected(x, w, b), rtol=1e-5, atol=1e-5)


def test_a_model_is_traced_for_all_sizes(perceptron, rng):
    path, w, b = perceptron
    model = gt.load_onnx(path)
    with model.compile(target="host") as program:
        assert len(program.functions["main"].calls) <= 2  # shape arithmetic is gone
        for n in (1, 3, 1000):
            x = rng.standard_normal((n, 3, 4), np.float32)
            y = program(gt.asarray(x, device="host"))
            np.testing.assert_allclose(y.numpy(), expected(x, w, b), rtol=1e-4, atol=1e-4)


def test_positions_of_free_extents_are_traced_for_all_sizes(tmp_path, rng):
    """As BERT's exports: a table of positions is cut to the length, rows are numbered, ..."""
    table = rng.standard_normal((16, 4), np.float32)
    nodes = [
        node("Shape", "x", "shape"),
        node("Slice", "shape zero one zero", "rows"),
        node("Slice", "shape one two zero", "length"),
        node("Squeeze", "rows zero", "n"),
        node("Slice", "places zero length one", "at"),
        node("Gather", "table at", "vectors", axis=0),
        node("Range", "first n step", "numbers"),
        node("Unsqueeze", "numbers last", "column"),
        node("Expand", "unit shape", "units"),
        node("CumSum", "units one", "counts"),
        node("Add", "column counts", "sums"),
        node("Cast", "sums", "floats", to=FLOAT),
        node("Unsqueeze", "floats last", "deep"),
        node("Unsqueeze", "x last", "values"),
        node("Add", "values vectors", "moved"),
        node("Add", "moved deep", "raised"),
        node("Shape", "vectors", "extents"),
        node("Slice", "extents last far", "four"),
        node("Cast", "four", "divisor", to=FLOAT),
        node("Div", "raised divisor", "y"),
    ]  # fmt: skip
    known = {
        "zero": [0], "one": [1], "two": [2], "last": [-1], "first": 0, "step": 1, "unit": [[1]],
        "places": [np.arange(16)], "far": [99],
    }  # fmt: skip
    weights = [numpy_helper.from_array(np.array(one), name) for name, one in known.items()]
    weights.append(numpy_helper.from_array(table, "table"))
    path = written(tmp_path / "m.onnx", nodes, [info("x", ["n", "s"])],
                   [info("y", ["n", "s", 4])], weights)  # fmt: skip
    model = gt.load_onnx(path, dims={"s": gt.Dim("s", 1, 16)})
    with model.compile(target="host") as program:
        for shape in ((1, 1), (2, 16), (5, 3)):
            x = rng.standard_normal(shape, np.float32)
            sums = np.arange(shape[0])[:, None] + np.arange(1, shape[1] + 1)
            wanted = (x + sums).astype(np.float64)[..., None] + table[: shape[1]]
            wanted /= 4
            for run in (model.run, program):
                y = run(gt.asarray(x, device="host"))
                np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_a_compiled_model_is_kept_with_its_weights(perceptron, tmp_path, rng):
    path, w, b = perceptron
    model = gt.load_onnx(path, dims={"n": 2})
    gt.compile(model.run, *model.specs, weights=model.weights, target="host").save(
        tmp_path / "m.gtp"
    )
    x = rng.standard_normal((2, 3, 4), np.float32)
    with gt.load_program(tmp_path / "m.gtp", device="host") as program:
        y = program(gt.asarray(x, device="host"))
    np.testing.assert_allclose(y.numpy(), expected(x, w, b), rtol=1e-5, atol=1e-5)


def test_weights_may_be_replaced(perceptron, rng):
    path, w, b = perceptron
    model = gt.load_onnx(path)
    x, others = rng.standard_normal((2, 3, 4), np.float32), rng.standard_normal(w.shape, np.float32)
    weights = {
        name: gt.asarray(array, device="host")
        for name, array in (model.weights | {"layer.0/w": others}).items()
    }
    y = model.run(gt.asarray(x, device="host"), weights=weights)
    np.testing.assert_allclose(y.numpy(), expected(x, others, b), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="weights: got no 'layer.0/b'; expected an array for each"):
        model.run(gt.asarray(x, device="host"), weights={"layer.0/w": weights["layer.0/w"]})


def test_several_outputs_are_a_named_tuple(tmp_path):
    nodes = [node("Split", "x", "a b/0", num_outputs=2)]
    path = written(tmp_path / "m.onnx", nodes, [info("x", [4])], [info("a", [2]), info("b/0", [2])])
    result = gt.load_onnx(path).run(gt.asarray([1.0, 2, 3, 4], device="host"))
    assert result.a.tolist() == [1, 2] and result.b_0.tolist() == [3, 4]


def test_names_that_are_no_identifiers_are_replaced(tmp_path):
    nodes = [node("Add", "gpu_0/x 1", "class"), node("Add", "class weights", "y")]
    inputs = [info(name, [2]) for name in ("gpu_0/x", "1", "weights")]
    model = gt.load_onnx(written(tmp_path / "m.onnx", nodes, inputs, [info("y", [2])]))
    assert model.inputs == ("gpu_0_x", "x_1", "weights_2")


def test_names_that_python_or_programs_use(tmp_path, rng):
    names = ("state.x", "constant.0", "pad.0", "__metadata__", "a/b:0", "ä")
    arrays = [rng.standard_normal((3, 3)).astype(np.float32) for _name in names]
    places = ["self", *map(str, range(len(names)))]
    nodes = [
        node("MatMul", f"{x} {w}", y)
        for x, w, y in zip(places, names, places[1:], strict=False)
    ]  # fmt: skip
    nodes.append(node("Add", "5 one", "class"))
    pairs = zip([*arrays, np.float32([[1, 2, 3]])], [*names, "one"], strict=True)
    weights = [numpy_helper.from_array(array, name) for array, name in pairs]
    path = tmp_path / "m.onnx"
    written(path, nodes, [info("self", ["n", 3])], [info("class", ["n", 3])], weights)
    model = gt.load_onnx(path)
    x = rng.standard_normal((2, 3)).astype(np.float32)
    want = np.linalg.multi_dot([x.astype(np.float64), *arrays]) + [1, 2, 3]
    program = model.compile(target="host")
    program.save(tmp_path / "m.gtp", weights="m.safetensors")
    with gt.load_program(tmp_path / "m.gtp", device="host") as loaded:
        for run in (model.run, program, loaded):
            found = run(gt.asarray(x, device="host")).numpy()
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_inputs_of_strings_are_refused(tmp_path):
    nodes = [node("Identity", "x", "y")]
    strings = [info("x", [2], TensorProto.STRING)], [info("y", [2], TensorProto.STRING)]
    model = gt.load_onnx(written(tmp_path / "m.onnx", nodes, *strings))
    with pytest.raises(gt.ModelError, match="x: got an input of strings; expected numbers"):
        model.compile(target="host")


def test_functions_of_the_model_are_run(tmp_path):
    body = [
        helper.make_node("Constant", [], ["c"], value_float=0.0),
        node("Mul", "a c", "zero"),
        node("LeakyRelu", "a", "r"),
        node("Add", "r zero", "b"),
    ]
    body[2].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    function = helper.make_function(
        "mine", "Soft", ["a"], ["b"], body, [helper.make_opsetid("", 21)], ["slope"]
    )
    graph = helper.make_graph(
        [helper.make_node("Soft", ["x"], ["y"], domain="mine", slope=0.5)],
        "main", [info("x", [2])], [info("y", [2])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    y = gt.load_onnx(tmp_path / "m.onnx").run(gt.asarray([-2.0, 2.0], device="host"))
    assert y.tolist() == [-1, 2]


def test_loops_and_branches_become_calls_of_a_program(tmp_path):
    """A loop whose number of iterations is an input, and a branch on a value."""
    turn = helper.make_graph(
        [node("Add", "v v", "w"), node("Identity", "c", "d")],
        "turn",
        [info("i", [], TensorProto.INT64), info("c", [], TensorProto.BOOL), info("v", [2])],
        [info("d", [], TensorProto.BOOL), info("w", [2])],
    )
    small = helper.make_graph([node("Neg", "u", "n")], "small", [], [info("n", [2])])
    large = helper.make_graph([node("Identity", "u", "m")], "large", [], [info("m", [2])])
    nodes = [
        helper.make_node("Loop", ["count", "", "x"], ["u"], body=turn),
        node("ReduceSum", "u", "s", keepdims=0),
        node("Less", "s limit", "is_small"),
        helper.make_node("If", ["is_small"], ["y"], then_branch=small, else_branch=large),
    ]
    weights = [numpy_helper.from_array(np.float32(10), "limit")]
    inputs = [info("x", [2]), info("count", [], TensorProto.INT64)]
    path = written(tmp_path / "m.onnx", nodes, inputs, [info("y", [2])], weights)
    model = gt.load_onnx(path)
    with model.compile(target="host") as program:
        for count, wanted in ((1, [-2, -4]), (3, [8, 16])):
            x, n = gt.asarray([1.0, 2.0], device="host"), gt.asarray(count, device="host")
            assert model.run(x, n).tolist() == wanted
            assert program(x, n).tolist() == wanted


# ---- files that are refused


def test_all_missing_operators_are_named_at_once(tmp_path):
    nodes = [
        helper.make_node("TreeEnsemble", ["x"], ["a"], name="trees", domain="ai.onnx.ml"),
        helper.make_node("ImageDecoder", ["x"], ["b"], name="first"),
        helper.make_node("ImageDecoder", ["x"], ["c"], name="second"),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    path = written(tmp_path / "m.onnx", nodes, [info("x", [2])], [info("y", [2])])
    text = refused(path)
    assert "ImageDecoder-21 (nodes 'first', 'second')" in text
    assert "ai.onnx.ml.TreeEnsemble of no operator set that the file names (nodes 'trees')" in text


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("Relu", "missing", "y")], "the input 'missing', made by no node"),
        ([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")], "a cycle"),
        ([node("Relu", "x", "y"), node("Neg", "x", "y")], "the output 'y' a second time"),
        ([node("Relu", "x", "z")], "the output 'y', made by no node"),
        ([node("Relu", "x x", "y")], "got 2 inputs; expected at most 1"),
        ([node("Add", "x x x", "y")], "got 3 inputs; expected at most 2"),
    ],
)
def test_invalid_graphs_are_refused(tmp_path, nodes, words):
    assert words in refused(written(tmp_path / "m.onnx", nodes, [info("x", [2])], [info("y", [2])]))


def test_errors_of_a_node_name_it(tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"], name="flatten")]
    weights = [numpy_helper.from_array(np.array([7]), "s")]
    path = written(tmp_path / "m.onnx", nodes, [info("x", [2])], [info("y", [7])], weights)
    with pytest.raises(gt.ModelError, match="^Reshape 'flatten': "):
        gt.load_onnx(path).run(gt.ones(2, device="host"))


def test_errors_of_a_trace_give_the_sizes(tmp_path):
    nodes = [helper.make_node("Add", ["x", "z"], ["y"], name="sum")]
    path = tmp_path / "m.onnx"
    written(path, nodes, [info("x", ["n", None]), info("z", ["n", None])], [info("y", None)])
    with pytest.raises(gt.ModelError, match=r"Add 'sum': .* \(at n=\d+, x_1=\d+, z_1=\d+; dims"):
        gt.load_onnx(path).compile(target="host")
    dim = gt.Dim("m", 1, 9)
    model = gt.load_onnx(path, dims={"x_1": dim, "z_1": dim})
    x = gt.ones((2, 3), device="host")
    assert (model.compile(target="host")(x, x) == 2).all()


def test_options_are_checked(perceptron):
    path = perceptron[0]
    with pytest.raises(ValueError, match="dims: got 'm'; expected one of n"):
        gt.load_onnx(path, dims={"m": 3})
    with pytest.raises(TypeError, match=r"dims\['n'\]: got str; expected an int or a Dim"):
        gt.load_onnx(path, dims={"n": "3"})
    with pytest.raises(ValueError, match="input_shapes: got 'y'; expected one of x"):
        gt.load_onnx(path, input_shapes={"y": (3,)})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_parameters_of_one_element_have_the_dtype_of_the_model(dtype, tmp_path):
    nodes = [
        node("Conv", "x w one", "a"),
        node("PRelu", "a one", "b"),
        node("Mul", "b tiny", "c"),
        node("Squeeze", "c last", "d"),
        node("Gemm", "d v one", "y", transB=1),
    ]
    known = {"w": np.ones((1, 2, 1)), "one": [1.0], "tiny": 1e-3, "v": [[3.0]]}
    weights = [numpy_helper.from_array(np.float32(one), name) for name, one in known.items()]
    weights.append(numpy_helper.from_array(np.array([-1]), "last"))
    path = written(tmp_path / "m.onnx", nodes, [info("x", [1, 2, 1])], [info("y", [1, 1])], weights)
    y = gt.load_onnx(path, dtype=dtype).run(gt.full((1, 2, 1), 500, dtype, device="host"))
    assert y.dtype.name == dtype and y.shape == (1, 1)
    np.testing.assert_allclose(y.numpy().astype(float), [[1.001 * 3 + 1]], rtol=2**-6)


def test_damaged_bytes_never_raise_another_error(perceptron, rng):
    path, _w, _b = perceptron
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    for _turn in range(100):
        bytes_ = whole[: rng.integers(1, len(whole) + 1)].copy()
        places = rng.integers(0, len(bytes_), rng.integers(0, 9))
        bytes_[places] = rng.integers(0, 256, len(places))
        path.write_bytes(bytes_.tobytes())
        try:
            gt.load_onnx(path)
        except gt.ModelError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("place", [b"Gemm", b"layer.0/w", b"flat", b"out"])
@pytest.mark.parametrize("byte", [b"\n", b"\xc8"])
def test_odd_bytes_in_names_are_one_line(perceptron, place, byte):
    """protobuf returns a name as bytes if it is not UTF-8."""
    path, _w, _b = perceptron
    path.write_bytes(path.read_bytes().replace(place, byte + place[1:]))
    if byte == b"\n" and place != b"Gemm":
        assert "\n" not in "".join(gt.load_onnx(path).outputs)  # any text is a name
        return
    with pytest.raises(gt.ModelError) as caught:
        gt.load_onnx(path)
    assert "\n" not in str(caught.value)
