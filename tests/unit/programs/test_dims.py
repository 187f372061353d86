"""Integers of dims in normal form: arithmetic as ints, text as Python, explanations as traces."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputensor.programs import dims as forms
from gputensor.programs.dims import Dim
from gputensor.programs.sampling.samples import Explainer, confirming, explain, samples

NAMES = ("n", "batch", "rows")


@st.composite
def integers(draw, depth=3):
    """A random integer expression, not in normal form."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.integers(-9, 9) | st.sampled_from([("dim", name) for name in NAMES]))
    head = draw(st.sampled_from(["add", "mul", "floordiv"]))
    left = draw(integers(depth - 1))
    return head, left, draw(st.integers(1, 7) if head == "floordiv" else integers(depth - 1))


SIZES = st.fixed_dictionaries({name: st.integers(0, 50) for name in NAMES})


@settings(max_examples=300, deadline=None)
@given(integers(), SIZES)
def test_text_is_python_and_normal_form_keeps_the_value(integer, sizes):
    expected = eval(forms.text(integer), {}, dict(sizes))
    assert forms.evaluate(integer, sizes) == expected
    normal = forms.simplify(integer)
    assert forms.evaluate(normal, sizes) == expected
    assert eval(forms.text(normal), {}, dict(sizes)) == expected
    assert forms.simplify(normal) == normal


@settings(max_examples=200, deadline=None)
@given(integers(2), integers(2), st.integers(1, 9), SIZES)
def test_arithmetic_agrees_with_ints(left, right, divisor, sizes):
    a, b = forms.evaluate(left, sizes), forms.evaluate(right, sizes)
    assert forms.evaluate(forms.add(left, right), sizes) == a + b
    assert forms.evaluate(forms.mul(left, right), sizes) == a * b
    assert forms.evaluate(forms.floordiv(left, divisor), sizes) == a // divisor
    assert forms.add(left, right) == forms.add(right, left)
    whole = forms.divided(forms.mul(left, divisor), divisor)
    assert whole == forms.simplify(left)


def test_printing():
    n, m = ("dim", "n"), ("dim", "m")
    assert forms.text(forms.add(forms.mul(2, n), 1)) == "2*n + 1"
    assert forms.text(forms.add(3, forms.mul(-1, n))) == "-n + 3"
    assert forms.text(forms.floordiv(forms.add(n, 1), 2)) == "(n + 1)//2"
    assert forms.text(forms.floordiv(forms.floordiv(n, 2), 3)) == "n//6"
    assert forms.text(forms.mul(forms.add(n, 1), m, 4)) == "4*m*n + 4*m"
    assert forms.text(forms.row_major((2, n, m, 3))[0]) == "3*m*n"


@pytest.mark.parametrize(
    ("arguments", "kind", "name"),
    [
        (("a b", 1, 2), ValueError, "name"),
        ((3, 1, 2), TypeError, "name"),
        (("n", 0, 2), ValueError, "least"),
        (("n", 3, 2), ValueError, "most"),
        (("n", True, 2), TypeError, "least"),
        (("n", 9, 15, 8), ValueError, "multiple"),
        (("n", 1, 2**41), ValueError, "most"),
    ],
)
def test_wrong_dims_are_named(arguments, kind, name):
    with pytest.raises(kind, match=rf"^{name}: got .*; expected "):
        Dim(*arguments)


def test_a_dim_checks_sizes():
    dim = Dim("n", 3, 40, 8)
    dim.check(16)
    for size in (0, 3, 12, 48):
        with pytest.raises(ValueError, match=r"^n: got \d+; expected 3 to 40, a multiple of 8"):
            dim.check(size)


def test_integers_have_a_limit():
    with pytest.raises(ValueError, match="2\\*\\*62"):
        forms.evaluate(("mul", ("dim", "n"), ("dim", "n")), {"n": 2**40})


def test_the_last_sample_has_all_dims_at_their_high_ends():
    found = samples([Dim("batch", 225, 233, 8), Dim("n", 1, 40, 8)])
    assert found[-1] == {"batch": 232, "n": 40} and len(found) == 5


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_samples_lie_in_the_range(data):
    count = data.draw(st.integers(1, 3))
    dims = []
    for name in NAMES[:count]:
        least = data.draw(st.integers(1, 300))
        multiple = data.draw(st.sampled_from([1, 1, 2, 3, 8]))
        most = data.draw(st.integers(least + multiple, least + 5000))
        dims.append(Dim(name, least, most, multiple))
    found = samples(dims)
    for sizes in found:
        for dim in dims:
            dim.check(sizes[dim.name])
    for dim in dims:
        column = [sizes[dim.name] for sizes in found]
        assert column[-1] == dim.high
        assert column[0] == next(
            size for size in range(dim.low, dim.high + 1, dim.multiple) if size > 1
        )
        if count == 1:
            choices = [s for s in range(dim.low, dim.high + 1, dim.multiple) if s >= 2]
            assert len(set(column)) == min(4, len(choices))
            odd = [s for s in choices if s % 2]
            assert not odd or any(s % 2 for s in column) or len(choices) < 5
    if count > 1 and all(dim.high // dim.multiple - dim.low // dim.multiple > 40 for dim in dims):
        # The samples distinguish dims: no dim is an affine function of another one at them.
        for one in dims:
            for other in dims:
                if one is not other:
                    alone = [{"x": sizes[one.name]} for sizes in found]
                    column = [sizes[other.name] for sizes in found]
                    assert not Explainer(alone)._one_term(column, Explainer(alone)._columns)


def test_size_one_is_traced_only_where_there_is_no_other():
    assert samples([Dim("n", 1, 1)]) == [{"n": 1}]
    assert samples([Dim("n", 1, 2)]) == [{"n": 2}]
    assert [s["n"] for s in samples([Dim("n", 1, 5)])] == [2, 3, 4, 5]
    assert samples([]) == [{}]


def explainable(rng, known, names):
    """A random integer of a kind that occurs in tracing."""
    n = ("dim", rng.choice(names))
    term = rng.choice([n, *known])
    kind = rng.randrange(8)
    if kind == 7:  # whole tiles of 4, 8 … elements
        by = rng.choice([4, 8, 16, 64])
        return forms.mul(by * rng.choice([1, 3, 64]), forms.floordiv(forms.add(n, by - 1), by))
    if kind == 0:
        return rng.randint(-50, 5000)
    if kind == 1:
        return forms.add(forms.mul(rng.choice([1, 2, 3, 64, -1]), term), rng.randint(-5, 9))
    if kind == 2:
        by = rng.randint(2, 8)
        return forms.floordiv(forms.add(n, rng.randint(0, by - 1)), by)
    if kind == 3:
        return forms.mul(rng.choice([1, 4, 96]), term, rng.choice([n, *known]))
    if kind == 4:
        return forms.add(forms.mul(4, n, term), rng.choice([0, -4, 16]))
    if kind == 5:
        return forms.add(forms.mul(rng.randint(1, 8), n), forms.mul(rng.randint(1, 8), term), 3)
    return forms.mul(term, forms.add(n, rng.randint(-2, 3)))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_random_expressions_are_explained(count):
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    dims = [Dim("n", 1, 1024), Dim("batch", 1, 64, 2), Dim("rows", 5, 3000)][:count]
    names = [dim.name for dim in dims]
    exact = 0
    for _turn in range(150):
        extent = forms.floordiv(forms.add(("dim", rng.choice(names)), rng.randint(0, 3)), 2)
        known = [extent]
        wanted = explainable(rng, known, names)
        points = samples(dims)
        start = points[len(points) // 2]
        for _round in range(8):  # trace again while another floor division still fits
            values = [forms.evaluate(wanted, sizes) for sizes in points]
            found = explain(values, points, known)
            assert found is not None, forms.text(wanted)
            assert values == [forms.evaluate(found, sizes) for sizes in points]
            more = confirming([found], dims, points, start)
            if all(forms.evaluate(found, s) == forms.evaluate(wanted, s) for s in more):
                break
            points = points + more
        for _check in range(50):
            sizes = {d.name: rng.randrange(d.low, d.high + 1, d.multiple) for d in dims}
            same = forms.evaluate(found, sizes) == forms.evaluate(wanted, sizes)
            assert same, (forms.text(found), forms.text(wanted), sizes)
        exact += found == wanted
    assert exact > 100  # the simplest one is nearly always the intended one


def test_an_unexplained_integer_gives_none():
    points = samples([Dim("n", 1, 1024)])
    rng = random.Random(7)
    refused = 0
    for _turn in range(50):
        values = [sizes["n"] ** 3 + rng.randint(0, 10**6) for sizes in points]
        refused += explain(values, points) is None
    assert refused == 50


def test_the_simplest_explanation_is_taken():
    points = samples([Dim("n", 2, 512)])
    n = ("dim", "n")
    column = [sizes["n"] for sizes in points]
    half = forms.floordiv(forms.add(n, 1), 2)
    assert explain([7] * len(points), points) == 7
    assert explain(column, points, [half]) == n
    assert explain([(x + 1) // 2 for x in column], points, [half]) == half
    assert explain([4 * ((x + 1) // 2) for x in column], points, [half]) == forms.mul(4, half)
