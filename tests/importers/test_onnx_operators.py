"""Operators and options that the node cases of the `onnx` package leave out."""

import itertools
import re

import numpy as np
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

import gputensor as gt
from gputensor.importers.onnx_model import model_of

FLOAT = TensorProto.FLOAT


def model(nodes, inputs, outputs, weights=(), opset=21, **options):
    """The Model of a graph; `inputs` and `outputs` map names to shapes."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "main",
        [value(name, FLOAT, shape) for name, shape in inputs.items()],
        [value(name, FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return model_of(proto, **options)


def one(kind, inputs, outputs=("y",), **attributes):
    return helper.make_node(kind, list(inputs), list(outputs), **attributes)


@pytest.mark.parametrize(
    ("kind", "attributes", "mean", "deviation"),
    [
        ("RandomUniformLike", {"low": 1.0, "high": 3.0}, 2, 2 / 12**0.5),
        ("RandomNormalLike", {"mean": -1.0, "scale": 2.0}, -1, 2),
    ],
)
def test_random_numbers_are_of_their_distribution(device, kind, attributes, mean, deviation):
    made = model([one(kind, "x", **attributes)], {"x": [200, 500]}, {"y": [200, 500]})
    x = gt.zeros((200, 500), device=device)
    first, second = made.run(x).numpy(), made.run(x).numpy()
    bound = 7 * deviation / first.size**0.5  # seven standard deviations: one run in 4e11
    assert abs(first.mean() - mean) < bound and abs(first.std() - deviation) < bound
    assert (first != second).mean() > 0.99


def test_a_seed_gives_the_same_numbers_in_each_run(device):
    nodes = [one("RandomUniform", (), seed=2.5, shape=[5], low=2.0, high=3.0)]
    made = model(nodes, {}, {"y": [5]})
    before = gt.device.current_device()
    gt.set_device(device)
    try:
        first, second = made.run().tolist(), made.run().tolist()
    finally:
        gt.set_device(before)
    assert first == second and all(2 <= value < 3 for value in first)


def test_multinomial_draws_what_is_likely(device):
    nodes = [one("Multinomial", "x", ("z",), sample_size=400), one("Cast", "z", to=1)]
    made = model(nodes, {"x": [2, 3]}, {"y": [2, 400]})
    logits = np.log(np.float32([[0.5, 0.5, 1e-30], [1e-30, 1e-30, 1]]))
    y = made.run(gt.asarray(logits, device=device)).numpy()
    assert (y[1] == 2).all() and 120 < (y[0] == 0).sum() < 280 and (y[0] < 2).all()


@pytest.mark.parametrize("kind", ["ScatterElements", "ScatterND"])
def test_many_sums_at_positions_that_repeat(kind, rng):
    places = rng.integers(-7, 7, (5000, 3 if kind == "ScatterElements" else 1))
    updates = rng.integers(-9, 9, (5000, 3)).astype(np.float32)
    weights = [("places", places), ("updates", updates)]
    node = one(kind, ("x", "places", "updates"), reduction="add")
    made = model([node], {"x": [7, 3]}, {"y": [7, 3]}, weights)
    wanted = np.zeros((7, 3), np.float32)
    np.add.at(wanted, (places, np.arange(3)), updates)
    x = gt.zeros((7, 3), device="host")
    with made.compile(target="host") as program:
        assert (made.run(x).numpy() == wanted).all() and (program(x).numpy() == wanted).all()


def test_dropout_keeps_the_mean(device):
    weights = [("ratio", np.float32(0.25)), ("training", np.bool_(True))]
    made = model(
        [one("Dropout", ("x", "ratio", "training"))], {"x": [9999]}, {"y": [9999]}, weights
    )
    y = made.run(gt.ones(999, device=device)).numpy()
    assert set(np.unique(y)) == {0, np.float32(1 / 0.75)} and abs(y.mean() - 1) < 0.15


def test_pooling_by_powers(device, rng):
    x = rng.standard_normal((2, 3, 4, 5), np.float32)
    for p in (1, 2, 3):
        made = model([one("GlobalLpPool", "x", p=p)], {"x": x.shape}, {"y": [2, 3, 1, 1]})
        wanted = (np.abs(x.astype(np.float64)) ** p).sum((2, 3), keepdims=True) ** (1 / p)
        y = made.run(gt.asarray(x, device=device)).numpy()
        np.testing.assert_allclose(y, wanted, rtol=1e-5)


def test_another_element_type(device, rng):
    """Weights, constants and casts take the new type; the scales of a resize keep theirs."""
    w = rng.standard_normal((3, 3), np.float32)
    nodes = [
        one("MatMul", ("x", "w"), ("a",)),
        one("Constant", (), ("c",), value=numpy_helper.from_array(np.float32([1, 2, 3]))),
        one("Add", ("a", "c"), ("b",)),
        one("Cast", ("b",), ("d",), to=FLOAT),
        one("Constant", (), ("tiny",), value=numpy_helper.from_array(np.float32(1e-12))),
        one("Add", ("d", "tiny"), ("e",)),
        one("Resize", ("e", "", "scales"), mode="nearest"),
    ]
    weights = [("w", w), ("scales", np.float32([1, 1.6]))]
    made = model(nodes, {"x": [2, 3]}, {"y": [2, 4]}, weights, dtype="bfloat16")
    assert made.weights["w"].dtype == gt.bfloat16 and made.specs[0].dtype == gt.bfloat16
    x = rng.standard_normal((2, 3), np.float32)
    y = made.run(gt.asarray(x, device=device).astype("bfloat16"))
    assert y.dtype == gt.bfloat16 and y.shape == (2, 4)
    plain = model(nodes, {"x": [2, 3]}, {"y": [2, 4]}, weights)
    wanted = plain.run(gt.asarray(x, device=device)).numpy()
    np.testing.assert_allclose(y.numpy().astype(np.float32), wanted, rtol=0.1, atol=0.1)
    with pytest.raises(ValueError, match="dtype: got 'int8'; expected float16, bfloat16"):
        model(nodes, {"x": [2, 3]}, {"y": [2, 4]}, weights, dtype="int8")


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions_are_sampled_like_the_reference(mode, rng):
    attributes = {"output_height": 3, "output_width": 2, "spatial_scale": 0.5, "mode": mode}
    x = rng.standard_normal((2, 3, 7, 9), np.float32)
    boxes = regions(rng)
    batch = rng.integers(0, 2, 5)
    for count in (0, 1, 3):
        node = one("RoiAlign", ("x", "boxes", "batch"), sampling_ratio=count, **attributes)
        made = model([node], {"x": x.shape, "boxes": [5, 4]}, {"y": None}, [("batch", batch)], 22)
        wanted = reference(node, {"x": x, "boxes": boxes, "batch": batch})
        given = [gt.asarray(one, device="host") for one in (x, boxes)]
        np.testing.assert_allclose(made.run(*given).numpy(), wanted, rtol=1e-3, atol=1e-4)
        if count:  # the values of the boxes decide how many samples there are
            with made.compile(target="host") as program:
                np.testing.assert_allclose(program(*given).numpy(), wanted, rtol=1e-3, atol=1e-4)


def regions(rng):
    """Boxes with up to 5 samples in each of 2 x 3 cells, none close to where it ceases to count.

    That is one element outside of an image of 7 x 9; there rounding decides, as it does for the
    number of samples of cells whose sides are whole.
    """
    shares = [k + (i + 0.5) / n for n in range(1, 6) for i in range(n) for k in range(3)]
    while True:
        first, sides = rng.uniform(-6, 16, (5, 2)), rng.uniform(-2, 20, (5, 2))
        cells = sides / 2 / (2, 3)
        places = (first / 2 - 0.5)[..., None] + cells[..., None] * shares
        near = (places + 1, places - [[9], [7]], cells - np.rint(cells))
        if min(np.abs(one).min() for one in near) > 1e-4:
            return np.concatenate([first, first + sides], 1).astype(np.float32)


def reference(node, given):
    value = helper.make_tensor_value_info
    inputs = [value(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
              for name, one in given.items()]  # fmt: skip
    graph = helper.make_graph([node], "one", inputs, [value("y", FLOAT, None)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return onnx.reference.ReferenceEvaluator(proto).run(None, given)[0]


@pytest.mark.parametrize("n", [1, 5])
def test_the_only_sample_of_an_axis_is_at_its_first_element(n, rng):
    """By the standard's text; its reference takes the place -0.5 instead."""
    how = {"coordinate_transformation_mode": "pytorch_half_pixel", "cubic_coeff_a": -0.5}
    node = one("Resize", ("x", "", "", "sizes"), mode="cubic", exclude_outside=1, **how)
    made = model([node], {"x": [1, n]}, {"y": [1, 1]}, [("sizes", np.array([1, 1]))])
    x = rng.standard_normal((1, n), np.float32)
    assert made.run(gt.asarray(x, device="host")).tolist() == [[x[0, 0]]]


@pytest.mark.parametrize("kind", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"])
def test_reductions_of_integers_are_integers(kind, rng):
    made = model([one(kind, "x", axes=[1], keepdims=0)], {"x": [3, 4]}, {"y": [3]}, opset=13)
    x = rng.integers(1, 9, (3, 4), np.int32)
    y = made.run(gt.asarray(x, device="host")).numpy()
    wide = x.astype(np.float64)
    wanted = {
        "ReduceL2": np.sqrt((wide**2).sum(1)), "ReduceLogSum": np.log(wide.sum(1)),
        "ReduceLogSumExp": np.log(np.exp(wide).sum(1)), "ReduceMean": wide.mean(1),
    }[kind]  # fmt: skip
    # Where the exact result is an integer, float32 may be a little below it.
    near = (y == np.trunc(wanted - 1e-4)) | (y == np.trunc(wanted + 1e-4))
    assert y.dtype == np.int32 and near.all()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_quotients_of_integers_are_exact(dtype, rng):
    """Of weights, divided at import, and of inputs; float64 does not hold every int64."""
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, 50, dtype, endpoint=True)
    y = rng.integers(max(info.min, -9), 9, 50, dtype)
    y[y == 0] = 3
    nodes = [one("Div", "ab", "c"), one("Div", "xb", "d"), one("Concat", "cd", axis=0)]
    made = model(nodes, {"x": [50]}, {"y": [100]}, [("a", x), ("b", y)])
    wanted = [
        abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    assert made.run(gt.asarray(x, device="host")).tolist() == 2 * wanted


def test_regions_are_pooled_over_whole_elements(rng):
    x = rng.standard_normal((2, 3, 8, 9), np.float32)
    boxes = np.float32([[1, 2, 1, 12, 9], [0, -3, 4, 40, 13], [1, 30, 30, 31, 31]])
    node = one("MaxRoiPool", ("x", "boxes"), pooled_shape=[2, 3], spatial_scale=0.5)
    made = model([node], {"x": x.shape, "boxes": boxes.shape}, {"y": [3, 3, 2, 3]})
    wanted = np.zeros((3, 3, 2, 3), np.float32)
    for k, (batch, *ends) in enumerate(boxes):
        left, top, right, bottom = (int(np.sign(v) * np.floor(abs(v) / 2 + 0.5)) for v in ends)
        height, width = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i, j in np.ndindex(2, 3):
            rows = np.arange(i * height // 2, -(-(i + 1) * height // 2)) + top
            columns = np.arange(j * width // 3, -(-(j + 1) * width // 3)) + left
            rows, columns = rows[(rows >= 0) & (rows < 8)], columns[(columns >= 0) & (columns < 9)]
            if rows.size and columns.size:
                wanted[k, :, i, j] = x[int(batch)][:, rows][:, :, columns].max((1, 2))
    given = [gt.asarray(one, device="host") for one in (x, boxes)]
    with made.compile(target="host") as program:
        assert (made.run(*given).numpy() == wanted).all()
        assert (program(*given).numpy() == wanted).all()


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_n_grams_are_counted(mode, rng):
    pool = [[2], [0], [1, 1], [3, 0], [0, 1, 2]]
    factors, places = rng.random(5), rng.permutation(7)[:5]
    node = one("TfIdfVectorizer", "x", mode=mode, min_gram_length=1, max_gram_length=3,
               max_skip_count=2, ngram_counts=[0, 2, 6], weights=factors,
               ngram_indexes=places, pool_int64s=sum(pool, []))  # fmt: skip
    x = rng.integers(0, 4, (3, 9))
    wanted = np.zeros((3, places.max() + 1))
    for row, (gram, place, factor) in itertools.product(
        range(3), zip(pool, places, factors, strict=True)
    ):
        count = 0
        for first, step in itertools.product(range(9), (1, 2, 3) if len(gram) > 1 else (1,)):
            count += x[row, first::step][: len(gram)].tolist() == gram
        wanted[row, place] = {"TF": count, "IDF": factor * (count > 0)}.get(mode, factor * count)
    made = model([one("Cast", "f", "x", to=TensorProto.INT64), node], {"f": [3, 9]}, {"y": None})
    given = gt.asarray(x.astype(np.float32), device="host")
    with made.compile(target="host") as program:
        np.testing.assert_allclose(made.run(given).numpy(), wanted, rtol=1e-5)
        np.testing.assert_allclose(program(given).numpy(), wanted, rtol=1e-5)


def test_nodes_without_what_the_standard_requires_are_refused():
    for node, problem in [
        (one("TopK", ("x", ""), ("y",)), "TopK '0': got no input 'K'"),
        (one("Cast", "x"), "Cast '0': got no attribute 'to'"),
        (one("Softmax", "x", axis=1.5), "Softmax '0': got FLOAT as attribute 'axis'; expected INT"),
        (one("Loop", ("x", "", "x")), "Loop '0': got no attribute 'body'"),
    ]:
        with pytest.raises(gt.ModelError, match=re.escape(problem)):
            model([node], {"x": [3]}, {"y": None})


def test_numbers_of_a_hostile_file_take_no_memory():
    box = [("box", np.float32([[0, 0, 1e9, 1e9]])), ("batch", np.int64([0]))]
    sizes = [("sizes", np.int64([1, 1, 2, 2**40]))]
    for node, weights, problem in [
        (one("RoiAlign", ("x", "box", "batch")), box, "at most 1024 samples"),
        (one("RoiAlign", ("x", "box", "batch"), sampling_ratio=2**30), box, "at most 1024 samples"),
        (one("Resize", ("x", "", "", "sizes")), sizes, "at most 16777216 elements"),
    ]:
        made = model([node], {"x": [1, 1, 2, 2]}, {"y": None}, weights, 22)
        with pytest.raises(gt.ModelError, match=problem):
            made.run(gt.zeros((1, 1, 2, 2), device="host"))


def test_a_negative_extent_is_free(rng):
    made = model([one("Relu", "x")], {"x": [-1, 3]}, {"y": [-1, 3]})
    x = rng.standard_normal((5, 3), np.float32)
    assert made.specs[0].shape[0].name == "x_0"
    with made.compile(target="host") as program:
        assert (program(gt.asarray(x, device="host")).numpy() == np.maximum(x, 0)).all()


def loop_of(body, carried, kinds):
    """A body graph of `Loop`; `carried` and `kinds` name inputs, and outputs with their types."""
    value = helper.make_tensor_value_info
    given = [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), *carried]
    nodes = [one("Identity", "c", ("goes",)), *body]
    return helper.make_graph(nodes, "body", given, [value("goes", TensorProto.BOOL, []), *kinds])


def test_a_long_loop_with_a_result_of_each_iteration_is_one_scan(rng):
    value = helper.make_tensor_value_info
    body = loop_of(
        [one("Gather", ("x", "i"), ("row",)), one("Add", ("sum", "row"), ("total",)),
         one("Mul", ("total", "row"), ("part",))],
        [value("sum", FLOAT, [3])],
        [value("total", FLOAT, [3]), value("part", FLOAT, [3])],
    )  # fmt: skip
    node = helper.make_node("Loop", ["count", "", "start"], ["last", "y"], body=body)
    weights = [("count", np.int64(100)), ("start", np.zeros(3, np.float32))]
    made = model([node], {"x": [100, 3]}, {"last": [3], "y": [100, 3]}, weights)
    x = rng.standard_normal((100, 3), np.float32)
    sums = np.cumsum(x.astype(np.float64), 0)
    given = gt.asarray(x, device="host")
    with made.compile(target="host") as program:
        for last, y in (made.run(given), program(given)):
            np.testing.assert_allclose(last.numpy(), sums[-1], rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(y.numpy(), sums * x, rtol=1e-4, atol=1e-4)


def test_a_sequence_that_grows_in_a_loop_and_one_of_a_choice(rng):
    kind = helper.make_tensor_sequence_value_info
    body = loop_of(
        [one("Gather", ("x", "i"), ("row",)),
         one("SequenceInsert", ("parts", "row", "first"), ("longer",))],
        [kind("parts", FLOAT, None)], [kind("longer", FLOAT, None)],
    )  # fmt: skip
    branches = [
        helper.make_graph([one("SequenceConstruct", order, ("some",))], name, [],
                          [kind("some", FLOAT, None)])
        for name, order in (("yes", ("x", "turned")), ("no", ("turned", "x")))
    ]  # fmt: skip
    nodes = [
        one("SequenceEmpty", (), ("empty",)),
        helper.make_node("Loop", ["count", "", "empty"], ["rows"], body=body),
        one("ConcatFromSequence", ("rows",), ("turned",), axis=0, new_axis=1),
        one("ReduceSum", "x", ("total",), keepdims=0),
        one("Greater", ("total", "zero"), ("positive",)),
        helper.make_node("If", ["positive"], ["pair"],
                         then_branch=branches[0], else_branch=branches[1]),
        one("ConcatFromSequence", ("pair",), axis=1),
    ]  # fmt: skip
    weights = [("count", np.int64(80)), ("zero", np.float32(0)), ("first", np.int64(0))]
    made = model(nodes, {"x": [80, 2]}, {"y": [80, 4]}, weights)
    x = rng.random((80, 2), np.float32) + 1
    with made.compile(target="host") as program:
        for values in (x, -x):
            given, turned = gt.asarray(values, device="host"), values[::-1]
            wanted = np.concatenate([x, turned] if values is x else [turned, values], 1)
            assert (made.run(given).numpy() == wanted).all()
            assert (program(given).numpy() == wanted).all()
