"""Bessel functions against SciPy, against each other, and at the ends of their domains."""

import re
from pathlib import Path

import numpy as np
import pytest

import gputensor as gt
from tests.support import bessel_coefficients

special = pytest.importorskip("scipy.special", reason="needs SciPy")

WAVES = ("j0", "j1", "y0", "y1")
MODIFIED = ("i0", "i1", "i0e", "i1e", "k0", "k1", "k0e", "k1e")
BITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def places(rng, name, most=30):
    """Places of all sizes, and around those where a formula ends."""
    ends = np.array([2.0, 8.0])
    near = np.concatenate([np.nextafter(ends, 0), ends, np.nextafter(ends, 99)])
    x = np.concatenate([rng.uniform(0, most, 2000), 10 ** rng.uniform(-9, 0, 500), near])
    return x if name[0] in "yk" else x * rng.choice([-1, 1], x.size)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("name", [*WAVES, *MODIFIED])
def test_values_are_those_of_scipy(where, rng, name, dtype):
    x = gt.asarray(places(rng, name, 9 if dtype == "float16" else 30), device=where).astype(dtype)
    x = x[abs(x) > 1e-4] if dtype == "float16" else x
    got = getattr(gt.special, name)(x)
    assert got.dtype == x.dtype
    at = x.astype("float64").numpy()
    want = getattr(special, name)(at)
    size = np.abs(want)
    if name in WAVES:
        size = np.maximum(size, np.minimum(1, np.sqrt(2 / np.pi / np.abs(at))))
    # SciPy's own error is up to 8 units, and grows with x for waves.
    units = 20 + (np.abs(at) if name in WAVES else 0)
    error = np.abs(got.astype("float64").numpy() - want)
    assert (error <= units * BITS[dtype] * size).all()


@pytest.mark.parametrize(("first", "second"), [("j0", "y0"), ("j1", "y1")])
def test_waves_of_large_arguments_keep_their_amplitude(where, rng, first, second):
    x = gt.asarray(10 ** rng.uniform(2, 15, 1000), device=where)
    one, other = (getattr(gt.special, name)(x).numpy() for name in (first, second))
    order = int(first[1])
    # DLMF 10.18.17: the square of the modulus
    want = 2 / (np.pi * x.numpy()) * (1 + (4 * order**2 - 1) / (8 * x.numpy() ** 2))
    np.testing.assert_allclose(one**2 + other**2, want, 1e-7)
    np.testing.assert_allclose((one**2 + other**2)[x.numpy() > 1e4], want[x.numpy() > 1e4], 1e-13)


def test_products_of_two_orders(where, rng):
    """The Wronskians, DLMF 10.5.2 and 10.28.2, need all digits of each function."""
    x = 10 ** rng.uniform(-3, 2, 2000)
    names = (*WAVES, *MODIFIED)
    f = {n: getattr(gt.special, n)(gt.asarray(x, device=where)).numpy() for n in names}
    np.testing.assert_allclose(
        (f["j1"] * f["y0"] - f["j0"] * f["y1"]) * np.pi * x / 2, np.ones_like(x), 1e-13
    )
    for last in ("", "e"):
        i0, i1, k0, k1 = (f[n + last] for n in ("i0", "i1", "k0", "k1"))
        np.testing.assert_allclose((i0 * k1 + i1 * k0) * x, np.ones_like(x), 1e-14)


def test_ends(where):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 5e-324, 1e308])
    inf, nan = np.inf, np.nan
    for name, want in (
        ("j0", [1, 1, 0, 0, nan, special.j0(1.0), 1, 0]),
        ("j1", [0, -0.0, 0, 0, nan, -special.j1(1.0), 0, 0]),
        ("y0", [-inf, -inf, 0, nan, nan, nan, special.y0(5e-324), 0]),
        ("y1", [-inf, -inf, 0, nan, nan, nan, -inf, 0]),
        ("i0", [1, 1, inf, inf, nan, special.i0(1.0), 1, inf]),
        ("i1", [0, -0.0, inf, -inf, nan, -special.i1(1.0), 0, inf]),
        ("i0e", [1, 1, 0, 0, nan, special.i0e(1.0), 1, special.i0e(1e308)]),
        ("i1e", [0, -0.0, 0, -0.0, nan, -special.i1e(1.0), 0, special.i1e(1e308)]),
        ("k0", [inf, inf, 0, nan, nan, nan, -np.log(5e-324) + np.log(2) - np.euler_gamma, 0]),
        ("k1", [inf, inf, 0, nan, nan, nan, inf, 0]),
        ("k0e", [inf, inf, 0, nan, nan, nan, 744.556, special.k0e(1e308)]),
        ("k1e", [inf, inf, 0, nan, nan, nan, inf, special.k1e(1e308)]),
    ):
        got = getattr(gt.special, name)(gt.asarray(x, device=where)).numpy()
        np.testing.assert_allclose(got, want, 1e-6, 1e-150, err_msg=name)
        assert np.signbit(got[:2]).tolist() == np.signbit(want[:2]).tolist(), name
    # exp(x) overflows before the function does.
    large = gt.asarray([713.0, -713.0], device=where, dtype="float64")
    want = special.i1e(713.0) * np.exp(713.0 - 100) * np.exp(100.0)
    np.testing.assert_allclose(gt.special.i1(large).numpy(), [want, -want], 1e-13)


def test_names_of_pytorch(where, rng):
    x = gt.asarray(rng.uniform(0.1, 20, 50), device=where)
    for name in WAVES:
        assert getattr(gt.special, f"bessel_{name}") is getattr(gt.special, name)
    for name in ("i0", "i1", "k0", "k1"):
        assert getattr(gt.special, f"modified_bessel_{name}") is getattr(gt.special, name)
    assert gt.special.scaled_modified_bessel_k0 is gt.special.k0e
    assert gt.special.scaled_modified_bessel_k1 is gt.special.k1e
    got = gt.special.spherical_bessel_j0(x).numpy()
    np.testing.assert_allclose(got, special.spherical_jn(0, x.numpy()), 1e-14, 1e-16)
    ends = gt.special.spherical_bessel_j0(gt.asarray([0.0, np.inf, np.nan], device=where))
    np.testing.assert_array_equal(ends.numpy(), [1, 0, np.nan])


def test_out_and_strides(where, rng):
    x = gt.asarray(rng.uniform(0.1, 20, (40, 6)), device=where)
    want = special.k0(x.numpy())
    out = gt.full((6, 40), 9.0, dtype="float64", device=where)
    gt.special.k0(x.T, out=out)
    np.testing.assert_allclose(out.numpy(), want.T, 1e-13)
    np.testing.assert_allclose(gt.special.k0(x[::3, ::-2]).numpy(), want[::3, ::-2], 1e-13)
    gt.special.k0(x, out=x)
    np.testing.assert_allclose(x.numpy(), want, 1e-13)
    assert gt.special.j0(gt.asarray([1, 2], device=where)).dtype == gt.float32
    with pytest.raises(TypeError, match="j0: dtype: got complex64; expected float"):
        gt.special.j0(gt.asarray([1j], dtype="complex64", device=where))


def test_tables_are_those_computed_with_mpmath():
    pytest.importorskip("mpmath", reason="needs mpmath")
    header = Path(gt.__file__).parent / "_kernels" / "cuda" / "special" / "bessel.h"
    assert bessel_coefficients.text() in header.read_text()
    assert len(re.findall(r"^BESSEL_TABLE", header.read_text(), re.M)) == 16
