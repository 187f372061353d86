"""Arguments and names that programs of NumPy, CuPy and PyTorch use beside the common ones."""

import io

import numpy as np
import pytest

import gputensor as gt


def test_dtype_of_element_wise_functions(where, rng):
    a, k = rng.normal(size=(3, 4)), rng.integers(1, 9, 4)
    x, i = gt.asarray(a, device=where), gt.asarray(k, device=where)
    for got, want in (
        (gt.add(i, 1, dtype="float64"), np.add(k, 1, dtype="float64")),
        (gt.multiply(x, i, dtype=gt.float32), np.multiply(a, k, dtype="float32")),
        (gt.sqrt(i, dtype="float64"), np.sqrt(k, dtype="float64")),
        (gt.divide(i, 3, dtype=float), np.divide(k, 3)),
        (gt.add(i, 1, where=i > 4, dtype="int16"), np.where(k > 4, k + 1, 0).astype("int16")),
        (gt.equal(i, 3, dtype=bool), k == 3),
        (gt.add(x, 1j, dtype="complex64"), (a + 1j).astype("complex64")),
    ):
        assert got.dtype == want.dtype and got.device == x.device
        np.testing.assert_allclose(got.numpy(), want, 1e-6)
    out = gt.zeros(4, "float64", device=where)
    assert gt.add(i, 0.5, out=out, dtype="float64") is out
    np.testing.assert_array_equal(out.numpy(), k + 0.5)
    assert gt.add(1, 2, dtype="float32") == 3 and type(gt.add(1, 2, dtype="int8")) is np.int8
    for call in (
        lambda: gt.divide(i, 2, out=i, dtype="int64"),
        lambda: gt.add(i, 1.5, dtype="int32"),
        lambda: gt.equal(i, 1, dtype="float32"),
        lambda: gt.sqrt(x + 1j, dtype="float32"),
    ):
        with pytest.raises(TypeError, match=r"\w+: dtype: got \w+; expected"):
            call()
    np.testing.assert_array_equal(i.numpy(), k)


def test_batch_norm_of_a_batch(where, rng):
    for shape in ((7, 3), (4, 3, 5), (2, 3, 4, 5)):
        a, weight, bias = rng.normal(2, 3, shape), *rng.normal(size=(2, 3))
        axes, along = (0, *range(2, len(shape))), (3,) + (1,) * (len(shape) - 2)
        mean, variance = rng.normal(size=3), rng.random(3)
        x, m, v, w, b = (gt.asarray(one, device=where) for one in (a, mean, variance, weight, bias))
        want = (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 1e-3)
        want = want * weight.reshape(along) + bias.reshape(along)
        got = gt.batch_norm(x, m, v, w, b, True, 0.2, 1e-3)
        np.testing.assert_allclose(got.numpy(), want, 1e-9, 1e-9)
        np.testing.assert_allclose(m.numpy(), 0.8 * mean + 0.2 * a.mean(axes), 1e-12)
        np.testing.assert_allclose(v.numpy(), 0.8 * variance + 0.2 * a.var(axes, ddof=1), 1e-12)
        got = gt.batch_norm(x, None, None, weight=w, bias=b, training=True, eps=1e-3)
        np.testing.assert_allclose(got.numpy(), want, 1e-9, 1e-9)
        half = gt.batch_norm(x.half(), gt.zeros(3, device=where), None, w, b, True, eps=1e-3)
        assert half.dtype == gt.float16
        np.testing.assert_allclose(half.numpy(), want, 0.02, 0.02)


def test_batch_norm_raises_before_it_writes(where, rng):
    x = gt.asarray(rng.normal(size=(1, 3)), device=where)
    m, v = gt.zeros(3, "float64", device=where), gt.ones(3, "float64", device=where)
    with pytest.raises(ValueError, match=r"batch_norm: shape of x: got \(1, 3\); expected two or"):
        gt.batch_norm(x, m, v, training=True)
    y = gt.concat([x, x])
    for given, kind in (
        ((m, v, v[:2], None, True), ValueError), ((m, v, None, None, 1), TypeError),
        ((m, v[:2], None, None, True), ValueError), ((None, v), TypeError),
        ((m, v, None, None, True, "a"), TypeError),
        ((m, v, None, None, True, 0.1, 1e-5, 2), TypeError),
    ):  # fmt: skip
        with pytest.raises(kind, match="batch_norm: .*got .*; expected"):
            gt.batch_norm(y, *given)
    assert m.tolist() == [0, 0, 0] and v.tolist() == [1, 1, 1]


def test_power_series(where, rng):
    c, d, r, x = rng.normal(size=5), rng.normal(size=3), rng.normal(size=4), rng.normal(size=(4, 6))
    table, y = rng.normal(size=(3, 2)), rng.normal(size=(4, 6))
    theirs, ours = np.polynomial.polynomial, gt.polynomial.polynomial
    with gt.Device(where):
        for call in (
            lambda p, f: p.polyadd(f(c), f(d)), lambda p, f: p.polysub(f(d), f(c)),
            lambda p, f: p.polymul(f(c), f(d)), lambda p, f: p.polymulx(f(c)),
            lambda p, f: p.polydiv(f(c), f(d)), lambda p, f: p.polypow(f(d), 3),
            lambda p, f: p.polyder(f(c)), lambda p, f: p.polyder(f(c), 2, 3.0),
            lambda p, f: p.polyder(f(d), 7), lambda p, f: p.polyint(f(c)),
            lambda p, f: p.polyint(f(c), 3, [1.0, 2.0], lbnd=0.5, scl=2.0),
            lambda p, f: p.polyval(f(x), f(c)), lambda p, f: p.polyval(f(x), f(table)),
            lambda p, f: p.polyval(f(x[0, :2]), f(table), tensor=False),
            lambda p, f: p.polyval(2.0, f(c)), lambda p, f: p.polyvalfromroots(f(x), f(r)),
            lambda p, f: p.polyvander(f(x), 3), lambda p, f: p.polyfromroots(f(r)),
            lambda p, f: p.polycompanion(f(c)), lambda p, f: p.polyline(f(r)[0], f(r)[1]),
            lambda p, f: p.polytrim(f([1.0, 0, 2, 0, 1e-3]), 0.01),
            lambda p, f: p.polytrim(f([0.0, 0.0])),
            lambda p, f: p.polyroots(p.polyfromroots(f(r))) * (1 + 0j),
            lambda p, f: p.polyfit(f(x[0]), f(y.T), 2, w=f(x[1] ** 2)),
            lambda p, f: p.polyfit(f(x[0]), f(y[0]), 2, full=True)[1][0],
        ):  # fmt: skip
            found, want = call(ours, gt.asarray), call(theirs, np.asarray)
            pairs = zip(found, want, strict=True) if isinstance(found, tuple) else ((found, want),)
            for one, other in pairs:
                assert one.shape == np.shape(other)
                np.testing.assert_allclose(one.numpy(), other, 1e-8, 1e-10)
        for call in (
            lambda: ours.polyval(gt.ones(2), []), lambda: ours.polyadd(gt.ones((2, 2)), [1]),
            lambda: ours.polypow([1, 2], -1), lambda: ours.polypow([1, 2], 5, 4),
            lambda: ours.polyint([1.0], 1, [1, 2]), lambda: ours.polycompanion([1.0]),
            lambda: ours.polytrim([1.0], -1), lambda: ours.polyvander(gt.ones(2), -1),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=r"poly\w+: \w+: got .*; expected"):
                call()


def test_archives_have_numpys_names(where, tmp_path):
    path = tmp_path / "a.npz"
    gt.savez(path, x=gt.ones(2, device=where), k=gt.arange(3, device=where))
    with gt.load(path, allow_pickle=True, device=where) as archive:
        assert sorted(archive.files) == ["k", "x"] == sorted(archive)
        assert archive["k"].tolist() == [0, 1, 2]
    archive.close()
    assert archive["x"].tolist() == [1, 1]
    file = io.BytesIO()
    gt.save(file, archive["k"])
    file.seek(0)
    assert gt.load(file, device=where).tolist() == [0, 1, 2]


def test_numpys_bools_are_indices(where, rng):
    a = rng.normal(size=(2, 3))
    x = gt.asarray(a, device=where)
    for flag in (np.True_, np.False_):
        np.testing.assert_array_equal(x[flag].numpy(), a[flag])
        np.testing.assert_array_equal(x[0, flag].numpy(), a[0, flag])
    x[np.False_] = 7
    np.testing.assert_array_equal(x.numpy(), a)


def test_lists_where_peers_take_them(where, rng):
    a = rng.normal(size=(2, 3, 4))
    with gt.Device(where):
        x = gt.asarray(a)
        np.testing.assert_array_equal(gt.full((2, 2), [1.0, 2.0]).numpy(), [[1, 2], [1, 2]])
        assert gt.full((2, 2), [[1], [2]], dtype="int8").dtype == gt.int8
        assert gt.interp(0.5, [0.0, 1], [2.0, 4]).item() == 3
        np.testing.assert_allclose(gt.einsum("bij,bkj->bik", [x, x]).numpy(), a @ a.swapaxes(1, 2))
        with pytest.raises(ValueError, match="shape"):
            gt.full((2, 2), [1.0, 2.0, 3.0])
        np.testing.assert_allclose(gt.linalg.vector_norm(x, 1).item(), abs(a).sum())
        np.testing.assert_array_equal(x.numpy(force=True), a)


def test_further_random_fills(where):
    with gt.Device(where):
        x = gt.zeros(4000, "float64")
        x.cauchy_(2.0, 3.0)
        assert abs(x.median().item() - 2) < 0.6 and 4 < gt.abs(x - 2).mean().item()
        x.log_normal_(0.5, 0.25)
        assert abs(gt.log(x).mean().item() - 0.5) < 0.03
        x.geometric_(0.25)
        assert x.min().item() == 1 and abs(x.mean().item() - 4) < 0.5
        drawn = gt.random.RandomState(3).tomaxint((2, 500))
        assert drawn.dtype == gt.int64 and drawn.min().item() >= 0
        assert drawn.max().item() > 2**62 and type(gt.random.RandomState(3).tomaxint()) is int
        drawn = gt.normal(mean=gt.full(500, 3.0), std=0.1)
        assert drawn.shape == (500,) and abs(drawn.mean().item() - 3) < 0.05


def test_numpys_checks_of_exceptions():
    gt.testing.assert_raises(ValueError, gt.ones(3, device="host").reshape, 2)
    with gt.testing.assert_raises_regex(ValueError, "shape"):
        gt.ones(3, device="host").reshape(2)


def test_order_by_position_as_in_numpy(where, rng):
    a = rng.normal(size=(2, 3))
    x = gt.asarray(a, device=where)
    for got, want in (
        (x.copy("F"), a.copy("F")),
        (gt.copy(x, "F"), np.copy(a, "F")),
        (x.astype("float32", "F"), a.astype("float32", "F")),
        (gt.asarray(x, "float32", "F"), np.asarray(a, "float32", "F")),
        (gt.full_like(x, 2, None, "F"), np.full_like(a, 2, None, "F")),
    ):
        assert got.strides == want.strides and got.dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), want)
    with gt.Device(where):
        assert gt.zeros((2, 3), "int16", "F").strides == (2, 4)
        assert gt.full((2, 3), 1.5, "float64", "C").strides == (24, 8)
    assert x.tobytes("F") == a.tobytes("F") and x.T.tobytes("A") == a.T.tobytes("A")
    with pytest.raises(ValueError, match="copy: order: got 'up'; expected C, F, A or K"):
        x.copy("up")
    with pytest.raises(TypeError, match="copy: order: got the argument twice"):
        x.copy("F", order="C")
    with pytest.raises(TypeError):
        x.copy(3)


def test_pad_by_a_function(where, rng):
    def border(vector, widths, axis, options):
        vector[: widths[0]] = options.get("value", 10) + axis
        if widths[1]:
            vector[-widths[1] :] = vector[widths[0] : widths[0] + 1] * 2

    a = rng.normal(size=(3, 2))
    x = gt.asarray(a, device=where)
    for widths, options in ((2, {}), (((1, 0), (2, 1)), {"value": 5}), ((0, 1), {})):
        got = gt.pad(x, widths, border, **options)
        np.testing.assert_array_equal(got.numpy(), np.pad(a, widths, border, **options))
        got = np.pad(x, widths, border, **options)
        np.testing.assert_array_equal(got.numpy(), np.pad(a, widths, border, **options))
    with pytest.raises(
        TypeError, match="pad: keyword: got value=; expected constant_values=, or a fun"
    ):
        gt.pad(x, 1, "edge", value=3)


def test_polynomials_of_lists(where, rng):
    c, p = rng.normal(size=3).tolist(), rng.normal(size=5).tolist()
    with gt.Device(where):
        np.testing.assert_allclose(gt.polyval(c, p).numpy(), np.polyval(c, p), 1e-5, 1e-5)
        np.testing.assert_allclose(gt.polyval(c, 2.0).item(), np.polyval(c, 2.0), 1e-5, 1e-5)
        got = gt.polyfit(p, [1, 2, 3, 4, 5], 2, w=[1, 2, 1, 2, 1])
        want = np.polyfit(p, [1, 2, 3, 4, 5], 2, w=[1, 2, 1, 2, 1])
        np.testing.assert_allclose(got.numpy(), want, rtol=0.05, atol=0.05)
    x = gt.asarray(np.array(p), device=where)
    got = gt.polynomial.polynomial.polyfit(x, [1, 2, 3, 4, 5], 2)
    want = np.polynomial.polynomial.polyfit(p, [1, 2, 3, 4, 5], 2)
    assert got.dtype == np.float64 and got.device == x.device
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    with pytest.raises(ValueError, match="polyfit: cov: got 'scaled'"):
        gt.polyfit(x, x, 1, cov="scaled")
    with pytest.raises(ValueError, match="histogram: weights: got 2 weights; expected 5"):
        gt.histogram(x, weights=[1, 2])
    got, _ = gt.histogram(x, 3, (-9, 9), weights=[1, 2, 3, 4, 5])
    np.testing.assert_allclose(got.numpy(), np.histogram(p, 3, (-9, 9), weights=[1, 2, 3, 4, 5])[0])


def test_texts_of_arrays_with_options(where):
    x = gt.asarray([1 / 3, 1e-9], device=where)
    assert gt.array_str(x, precision=2, suppress_small=True) == "[0.33 0.  ]"
    assert "[0.33, 0.  ]" in gt.array_repr(x, precision=2, suppress_small=True)
    assert np.array_str(x[:1], precision=1) == "[0.3]"
    assert gt.array_str(gt.arange(30, device=where), 40).count("\n") > 1
    assert gt.array_str(x) == str(x) and gt.array_repr(x) == repr(x)


def test_names_of_parameters_of_power_series(where):
    series = gt.polynomial.polynomial
    x = gt.asarray([1.0, 2.0], device=where)
    assert series.polyval(x=x, c=[1, 2]).tolist() == [3.0, 5.0]
    assert series.polyadd(c1=x, c2=[1]).tolist() == [2.0, 2.0]
    assert series.polyder(c=x).tolist() == [2.0]
    assert series.polyfromroots(roots=x).tolist() == [2.0, -3.0, 1.0]


def test_descending_and_kind_of_argsort_by_position(where):
    x = gt.asarray([[2, 1, 2]], device=where)
    assert x.argsort(1, "stable").tolist() == [[1, 0, 2]]
    assert gt.argsort(x, -1, True).tolist() == [[0, 2, 1]]


def test_derivatives_and_integrals_of_polynomials_along_an_axis(where, rng):
    theirs, ours = np.polynomial.polynomial, gt.polynomial.polynomial
    for _ in range(20):
        shape = tuple(rng.integers(1, 5, rng.integers(1, 4)).tolist())
        axis = int(rng.integers(-len(shape), len(shape)))
        c, m = rng.standard_normal(shape), int(rng.integers(0, 5))
        k = rng.standard_normal(rng.integers(0, m + 1)).tolist()
        x = gt.asarray(c, device=where)
        got, want = ours.polyder(x, m, 2.0, axis).numpy(), theirs.polyder(c, m, 2.0, axis)
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)
        got = ours.polyint(x, m, k, 1.5, 0.5, axis=axis).numpy()
        np.testing.assert_allclose(got, theirs.polyint(c, m, k, 1.5, 0.5, axis=axis), 1e-9, 1e-12)
    with pytest.raises(ValueError, match="polyder: c: got shape"):
        ours.polyder(gt.zeros((2, 0), device=where), axis=1)


def test_shifts_of_frequencies_take_axes_by_position(where, rng):
    a = rng.standard_normal((4, 5))
    x = gt.asarray(a, device=where)
    for name in ("fftshift", "ifftshift"):
        for axes in (0, (1,), None):
            got = getattr(gt.fft, name)(x, axes)
            np.testing.assert_array_equal(got.numpy(), getattr(np.fft, name)(a, axes))


def test_functions_of_poly1d_return_poly1d(where, rng):
    a, b = rng.uniform(1, 2, 4), rng.uniform(1, 2, 2)
    p, q = gt.poly1d(gt.asarray(a, device=where)), gt.asarray(b, device=where)
    for name, arguments in (("polyder", ()), ("polyint", (2,)), ("polymul", (b,)),
                            ("polyadd", (b,)), ("polysub", (b,))):  # fmt: skip
        given = [q if one is b else one for one in arguments]
        got, want = getattr(gt, name)(p, *given), getattr(np, name)(np.poly1d(a), *arguments)
        assert isinstance(got, gt.poly1d)
        np.testing.assert_allclose(got.coeffs.numpy(), want.coeffs, 1e-12)
    quotient, rest = gt.polydiv(p, q)
    back = (quotient * gt.poly1d(q) + rest).coeffs.numpy()
    np.testing.assert_allclose(back, a, 1e-9)


def test_infinities_take_out_by_position(where):
    x = gt.asarray([1.0, -np.inf, np.inf], device=where)
    for name, want in (("isneginf", [0, 1, 0]), ("isposinf", [0, 0, 1])):
        out = gt.full(3, 2, device=where)
        assert getattr(gt, name)(x, out) is out
        assert out.tolist() == want


def test_copies_to_the_host_take_cupys_arguments(where, rng):
    a = rng.normal(size=(3, 4))
    x = gt.asarray(a, device=where)
    for call in (x.get, lambda *given, **named: gt.asnumpy(x, *given, **named)):
        got, out = call(None, "F"), np.empty((3, 4))
        assert got.flags.f_contiguous and np.array_equal(got, a)
        assert call(out=out, blocking=True) is out and np.array_equal(out, a)
        with pytest.raises(TypeError, match="get: out: got ndarray; expected an array of float64"):
            call(out=np.empty((4, 3)))
        with pytest.raises(ValueError, match="get: order: got 'X'"):
            call(order="X")
    assert gt.asnumpy([[1, 2]], order="F", out=np.zeros((1, 2), int)).tolist() == [[1, 2]]


def test_nan_of_a_vector_is_unique_once_along_its_axis(where):
    a = np.array([np.nan, 1, np.nan, 1], "float32")
    x = gt.asarray(a, device=where)
    for axis in (0, -1):
        np.testing.assert_array_equal(gt.unique(x, axis=axis).numpy(), np.unique(a, axis=axis))
        counts = gt.unique(x, return_counts=True, axis=axis)[1]
        assert counts.tolist() == [2, 2]
    with pytest.raises(IndexError, match="unique: axis: got 1"):
        gt.unique(x, axis=1)
