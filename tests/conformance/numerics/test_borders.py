"""Borders by odd reflection, infinities, singular matrices, empty keys and others: as in NumPy."""

import numpy as np
import pytest

import gputensor as gt


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "uint8", "complex128"])
def test_odd_reflections_are_those_of_numpy(where, rng, mode, dtype):
    for _ in range(25):
        shape = tuple(rng.integers(1, 7, rng.integers(1, 4)).tolist())
        x = (rng.integers(0, 100, shape) + (0.5 if dtype[0] in "fc" else 0)).astype(dtype)
        widths = rng.integers(0, 9, (len(shape), 2)).tolist()
        got = gt.pad(gt.asarray(x, device=where), widths, mode, reflect_type="odd")
        assert got.dtype == dtype
        want = np.pad(x, widths, mode, reflect_type="odd")
        np.testing.assert_allclose(got.numpy(), want, 1e-5 if dtype == "float32" else 1e-13)


def test_arguments_of_reflections(where):
    x = gt.asarray([1.0, 2.0, 4.0], device=where)
    assert gt.pad(x, 2, "reflect", reflect_type="even").tolist() == [4, 2, 1, 2, 4, 2, 1]
    assert gt.pad(x, 0, "reflect", reflect_type="odd").tolist() == [1, 2, 4]
    with pytest.raises(ValueError, match="pad: reflect_type: got 'both'; expected 'even' or 'odd'"):
        gt.pad(x, 2, "reflect", reflect_type="both")
    with pytest.raises(ValueError, match=r"pair for each of 1 axes, as \[\(0, 0\), \(1, 2\)\]"):
        gt.pad(x, (1, 1, 2, 2))
    with pytest.raises(ValueError, match="pad: x: got axis 0 with extent 0"):
        gt.pad(x[:0], 1, "reflect", reflect_type="odd")
    with pytest.raises(TypeError, match="pad: keyword: got edges=; expected constant_values="):
        gt.pad(x, 2, "reflect", edges=3)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sinc_of_complex_numbers(where, rng, dtype):
    x = rng.standard_normal(500) + 1j * rng.standard_normal(500)
    x[:4] = 0, 1, 1j, 1e-30
    x = x.astype(dtype)
    got = gt.sinc(gt.asarray(x, device=where))
    assert got.dtype == dtype
    error = np.abs(got.numpy() - np.sinc(x.astype("complex128")))
    scale = np.abs(np.sinc(x.astype("complex128"))) + 1 / (1 + np.abs(x))
    assert (error <= (3e-6 if dtype == "complex64" else 1e-14) * scale * (1 + np.abs(x))).all()


def test_put_writes_in_place_and_returns_none(where):
    x = gt.zeros((2, 3), device=where)
    assert x.put([0, -1], [1.0, 2.0]) is None
    assert x.tolist() == [[1, 0, 0], [0, 0, 2]]


@pytest.mark.parametrize("axis", [None, 0, -1, (1,), (0, 2), [2, 0], ()])
def test_gradient_has_the_form_of_numpys(where, rng, axis):
    x = rng.standard_normal((4, 5, 6))
    got, want = gt.gradient(gt.asarray(x, device=where), axis=axis), np.gradient(x, axis=axis)
    assert isinstance(got, tuple) == isinstance(want, tuple)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for one, other in pairs:
        np.testing.assert_allclose(one.numpy(), other, 1e-13, 1e-13)


def test_empty_positions_select_and_insert_nothing(where, rng):
    a = rng.normal(size=(3, 0, 2))
    x = gt.asarray(a, device=where)
    for obj in (slice(0, 0, 2), [], np.arange(0)):
        got = gt.insert(x, obj, 1.0, axis=1)
        assert got.shape == np.insert(a, obj, 1.0, axis=1).shape
    b = rng.normal(size=(4, 3))
    y = gt.asarray(b, device=where)
    for mode in ("raise", "wrap", "clip"):
        for index in ([], [[], []]):
            got, want = gt.take(y, index, 1, mode=mode), np.take(b, np.asarray(index, int), 1)
            assert got.shape == want.shape and got.dtype == want.dtype
    assert gt.insert(y, [], 0).tolist() == b.ravel().tolist()


def test_a_polynomial_without_coefficients_is_zero(where, rng):
    a = rng.normal(size=(2, 3))
    x = gt.asarray(a, device=where)
    got = gt.polyval(x[0, :0], x)
    assert got.dtype == a.dtype and got.tolist() == np.polyval(a[0, :0], a).tolist()


def test_complex_values_are_interpolated_with_a_period(where, rng):
    places, points = np.sort(rng.uniform(0, 5, 7)), rng.uniform(-20, 20, (3, 4))
    values = rng.normal(size=7) + 1j * rng.normal(size=7)
    tensors = [gt.asarray(one, device=where) for one in (points, places, values)]
    got = gt.interp(*tensors, period=5)
    assert got.dtype == "complex128"
    np.testing.assert_allclose(got.numpy(), np.interp(points, places, values, period=5), 1e-9)
    with pytest.raises(TypeError, match="interp: x, xp: got complex128, float64; expected real"):
        gt.interp(tensors[2], *tensors[1:])


@pytest.mark.parametrize("weight", ["float32", "int32", "float64"])
def test_sums_of_weights_keep_their_dtype(where, rng, weight):
    a, weights = rng.normal(size=90), (rng.normal(size=90) * 9).astype(weight)
    want, _ = np.histogram(a, 5, (-2, 2), weights=weights)
    given, ours = (gt.asarray(one, device=where) for one in (a, weights))
    got, _ = gt.histogram(given, 5, (-2, 2), weights=ours)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want, 1e-5)


def test_progressions_of_integers_reach_whole_powers(where):
    for first, last, num, want in (
        (1, 1000, 4, [1, 10, 100, 1000]), (1, 9, 3, [1, 3, 9]), (-1, -(3**10), 11, None),
        (7, 7**5, 5, None),
    ):  # fmt: skip
        got = gt.geomspace(first, last, num, dtype=int, device=where)
        ratio = round((last / first) ** (1 / (num - 1)))
        assert got.tolist() == (want or [first * ratio**i for i in range(num)])


def test_complex_numbers_have_no_spacing(where):
    with pytest.raises(TypeError, match="spacing: x: got complex64; expected a real dtype"):
        gt.spacing(gt.ones(2, "complex64", device=where))


def test_a_negative_zero_is_a_share_like_zero(where):
    for dtype in ("float32", "float64"):
        x = gt.asarray([-0.0, 0.0], dtype, device=where)
        assert gt.special.ndtri(x).tolist() == [-np.inf, -np.inf]
        assert gt.special.erfcinv(x).tolist() == [np.inf, np.inf]


def test_index_tensors_that_do_not_broadcast_are_an_index_error(where):
    x = gt.ones((4, 4), device=where)
    for one, other in (([1, 2, 3], [0, 1]), ([], [0, 1])):
        with pytest.raises(IndexError, match="index: shapes: got .* do not broadcast"):
            x[one, other]
        with pytest.raises(IndexError, match="index: shapes: got .* do not broadcast"):
            x[one, other] = 2
    assert x.transpose(None).shape == (4, 4)
    y = gt.ones((2, 3, 4), device=where)
    assert y.transpose(None).shape == (4, 3, 2)


def test_out_of_another_kind_is_named(where):
    x, out = gt.ones(3, device=where), gt.zeros(1, "int32", device=where)
    with pytest.raises(TypeError, match="take: out: got int32; expected a dtype to which float32"):
        gt.take(x, [1], out=out)


@pytest.mark.filterwarnings("ignore:Polyfit may be poorly conditioned")
def test_fewer_points_than_coefficients_are_fitted(where, rng):
    for count, degree in ((3, 5), (1, 3), (2, 1)):
        places, values = rng.uniform(1, 2, count), rng.normal(size=(count, 2))
        x, y = (gt.asarray(one, device=where) for one in (places, values))
        for given, want in ((y, values), (y[:, 0], values[:, 0])):
            found = gt.polyfit(x, given, degree).numpy()
            np.testing.assert_allclose(found, np.polyfit(places, want, degree), 1e-6, 1e-6)


def test_values_and_choices_of_no_use_are_named(where):
    x = gt.ones((2, 3), device=where)
    for key in (0, (0, 0), gt.asarray([1], device=where), x > 0):
        with pytest.raises(TypeError, match="value: got str; expected a number, a tensor, an arr"):
            x[key] = "a"
    assert x.tolist() == [[1.0] * 3] * 2
    with pytest.raises(ValueError, match="choose: choices: got no elements; expected at least one"):
        gt.choose(gt.asarray([0], device=where), [])
    for count in (2.5, -1):
        with pytest.raises((TypeError, ValueError), match="vander: N: got .*; expected"):
            gt.vander(x[0], count)
    with pytest.raises(TypeError, match="^fn: got int; expected a function"):
        gt.compile(3)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64", "complex64"])
def test_few_and_many_values_are_found(where, rng, dtype):
    for size in (30, 5000):
        a = rng.integers(0, 40, (2, size)).astype(dtype)
        for count in (0, 1, 2, 3, 4, 5, 12, 13, 30):
            b = rng.integers(0, 40, (count, 1)).astype("int16" if count % 2 else dtype)
            if dtype[0] in "fc" and count % 2 == 0 and count:
                b[0] = a[0, 3] = np.nan
            x, y = (gt.asarray(one, device=where) for one in (a, b))
            for invert in (False, True):
                want = np.isin(a, b, invert=invert)
                np.testing.assert_array_equal(gt.isin(x, y, invert=invert).numpy(), want)


def test_interpolation_ends_at_the_last_point(where, rng):
    places = np.sort(rng.normal(size=30))
    values = rng.normal(size=30)
    x = np.concatenate([places, [-np.inf, np.inf, np.nan, -9, 9]])
    tensors = [gt.asarray(one, device=where) for one in (x, places, values)]
    for options in ({}, {"left": 7.0}, {"right": -7.0}):
        got, want = gt.interp(*tensors, **options).numpy(), np.interp(x, places, values, **options)
        np.testing.assert_allclose(got, want, 1e-12, 1e-14)
        assert got[29] == values[29] and got[31] == options.get("right", values[29])
    twice = np.repeat(places[:3], 2)  # steps
    tensors = [gt.asarray(one, device=where) for one in (twice, twice, values[:6])]
    assert gt.interp(*tensors).tolist() == np.interp(twice, twice, values[:6]).tolist()
    one = [gt.asarray(one, device=where) for one in (x[-5:], places[:1], values[:1])]
    want = np.where(np.isnan(x[-5:]), np.nan, values[0])
    np.testing.assert_array_equal(gt.interp(*one).numpy(), want)


def test_singular_matrices_have_an_infinite_condition(where, rng):
    a = rng.normal(size=(3, 4, 4))
    a[1] = 0
    x = gt.asarray(a, device=where)
    for p in (None, 1, -1, np.inf, "fro", -2):
        want = np.linalg.cond(a, p)
        np.testing.assert_allclose(gt.linalg.cond(x, p).numpy(), want, 1e-6)
    a[0, 0, 0] = np.nan
    assert np.isnan(gt.linalg.cond(gt.asarray(a[0], device=where), 1).item())


def test_a_word_for_the_triangle_in_either_case(where, rng):
    a = rng.normal(size=(3, 3))
    x = gt.asarray(a, device=where)
    for word in "lU":
        got = gt.linalg.eigvalsh(x, word)
        np.testing.assert_allclose(got.numpy(), np.linalg.eigvalsh(a, word.upper()), 1e-10)
    for function in (gt.linalg.eigh, gt.linalg.eigvalsh):
        with pytest.raises(ValueError, match="UPLO: got 'x'; expected 'L' or 'U'"):
            function(x[:0, :0], "x")


def test_numbers_take_the_dtype_of_all_choices(where):
    flags = [gt.asarray([True, False], device=where), gt.asarray([False, True], device=where)]
    for dtype, number, want in (
        ("uint16", 7, "uint16"), ("int8", 2.5, "float32"), ("float64", 1, "float64"),
    ):  # fmt: skip
        choices = [gt.ones(2, dtype, device=where), gt.zeros(2, "bool", device=where)]
        got = gt.select(flags, choices, number)
        assert got.dtype == want and got.tolist() == [1, 0]
        assert gt.select(flags[1:], choices[1:], number).tolist() == [number, 0]
        assert gt.select(flags, [choices[1], number], choices[0]).tolist() == [0, number]


def test_choices_are_not_counted_from_the_end(where):
    choices = gt.asarray([[1, 2], [3, 4]], device=where)
    with gt.checked_indices():
        for index in ([-1, 0], [0, 2]):
            with pytest.raises(IndexError, match="choose: index: got an element out of range"):
                gt.choose(gt.asarray(index, device=where), choices)
    index = gt.asarray([True, False], device=where)
    assert gt.choose(index, choices).tolist() == [3, 2]
    assert gt.choose(gt.asarray([-1, 3], device=where), choices, mode="clip").tolist() == [1, 4]


def test_places_of_one_number_and_counts_of_bool(where):
    x = gt.asarray(1.0, device=where)
    gt.place(x, gt.asarray(True, device=where), [5.0, 6.0])
    assert x.item() == 5
    x = gt.asarray([True, False, True], device=where)
    assert gt.bincount(x, minlength=3).tolist() == [1, 2, 0]
    assert gt.bincount(x, gt.ones(3, device=where)).tolist() == [1, 2]


def test_widths_of_single_axes(where):
    x = gt.ones((2, 3), device=where)
    for widths in ({0: 1}, {-1: (0, 2), 0: 1}, {1: (1, 0)}, {}):
        a = x.numpy()
        wide = {axis % 2: width for axis, width in widths.items()}
        pairs = [wide.get(axis, (0, 0)) for axis in (0, 1)]
        want = np.pad(a, [one if isinstance(one, tuple) else (one, one) for one in pairs])
        assert gt.pad(x, widths).tolist() == want.tolist()
    with pytest.raises(ValueError, match="pad: pad_width: axis: got 5; expected one of 2 axes"):
        gt.pad(x, {5: 1})
    with pytest.raises(TypeError, match="pad: pad_width: got"):
        gt.pad(x, {0: 1.5})


def test_infinite_values_count_only_beyond_their_neighbours(where):
    xp, fp = [0.0, 1.0, 2.0, 3.0], [4.0, -np.inf, 2.0, np.inf]
    x = [-5.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0, 9.0]
    got = gt.interp(*(gt.asarray(one, dtype="float64", device=where) for one in (x, xp, fp)))
    assert got.tolist() == np.interp(x, xp, fp).tolist()


def test_empty_lines_are_packed(where):
    x = gt.zeros((0, 2, 4), "bool", device=where)
    assert gt.packbits(x, axis=0).shape == (0, 2, 4) and gt.packbits(x, axis=2).shape == (0, 2, 1)
    assert gt.packbits(x).shape == (0,)


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_nan_beside_integers_gives_floats(where, name):
    x = gt.asarray([1, -2], dtype="int16", device=where)
    got = getattr(gt, name)(x, float("nan"))
    assert got.dtype == "float32" and got.tolist() == [1, -2]
    out = gt.zeros(2, "float64", device=where)
    assert getattr(gt, name)(float("nan"), x, out=out) is out and out.tolist() == [1, -2]


def test_bytes_are_the_memory_in_row_major_order(where):
    x = gt.asarray([[1, 2], [3, 4]], dtype="int16", device=where)
    assert bytes(x) == x.numpy().tobytes() and bytes(x.T) == x.T.numpy().tobytes()
    assert bytes(gt.asarray(5, dtype="int32", device=where)) == b"\5\0\0\0"


def test_can_cast_takes_its_rule_by_position():
    assert gt.can_cast("float64", "float32", "same_kind")
    assert not gt.can_cast("float32", "int32", "same_kind")
