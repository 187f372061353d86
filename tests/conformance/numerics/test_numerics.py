"""Functions of NumPy and PyTorch beyond the array standard agree with NumPy and SciPy.

A case of `NUMPY` is written once, over `xp`. The other tests write out their reference.
"""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial.distance
import scipy.special
import scipy.stats

import gputensor as gt
from tests.conformance.tensor.test_numpy_names import agree
from tests.support.tensor_arrays import random_array, random_view

F32, F64, I32 = "float32", "float64", "int32"
UINT8 = "uint8"


# Name -> the function, and the shapes and dtypes of its arrays.
NUMPY = {
    "lcm": (lambda xp, x, y: xp.lcm(x, y), ((5, 7), I32), ((7,), I32)),
    "gcd": (lambda xp, x, y: xp.gcd(x, y), ((40,), "int64"), ((40,), "int64")),
    "bitwise_count": (lambda xp, x: xp.bitwise_count(x), ((40,), "int16")),
    "packbits": (lambda xp, x: xp.packbits(x), ((3, 21), "bool")),
    "packbits axis": (lambda xp, x: xp.packbits(x % 2, 0, "little"), ((21, 3), UINT8)),
    "unpackbits": (lambda xp, x: xp.unpackbits(x), ((3, 5), UINT8)),
    "unpackbits count": (lambda xp, x: xp.unpackbits(x, 0, -3, "little"), ((3, 5), UINT8)),
    "unpackbits more": (lambda xp, x: xp.unpackbits(x, 1, 50), ((3, 5), UINT8)),
    "frexp": (lambda xp, x: xp.frexp(x * xp.exp(x)), ((90,), F64)),
    "frexp of halves": (lambda xp, x: xp.frexp(x), ((90,), "float16")),
    "spacing": (lambda xp, x: xp.spacing(x), ((30,), F32)),
    "unwrap": (lambda xp, x: xp.unwrap(x * 5), ((4, 30), F64)),
    "unwrap period": (lambda xp, x: xp.unwrap(x, 3, 0, period=4), ((30, 2), F64)),
    "polyadd": (lambda xp, x, y: xp.polyadd(x, y), ((4,), F64), ((7,), F64)),
    "polysub": (lambda xp, x, y: xp.polysub(x, y), ((4,), I32), ((2,), I32)),
    "polymul": (lambda xp, x, y: xp.polymul(x, y), ((4,), F64), ((7,), F64)),
    # A divisor that begins with a small number leaves roundings of zero in NumPy's remainder.
    "polydiv": (lambda xp, x, y: xp.polydiv(x, xp.flip(xp.sort(xp.abs(y)))), ((7,), F64),
                ((3,), F64)),
    "polydiv by longer": (lambda xp, x, y: xp.polydiv(x, y), ((3,), F64), ((5,), F64)),
    "polyder": (lambda xp, x: xp.polyder(x, 2), ((6,), F64)),
    "polyint": (lambda xp, x: xp.polyint(x, 2, [3, 4]), ((6,), F64)),
    "poly": (lambda xp, x: xp.poly(x), ((6,), F64)),
    "poly of matrix": (lambda xp, x: xp.poly(x), ((4, 4), F64)),
    "resize": (lambda xp, x: xp.resize(x, (4, 5)), ((3, 2), F32)),
    "rollaxis": (lambda xp, x: xp.rollaxis(x, 2, 1), ((2, 3, 4), F32)),
    "rollaxis back": (lambda xp, x: xp.rollaxis(x, 0, 3), ((2, 3, 4), F32)),
    "trim_zeros": (lambda xp, x: xp.trim_zeros(x * (x > 2)), ((12,), I32)),
    "trim_zeros front": (lambda xp, x: xp.trim_zeros(x * 0, "f"), ((5,), I32)),
    "sort_complex": (lambda xp, x: xp.sort_complex(xp.round(x)), ((3, 40), "complex64")),
    "real_if_close": (lambda xp, x: xp.real_if_close(xp.real(x) + 0j), ((9,), "complex128")),
    "tril_indices_from": (lambda xp, x: xp.tril_indices_from(x, 1), ((4, 3), F32)),
    "triu_indices_from": (lambda xp, x: xp.triu_indices_from(x), ((4, 3), F32)),
    "diag_indices_from": (lambda xp, x: xp.diag_indices_from(x), ((4, 4), F32)),
    "apply_over_axes": (lambda xp, x: xp.apply_over_axes(xp.sum, x, (0, 2)), ((2, 3, 4), F64)),
    "piecewise": (lambda xp, x: xp.piecewise(x, [x < 0, x > 1], [lambda v: -v, 9, 4]),
                  ((30,), F64)),
    "piecewise without rest": (lambda xp, x: xp.piecewise(x, x < 0, [lambda v: v * v]),
                               ((30,), F64)),
    "histogram2d": (lambda xp, x, y: xp.histogram2d(x, y, (4, 3)), ((50,), F64), ((50,), F64)),
    "histogram2d density": (lambda xp, x, y: xp.histogram2d(x, y, 3, [(-9, 9), (-5, 5)], True, x),
                            ((50,), F64), ((50,), F64)),
    "histogramdd": (lambda xp, x: xp.histogramdd(x, [3, [-9., 0, 1, 9], 2])[0], ((60, 3), F64)),
    "histogram_bin_edges": (lambda xp, x: xp.histogram_bin_edges(x, 7), ((60,), F64)),
    "tensorsolve": (lambda xp, x, y: xp.linalg.tensorsolve(x, y), ((2, 3, 6), F64), ((2, 3), F64)),
    "tensorsolve axes": (lambda xp, x, y: xp.linalg.tensorsolve(x, y, (0,)),
                         ((6, 2, 3), F64), ((2, 3), F64)),
    "tensorinv": (lambda xp, x: xp.linalg.tensorinv(x, 1), ((6, 2, 3), F64)),
    "i0": (lambda xp, x: xp.i0(x), ((30,), F64)),
    "size": (lambda xp, x: (xp.size(x), xp.size(x, 1), xp.ndim(x), xp.shape(x)), ((3, 4), F32)),
    "kinds": (lambda xp, x: (xp.iscomplexobj(x), xp.isrealobj(x), xp.isscalar(x)), ((3,), F32)),
    "shares": (lambda xp, x: (xp.may_share_memory(x[:2], x[1:]), xp.shares_memory(x[:2], x[2:])),
               ((6,), F32)),
}  # fmt: skip


def arrays_of(rng, place, inputs):
    pairs = [random_view(rng, random_array(rng, shape, dtype), place) for shape, dtype in inputs]
    return [a for a, _ in pairs], [x for _, x in pairs]


@pytest.mark.parametrize("name", NUMPY)
def test_function_gives_numpys_result(place, rng, name):
    function, *inputs = NUMPY[name]
    for _ in range(4):
        arrays, tensors = arrays_of(rng, place, inputs)
        with np.errstate(all="ignore"), gt.Device(place):
            expected = function(np, *arrays)
            if isinstance(expected, tuple):
                expected = tuple(expected)  # linalg returns a named tuple
            agree(function(gt, *tensors), expected, 1e-5)


def test_roots_are_numpys_in_some_order(place, rng):
    for size, zeros in ((6, (0, 0)), (4, (1, 2)), (1, (0, 0)), (0, (3, 0))):
        a = np.concatenate([np.zeros(zeros[0]), rng.uniform(1, 2, size), np.zeros(zeros[1])])
        got = gt.roots(gt.asarray(a, device=place)).numpy()
        assert got.dtype == np.complex128
        want = np.roots(a).astype(np.complex128)
        np.testing.assert_allclose(np.sort_complex(got), np.sort_complex(want), atol=1e-8)


def test_ldexp_rounds_once(place, rng):
    for dtype, most in ((F32, 330), (F64, 2200)):
        a = (rng.random(4000) + 0.5).astype(dtype) * np.exp2(rng.integers(-100, 100, 4000))
        a = np.concatenate([a.astype(dtype), np.array([0, -0.0, np.inf, np.nan], dtype)])
        a[:9] = np.finfo(dtype).smallest_subnormal
        e = rng.integers(-most, most, a.size)
        with np.errstate(all="ignore"):
            want = np.ldexp(a, e)
        for exponents in (e, e.astype(np.int16)):
            got = gt.ldexp(gt.asarray(a, device=place), gt.asarray(exponents, device=place))
            assert np.array_equal(got.numpy(), want, equal_nan=True)
        power = int(e[-1])
        with np.errstate(all="ignore"):
            want = np.ldexp(a, power)
        got = gt.ldexp(gt.asarray(a, device=place), power).numpy()
        assert np.array_equal(got, want, equal_nan=True), power


def test_ldexp_of_float16_accepts_exponents_beyond_its_range(place):
    a = np.array([0, -0.0, 2.0**-24, 1.5, -65504, np.inf], np.float16)
    for power in (-60, -41, -30, -20, 0, 5, 15, 20, 39, 60):
        with np.errstate(all="ignore"):
            want = np.ldexp(a, power)
        got = gt.ldexp(gt.asarray(a, device=place), power).numpy()
        assert got.dtype == a.dtype and np.array_equal(got, want), power


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 64])
def test_window_is_numpys(place, name, count):
    agree(getattr(gt, name)(count, dtype=F64, device=place), getattr(np, name)(count), 1e-12)
    agree(gt.kaiser(count, 3.5, dtype=F64, device=place), np.kaiser(count, 3.5), 1e-12)


def test_frexp_gives_parts_of_special_numbers_and_every_power(place):
    for dtype in (F32, F64):
        info = np.finfo(dtype)
        powers = np.exp2(np.arange(info.minexp - 20, info.maxexp), dtype=dtype)
        near = np.concatenate([powers, np.nextafter(powers, 0, dtype=dtype)])
        a = np.concatenate([near, -near, np.array([0, -0.0, np.inf, -np.inf, np.nan], dtype)])
        fraction, exponent = gt.frexp(gt.asarray(a, device=place))
        want, power = np.frexp(a)
        assert np.array_equal(fraction.numpy(), want, equal_nan=True)
        finite = np.isfinite(a)
        assert np.array_equal(exponent.numpy()[finite], power[finite])


def check_extremes(rng, place, dtype, shape, axis):
    a = random_array(rng, shape, dtype, 0 if dtype in ("bool", "uint64") else -3, 3)
    if np.dtype(dtype).kind == "f":
        a = np.where(rng.random(shape) < 0.01, np.nan, np.round(a)).astype(dtype)
    for name, ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
        values, places = getattr(gt, name)(gt.asarray(a, device=place), axis)
        want = ufunc.accumulate(a, axis)
        assert values.dtype == a.dtype
        assert np.array_equal(values.numpy(), want, equal_nan=a.dtype.kind == "f")
        column = np.arange(a.shape[axis])
        column = column if axis == -1 or a.ndim == 1 else column[:, None]
        last = np.maximum.accumulate(np.where((a == want) | (a != a), column, 0), axis)
        assert np.array_equal(places.numpy(), last)


def check_exponentials(rng, place, dtype, bound):
    a = (rng.standard_normal((3, 2500)) * 30 + 500).astype(dtype)
    a[0, :3] = -np.inf
    for axis in (0, 1):
        got = gt.logcumsumexp(gt.asarray(a, device=place), axis).numpy()
        want = np.logaddexp.accumulate(a.astype(np.float64), axis)
        assert got.dtype == a.dtype
        np.testing.assert_allclose(got, want, rtol=bound)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int64", "float16", F32, F64])
def test_scan_of_extremes_names_the_last_place(place, rng, dtype):
    for shape, axis in itertools.product(((7,), (3, 3000), (40, 3)), (0, -1)):
        check_extremes(rng, place, dtype, shape, axis)


@pytest.mark.parametrize(("dtype", "bound"), [("float16", 4e-2), (F32, 1e-4), (F64, 1e-12)])
def test_logcumsumexp_has_no_overflow(place, rng, dtype, bound):
    check_exponentials(rng, place, dtype, bound)


def test_mode_is_the_least_of_the_most_frequent(place, rng):
    for shape, axis in (((30,), 0), ((4, 25), 1), ((25, 4), 0), ((5, 1), 1)):
        a = rng.integers(0, 4, shape)
        values, places = gt.mode(gt.asarray(a, device=place), axis)
        want = scipy.stats.mode(a, axis)
        assert np.array_equal(values.numpy(), want.mode)
        found = np.take_along_axis(a, np.expand_dims(places.numpy(), axis), axis)
        assert np.array_equal(found.squeeze(axis), want.mode)


def test_unique_consecutive_keeps_the_first_of_each_run(place, rng):
    for size in (0, 1, 200):
        a = rng.integers(0, 3, size)
        got, inverse, counts = gt.unique_consecutive(gt.asarray(a, device=place), True, True)
        runs = [(key, len(list(group))) for key, group in itertools.groupby(a.tolist())]
        assert got.tolist() == [key for key, _ in runs]
        assert counts.tolist() == [length for _, length in runs]
        assert np.array_equal(got.numpy()[inverse.numpy()], a)


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, math.inf])
def test_distances_are_scipys(place, rng, p):
    a, b = rng.standard_normal((2, 40, 6)).astype(F32), rng.standard_normal((33, 6)).astype(F32)
    x, y = gt.asarray(a, device=place), gt.asarray(b, device=place)
    power = {0: lambda d: (d != 0).sum(-1), math.inf: lambda d: d.max(-1)}.get(
        p, lambda d: (d**p).sum(-1) ** (1 / p)
    )
    d = np.abs(a[:, :, None].astype(np.float64) - b)
    np.testing.assert_allclose(gt.cdist(x, y, p).numpy(), power(d), rtol=1e-4, atol=1e-4)
    whole = np.abs(a[0, :33].astype(np.float64) - b).reshape(-1)
    np.testing.assert_allclose(gt.dist(x[0, :33], y, p).item(), power(whole), rtol=1e-5)


def test_renorm_scales_long_slices_only(place, rng):
    a = rng.standard_normal((5, 7)).astype(F32)
    got = gt.renorm(gt.asarray(a, device=place), 2, 0, 2.0).numpy()
    norms = np.linalg.norm(a, axis=1, keepdims=True)
    np.testing.assert_allclose(got, np.where(norms > 2, a * 2 / norms, a), rtol=1e-5)


def test_products_with_sums_are_numpys(place, rng):
    m, v, c = rng.standard_normal((4, 5)), rng.standard_normal(5), rng.standard_normal(4)
    b1, b2 = rng.standard_normal((3, 4, 5)), rng.standard_normal((3, 5, 2))
    to = lambda a: gt.asarray(a, device=place)  # noqa: E731
    agree(gt.addmv(to(c), to(m), to(v), beta=2, alpha=3), 2 * c + 3 * (m @ v))
    d = rng.standard_normal((4, 2))
    agree(gt.addbmm(to(d), to(b1), to(b2), beta=0.5, alpha=2), d / 2 + 2 * (b1 @ b2).sum(0))


def test_views_by_strides_and_windows_share_memory(place, rng):
    a = rng.standard_normal((6, 8)).astype(F32)
    x = gt.asarray(a, device=place)
    windows = np.lib.stride_tricks.sliding_window_view(a, 3, 1)[:, ::2]
    agree(gt.unfold(x, 1, 3, 2), windows)
    strided = gt.as_strided(x, (5, 4), (2, 1), 3)
    agree(strided, np.lib.stride_tricks.as_strided(a.reshape(-1)[3:], (5, 4), (8, 4)))
    strided[0, 0] = 7
    assert x[0, 3].item() == 7
    back = gt.as_strided(x[::-1], (3,), (-8,))
    agree(back, x.numpy()[::-1][:3, 0])
    for shape, strides, first in (((49,), (1,), 0), ((2,), (-1,), 0), ((2,), (1,), 47)):
        with pytest.raises(ValueError, match=r"^as_strided: strides: got elements"):
            gt.as_strided(x, shape, strides, first)


def test_complex_parts_are_views(place, rng):
    a = rng.standard_normal((3, 4, 2))
    x = gt.asarray(a, device=place)
    z = gt.view_as_complex(x)
    agree(z, a[..., 0] + 1j * a[..., 1])
    agree(gt.view_as_real(z[:, ::2]), a[:, ::2])
    z[0, 0] = 3 - 4j
    assert x[0, 0].tolist() == [3, -4]
    agree(gt.complex(x[..., 0], x[..., 1]), x.numpy()[..., 0] + 1j * x.numpy()[..., 1])
    agree(gt.polar(gt.abs(z), gt.angle(z)), z.numpy(), 1e-12)
    with pytest.raises(ValueError, match=r"^view_as_complex: x: got .*; expected"):
        gt.view_as_complex(x[..., :1])


def test_parts_along_diagonals(place, rng):
    a, b = rng.standard_normal((2, 3)), rng.standard_normal(4)
    x, y = gt.asarray(a, device=place), gt.asarray(b, device=place)
    agree(gt.block_diag(x, y, x), scipy.linalg.block_diag(a, b, a))
    for offset in (-2, 0, 3):
        agree(gt.diag_embed(y, offset), np.diag(b, offset))
        stacked = gt.diag_embed(x, offset, 0, 2)
        want = np.stack([np.diag(row, offset) for row in a]).transpose(1, 0, 2)
        agree(stacked, want)


def test_writes_by_index_return_new_tensors(place, rng):
    a, b = rng.standard_normal((4, 5)), rng.standard_normal((2, 5))
    x, y = gt.asarray(a, device=place), gt.asarray(b, device=place)
    index = gt.asarray([3, 1], device=place)
    want = a.copy()
    want[[3, 1]] = b
    agree(gt.index_copy(x, 0, index, y), want)
    want = a.copy()
    want[:, [3, 1]] = 6
    agree(gt.index_fill(x, 1, index, 6), want)
    mask = rng.random(5) < 0.5
    want = a.copy()
    want[:, mask] = b.reshape(-1)[: 4 * mask.sum()].reshape(4, -1) if mask.sum() < 3 else 0
    if mask.sum() < 3:
        agree(gt.masked_scatter(x, gt.asarray(mask, device=place), y), want)
    agree(x, a)


def test_choices_of_elements_are_pythons(place):
    x = gt.asarray([5, 6, 7, 8], device=place)
    for r in range(1, 4):
        want = list(itertools.combinations([5, 6, 7, 8], r))
        assert np.array_equal(gt.combinations(x, r).numpy(), np.array(want).reshape(-1, r))
        want = list(itertools.combinations_with_replacement([5, 6, 7, 8], r))
        got = gt.combinations(x, r, True).numpy()
        assert np.array_equal(got, np.array(want).reshape(-1, r))


def test_tensors_of_functions_iterables_and_buffers(place):
    agree(gt.fromfunction(lambda i, j: i * 3 + j, (3, 4), dtype=F64, device=place),
          np.fromfunction(lambda i, j: i * 3 + j, (3, 4)))  # fmt: skip
    agree(gt.fromiter(range(9), F32, 4, device=place), np.arange(4.0, dtype=F32))
    data = bytes(range(16))
    agree(gt.frombuffer(data, "int16", 3, 2, device=place), np.frombuffer(data, "int16", 3, 2))
    agree(gt.from_numpy(np.arange(3.0), device=place), np.arange(3.0))
    agree(gt.mask_indices(3, gt.triu, 1, device=place), np.mask_indices(3, np.triu, 1))
    assert np.array_equal(gt.asnumpy(gt.ones(2, device=place)), np.ones(2))


def exponential(a):
    """Return the exponentials of matrices, by Taylor's series of long doubles."""
    a = a.astype(np.clongdouble if a.dtype.kind == "c" else np.longdouble)
    times = max(0, math.ceil(math.log2(np.abs(a).sum(1).max()))) + 4
    term = result = np.eye(a.shape[-1], dtype=a.dtype)
    for power in range(1, 20):
        term = term @ (a / 2**times) / power
        result = result + term
    for _ in range(times):
        result = result @ result
    return result


def test_matrix_exponential_is_that_of_the_series(place, rng):
    for scale, dtype in ((0.1, F64), (1, F64), (30, F64), (1, "complex128"), (3, F32)):
        a = (rng.standard_normal((3, 6, 6)) * scale).astype(dtype)
        if scale > 1:
            a += a.swapaxes(1, 2)  # squaring is only sure to keep the accuracy of a normal matrix
        got = gt.linalg.matrix_exp(gt.asarray(a, device=place)).numpy()
        want = exponential(a)
        # The relative error grows like the norm; 60 is room for the sums of six terms.
        unit = np.finfo(dtype).eps / 2 * (1 + np.abs(a).sum(1).max())
        size = np.abs(want).max((1, 2), keepdims=True)
        assert (np.abs(got - want) <= 60 * unit * size).all()


def test_poisson_counts_follow_the_distribution(place):
    generator = gt.random.generator(seed=5, device=place)
    for mean in (0.3, 4.0, 700.0):
        draws = gt.random.poisson(mean, 20000, generator=generator).numpy()
        edges = np.unique(scipy.stats.poisson.ppf(np.linspace(0, 1, 12)[1:-1], mean))
        counts = np.diff([0, *[(draws <= edge).sum() for edge in edges], draws.size])
        shares = np.diff([0, *scipy.stats.poisson.cdf(edges, mean), 1])
        assert scipy.stats.chisquare(counts, shares * draws.size).pvalue > 1e-4
    means = gt.asarray([0.0, 1e7], device=place)
    draws = gt.random.poisson(means, generator=generator).numpy()
    assert draws[0] == 0 and abs(draws[1] - 1e7) < 3e4
    assert gt.poisson is gt.random.poisson


def test_poisson_numbers_equal_those_of_the_host(place):
    here, there = (
        gt.random.poisson(2.5, (50, 3), generator=gt.random.generator(seed=9, device=one)).numpy()
        for one in (place, "host")
    )
    assert np.array_equal(here, there)


def test_facts_of_dtypes():
    x = gt.ones(2, "float16", device="host")
    assert gt.common_type(x, gt.ones(1, "complex64", device="host")) == np.complex64
    assert gt.min_scalar_type(70000) == np.uint32 and gt.min_scalar_type(x) == np.float16
    assert gt.is_floating_point(x) and not gt.is_complex(x) and gt.is_tensor(x)
    assert gt.item(x[0]) == 1.0 and gt.array_str(x) == str(x) and gt.array_repr(x) == repr(x)
    assert gt.array2string(x) == "[1. 1.]"
    with pytest.raises(TypeError, match=r"^common_type: dtype: got bool; expected"):
        gt.common_type(gt.ones(1, "bool", device="host"))
