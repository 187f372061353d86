"""Derivatives of the gamma function's logarithm, against SciPy, and copies with a part replaced."""

import math

import numpy as np
import pytest

import gputensor as gt

special = pytest.importorskip("scipy.special", reason="needs SciPy")


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 20])
def test_derivatives_of_digamma(where, rng, n):
    x = np.concatenate([rng.uniform(0.01, 30, 200), 10 ** rng.uniform(-3, 6, 100)])
    got = gt.polygamma(n, gt.asarray(x, device=where))
    np.testing.assert_allclose(got.numpy(), special.polygamma(n, x), 1e-13, 1e-13 if n == 0 else 0)
    if n == 0:
        return
    below = rng.uniform(-5, 0, 200)
    below = below[np.abs(below - np.round(below)) > 0.02]
    # The recurrence leads from each place to one where SciPy computes.
    steps = (-1) ** n * math.factorial(n) * (below + np.arange(6)[:, None]) ** -(n + 1.0)
    want = special.polygamma(n, below + 6) - steps.sum(0)
    got = gt.polygamma(n, gt.asarray(below, device=where)).numpy()
    assert (np.abs(got - want) <= 1e-12 * np.abs(steps).max(0)).all()
    ends = gt.asarray([0, -1, np.inf, np.nan], dtype="float64", device=where)
    pole = np.inf if n % 2 else -np.inf
    np.testing.assert_array_equal(gt.polygamma(n, ends).numpy(), [pole, pole, 0, np.nan])


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_dtypes_of_derivatives(where, rng, dtype):
    x = rng.uniform(1, 20, 50).astype(dtype)
    got = gt.polygamma(1, gt.asarray(x, device=where))
    assert got.dtype == (x.dtype if x.dtype.kind == "f" else np.float32)
    want = special.polygamma(1, x.astype(float))
    np.testing.assert_allclose(got.numpy(), want, 1e-3 if dtype == "float16" else 2e-6)
    with pytest.raises(ValueError, match="polygamma: n: got -1; expected an int from 0 to 100"):
        gt.polygamma(-1, got)
    with pytest.raises(TypeError, match="polygamma: dtype: got complex64; expected float"):
        gt.polygamma(1, got.astype("complex64"))


def test_derivatives_of_several_orders(where, rng):
    n, x = rng.integers(0, 12, 60), 10 ** rng.uniform(-1, 3, 60)
    got = gt.polygamma(gt.asarray(n, device=where), gt.asarray(x, device=where))
    np.testing.assert_allclose(got.numpy(), special.polygamma(n, x), 1e-13, 1e-13)


def test_multivariate_gamma(where, rng):
    x = rng.uniform(3, 20, 20)
    for p in (1, 2, 5):
        got = gt.mvlgamma(gt.asarray(x, device=where), p).numpy()
        np.testing.assert_allclose(got, [special.multigammaln(one, p) for one in x], 1e-12)


def test_parts_are_replaced_in_copies(where, rng):
    a, b = rng.standard_normal((2, 5, 6))
    x, y = gt.asarray(a, device=where), gt.asarray(b, device=where)
    for got, key in (
        (gt.slice_scatter(x, y[1:5:2], 0, 1, 5, 2), (slice(1, 5, 2),)),
        (x.slice_scatter(y[:, 2:], dim=1, start=2), (slice(None), slice(2, None))),
        (gt.select_scatter(x, y[:, -1], 1, -1), (slice(None), -1)),
        (x.select_scatter(src=y[3], dim=0, index=3), (3,)),
    ):
        want = a.copy()
        want[key] = b[key]
        np.testing.assert_array_equal(got.numpy(), want)
    want = a.copy()
    want[np.arange(5), np.arange(5) + 1] = np.diagonal(b, 1)
    np.testing.assert_array_equal(gt.diagonal_scatter(x, y.diagonal(1), 1).numpy(), want)
    np.testing.assert_array_equal(x.numpy(), a)
