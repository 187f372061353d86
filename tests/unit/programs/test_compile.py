"""compile, trace and jit: arguments, trees, signatures and error messages."""

import inspect
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor.errors import ProgramError
from gputensor.programs import trace
from gputensor.programs.compile import data_of, sources_of
from gputensor.programs.passes import order
from gputensor.programs.passes.plan import plan
from gputensor.programs.program import Program
from gputensor.programs.quantization.matrices import quantize

F32 = gt.float32


class Pair(NamedTuple):
    left: object
    right: object


def ones(*shape):
    return gt.ones(shape, device="host")


@pytest.mark.parametrize(
    ("target", "tune", "message"),
    [
        ("host", True, r"target: got no GPU to tune for; expected a target that names"),
        (["h200"], 5, r"target: got no GPU to tune for"),
        (["h200"], -1, r"tune: got -1; expected True, False or a number of seconds"),
        (["h200"], "long", r"tune: got 'long'; expected True"),
        (["h200"], None, r"tune: got None; expected True"),
        ([], False, r"target: got an empty list; expected a device, or at least one name"),
    ],
)
def test_products_are_tuned_on_the_gpu_that_a_target_names(target, tune, message):
    with gt.Device("host"), pytest.raises(ValueError, match=message):
        gt.compile(lambda x: x @ x, gt.spec((3, 3)), target=target, tune=tune)


def test_arguments_are_trees_by_position_and_name():
    def model(x, pair, *, mask=None, times=2):
        x = x * times + pair["a"][0] - pair["a"][1].left
        return x if mask is None else gt.where(mask, x, 0)

    pair = {"a": (gt.spec((3,)), Pair(gt.spec((3,)), "name"))}
    program = gt.compile(model, gt.spec((3,)), pair, mask=gt.spec((3,), gt.bool), target="host")
    given = {"a": (ones(3), Pair(ones(3) * 5, "name"))}
    mask = gt.asarray([True, False, True], device="host")
    assert program(ones(3), given, mask=mask).tolist() == [-2, 0, -2]
    assert [one.path for one in program.functions["model"].inputs] == [
        "x",
        "pair.a.0",
        "pair.a.1.left",
        "mask",
    ]


def test_a_tensor_stands_for_its_spec():
    def model(pair, *, scale):
        return pair["x"] * scale + pair["n"]

    x, scale = ones(2, 3), gt.ones(3, dtype="float64", device="host")
    program = gt.compile(model, {"x": x, "n": 2}, scale=scale, target="host")
    specs = {"x": gt.spec((2, 3)), "n": 2}
    again = gt.compile(model, specs, scale=gt.spec((3,), "float64"), target="host")
    assert str(program) == str(again)
    assert program({"x": x * 5, "n": 2}, scale=scale * 3).tolist() == [[17.0] * 3] * 2


def test_several_functions_share_weights_and_state():
    def fill(x, *, weights, state):
        state["k"][:2] = x * weights["w"]
        state["length"][...] = 2

    def read(*, weights, state):
        return gt.sum(state["k"]) + state["length"] + weights["w"]

    program = gt.compile(
        {"fill": (fill, gt.spec((2,))), "read": read},
        weights={"w": gt.full((), 3.0, device="host"), "unread": ones(5)},
        state={"k": ones(4), "length": gt.spec((), gt.int32)},
        target="host",
    )
    assert set(program.data.weights) == {"w", "state.k"}
    with program.session() as session:
        assert session.read().item() == 7
        assert session.fill(ones(2)) is None
        assert session.read().item() == 13
        session.reset()
        assert session.read().item() == 7


def test_constants_are_copies_in_a_program_and_references_in_jit():
    outside = ones(2)
    program = gt.compile(lambda x: x + outside, gt.spec((2,)), target="host")
    jitted = gt.jit(lambda x: x + outside)
    assert program(ones(2)).tolist() == jitted(ones(2)).tolist() == [2, 2]
    outside[0] = 5
    assert program(ones(2)).tolist() == [2, 2]
    assert jitted(ones(2)).tolist() == [6, 2]


def test_calls_of_constants_alone_run_once():
    def model(x):
        table = gt.exp(gt.arange(4, dtype=F32)) * 2
        return x + table[::-1]

    made = gt.compile(model, gt.spec((4,)), target="host").data.functions["model"]
    assert len(made.calls) == 1


def test_jit_compiles_for_each_signature():
    traced = []

    @gt.jit
    def model(x, scale=2, *, tree=None):
        """The docstring."""
        traced.append(x.shape)
        return x @ x * scale if tree is None else x + tree["a"]

    assert model.__doc__ == "The docstring." and model.__name__ == "model"
    square = ones(2, 2)
    for _turn in range(3):
        assert model(square).tolist() == [[4, 4], [4, 4]]
    assert len(traced) == 1
    assert model(square, 3).tolist() == [[6, 6], [6, 6]]
    assert model(square, scale=3).tolist() == [[6, 6], [6, 6]]
    assert len(traced) == 2
    with blas.precision(allow_tf32=True):
        model(square)
    assert len(traced) == 3
    assert model(square, tree={"a": ones(2)}).tolist() == [[2, 2], [2, 2]]
    assert model(square.astype("int32")).dtype == gt.int32
    assert len(traced) == 5


def test_jit_warns_of_many_shapes_and_names_dim():
    model = gt.jit(lambda x: x + 1)
    for n in range(1, 9):
        model(ones(n))
    with pytest.warns(RuntimeWarning, match=r"9th shape; gt\.compile with a gt\.Dim"):
        model(ones(9))
    model(ones(10))


def test_jit_inside_of_a_trace_is_a_part_of_it():
    inner = gt.jit(lambda x: x + 1)
    function = trace(lambda x: inner(x) * inner(x), gt.spec((2,)), target="host")
    assert len(function.calls) == 3 and not inner.programs
    outer = gt.jit(lambda x: inner(x) * 2)
    assert outer(ones(2)).tolist() == [4, 4]


def test_a_failed_jit_leaves_nothing():
    @gt.jit
    def model(x):
        return x if gt.sum(x) > 0 else -x

    for _turn in range(2):
        with pytest.raises(gt.TraceError, match=r"test_compile\.py:\d+: bool\(\) needs a value"):
            model(ones(2))
    assert not model.programs


def test_trace_prints_the_calls():
    def model(x, *, weights):
        return gt.linear(x, weights["w"], activation="relu")

    spec = gt.spec((gt.Dim("n", 1, 8), 3))
    shown = str(trace(model, spec, weights={"w": ones(4, 3)}, target="host"))
    assert "func @model(x: f32[n,3])" in shown and "-> f32[n,4]" in shown
    assert "product" in shown and "test_compile.py:" in shown


def same(x, y=None):
    return x


PAIR = gt.spec((2,))
MISTAKES = [
    ("tuned: got an unknown option or argument", lambda: gt.compile(same, PAIR, PAIR, tuned=True)),
    ("quantize: got", lambda: gt.compile(same, PAIR, quantize={"*": "int8"})),
    ("target: got list", lambda: gt.compile(same, PAIR, target=["a100", 3])),
    ("target: got 'a1000'; expected a100", lambda: gt.compile(same, PAIR, target="a1000")),
    ("got 3 specs; expected at most 2", lambda: gt.compile(same, PAIR, PAIR, PAIR)),
    ("x: got no spec", lambda: gt.compile(same)),
    (r"got the parameter \*xs", lambda: gt.compile(lambda *xs: xs[0], PAIR)),
    ("fn: got a dict together with specs", lambda: gt.compile({"a": same}, PAIR)),
    ("fn: got 'a b'", lambda: gt.compile({"a b": (same, PAIR)})),
    ("x: got ndarray", lambda: gt.compile(same, np.ones(2))),
    ("fn: got int", lambda: gt.jit(3)),
    ("shape: got str", lambda: gt.spec("ab")),
    ("shape: got -1", lambda: gt.spec((-1,))),
    ("w: got a Dim", lambda: gt.compile(same, PAIR, state={"w": gt.spec(gt.Dim("n", 1, 2))})),
    ("w: got a spec", lambda: gt.compile(same, PAIR, weights={"w": PAIR})),
    ("Dim", lambda: gt.compile(same, gt.spec(gt.Dim("n", 1, 2)), gt.spec(gt.Dim("n", 1, 3)))),
]


@pytest.mark.parametrize(("match", "make"), MISTAKES)
def test_mistakes_are_one_sentence(match, make):
    with pytest.raises((TypeError, ValueError), match=match) as caught:
        make()
    assert "\n" not in str(caught.value) and "; expected " in str(caught.value)


def test_numpy_weights_and_named_functions():
    weights = [np.arange(6, dtype=np.float32).reshape(2, 3), (np.ones(2, np.float32),)]

    class Model:
        def __call__(self, x, weights):
            return gt.linear(x, weights[0], weights[1][0])

    program = gt.compile(Model(), gt.spec((1, 3)), weights=weights, target="host")
    assert list(program.data.weights) == ["0", "1.0"]
    assert program(ones(1, 3)).tolist() == [[4, 13]]


def test_a_program_of_no_arguments_and_a_plain_result():
    program = gt.compile(lambda: {"x": gt.arange(3), "name": "n"}, target="host")
    made = program()
    assert made["x"].tolist() == [0, 1, 2] and made["name"] == "n"


def test_data_of_needs_no_device_of_its_own():
    source = sources_of(lambda x: x + 1, (gt.spec((2,)),), None, None, {})
    assert len(data_of(source, -1).functions["main"].calls) == 1


def test_a_program_opens_only_where_the_facts_hold():
    def model(x):
        return x + 1 if gt.is_available() else x

    source = sources_of(model, (gt.spec((2,)),), None, None, {})
    data = data_of(source, -1)
    assert data.functions["model"].facts == {"is_available": False}
    data.functions["model"].facts["is_available"] = True
    with pytest.raises(ProgramError, match="is_available: got False; expected True, with"):
        Program(data, -1)


PASSES = [
    "clean", "recognize_attention", "place_results", "join_epilogues", "channels_last", "split",
    "join_formulas", "join_few_rows", "join_products",
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(PASSES)))
def test_a_fault_of_a_pass_is_found_before_the_next_one(place, monkeypatch):
    """The pass duplicates a call, so a value has two writers."""

    def faulty(function, *arguments):
        made = run(function, *arguments)
        return replace(made, calls=[*made.calls, made.calls[-1]])

    def never(*arguments):
        raise AssertionError("a pass ran on what is no function")

    run = getattr(order, PASSES[place])
    monkeypatch.setattr(order, PASSES[place], faulty)
    for later in PASSES[place + 1 :]:
        monkeypatch.setattr(order, later, never)
    with pytest.raises(ProgramError, match="got value 2, which has a writer"):
        gt.compile(lambda x: gt.exp(x) @ x, gt.spec((3, 3)), target="host")


@pytest.mark.parametrize("one", [getattr(order, name) for name in PASSES] + [quantize, plan])
def test_a_pass_is_a_module_below_250_lines(one):
    assert len(inspect.getsource(inspect.getmodule(one)).splitlines()) < 250


def test_trace_is_of_a_function_or_of_a_matrix():
    function = gt.trace(lambda x, *, weights: x @ weights["w"], gt.spec((2, 3)),
                        weights={"w": gt.spec((3, 4))}, target="host")  # fmt: skip
    assert [call.name for call in function.calls] == ["product"]
    assert str(function).startswith("func @main(x: f32[2,3])")
    x = gt.asarray([[1, 2, 4], [8, 16, 32]], device="host")
    assert gt.trace(x).item() == 17 and gt.trace(x, 1).item() == 34
    assert gt.trace(x.T, offset=-1, dtype=gt.float32).dtype == gt.float32
    traced = gt.compile(lambda x: gt.trace(x), gt.spec((3, 3)), target="host")
    assert traced(gt.eye(3, device="host")).item() == 3
    with pytest.raises(ValueError, match="trace: x: got 0 dimensions; expected 2 or more"):
        gt.trace(3)
    with pytest.raises(TypeError, match="trace: argument: got str; expected a Tensor"):
        gt.trace("a")


# ---- arrays as weights and states


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).astype(">f4").reshape(2, 3),
        np.arange(4, dtype=">i8")[::-1],
        np.array([2, 0, 255], np.uint8).view(bool),
        np.array(1, np.uint8).view(bool),
        np.float32(2.5),
        np.int16(-3),
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_any_numeric_array_may_be_a_weight_or_a_state(array, tmp_path):
    def model(x, *, weights, state):
        return weights["w"].astype("float32") + x, state["w"].astype("float32") * 1

    given = {"w": array}
    want = (array.view(np.uint8) != 0 if array.dtype == bool else array).astype(np.float32)
    with gt.Device("host"):
        program = gt.compile(model, gt.spec(()), weights=given, state=given)
    program.save(tmp_path / "m.gtp")
    for opened in (program, gt.load_program(tmp_path / "m.gtp", device="host", verify=True)):
        for found in opened.session()(gt.zeros((), device="host")):
            np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.zeros(2, "M8[s]")])
def test_weights_of_other_types_are_named(array):
    with pytest.raises(TypeError, match=r"layers.0: got dtype .*; expected a dtype of the library"):
        weights = {"layers": [array]}
        gt.compile(lambda x, *, weights: x, gt.spec(()), weights=weights, target="host")


# ---- names


@pytest.mark.parametrize("has_constant", [False, True])
def test_weights_may_have_names_of_constants_and_states(has_constant, tmp_path, rng):
    row = rng.standard_normal((3, 3), np.float32)

    def model(x, *, weights, state):
        x = x @ weights["state"]["x"] @ weights["constant"][0] @ weights["pad"][0]
        state["x"] += x + gt.asarray(row) if has_constant else x
        return state["x"] * 1

    arrays = [rng.standard_normal((3, 3), np.float32) for _ in range(5)]
    given = {"state": {"x": arrays[0]}, "constant": arrays[1:2], "pad": arrays[2:3]}
    x, first = arrays[3:]
    want = np.linalg.multi_dot([x.astype(np.float64), *arrays[:3]]) + row * has_constant + first
    with gt.Device("host"):
        program = gt.compile(model, gt.spec((3, 3)), weights=given, state={"x": first})
    program.save(tmp_path / "m.gtp")
    program.save(tmp_path / "apart.gtp", weights="w.safetensors")
    names = {name for name in program.data.weights if name.startswith("weights.")}
    assert names == {"weights.state.x", "weights.constant.0", "weights.pad.0"}
    for path in (None, tmp_path / "m.gtp", tmp_path / "apart.gtp"):
        with program if path is None else gt.load_program(path, device="host") as opened:
            found = opened.session()(gt.asarray(x, device="host")).numpy()
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_weights_with_one_name_are_refused():
    weights = {"state": {"x": ones(2)}, "weights": {"state": {"x": ones(2)}}}
    with pytest.raises(ValueError, match=r"weights: got two leaves 'weights.state.x'; expected"):
        gt.compile(lambda x, *, weights: x, gt.spec((2,)), weights=weights, target="host")


@pytest.mark.parametrize("name", ["save", "session", "state", "weights", "free", "device_number"])
def test_functions_may_not_hide_what_programs_have(name):
    with pytest.raises(ValueError, match=f"fn: got '{name}'; expected names that programs and"):
        gt.compile({name: (lambda x: x, gt.spec((2,)))}, target="host")


# ---- intermediate results without elements


@pytest.mark.parametrize("k", [0, 3])
def test_products_without_elements_are_no_calls(k):
    """Models cut everything away at some sizes; eager products of nothing work too."""

    def function(x, *, weights):
        nothing = gt.matmul(x, gt.zeros((k, 0), dtype="float32", device=x.device))
        none = gt.linear(x[:0], weights["w"], gt.ones(4, dtype="float32", device=x.device))
        return gt.concat([nothing, x + 1], axis=1), none

    weights = {"w": gt.ones((4, k), device="host")}
    x = gt.ones((2, k), device="host")
    spec = gt.spec((2, k), "float32")
    with gt.compile(function, spec, weights=weights, target="host") as program:
        found, none = program(x)
    assert found.tolist() == [[2.0] * k] * 2 and none.shape == (0, 4)
    wanted, _none = function(x, weights=weights)
    assert found.tolist() == wanted.tolist()


def test_rows_without_elements_are_gathered():
    """Only the check of the indices remains of it."""
    where = gt.asarray([3, 1], device="host")
    x = gt.zeros((5, 0), device="host")
    with gt.compile(lambda x, i: x[i], x, where, target="host") as program:
        assert program(x, where).shape == (2, 0)
        with pytest.raises(IndexError):
            program(x, where + 2)


def halved(x, *, weights):
    y = gt.relu(gt.conv2d(x, weights["w"], stride=2, padding=1))
    return gt.sum(gt.max_pool2d(y, 2), axis=1), y[:, :, ::3, 1::2] * 2


@pytest.mark.parametrize("is_square", [False, True])
def test_free_images_through_strides(is_square, rng):
    height = gt.Dim("h", 4, 24)
    width = height if is_square else gt.Dim("w", 4, 40)
    weights = {"w": gt.asarray(rng.standard_normal((3, 2, 3, 3)).astype("float32"))}
    shape = (gt.Dim("b", 1, 4), 2, height, width)
    program = gt.compile(halved, gt.spec(shape), weights=weights)
    for high in (4, 7, 10, 13, 16, 24):
        wide = high if is_square else int(rng.integers(4, 41))
        x = gt.asarray(rng.standard_normal((2, 2, high, wide)).astype("float32"))
        for got, want in zip(program(x), halved(x, weights=weights), strict=True):
            assert np.array_equal(got.numpy(), want.numpy())
