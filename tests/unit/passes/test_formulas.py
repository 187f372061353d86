"""Successive element-wise steps become one formula that computes the same."""

import numpy as np
import pytest

import gputensor as gt

ROWS, COLUMNS = 6, 8
DIM = gt.Dim("n", 2, 9)


@pytest.fixture(autouse=True)
def host():
    with gt.device("host"):
        yield


def names(program):
    (function,) = program.functions.values()
    return [call.name for call in function.calls]


def check(function, *arrays, calls=None, dtype="float32", free=True, bound=1e-5, **named):
    """Return the program, which must equal eager work. `calls`: the expected names of its calls."""
    given = [gt.asarray(one, dtype=dtype) for one in arrays]
    specs = [gt.spec((DIM if free else one.shape[0], *one.shape[1:]), one.dtype) for one in given]
    program = gt.compile(function, *specs, **named)
    if calls is not None:
        assert names(program) == calls, str(program)
    weights = {"weights": named["weights"]} if "weights" in named else {}
    found, wanted = program(*given), function(*given, **weights)
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)),
                          strict=True):  # fmt: skip
        one, other = (np.asarray(x.numpy(), np.float64) for x in (one, other))
        np.testing.assert_allclose(one, other, rtol=bound, atol=bound * max(1, np.abs(other).max()))
    return program


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_chains_are_one_call(rng, dtype):
    def gated(x, y):
        return gt.silu(x) * y + gt.where(x > 0, x, 2.0 * y)

    bound = {"float32": 1e-6, "float16": 3e-3, "bfloat16": 3e-2}[dtype]
    x, y = draw(rng, ROWS, COLUMNS), draw(rng, ROWS, COLUMNS)
    check(gated, x, y, calls=["formula"], dtype=dtype, bound=bound)


def test_sums_of_bools_stay_bools(rng):
    def both(x, y):
        found = (x < 0.5) + (y < 0.5)
        return found * x

    check(both, draw(rng, ROWS, COLUMNS), draw(rng, ROWS, COLUMNS), calls=["formula"])


def test_norms_take_the_sum_before_them(rng):
    """The norm also returns the sum, because the next residual reads it."""

    def block(x, y):
        total = x + y
        return total, gt.rms_norm(total), gt.sum(total)

    x, y = draw(rng, ROWS, COLUMNS), draw(rng, ROWS, COLUMNS)
    check(block, x, y, calls=["formula", "reduce"], free=False)


def test_steps_behind_a_norm_join_it(rng):
    def block(x):
        return gt.tanh(gt.softmax(x * 0.5) + 1)

    check(block, draw(rng, ROWS, COLUMNS), calls=["formula"])


def test_a_row_that_the_columns_read_is_not_computed_again(rng):
    """n * m elements read exp of n numbers, so exp stays a call of its own; a cast does not."""

    def spread(x, y):
        return x * gt.exp(y)[:, None]

    x, y = draw(rng, ROWS, COLUMNS), draw(rng, ROWS)
    check(spread, x, y, calls=["elementwise", "elementwise"])

    def cast(x, y):
        return gt.exp(gt.astype(x, gt.float32)) * gt.astype(y, gt.float32)[:, None]

    check(cast, x, y, calls=["formula"], dtype="float16", bound=1e-3)


def test_views_join_a_formula(rng):
    """Moved axes, and parts of inputs."""

    def moved(x):
        return gt.tanh(x[:, ::2] * 3) + gt.moveaxis(gt.exp(x[:, 1::2]), 0, 0)

    check(moved, draw(rng, ROWS, COLUMNS), calls=["formula"])


def test_copies_that_transpose_axes_stay(rng):
    def turned(x):
        return gt.tanh(gt.copy(gt.swapaxes(x, 0, 1))) * 2

    check(turned, draw(rng, ROWS, COLUMNS), calls=["elementwise", "formula"], free=False)


def test_rotary_is_one_call_for_each_use(rng):
    def turn(x):
        at = gt.arange(5)
        return gt.rotary(x, at), gt.rotary(x * 2, at)

    x = draw(rng, 4, 5, 16)
    program = check(turn, x, free=False)
    assert names(program).count("formula") == 2


def test_integers_and_doubles_stay(rng):
    def steps(x):
        return gt.astype(x * 3 + 1, gt.int32) * 2 + 1

    program = check(steps, draw(rng, ROWS, COLUMNS))
    assert names(program).count("elementwise") >= 2


def test_written_operands_are_read_before(rng):
    def steps(x):
        held = gt.copy(x)
        y = gt.exp(held)
        held[0] = 5
        z = y * held
        held[1:] = z[1:]
        return z, held

    check(steps, draw(rng, ROWS, COLUMNS), free=False)


def test_rounding_each_keeps_every_call(rng):
    program = gt.compile(
        lambda x: gt.tanh(x * 2) + 1, gt.spec((DIM, COLUMNS), gt.float16), rounding="each"
    )
    assert names(program) == ["elementwise"] * 3


UNARY = (gt.tanh, gt.sin, gt.abs, gt.negative, lambda x: gt.sqrt(gt.abs(x) + 0.1),
         lambda x: x * 0.5 + 0.25, lambda x: gt.exp(-gt.abs(x)), gt.softmax, gt.rms_norm,
         gt.layer_norm, gt.copy, lambda x: gt.maximum(x, 0),
         lambda x: gt.copy(gt.swapaxes(gt.copy(gt.swapaxes(x, 0, 1)), 0, 1)))  # fmt: skip
BINARY = (lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, gt.maximum,
          lambda x, y: gt.where(x > y, x, y * 0.5), lambda x, y: x * y[:, :1],
          lambda x, y: x + y[:1], lambda x, y: x * gt.mean(y, axis=1, keepdims=True))  # fmt: skip


def random_function(seed, count):
    """Random steps drawn from a seed; values stay small."""

    def function(x, y):
        rng = np.random.default_rng(seed)
        known = [x, y]
        for _step in range(count):
            kind = rng.integers(8)
            a, b = (known[int(i)] for i in rng.integers(len(known), size=2))
            if kind < 3:
                known.append(UNARY[int(rng.integers(len(UNARY)))](a))
            elif kind < 6:
                made = BINARY[int(rng.integers(len(BINARY)))](a, b)
                known.append(gt.tanh(made))
            elif kind == 6:
                part = gt.copy(a)
                part[1:, ::2] = b[1:, ::2]
                known.append(part)
            else:
                part = gt.copy(a)
                part += b
                known.append(gt.sin(part))
        return tuple(known[int(i)] * 1.0 for i in {2, len(known) // 2, len(known) - 1})

    return function


def test_random_steps_equal_eager_ones():
    seed = int(np.random.default_rng().integers(1 << 32))
    joined = 0
    for turn in range(60):
        rng = np.random.default_rng(seed + turn)
        function = random_function(seed + turn, int(rng.integers(4, 24)))
        arrays = [draw(rng, ROWS, COLUMNS) for _ in range(2)]
        try:
            program = check(function, *arrays, free=False, bound=2e-4)
        except AssertionError as error:
            raise AssertionError(f"seed {seed + turn}") from error
        joined += names(program).count("formula")
    assert joined > 60


def test_steps_without_elements_at_some_size_stay(rng):
    """A formula needs elements; the steps on all rows but the first have none for one row."""

    def model(x):
        return gt.exp(x[1:] * 2) + 1, gt.exp(x * 2) + 1

    with gt.device("host"):
        program = gt.compile(model, gt.spec((gt.Dim("n", 1, 9), 3)))
        (function,) = program.functions.values()
        assert [call.name for call in function.calls].count("formula") == 1, str(program)
        for n in (1, 2, 9):
            x = rng.standard_normal((n, 3)).astype(np.float32)
            found, wanted = program(gt.asarray(x)), (np.exp(x[1:] * 2) + 1, np.exp(x * 2) + 1)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one.numpy(), other, rtol=1e-5)
