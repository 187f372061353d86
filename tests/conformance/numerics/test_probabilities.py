"""Incomplete beta functions, their relatives and distribution functions against SciPy."""

import numpy as np
import pytest

import gputensor as gt
from tests.conformance.numerics.test_special import positives, shares, whole, with_ends

special = pytest.importorskip("scipy.special", reason="needs SciPy")
COUNT = 300


def beta_points(rng, low, high):
    """Arguments a and b of these powers of 10, and x of which most have a share inside (0, 1)."""
    a, b = 10 ** rng.uniform(low, high, (2, COUNT))
    x = rng.beta(a, b)
    return [a, b, np.clip(np.where(rng.random(COUNT) < 0.2, rng.random(COUNT), x), 1e-280, 1)]


def uneven(rng):
    """One of a and b is far above the other, so that x is near one end of [0, 1]."""
    a, b = 10 ** rng.uniform(-2, 1, COUNT), 10 ** rng.uniform(2, 6, COUNT)
    x = np.clip(rng.beta(a, b), 1e-280, 1)
    is_turned = rng.random(COUNT) < 0.5
    return [np.where(is_turned, b, a), np.where(is_turned, a, b), np.where(is_turned, 1 - x, x)]


def grid(*values):
    return [one.ravel() for one in np.meshgrid(*[np.array(one, float) for one in values])]


SIZES = [0, 0.5, 1, 30, np.inf, np.nan, -1]
FINITE = [one for one in SIZES if one != np.inf]  # SciPy's inverse at inf depends on the other one
PLACES = [0, 0.3, 1, 1.5, -0.1, np.nan]


def share(rng):
    return np.where(rng.random(COUNT) < 0.3, 10 ** rng.uniform(-60, 0, COUNT), rng.random(COUNT))


def sized(rng, low, high):
    return 10 ** rng.uniform(low, high, COUNT)


def counts(rng):
    n = rng.integers(1, 60, COUNT).astype(float)
    return np.floor(n * rng.random(COUNT)) + rng.choice([0, 0.5], COUNT), n, rng.random(COUNT)


#: Function, its arguments, and the greatest relative error against SciPy.
FUNCTIONS = (
    ("betainc", lambda r: beta_points(r, -10, 0), 1e-13),
    ("betainc", lambda r: beta_points(r, -3, 2), 1e-12),
    ("betainc", lambda r: beta_points(r, 1, 6), 1e-11),
    ("betainc", uneven, 1e-12),
    ("betainc", lambda r: grid(SIZES, SIZES, PLACES), 1e-13),
    ("betainc", lambda r: [2.5, 3.0, r.random(COUNT)], 1e-13),
    ("betaincinv", lambda r: [*sized(r, 0.1, 2)[None].repeat(2, 0), share(r)], 1e-12),
    ("betaincinv", lambda r: [sized(r, 0, 4), sized(r, 0, 4), share(r)], 1e-10),
    ("betaincinv", lambda r: grid(FINITE, FINITE, PLACES), 1e-12),
    ("gammaincinv", lambda r: [sized(r, -2, 4), share(r)], 1e-11),
    ("gammaincinv", lambda r: grid(SIZES, PLACES), 1e-12),
    ("gammainccinv", lambda r: [sized(r, -1, 4), share(r)], 1e-11),
    ("gammainccinv", lambda r: grid(SIZES, PLACES), 1e-12),
    ("exp1", lambda r: [with_ends(sized(r, -8, 2.8), -sized(r, -3, 3))], 1e-13),
    ("expi", lambda r: [with_ends(sized(r, -8, -1), sized(r, 0, 2.8), -sized(r, -8, 2.8))], 1e-13),
    ("expn", lambda r: [whole(r), sized(r, -6, 2.5)], 1e-12),
    ("ellipk", lambda r: [with_ends(1 - sized(r, -15, 3))], 1e-14),
    ("ellipkm1", lambda r: [with_ends(sized(r, -300, 3))], 1e-14),
    ("poch", lambda r: [sized(r, -2, 3), sized(r, -2, 1.5)], 1e-11),
    ("poch", lambda r: list(r.uniform(-8, 8, (2, COUNT))), 1e-10),
    ("poch", lambda r: list(r.integers(-5, 6, (2, COUNT)).astype(float)), 1e-13),
    ("boxcox1p", lambda r: [sized(r, -20, 3), r.uniform(-3, 3, COUNT)], 1e-13),
    ("inv_boxcox", lambda r: [r.uniform(-0.3, 3, COUNT), r.uniform(0, 3, COUNT)], 1e-13),
    ("inv_boxcox", lambda r: [r.uniform(-3, 3, COUNT), 0.0], 1e-13),
    ("inv_boxcox1p", lambda r: [sized(r, -20, 0), r.uniform(-0.5, 3, COUNT)], 1e-13),
    ("kl_div", lambda r: grid([0, 1, 2.5, -1, np.nan, 1e-9], [0, 1, 3, -1, np.nan]), 1e-12),
    ("huber", lambda r: grid([0, 1, 2.5, -1, np.nan], [0, 0.5, -3, np.nan]), 1e-14),
    ("pseudo_huber", lambda r: grid([0, 1, 2.5, -1], [0, 0.5, -3, 1e-9]), 1e-13),
    ("cosm1", lambda r: [np.append(sized(r, -12, 0.4), [0.0, -1.0, 7.0])], 1e-12),
    ("sindg", lambda r: [np.arange(-720, 721, 15.0)], 1e-14),
    ("cosdg", lambda r: [np.arange(-720, 721, 15.0)], 1e-14),
    ("tandg", lambda r: [r.uniform(-300, 300, COUNT)], 1e-11),
    ("cotdg", lambda r: [r.uniform(1, 179, COUNT)], 1e-11),
    ("radian", lambda r: [whole(r), whole(r), whole(r)], 1e-14),
    ("zetac", lambda r: [1 + positives(r, -6, 2)], 1e-11),
    ("bdtr", counts, 1e-12),
    ("bdtrc", counts, 1e-12),
    ("chdtr", lambda r: [sized(r, -1, 3), sized(r, -1, 3)], 1e-12),
    ("chdtrc", lambda r: [sized(r, -1, 2), sized(r, -1, 2)], 1e-12),
    ("chdtri", lambda r: [sized(r, -0.5, 3), r.random(COUNT)], 1e-11),
    ("fdtr", lambda r: [sized(r, -1, 3), sized(r, -1, 3), sized(r, -2, 2)], 1e-11),
    ("fdtrc", lambda r: [sized(r, -1, 2), sized(r, -1, 2), sized(r, -2, 2)], 1e-11),
    ("fdtri", lambda r: [sized(r, 0, 2), sized(r, 0, 2), r.uniform(0.01, 0.99, COUNT)], 1e-10),
    ("gdtr", lambda r: [sized(r, -1, 1), sized(r, -1, 1), sized(r, -1, 1)], 1e-12),
    ("gdtrc", lambda r: [sized(r, -1, 1), sized(r, -1, 1), sized(r, -1, 1)], 1e-12),
    ("nbdtr", counts, 1e-12),
    ("nbdtrc", counts, 1e-12),
    ("pdtr", lambda r: [whole(r), sized(r, -1, 2)], 1e-12),
    ("pdtrc", lambda r: [whole(r), sized(r, -1, 2)], 1e-12),
    ("pdtri", lambda r: [whole(r), r.random(COUNT)], 1e-11),
    ("stdtr", lambda r: [sized(r, -0.5, 3), r.normal(size=COUNT) * 5], 1e-11),
    ("round", lambda r: [r.uniform(-9, 9, COUNT)], 0),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "make", "bound"), FUNCTIONS, ids=[f"{i}-{row[0]}" for i, row in enumerate(FUNCTIONS)]
)
def test_values_of_scipy(where, rng, name, make, bound):
    arguments = make(rng)
    tensors = [gt.asarray(one, device=where) if np.ndim(one) else one for one in arguments]
    got = getattr(gt.special, name)(*tensors).numpy()
    whole_ones = {"expn": (0,), "bdtr": (1,), "bdtrc": (1,), "nbdtr": (0, 1), "nbdtrc": (0, 1)}
    given = list(arguments)
    for i in whole_ones.get(name, ()):
        given[i] = given[i].astype(int)
    with np.errstate(all="ignore"):
        want = getattr(special, name)(*given)
    kept = ~((np.abs(want) < 1e-200) & (np.abs(got) < 1e-199))  # SciPy's become 0 earlier
    np.testing.assert_allclose(got[kept], want[kept], bound, 0 if bound else 1e-300)


def test_shares_that_scipy_rounds(where):
    """Values of more digits than SciPy has there, from their formulas."""
    x = gt.asarray([1 - 2.0**-53, 0.5, 2.0**-60], "float64", device=where)
    want = [1 - 2 / np.pi * np.arcsin(2.0**-26.5), 0.5, 2 / np.pi * 2.0**-30]
    np.testing.assert_allclose(gt.special.betainc(0.5, 0.5, x).numpy(), want, 1e-15)
    # Tails: I(x; a, 1) is x**a, and its inverse y**(1 / a).
    a = gt.asarray([1e-3, 2.0, 300.0, 1e5], "float64", device=where)
    y = gt.special.betainc(a, 1.0, 0.999)
    np.testing.assert_allclose(y.numpy(), 0.999 ** a.numpy(), 1e-13)
    np.testing.assert_allclose(gt.special.betaincinv(a, 1.0, y).numpy(), 0.999, 1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_dtypes_of_results(where, rng, dtype):
    a, b = rng.uniform(1, 9, (2, 20)).astype(dtype)
    x, y, p = (gt.asarray(one, device=where) for one in (a, b, rng.random(20).astype("float32")))
    p = p.astype("float16") if dtype == "float16" else p
    result = "float16" if dtype == "float16" else "float32"
    wide = [one.numpy().astype(float) for one in (x, y, p)]
    for name, given, exact in (
        ("betainc", (x, y, p), wide),
        ("stdtr", (x, y), wide[:2]),
        ("fdtrc", (x, y, 2), [*wide[:2], 2.0]),
    ):
        got = getattr(gt.special, name)(*given)
        assert got.dtype == result
        bound = 1e-3 if dtype == "float16" else 1e-6
        np.testing.assert_allclose(got.numpy(), getattr(special, name)(*exact), bound, bound)
    out = gt.empty(20, result, device=where)
    assert gt.special.betainc(x, y, p, out=out) is out
    np.testing.assert_array_equal(out.numpy(), gt.special.betainc(x, y, p).numpy())


def test_inverses_invert(where, rng):
    a, b = 10 ** rng.uniform(-1, 5, (2, COUNT))
    y = shares(rng)[:COUNT]
    x, z, p = (gt.asarray(one, device=where) for one in (a, b, y))
    found = gt.special.betaincinv(x, z, p).numpy()
    want = np.where((found > 1e-290) & (found < 0.99), y, np.nan)
    again = gt.special.betainc(x, z, gt.asarray(found, device=where)).numpy()
    kept = ~np.isnan(want) & (want > 1e-200)
    # One unit in the last place of x changes the share by up to this.
    slack = 1e-12 + 1e-13 * np.maximum(a, b)[kept]
    assert kept.sum() > 100
    assert (np.abs(again - want)[kept] <= slack * want[kept]).all()


def test_many_degrees_of_freedom_are_a_normal_distribution(where, rng):
    df, t = np.array([np.inf, 3.0, np.inf, -np.inf]), np.array([1.0, 1.0, -2.5, 0.0])
    got = gt.special.stdtr(*(gt.asarray(one, device=where) for one in (df, t)))
    np.testing.assert_allclose(got.numpy(), special.stdtr(df, t), 1e-12)
