"""`gt.fuse`: functions as one kernel on every device, against float64; and what it refuses."""

import dataclasses

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels import launch
from tests.support.row_checks import DTYPES, close, on_device, strided


def chain(x, y):
    a = x * 2.5 + y
    b = gt.tanh(a) - 0.5
    c = gt.where(b > 0, b, 0.25 * b)
    return gt.sqrt(gt.abs(c) + 1.0), c.astype(gt.float32)


def norm(x, weight):
    away = x - gt.mean(x, axis=-1, keepdims=True)
    spread = gt.mean(away * away, axis=-1)
    return away / gt.sqrt(spread + 1e-3)[:, None] * weight, spread


def by_columns(x):
    return x / gt.sum(gt.exp(x), axis=(0, 2), keepdims=True)


def scaled_softmax(x, mask):
    return gt.softmax(x * 0.5 + mask) * 3.0


def exact_norm(x, weight):
    away = x - x.mean(-1, keepdims=True)
    spread = (away * away).mean(-1)
    return away / np.sqrt(spread + 1e-3)[:, None] * weight, spread


def exact_softmax(x, mask):
    powers = np.exp(x * 0.5 + mask)
    return 3 * powers / powers.sum(-1, keepdims=True)


def exact_chain(x, y):
    b = np.tanh(x * 2.5 + y) - 0.5
    c = np.where(b > 0, b, 0.25 * b)
    return np.sqrt(np.abs(c) + 1), c


CASES = {
    "chain": (chain, exact_chain, ((4, 33), (33,))),
    "long chain": (chain, exact_chain, ((70000,), (1,))),
    "norm": (norm, exact_norm, ((5, 40), (40,))),
    "columns": (by_columns, lambda x: x / np.exp(x).sum((0, 2), keepdims=True), ((3, 4, 5),)),
    "softmax": (scaled_softmax, exact_softmax, ((6, 30), (6, 1))),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_values(where, name, dtype, rng):
    function, exact, shapes = CASES[name]
    arrays = [strided(rng, shape, DTYPES[dtype]) for shape in shapes]
    fused = gt.fuse(function)
    want = exact(*(one.astype(float) for one in arrays))
    want = want if isinstance(want, tuple) else (want,)
    for _ in range(2):
        found = fused(*(on_device(one, where) for one in arrays))
        found = found if isinstance(found, tuple) else (found,)
        for got, wanted in zip(found, want, strict=True):
            kind = next(name for name, dtype in DTYPES.items() if dtype == got.dtype)
            close(name, got, wanted, kind, 256 * (1 + np.abs(wanted)))


def test_rounding_to_integers_between_steps(where, rng):
    x = rng.integers(-9, 10, (4, 5)) / 4
    got = gt.fuse(lambda x: gt.round(x * 2) + gt.round(x.astype("float16")))(
        gt.asarray(x, dtype="float32", device=where)
    )
    assert np.array_equal(got.numpy(), np.round(x * 2) + np.round(x))


def test_result_is_one_call():
    seen = []

    class Recorder:
        def call(self, row, stream, arguments):
            seen.append(row.name)

    fused = gt.fuse(norm)
    x, weight = gt.ones((5, 40), device="host"), gt.ones(40, device="host")
    fused(x, weight)
    launch.set_recorder(-1, Recorder())
    try:
        fused(x, weight)
    finally:
        launch.set_recorder(-1, None)
    assert seen == ["formula"]


def test_tensors_of_the_closure(where):
    scale = gt.asarray([2.0, 3.0], device=where)
    fused = gt.fuse(lambda x: x * scale + 1)
    x = gt.ones((2, 2), device=where)
    assert fused(x).tolist() == [[3, 4], [3, 4]]
    scale[...] = 0
    assert fused(x).tolist() == [[1, 1], [1, 1]]


def test_part_of_a_program(where):
    program = gt.compile(gt.fuse(norm), gt.spec((3, 8)), gt.spec((8,)), target=where)
    x, weight = gt.ones((3, 8), device=where), gt.ones(8, device=where)
    assert np.array_equal(program(x, weight)[0].numpy(), norm(x, weight)[0].numpy())


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x @ x, "got the call product"),
        (lambda x: gt.sum(x + gt.sum(x, axis=0), axis=1), "got a reduction along axes"),
        (lambda x: gt.exp(x) + gt.exp(x).T, "got tensors with permuted axes"),
        (lambda x: x[1:] * 2 + gt.exp(x)[1:], r"got the shape \(3, 4\)"),
        (lambda x: gt.argmax(x, axis=1), "got argmax of float32"),
        (lambda x: x.astype(gt.int32) + 1, "got a cast from float32 to int32"),
        (lambda x: gt.cumsum(x, axis=0), "got the call cumulate"),
    ],
)
def test_functions_that_need_several_kernels_are_refused(function, text):
    with pytest.raises(gt.TraceError, match=text) as error:
        gt.fuse(function)(gt.ones((4, 4), device="host"))
    assert "\n" not in str(error.value)


def test_transposed_input(where, rng):
    x = rng.standard_normal((5, 5)).astype(np.float32)
    got = gt.fuse(lambda x: x + 2 * x.T)(gt.asarray(x, device=where)).numpy()
    assert np.abs(got - (x + 2 * x.T)).max() < 1e-6


def test_refusal_names_the_line():
    with pytest.raises(gt.TraceError, match=r"test_fuse\.py:\d+: main: got the call product"):
        gt.fuse(lambda x: x @ x + 1)(gt.ones((4, 4), device="host"))


def test_row_functions_along_other_axes_name_the_line(where):
    x = gt.ones((2, 3, 4), device=where)
    text = r"test_fuse\.py:\d+: .*: got softmax or a norm along an axis that is not the last in"
    for function in (lambda x: gt.softmax(x, axis=1) * 2, lambda x: gt.layer_norm(x + 1, axis=0),
                     lambda x: gt.softmax(gt.permute_dims(x, (0, 2, 1)))):  # fmt: skip
        with pytest.raises(gt.TraceError, match=text):
            gt.fuse(function)(x)
    assert gt.fuse(lambda x: gt.softmax(x, axis=(1, 2)))(x).shape == x.shape


def test_any_kind_of_parameter(where):
    x, y = gt.full((2, 3), 2.0, device=where), gt.full(3, 5.0, device=where)

    def weighted(first, /, *others, scale=1.0, **named):
        return first + scale * sum(others) + named["last"]

    for compiled in (gt.fuse(weighted), gt.jit(weighted)):
        for _ in range(2):
            assert compiled(x, y, y, last=x)[0, 0].item() == 14
            assert compiled(x, y, scale=3.0, last=x)[0, 0].item() == 19


@dataclasses.dataclass
class Layer:
    weight: object

    @gt.fuse
    def fused(self, x):
        return x * self.weight

    @gt.jit
    def compiled(self, x):
        return x @ self.weight


class Module:
    @gt.jit
    def compiled(self, x):
        return x


def test_methods(where):
    x = gt.ones((2, 3), device=where)
    for number in (2.0, 5.0):
        layer = Layer(gt.full(3, number, device=where))
        assert layer.fused(x)[1, 2].item() == number
        assert layer.compiled(x)[1].item() == 3 * number
    with pytest.raises(TypeError, match="self: got Module; expected a tensor"):
        Module().compiled(x)


def test_steps_that_no_result_needs(where):
    def function(x, y):
        assert (x @ y.T).shape == (2, 2)
        return x * 2

    x = gt.ones((2, 3), device=where)
    assert gt.fuse(function)(x, x).tolist() == [[2, 2, 2], [2, 2, 2]]


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_tensors_without_elements(where, shape):
    x = gt.empty(shape, device=where)
    fused = gt.fuse(lambda x: (x - gt.sum(x, axis=1, keepdims=True), gt.sum(x, axis=1)))
    away, total = fused(x)
    assert away.shape == shape
    assert total.tolist() == [0] * shape[0]


def long(x):
    for _ in range(70):
        x = gt.sin(x) + 1
    return x


def doubled(x):
    for _ in range(12):
        x = x * x + x
    return x


def distinct(x):
    parts = [gt.sin(x * i) for i in range(70)]
    while len(parts) > 1:
        parts = [gt.maximum(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
    return parts[0]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: None, r"\d: main: got 0 tensors as results; .* return 1 to 4"),
        (lambda x: tuple(x + i for i in range(5)), r"\d: main: got 5 tensors as results"),
        (long, r"\d: long: got 65 steps, each of which needs the one before; .* takes 64"),
        (doubled, r"\d: doubled: got 1457 steps, with repetitions; .* takes 1024"),
        (distinct, r"\d: distinct: got too many steps \(.*at most 128"),
    ],
)
def test_too_many_steps_and_results_name_the_line(function, text):
    with pytest.raises(gt.TraceError, match=r"test_fuse\.py:\d*" + text):
        gt.fuse(function)(gt.ones((4, 4), device="host"))
