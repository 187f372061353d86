"""The order of complex numbers, against NumPy: by the real part, then by the imaginary part."""

import numpy as np
import pytest

import gputensor as gt

SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan)
ELEMENTWISE = "less less_equal greater greater_equal maximum minimum fmax fmin".split()


def numbers(rng, dtype, shape):
    made = rng.choice(SPECIAL, (*shape, 2)) + np.round(rng.standard_normal((*shape, 2)), 1)
    return made.view("complex128")[..., 0].astype(dtype)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_pairs_are_ordered_as_by_numpy(where, rng, name, dtype):
    special = np.zeros(len(SPECIAL) ** 2, dtype)
    special.real, special.imag = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    for one, other in (
        np.meshgrid(special, special),
        (numbers(rng, dtype, (4, 1, 3)), numbers(rng, dtype, (5, 1))),
        (numbers(rng, dtype, (3, 4)).T, rng.integers(-2, 3, (4, 3))),
    ):
        a, b = (gt.asarray(x, device=where) for x in (one, other))
        for got, want in (
            (getattr(gt, name)(a, b), getattr(np, name)(one, other)),
            (getattr(gt, name)(b, a), getattr(np, name)(other, one)),
            (getattr(gt, name)(a, 1 - 1j), getattr(np, name)(one, 1 - 1j)),
        ):
            assert got.shape == want.shape
            np.testing.assert_array_equal(got.numpy(), want)
        out = gt.full(a.shape if a.shape == b.shape else (4, 5, 3), 7, dtype, device=where)
        if name in ("maximum", "minimum"):
            assert getattr(gt, name)(a, b, out) is out
            np.testing.assert_array_equal(out.numpy(), getattr(np, name)(one, other))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_are_those_of_numpy(where, rng, name, dtype):
    for _ in range(12):
        a = numbers(rng, dtype, tuple(rng.integers(1, 5, 3)))
        a = np.where(np.isnan(a) & (rng.random(a.shape) < 0.9), 1 + 1j, a).astype(dtype)
        x = gt.asarray(a, device=where)
        axes = (None, 0, 1, -1) if "arg" in name else (None, 0, 1, -1, (0, 2), ())
        for axis in axes:
            for keepdims in (False, True):
                got = getattr(gt, name)(x, axis=axis, keepdims=keepdims)
                want = getattr(np, name)(a, axis=axis, keepdims=keepdims)
                assert got.dtype == want.dtype and got.shape == want.shape
                np.testing.assert_array_equal(got.numpy(), want)
    assert getattr(x, name)().item() == getattr(a, name)() or np.isnan(a).any()
    with pytest.raises(ValueError, match=f"{name}: axis 1: got no elements; expected at least"):
        getattr(gt, name)(gt.zeros((2, 0), dtype=dtype, device=where), axis=1)
    x = gt.ones((2, 1), dtype=dtype, device=where)
    with pytest.raises(TypeError, match=f"{name}: out: got dtype bool"):
        getattr(gt, name)(x, out=gt.zeros((), dtype="bool", device=where))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_orders_are_used_by_operators_and_limits(where, rng):
    a = numbers(rng, "complex64", (6,))
    x = gt.asarray(a, device=where)
    np.testing.assert_array_equal((x > 0.5).numpy(), a > 0.5)
    np.testing.assert_array_equal((1j >= x).numpy(), 1j >= a)
    np.testing.assert_array_equal(gt.clip(x, -1, 1 + 1j).numpy(), np.clip(a, -1, 1 + 1j))
    np.testing.assert_array_equal(gt.clip(x, None, 1j).numpy(), np.clip(a, None, 1j))
    b = np.where(np.isfinite(a), a, 0)
    np.testing.assert_allclose(gt.ptp(gt.asarray(b, device=where)).item(), np.ptp(b))
    mask = np.arange(6) % 2 == 0
    got = gt.max(gt.asarray(b, device=where), where=gt.asarray(mask, device=where), initial=-9)
    assert got.item() == np.max(b, where=mask, initial=-9)
