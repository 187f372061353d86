"""Special functions against SciPy, and the incomplete gamma functions also far from its reach."""

import numpy as np
import pytest

import gputensor as gt

special = pytest.importorskip("scipy.special", reason="needs SciPy")


def points(rng, low, high, count=400):
    """Return arguments a, and x of which most are within some deviations of a."""
    a = 10 ** rng.uniform(low, high, count)
    x = a * np.exp(rng.standard_normal(count) * np.minimum(3, 5 / np.sqrt(a)))
    return a, np.where(rng.random(count) < 0.2, 10 ** rng.uniform(-8, 3, count), x)


@pytest.mark.parametrize(("low", "high"), [(-12, 0), (-1, 1.3), (1.2, 2.2)])
def test_incomplete_gamma_functions(where, rng, low, high):
    a, x = points(rng, low, high)
    for name, exact in (("igamma", special.gammainc), ("igammac", special.gammaincc)):
        got = getattr(gt, name)(gt.asarray(a, device=where), gt.asarray(x, device=where)).numpy()
        want = exact(a, x)
        kept = want > 1e-280
        np.testing.assert_allclose(got[kept], want[kept], 1e-12, err_msg=name)
        assert (got[~kept] <= 1e-279).all()


# P below a and Q from a on, k deviations from a, by quadrature with 40 digits: SciPy has 6 there.
FAR = {
    1e6: {-6: 9.178900262302023e-10, -2: 0.0226961140067368, 0: 0.4998670192391274,
          3: 0.001361740646217591},
    1e9: {-6: 9.84283017828938e-10, -2: 0.02274766176810215, 3: 0.001350318013075096},
}  # fmt: skip


def test_incomplete_gamma_functions_far_away(where):
    for a, values in FAR.items():
        for deviations, want in values.items():
            x = gt.asarray([round(a + deviations * a**0.5)], "float64", device=where)
            function = gt.igamma if deviations < 0 else gt.igammac
            np.testing.assert_allclose(function(x * 0 + a, x).numpy(), [want], 1e-12)


def test_ends_of_incomplete_gamma_functions(where):
    ends = np.array([0, 1e-300, 0.5, 1, 19.9, 20, 1e10, 1e300, np.inf, np.nan, -1, -np.inf])
    a, x = (one.ravel() for one in np.meshgrid(ends, ends))
    for name, exact in (("igamma", special.gammainc), ("igammac", special.gammaincc)):
        got = getattr(gt, name)(gt.asarray(a, device=where), gt.asarray(x, device=where)).numpy()
        np.testing.assert_allclose(got, exact(a, x), 1e-12, 1e-290, err_msg=name)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_dtypes_of_incomplete_gamma_functions(where, rng, dtype):
    a, x = rng.uniform(1, 20, (2, 50)).astype(dtype)
    got = gt.asarray(a, device=where).igamma(gt.asarray(x, device=where))
    assert got.dtype == (a.dtype if a.dtype.kind == "f" else np.float32)
    want = special.gammainc(a.astype(float), x.astype(float))
    bounds = (1e-3, 1e-7) if dtype == "float16" else (2e-7, 0)
    np.testing.assert_allclose(got.numpy(), want, *bounds)
    y = gt.asarray(a, dtype="float64", device=where)
    np.testing.assert_allclose(y.igammac_(2.0).numpy(), special.gammaincc(a.astype(float), 2.0))


UNARY = (
    "cbrt digamma entr erf erfc exp10 exp2 expit expm1 gamma gammaln i0 log1p log_expit ndtr psi "
    "sinc"
)


@pytest.mark.parametrize("name", [*UNARY.split(), "rel_entr", "xlogy", "xlog1py"])
def test_function_of_gt_special(where, rng, name):
    x = rng.uniform(0.01, 5, 60)
    x[:3] = 0, 1, np.nan
    if name in ("gamma", "entr", "ndtr", "erfc", "expit"):
        x[3:20] *= -1
        x[3] = -2
    y = [rng.uniform(0, 3, 60)] if name not in UNARY else []
    for one in y:
        one[4:7] = 0, 2, np.nan
    got = getattr(gt.special, name)(*(gt.asarray(one, device=where) for one in (x, *y))).numpy()
    want = np.sinc(x) if name == "sinc" else getattr(special, name)(x, *y)
    np.testing.assert_allclose(got, want, 2e-12, 1e-14)
    single = getattr(gt.special, name)(
        *(gt.asarray(one.astype("float32"), device=where) for one in (x[20:], *(b[20:] for b in y)))
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.numpy(), want[20:], 2e-5, 1e-6)


def test_other_names_of_special_functions(where, rng):
    x = gt.asarray(rng.uniform(1, 4, (3, 5)), device=where)
    assert gt.special.gammainc is gt.igamma and gt.special.gammaincc is gt.igammac
    np.testing.assert_allclose(gt.special.softmax(x, 1).numpy(), special.softmax(x.numpy(), 1))
    np.testing.assert_allclose(gt.special.logsumexp(x, 1).numpy(), special.logsumexp(x.numpy(), 1))
    for name in ("entr", "ndtr"):
        with pytest.raises(TypeError, match=f"{name}: x: got complex64; expected a real dtype"):
            getattr(gt.special, name)(x.astype("complex64"))


ENDS = np.array([0.0, 1.0, -1.0, 12.0, -12.0, np.inf, -np.inf, np.nan])


def with_ends(*parts):
    return np.concatenate([*parts, ENDS])


def shares(rng):
    """Probabilities: all sizes of tails, close to a half, and the ends."""
    wide = 10 ** rng.uniform(-300, 0, 200)
    near = 0.5 + rng.uniform(-1e-6, 1e-6, 50)
    return with_ends(rng.random(200), wide, 1 - 10 ** rng.uniform(-16, 0, 99), near)


def positives(rng, low=-3, high=3):
    return 10 ** rng.uniform(low, high, 300)


def whole(rng):
    return rng.integers(0, 60, 300).astype(float)


#: Function, its arguments, and the greatest relative error against SciPy.
COMPOSED = (
    ("erfcx", lambda r: [with_ends(r.uniform(-25, 40, 300), positives(r, 0, 200))], 2e-13),
    ("log_ndtr", lambda r: [with_ends(r.uniform(-40, 9, 300), -positives(r, -9, 99))], 1e-13),
    ("ndtri", lambda r: [shares(r)], 1e-13),
    ("erfcinv", lambda r: [2 * shares(r)], 1e-13),
    ("beta", lambda r: [positives(r), positives(r)], 1e-10),
    ("beta", lambda r: list(r.uniform(-6, 6, (2, 300))), 1e-9),
    ("beta", lambda r: [positives(r), 2.5], 1e-10),
    ("betaln", lambda r: [positives(r), positives(r)], 1e-11),
    ("binom", lambda r: [whole(r), whole(r)], 1e-12),
    ("binom", lambda r: [x := r.uniform(0, 300, 300), x * r.random(300)], 1e-10),
    ("boxcox", lambda r: [positives(r), r.uniform(-3, 3, 300)], 1e-13),
    ("boxcox", lambda r: [positives(r), 0.0], 1e-13),
    ("exprel", lambda r: [with_ends(r.uniform(-700, 700, 300), positives(r, -20, 0))], 1e-13),
    ("loggamma", lambda r: [with_ends(positives(r, -8, 8), -positives(r))], 1e-12),
    ("rgamma", lambda r: [with_ends(r.uniform(-170, 171, 300), positives(r, -8, 2))], 1e-13),
    ("rgamma", lambda r: [-whole(r)], 0),
    ("zeta", lambda r: [1 + positives(r, -6), positives(r, -3, 4)], 1e-12),
    ("zeta", lambda r: [3.0, positives(r)], 1e-12),
    ("zeta", lambda r: [np.array([2.0, 1.0, 3.0]), np.array([0.0, 2.0, -2.0])], 0),
)  # fmt: skip


def check_composed(rng, where, name, make, bound):
    arguments = make(rng)
    tensors = [gt.asarray(one, device=where) if np.ndim(one) else one for one in arguments]
    got = getattr(gt.special, name)(*tensors).numpy()
    with np.errstate(all="ignore"):
        want = getattr(special, name)(*arguments)
    np.testing.assert_allclose(got, want, bound, 4e-12 if name == "betaln" else 1e-300)


@pytest.mark.parametrize(("name", "make", "bound"), COMPOSED)
def test_composed_functions(where, rng, name, make, bound):
    check_composed(rng, where, name, make, bound)


def test_beta_functions_far_apart(where, rng):
    """SciPy loses digits there: B(a, 1) = 1 / a and B(a, 2) = 1 / (a (a + 1))."""
    a = 10 ** rng.uniform(0, 15, 300)
    x = gt.asarray(a, device=where)
    np.testing.assert_allclose(gt.special.betaln(x, 1.0).numpy(), -np.log(a), 1e-13, 1e-13)
    want = -np.log(a) - np.log(a + 1)
    np.testing.assert_allclose(gt.special.betaln(2.0, x).numpy(), want, 1e-13, 1e-13)


def test_composed_functions_of_other_dtypes_and_numbers(where):
    with gt.Device(where):
        x = gt.asarray([0.25, 0.75], dtype="float16")
        assert gt.special.ndtri(x).dtype == gt.float16
        assert gt.special.beta(gt.asarray([2, 3]), 2).dtype == gt.float32
        assert gt.special.beta(2.0, 3.0).item() == pytest.approx(1 / 12)
        assert gt.special.zeta(gt.asarray([2.0])).item() == pytest.approx(np.pi**2 / 6)
        with pytest.raises(TypeError, match="erfcx: dtype: got complex64; expected float"):
            gt.special.erfcx(x + 1j)
