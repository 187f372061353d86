"""cond, while_loop, fori_loop and scan: eager, traced and nested; arguments they refuse."""

import pytest

import gputensor as gt
from gputensor.errors import TraceError
from tests.support.programs.traced import both, data_of, traced

F32 = gt.float32


def vector(*values):
    return gt.asarray(values, dtype=F32, device="host")


def test_cond_takes_one_branch():
    def model(x, limit):
        table = x * 2
        return gt.cond(gt.sum(x) > limit, lambda x: (x + table, 1), lambda x: (x - table, 2), x)

    for values in ((1, 2, 3), (-1, -2, -3)):
        both(model, vector(*values), gt.asarray(0.0, device="host"))


def test_cond_on_a_known_condition_is_that_branch():
    outside = gt.asarray(True, device="host")
    for known in (True, outside):
        function = traced(lambda x, c=known: gt.cond(c, lambda: x + 1, lambda: x), gt.spec((2,)))
        assert [call.attributes["op"] for call in function.calls] == ["add", "copy"]


def test_while_loop_runs_until_its_condition_is_false():
    def model(x, step):
        def body(carry):
            x, turns = carry
            return x + step * x, turns + 1

        return gt.while_loop(lambda c: gt.max(c[0]) < 100, body, (x, 0))

    both(model, vector(1, 2, 3), vector(1, 1, 1))
    both(model, vector(200, 2, 3), vector(1, 1, 1))  # no turn


def test_fori_loop_counts_and_carries():
    def model(x):
        scale = x + 1
        return gt.fori_loop(
            2, 7, lambda i, c: {"x": c["x"] * scale + i, "n": c["n"] + i}, {"x": x, "n": 0}
        )

    both(model, vector(0.5, 0.25))
    both(lambda x: gt.fori_loop(3, 1, lambda i, c: c + 1, x), vector(1, 2))


def test_fori_loop_with_bounds_on_the_device_is_a_while_loop():
    def model(x, n):
        return gt.fori_loop(0, n, lambda i, c: c + i, x)

    assert [c.name for c in traced(model, gt.spec((2,)), gt.spec((), gt.int32)).calls][
        -1
    ] == "while_loop"
    for n in (0, 5):
        both(model, vector(1, 2), gt.asarray(n, dtype="int32", device="host"))


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_carries_and_stacks(reverse):
    def model(xs, ys):
        weight = gt.sum(ys)

        def step(total, row):
            x, y = row
            total = total + x[0] * weight
            return total, (total, {"both": gt.concat([x, y])})

        return gt.scan(step, gt.zeros(()), (xs, ys), reverse=reverse)

    rows = gt.reshape(gt.arange(6, dtype=F32, device="host"), (3, 2))
    both(model, rows, rows.T.contiguous()[:, :3].T.contiguous()[:, :1])


def test_scan_without_arrays_takes_a_length():
    both(lambda x: gt.scan(lambda c, _: (c * 2, gt.sum(c)), x, None, length=4), vector(1, 2))
    total, made = gt.scan(lambda c, x: (c, gt.sum(x)), vector(1), gt.zeros((0, 3), device="host"))
    assert made.shape == (0,) and made.dtype == F32 and total.tolist() == [1]


def test_loops_nest_and_find_what_they_use():
    def model(x, *, weights, state):
        def inner(carry):
            value, turns = carry
            return value * weights["w"] + state["s"], turns + 1

        def outer(i, value):
            value, _turns = gt.while_loop(lambda c: c[1] < i, inner, (value, 0))
            return gt.cond(gt.sum(value) > 10, lambda v: v / 2, lambda v: v + x, value)

        state["s"] += 1
        return gt.fori_loop(0, 4, outer, x)

    both(
        model,
        vector(1, 2),
        weights={"w": vector(1.5, 0.5)},
        state={"s": gt.spec((2,))},
        times=2,
    )


def test_loops_take_dims():
    def model(x):
        last, sums = gt.scan(lambda c, row: (c + row, gt.sum(c)), gt.zeros_like(x[0]), x)
        return gt.fori_loop(0, x.shape[0], lambda i, c: c + sums[i % 2], last)

    for n in (2, 5, 30):
        both(model, gt.ones((n, 3), device="host"), dims={"n": (2, 40)})


def test_plate():
    def step(u):
        new, c = gt.copy(u), u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new[1:-1, 1:-1] = c + 0.2 * (around - 4 * c)
        return new

    def relax(u, tolerance):
        def sweep(carry):
            new = gt.fori_loop(0, 5, lambda i, u: step(u), carry[0])
            return new, gt.max(gt.abs(new - carry[0]))

        return gt.while_loop(lambda c: c[1] > tolerance, sweep, (u, gt.full((), gt.inf)))

    plate = gt.zeros((12, 12), device="host")
    plate[0] = 1
    both(relax, plate, gt.asarray(1e-2, device="host"))


@pytest.mark.parametrize("is_traced", [False, True])
def test_carries_keep_dtype_and_shape(is_traced):
    def check(match, function):
        with pytest.raises((TypeError, ValueError), match=match):
            traced(function, gt.spec((3,))) if is_traced else function(vector(1, 2, 3))

    grown = lambda c: (c[0], gt.concat([c[1], c[1]]))  # noqa: E731
    check(
        r"body_fun\.1: got float32\[6\]; expected float32\[3\] as before",
        lambda x: gt.fori_loop(0, 2, lambda i, c: grown(c), (x, x)),
    )
    check(
        r"body_fun\.a: got int64\[3\]; expected float32\[3\]",
        lambda x: gt.while_loop(
            lambda c: gt.sum(c["a"]) > 0, lambda c: {"a": c["a"].astype("int64")}, {"a": x}
        ),
    )
    check(r"f\.0: got bool\[3\]", lambda x: gt.scan(lambda c, x: (c > 0, c), x, x))
    check("body_fun: got dict; expected", lambda x: gt.fori_loop(0, 2, lambda i, c: {"a": c}, x))
    check("cond_fun: got float32", lambda x: gt.while_loop(lambda c: gt.sum(c), lambda c: c, x))
    check(
        "xs.1: got 3 slices; expected 2|xs", lambda x: gt.scan(lambda c, y: (c, y), x, (x[:2], x))
    )
    check("length: got None", lambda x: gt.scan(lambda c, y: (c, y), x))
    check("f: got Tensor; expected a pair", lambda x: gt.scan(lambda c, y: c, x, x))


def test_branches_agree():
    def model(x):
        return gt.cond(gt.sum(x) > 0, lambda x: {"a": x}, lambda x: {"a": x[:1]}, x)

    with pytest.raises(TypeError, match=r"false_fun\.a: got float32\[1\]; expected float32\[3\]"):
        traced(model, gt.spec((3,)))


def test_regions_write_to_none_of_their_inputs():
    def carried(x):
        def body(i, c):
            c += 1
            return c

        return gt.fori_loop(0, 2, body, x)

    def captured(x):
        total = gt.zeros(3)

        def body(i, c):
            total[0] = 1
            return c

        return gt.fori_loop(0, 2, body, x)

    def of_state(x, *, state):
        def body(i, c):
            state[...] = c
            return c

        return gt.fori_loop(0, 2, body, x)

    for function, trees in ((carried, {}), (captured, {}), (of_state, {"state": gt.spec((3,))})):
        with pytest.raises(
            TraceError, match="a write in a loop or branch to a tensor from outside"
        ):
            traced(function, gt.spec((3,)), **trees)


def test_a_tensor_of_a_body_stays_there():
    kept = []
    with pytest.raises(TraceError, match="a tensor of a loop or branch used outside it; return it"):
        traced(
            lambda x: gt.fori_loop(0, 2, lambda i, c: kept.append(c + 1) or c, x) + kept[0],
            gt.spec((3,)),
        )


def test_views_are_carried():
    rows = gt.reshape(gt.arange(6, dtype=F32, device="host"), (2, 3))

    def model(x):
        return gt.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (x[:, ::2], x[:, 1:].T[::-1].T))

    both(model, rows)
    data = data_of(model, gt.spec((2, 3)))
    assert data.functions["model"].calls[-1].name == "fori_loop"


def test_results_are_new_tensors():
    def model(x, *, state):
        made = (
            gt.cond(gt.sum(x) > 0, lambda s: s, lambda s: s, state),
            gt.while_loop(lambda c: c[1] < 0, lambda c: c, (state, 0))[0],
            gt.fori_loop(0, 0, lambda i, c: c, state),
            gt.scan(lambda c, _: (c, c), state, None, length=2)[0],
            gt.cond(True, lambda s: s, lambda s: s, state),
        )
        state[...] = x
        return made

    both(model, vector(1, 2), state=gt.spec((2,)), times=2)


def test_carries_without_elements():
    def model(x):
        none = gt.zeros((0, 3))
        made = gt.cond(gt.sum(x) > 0, lambda c: c + 1, lambda c: c, none)
        looped = gt.fori_loop(0, 2, lambda i, c: (c[0] + 1, c[1] * 2), (made, x))
        return looped, gt.scan(lambda c, y: (c, y + 1), x, none.T)

    both(model, vector(1, 2))
