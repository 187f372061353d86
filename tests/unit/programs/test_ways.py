"""Functions traced at several sizes: integers that follow from dims, branches chosen by sizes."""

import operator
import random

import numpy as np
import pytest

import gputensor as gt
from gputensor.errors import TraceError
from gputensor.programs import dims as forms
from gputensor.programs.dims import Dim
from gputensor.programs.sampling.extents import Extent, Notes
from gputensor.programs.sampling.samples import Explainer, samples
from gputensor.programs.sampling.ways import other_ways
from tests.support.programs.traced import both, traced

N = gt.spec((gt.Dim("n", 1, 100),))
BRANCHES = {
    "equal": lambda x: x.shape[0] == 5,
    "reflected": lambda x: 5 == x.shape[0],  # noqa: SIM300
    "shapes": lambda x: x.shape == (41,),
    "between": lambda x: 30 < x.shape[0] < 40,
    "nested": lambda x: x.shape[0] > 30 and (x.shape[0] - 1) // 3 == 12,
    "remainder": lambda x: x.shape[0] % 17 == 4 or x.shape[0] in (3, 9),
    "bool": lambda x: not x.shape[0] - 77,
    "bits": lambda x: x.shape[0] & 96 == 96 and x.shape[0] ^ 1 == 98,
    "float": lambda x: 49.5 < x.shape[0] < 50.5,
    "divmod": lambda x: divmod(x.shape[0], 9) == (8, 8),
    "power": lambda x: 3 * x.shape[0] + 1 == 64,
    "size": lambda x: x.size == 42,
    "derived": lambda x: gt.concat([x, x[::2]]).shape[0] == 90,
    "length": lambda x: len(x) == 17,
    "set": lambda x: x.shape[0] in {63},
    "dict": lambda x: {5: True, 6: False}.get(x.shape[0], False),
    "maximum": lambda x: max(x.shape[0], 99) == 100 and min(x.shape[0], 99) == 99,
    "one": lambda x: x.shape[0] == 1,
    "high end": lambda x: x.shape[0] > 99,
}


def refused(match, function, *specs):
    with pytest.raises(TraceError, match=match) as caught:
        traced(function, *specs)
    assert caught.value.line.startswith("test_ways.py:")


def test_integers_are_explained_by_the_dims():
    def model(x):
        n = x.shape[0]
        y = gt.concat([x, x[: n // 2]])
        y[::2] += gt.arange(y[::2].shape[0], dtype=gt.float32)[:, None]
        return gt.reshape(y, (-1,)), gt.sum(y[1:-1], axis=0) / (n - 1)

    for n in (4, 9, 64):
        both(model, gt.ones((n, 3), device="host"), dims={"n": (4, 64)})


def test_an_unexplained_integer_is_refused_with_its_line():
    def model(x):
        return x[: int(x.shape[0] ** 0.5)] + 1

    refused(
        r"got|is .* at n=2 and .* at n=1000; fix the dim", model, gt.spec((gt.Dim("n", 2, 1000),))
    )


def test_a_constant_made_from_a_size_is_refused():
    def model(x):
        return x + gt.asarray(np.arange(x.shape[0], dtype=np.float32))

    rule = "made outside the trace and depends on a size|at n=2"
    refused(rule, model, gt.spec((gt.Dim("n", 1, 100),)))


def test_several_dims_and_numbers_made_of_them():
    def model(x, y):
        n, m = x.shape[0], y.shape[0]
        both_ways = gt.matmul(x, y.T) / (n * m)
        return gt.reshape(both_ways, (-1,))[: n + m], gt.full((n, 2), m) * 0.5

    free = gt.spec((gt.Dim("n", 2, 20), 6)), gt.spec((gt.Dim("m", 2, 30), 6))
    program = gt.compile(model, *free, target="host")
    for n, m in ((3, 4), (20, 9), (2, 30)):
        x, y = gt.ones((n, 6), device="host"), gt.ones((m, 6), device="host")
        made, wanted = program(x, y), model(x, y)
        assert [one.tolist() for one in made] == [one.tolist() for one in wanted]


def test_writes_and_results_that_cover_everything_at_some_size():
    def model(x):
        rows = gt.zeros((20, 3))
        rows[: x.shape[0]] = x  # all of it where n is 20
        return rows, (x * 2)[:4], gt.cond(gt.sum(x) > 0, lambda r: (r + 1)[:20], lambda r: r, rows)

    for n in (4, 7, 20):
        both(model, gt.ones((n, 3), device="host"), dims={"n": (4, 20)})


@pytest.mark.parametrize("kind", BRANCHES)
def test_a_branch_that_few_sizes_take_is_refused_with_its_line(kind):
    taken = BRANCHES[kind]

    def model(x):
        return x - 1 if taken(x) else x * 2

    with pytest.raises(TraceError, match=r"at n=\d+ .*fix the dim, or list sizes with at") as error:
        traced(model, N)
    assert error.value.line.startswith("test_ways.py:")


def test_a_branch_that_returns_another_argument_is_refused():
    def model(x, y):
        return x if x.shape[0] == 1 else y

    with pytest.raises(TraceError, match="another result '' at n=1 than elsewhere"):
        traced(model, N, N)


def test_a_branch_in_a_body_is_refused():
    def model(x):
        return gt.fori_loop(0, 3, lambda i, c: c + 1 if c.shape[0] == 9 else c * 2, x)

    with pytest.raises(TraceError, match="at n=2 and .* at n=9"):
        traced(model, N)


def test_dims_that_are_compared_with_each_other():
    m = gt.spec((gt.Dim("m", 1, 300),))
    for taken in (
        lambda x, y: x.shape == y.shape,
        lambda x, y: y.shape[0] == 2 * x.shape[0] + 1,
        lambda x, y: x.shape[0] + y.shape[0] == 57,
        lambda x, y: x.shape[0] == 33,
    ):

        def model(x, y, taken=taken):
            return gt.sum(x) + gt.sum(y) if taken(x, y) else gt.sum(x) * gt.sum(y)

        with pytest.raises(TraceError, match=r"at n=\d+, m=\d+ and"):
            traced(model, N, m)


def test_branches_that_change_nothing_are_kept():
    def model(x, y):
        n = x.shape[0]
        if n < 1 or n > 1 << 40 or x.size != n:
            raise ValueError(n)
        turns = 0
        while 1 << turns < n:  # a separate way for each range between powers of two
            turns += 1
        kept = {n: x}
        return kept[n] + (1 if n == 64 else 1), y[: n // 2], gt.full((n, 2), n), n * 2 - n - n

    rng = np.random.default_rng()
    for n in (1, 2, 63, 64, 100):
        x = gt.asarray(rng.normal(size=n).astype("float32"), device="host")
        both(model, x, x, dims={"n": (1, 100)})


def test_an_error_at_a_size_is_the_error_of_the_trace():
    def model(x):
        if x.shape[0] == 33:
            raise KeyError("not 33")
        return x + 1

    with pytest.raises(KeyError, match="not 33"):
        traced(model, N)


def test_a_function_with_too_many_ways_is_refused():
    def model(x):
        turns = 0
        while turns < x.shape[0]:
            turns += 1
        return x + 1

    with pytest.raises(TraceError, match=r"takes another branch at each of 64 sizes; fix the dim"):
        traced(model, N)


def test_sizes_of_a_slice_that_is_cut_at_1_are_refused():
    with pytest.raises(TraceError, match="at n=1 than elsewhere|at n=2 and"):
        traced(lambda x: gt.concat([x, x[:2]]) * 2, gt.spec((gt.Dim("n", 1, 40),)))


def test_an_extent_is_an_int():
    notes = Notes()
    seven, three = notes.read("f.py:1", (7, 3))
    for name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
        for one, other in ((seven, three), (seven, 3), (7, three)):
            method = f"__{name}__" if type(one) is Extent else f"__r{name}__"
            left = one if type(one) is Extent else other
            right = other if type(one) is Extent else one
            found = getattr(left, method)(right)
            wanted = getattr(7, f"__{name}__")(3)
            assert type(found) is Extent and int(found) == wanted, (name, one, other)
    assert (str(seven), repr(seven), f"{seven:03d}", [0, 1, 2, 3][three]) == ("7", "7", "007", 3)
    assert (-seven, seven / 2, seven**2, divmod(seven, 3), round(seven)) == (-7, 3.5, 49, (2, 1), 7)
    assert np.zeros(seven).shape == (7,) and list(range(three)) == [0, 1, 2]
    assert seven != "7" and not seven == 7.5 and hash(seven) == hash(7)
    assert type(__import__("pickle").loads(__import__("pickle").dumps(seven))) is int


def test_sums_over_many_turns_do_not_grow():
    total, parts = 0, []
    (one,) = Notes().read("f.py:1", (1,))
    for _turn in range(1000):
        total = total + one
        parts.append(getattr(total, "parts", 0))
    assert int(total) == 1000 and 50 < max(parts) <= 64


def test_random_ways_are_found(seed):
    """Random nested comparisons: every way that some size takes is traced in the end."""
    rng = random.Random(seed)
    dims = [Dim("n", 2, 500, rng.choice([1, 1, 3]))]

    def way(n, depth=0, place=1):
        if depth == 4:
            return place
        drawn = random.Random(f"{seed} {place}")
        value = drawn.choice([n, n // drawn.randint(1, 9), n % drawn.randint(2, 40), 3 * n - 7])
        bound = drawn.randint(0, 300)
        compare = drawn.choice([operator.lt, operator.eq, operator.ge])
        return way(n, depth + 1, 2 * place + compare(value, bound))

    points, taken = samples(dims), set()
    while True:
        notes = [Notes() for _size in points]
        for one, sizes in zip(notes, points, strict=True):
            (extent,) = one.read("f.py:1", (sizes["n"],))
            taken.add(way(extent))
        explainer = Explainer(points)
        more = other_ways(notes, points, dims, explainer)
        if not more:
            break
        points += more
    every = {way(n) for n in range(2, 501) if n % dims[0].multiple == 0}
    assert taken == every and len(points) <= 4 + len(every)
    assert all(forms.evaluate(("dim", "n"), one) == one["n"] for one in points)


def test_extents_do_not_widen_numpys_arrays():
    (extent,) = Notes().read("f.py:1", (12,))
    single, half = np.ones(2, np.float32), np.float16(2)
    for found in (single / extent, extent * single, np.maximum(single, extent), single**-extent):
        assert found.dtype == np.float32
    for found in (half * extent, extent / half, half - extent):
        assert found.dtype == np.float16
    assert np.array_equal(single < extent, [True, True])
    single *= extent
    assert single.tolist() == [12, 12]
    for found in (np.where([True, False], single, extent), np.clip(single, 0, a_max=extent)):
        assert found.dtype == np.float32
    assert np.stack([extent, extent]).tolist() == [12, 12]
    assert np.block([[extent, 1]]).tolist() == [[12, 1]]


def test_numpys_where_has_the_same_dtype_in_a_trace():
    def model(x):
        low = np.where(np.arange(3) < 1, np.ones(3, np.float32), x.shape[0])
        return x + gt.ones(3, low.dtype, device=x.device), np.where(x > 1, x, x.shape[0])

    both(model, gt.ones((4, 3), device="host"), dims={"n": (4, 64)})
