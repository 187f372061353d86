"""Idioms of NumPy, SciPy and PyTorch programs give those libraries' results."""

import numpy as np
import pytest

import gputensor as gt

RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "sturges")


@pytest.mark.parametrize("rule", RULES)
def test_bins_are_counted_by_numpys_rule(where, rng, rule):
    for count in (0, 1, 2, 5, 300):
        for values in (rng.normal(size=count) * 9, rng.integers(-99, 99, count), np.ones(count)):
            x = gt.asarray(values, device=where)
            for limits in (None, (-5, 4)):
                expected = np.histogram_bin_edges(values, rule, limits)
                got = gt.histogram_bin_edges(x, rule, limits)
                # A count within a rounding error of a whole number may be one higher.
                assert abs(got.size - expected.size) <= 1
                if got.size == expected.size:
                    np.testing.assert_allclose(got.numpy(), expected, 1e-12, 1e-12)
    counts, edges = gt.histogram(x, rule)
    np.testing.assert_array_equal(counts.numpy(), np.histogram(values, edges.numpy())[0])
    with pytest.raises(TypeError, match="histogram: bins: got bins='auto' and weights; expected"):
        gt.histogram(x, "auto", weights=x)
    with pytest.raises(ValueError, match="histogram: bins: got 'stone'; expected 1 or more, asc"):
        gt.histogram(x, "stone")


def test_lists_join_tensors_as_values(where, rng):
    i, a = rng.integers(0, 9, 4), rng.normal(size=4)
    ours = gt.asarray(i, device=where), gt.asarray(a, device=where)

    def programs(xp, i, a):
        yield xp.concatenate([[0], i, (9,)])
        yield xp.concatenate([[0.1], a])
        yield xp.concatenate([[], i])
        yield xp.hstack([0.5, a, 1])
        yield xp.stack([a[0], 1, a[1] * 2])
        yield xp.concatenate([[a[0]], a, [[1, 2][1], a[2]]])
        yield xp.vstack([[1, 2, 3, 4], i])
        yield xp.column_stack([i, [1.5] * 4])
        yield xp.append(i, [i[0], 7])
        yield xp.concatenate([[[1, 2, 3, 4]], i[None]], axis=0)

    for got, expected in zip(programs(gt, *ours), programs(np, i, a), strict=True):
        assert got.shape == expected.shape and got.dtype.kind == expected.dtype.kind
        assert got.device == ours[0].device
        np.testing.assert_allclose(got.numpy(), expected, 1e-7)
    half = gt.concat([[0.1, 2], gt.ones(1, "float16", device=where)])
    assert half.dtype == gt.float16  # a list is as weak as a number
    with pytest.raises(TypeError, match="concat: argument: got ndarray; expected a Tensor"):
        gt.concat([ours[0], i])
    with pytest.raises(OverflowError):
        gt.concat([[300], gt.ones(1, "uint8", device=where)])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_triangles_are_solved(where, rng, dtype):
    a = rng.normal(size=(2, 5, 5)).astype(dtype) + 5 * np.eye(5)
    a = a + 1j * rng.normal(size=a.shape) if dtype == "complex128" else a
    b = rng.normal(size=(5, 3))
    x, y = gt.asarray(a, device=where), gt.asarray(b, device=where)
    for trans in (0, 1, 2):
        for is_lower in (False, True):
            for is_unit in (False, True):
                read = np.tril(a) if is_lower else np.triu(a)
                read = np.where(np.eye(5), 1, read) if is_unit else read
                turned = (read, read.mT, read.mT.conj())[trans]
                options = {"lower": is_lower, "unit_diagonal": is_unit}
                got = gt.linalg.solve_triangular(x, y, trans, **options).numpy()
                np.testing.assert_allclose(turned @ got, np.broadcast_to(b, got.shape), 0, 1e-6)
                options = {"upper": not is_lower, "left": False, "unitriangular": is_unit}
                got = gt.linalg.solve_triangular(x, y.T, trans, **options).numpy()
                np.testing.assert_allclose(got @ turned, np.broadcast_to(b.T, got.shape), 0, 1e-6)
    whole = a @ a.mT.conj()
    factor = gt.linalg.cholesky(gt.asarray(whole, device=where))
    for given in (gt.cholesky_solve(y, factor), gt.cholesky_solve(y, factor.mH, upper=True)):
        np.testing.assert_allclose(whole @ given.numpy(), np.broadcast_to(b, (2, 5, 3)), 0, 1e-6)
    with pytest.raises(np.linalg.LinAlgError, match="solve_triangular: a: got shape"):
        gt.linalg.solve_triangular(x[:, 1:], y)
    with pytest.raises(ValueError, match="solve_triangular: trans: got 3; expected 0, 1 or 2"):
        gt.linalg.solve_triangular(x, y, 3)


def test_nan_reductions_take_masks_and_initial_values(where, rng):
    values = np.where(rng.random((4, 5)) < 0.3, np.nan, rng.normal(size=(4, 5)))
    for array in (values, rng.integers(-9, 9, (4, 5))):
        x, mask = gt.asarray(array, device=where), rng.random((4, 5)) < 0.7
        m = gt.asarray(mask, device=where)
        for name in ("nansum", "nanprod", "nanmax", "nanmin"):
            for axis in (None, 0, 1):
                got = getattr(gt, name)(x, axis=axis, initial=2, where=m)
                expected = getattr(np, name)(array, axis=axis, initial=2, where=mask)
                np.testing.assert_allclose(got.numpy(), expected, 1e-12, 1e-12)


def test_zeros_are_trimmed_along_all_axes(where, rng):
    for shape in ((6,), (3, 4), (2, 3, 4), ()):
        array = np.asarray((rng.random(shape) < 0.3) * rng.integers(1, 9, shape))
        x = gt.asarray(array, device=where)
        for trim in ("fb", "f", "b"):
            expected = np.trim_zeros(array, trim)
            got = gt.trim_zeros(x, trim).numpy()
            assert got.shape == expected.shape and (got == expected).all()
            if shape:
                axis = int(rng.integers(-len(shape), len(shape)))
                expected = np.trim_zeros(array, trim, axis=axis)
                np.testing.assert_array_equal(gt.trim_zeros(x, trim, axis=axis).numpy(), expected)


def test_elements_are_read_at_an_index(where, rng):
    array = rng.normal(size=(3, 4))
    x = gt.asarray(array.T.copy(), device=where).T
    assert x.item(5) == array.item(5) and x.item(-1) == array.item(-1)
    assert x.item(1, 2) == x.item((1, 2)) == array[1, 2]
    for index in ((12,), (3, 0), (0, 0, 0)):
        with pytest.raises(IndexError):
            x.item(*index)


def test_pytorchs_methods_write_in_place(where, rng):
    array, places = rng.normal(size=(3, 4)), rng.integers(0, 3, (2, 6))
    i, j = (gt.asarray(one, device=where) for one in places)
    added = gt.asarray(array[0, :1] + np.arange(6), device=where)
    x, expected = gt.asarray(array, device=where), array.copy()
    assert x.index_put_((i, j), added, accumulate=True) is x
    np.add.at(expected, tuple(places), added.numpy())
    np.testing.assert_allclose(x.numpy(), expected, 1e-12, 1e-12)
    assert (x.index_put((i[:1],), 0.0)[places[0, 0]] == 0).all() and x.any(1).all()
    x.T.put_(gt.asarray([1, 11], device=where), gt.asarray([7.0, 8.0], device=where))
    expected.T[0, 1], expected.T[3, 2] = 7, 8
    np.testing.assert_allclose(x.numpy(), expected, 1e-12, 1e-12)
    assert x[:, :3].fill_diagonal_(0.5).diagonal().tolist() == [0.5] * 3
    x.data = x.data * 0 + 2
    x.data -= 1
    assert x.tolist() == [[1.0] * 4] * 3 and x.data.ptr == x.data_ptr()
    assert x.sum_to_size(1, 4).tolist() == [[3.0] * 4] and x.sum_to_size(4).tolist() == [3.0] * 4
    with pytest.raises(ValueError, match=r"sum_to_size: size: got \(2, 4\); expected a shape"):
        x.sum_to_size(2, 4)
    with pytest.raises(ValueError, match="requires_grad_: requires_grad: got True; expected False"):
        x.requires_grad_()


def test_pytorchs_functions_give_its_results(where, rng):
    a, b = rng.normal(size=(2, 4, 3))
    x, y = (gt.asarray(one, device=where) for one in (a, b))
    assert (gt.max(x, y).numpy() == np.maximum(a, b)).all()
    assert (x.min(y[0]).numpy() == np.minimum(a, b[0])).all()
    pairs = [np.linalg.norm(a[k] - a[m]) for k in range(4) for m in range(k + 1, 4)]
    np.testing.assert_allclose(gt.pdist(x).numpy(), pairs, 1e-12)
    np.testing.assert_allclose(gt.ger(x[:, 0], y[0]).numpy(), np.outer(a[:, 0], b[0]), 1e-12)
    want = 0.5 * a + 2 * np.outer(a[:, 0], b[0])
    np.testing.assert_allclose(gt.addr(x, x[:, 0], y[0], beta=0.5, alpha=2).numpy(), want, 1e-12)
    rows = gt.nonzero(x > 0, as_tuple=False)
    assert rows.tolist() == np.argwhere(a > 0).tolist()
    steps, found = gt.asarray([1, 3, 5], device=where), gt.asarray([1, 4], device=where)
    assert gt.searchsorted(steps, found, right=True).tolist() == [1, 2]
    window = gt.kaiser_window(8, device=where, dtype="float64").numpy()
    np.testing.assert_allclose(window, np.kaiser(9, 12.0)[:-1], 1e-6)
    assert gt.is_nonzero(x[:1, 0]) == bool(a[0, 0])


def test_lists_are_coefficients_weights_and_places(where, rng):
    array, i = rng.normal(size=(2, 3)), rng.integers(0, 3, 4)
    given = array, i
    ours = [gt.asarray(one, device=where) for one in given]

    def programs(xp, x, i):
        yield xp.average(x, axis=1, weights=[1, 2, 3])
        yield xp.bincount(i, weights=[0.5, 1.5, 2.5, 3.5])
        yield xp.trapezoid(x, [0, 1, 3])
        yield xp.full((2, 3), x[0])
        yield xp.full_like(x, x[:, :1])
        yield xp.ravel_multi_index((i, [0, 1, 2, 3]), (3, 4))
        yield xp.lib.stride_tricks.as_strided(x, (2, 2), (24, 8))
        yield xp.lib.stride_tricks.as_strided(x.ravel(), (3, 4), strides=(8, 8))
        yield xp.diag([1, 2], 1)
        yield xp.diagflat([[1], [2]])
        yield xp.vander([1, 2, 3])
        yield xp.sort(xp.roots([1.0, -3, 2]))
        yield xp.poly([1.0, 2.0])

    with gt.Device(where):
        for got, expected in zip(programs(gt, *ours), programs(np, *given), strict=True):
            assert got.shape == expected.shape
            np.testing.assert_allclose(got.numpy(), expected, 1e-6, 1e-6)
    with pytest.raises(ValueError, match=r"as_strided: strides: got \(4, 8\); expected multiples"):
        gt.lib.stride_tricks.as_strided(ours[0], (2, 2), (4, 8))
    with pytest.raises(ValueError, match="shape"):
        gt.full((2, 2), ours[0])


def test_random_functions_take_numpys_arguments(where):
    draw = gt.random.default_rng(5, where)
    counts = draw.multinomial(60, [0.25, 0.0, 0.75], (2, 4)).numpy()
    assert counts.shape == (2, 4, 3) and (counts.sum(-1) == 60).all() and not counts[..., 1].any()
    assert draw.choice([5, 6, 7], 9, p=[0, 1, 0]).tolist() == [6] * 9
    assert draw.dirichlet([1, 2, 3], size=2).shape == (2, 3)
    x = gt.reshape(gt.arange(12, device=where), (3, 4))
    for axis in (0, 1, None):
        mixed = draw.permuted(x, axis=axis).numpy()
        again = np.sort(mixed, axis) if axis is not None else np.sort(mixed.ravel()).reshape(3, 4)
        np.testing.assert_array_equal(again, x.numpy())
    with pytest.raises(ValueError, match="multinomial: n, pvals: got -1 trials of weights"):
        draw.multinomial(-1, [0.5, 0.5])
    assert gt.finfo("float32").tiny == np.finfo("float32").tiny


@pytest.mark.parametrize(
    "name", ["fmod", "fmax", "ldexp", "logaddexp2", "float_power", "nextafter"]
)
@pytest.mark.parametrize(
    "value", [{1: 2}, None, "a", np.ones(3)], ids=lambda one: type(one).__name__
)
def test_wrong_operands_are_named(where, name, value):
    message = f"{name}: argument 2: got {type(value).__name__}; expected a Tensor or a number"
    with pytest.raises(TypeError, match=message):
        getattr(gt, name)(gt.ones(3, device=where), value)


def test_cupys_names_measure_copy_and_wait(where, rng):
    with gt.Device(where) as device:
        pool, array = gt.get_default_memory_pool(), rng.normal(size=300)
        x = gt.zeros(300, dtype="float64")
        # Memory of earlier tests may be freed between two calls, but x is in use.
        assert min(pool.used_bytes(), pool.total_bytes()) >= x.nbytes and pool.free_bytes() >= 0
        x.set(array)
        gt.cuda.Stream.null.synchronize()
        with gt.cuda.Stream.null, gt.cuda.Stream(non_blocking=True) as stream:
            y = x + 1
            stream.synchronize()
        device.synchronize()
        np.testing.assert_array_equal(y.get(), array + 1)
        assert device.id == device.index
        pool.free_all_blocks()
        gt.get_default_pinned_memory_pool().free_all_blocks()
        assert x.get().tolist() == array.tolist()
        with pytest.raises(ValueError, match=r"set: array: got shape \(2,\); expected \(300,\)"):
            x.set(array[:2])


def test_axes_out_of_range_raise_numpys_error(where):
    x = gt.ones((2, 3), device=where)
    for call in (lambda: gt.sum(x, 2), lambda: gt.stack([x], 5), lambda: x.swapaxes(0, -3)):
        with pytest.raises(np.exceptions.AxisError, match="axis: got .*; expected an axis of"):
            call()


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_filters_may_be_lists(where, rng, name):
    a = rng.standard_normal(9)
    for taps in ([1, -1], [0.25, 0.5, 0.25], [1j, 2]):
        got = getattr(gt, name)(gt.asarray(a, device=where), taps, "same")
        np.testing.assert_allclose(got.numpy(), getattr(np, name)(a, taps, "same"), 1e-12, 1e-12)
        got = getattr(gt, name)(taps, gt.asarray(a, device=where))
        np.testing.assert_allclose(got.numpy(), getattr(np, name)(taps, a), 1e-12, 1e-12)
    with gt.Device(where):
        assert gt.convolve([1, 2, 3], [0, 1]).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "float64", "complex64"])
def test_convolutions_join_only_elements_that_overlap(where, rng, dtype):
    for count in (1, 3, 16, 30):
        for size in (1, 3, 20):
            a, v = (rng.integers(0, 9, n).astype(dtype) for n in (count, size))
            for mode in ("full", "same", "valid"):
                got = gt.convolve(*(gt.asarray(one, device=where) for one in (a, v)), mode)
                expected = np.convolve(a, v, mode)
                assert got.dtype == expected.dtype  # sums of at most 1,620 are exact
                np.testing.assert_array_equal(got.numpy(), expected)
    a, v = np.array([np.inf, 1.0, np.nan, -2.0]), rng.integers(1, 9, 9).astype("float64")
    for first, second in ((a, v), (v, a)):
        got = gt.convolve(*(gt.asarray(one, device=where) for one in (first, second)))
        np.testing.assert_array_equal(got.numpy(), np.convolve(first, second))


def test_remainders_of_floats_by_the_least_integer(where, rng):
    for dtype in ("int8", "int32", "int64"):
        whole = np.array([np.iinfo(dtype).min, 5, -7], dtype)
        parts = np.round(rng.uniform(-1e5, 1e5, 3), 2)
        x, y = gt.asarray(whole, device=where), gt.asarray(parts, device=where)
        np.testing.assert_array_equal(gt.fmod(y, x).numpy(), np.fmod(parts, whole))
        np.testing.assert_array_equal(gt.fmod(x, y).numpy(), np.fmod(whole, parts))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: gt.place(x, 1, [2]), r"place: mask: got shape \(\); expected \(2, 2"),
        (
            lambda x: gt.place(x, x[:1] > 0, [2]),
            r"place: mask: got shape \(1, 2\); expected \(2, 2",
        ),
        (
            lambda x: gt.linalg.multi_dot([x, x[0], x]),
            "multi_dot: arrays: got 1 dimensions; expect",
        ),
        (lambda x: gt.linalg.lstsq(x, x[0, 0]), "lstsq: x2: got 0 dimensions; expected 2 or more"),
        (lambda x: gt.nanpercentile(x, None), "nanpercentile: q: got NoneType; expected a n"),
        (lambda x: gt.nanpercentile(x, [50, 101]), "nanpercentile: q: got 101; expected 0 to 100"),
        (lambda x: gt.partition("ab", 0), "partition: argument: got str; expected a Tensor"),
        (lambda x: gt.trim_zeros(x, 3), "trim_zeros: trim: got 3; expected 'fb', 'f' or 'b'"),
        (lambda x: gt.polyadd(x, x[0]), "polyadd: p: got 2 dimensions; expected at most 1"),
    ],
)
def test_arguments_of_wrong_shapes_and_types_are_named(where, call, message):
    x = gt.ones((2, 2), device=where)
    with pytest.raises((TypeError, ValueError), match=message):
        call(x)
    assert x.tolist() == [[1, 1], [1, 1]]


def test_options_of_torch_without_a_meaning_here(where):
    x = gt.ones((1, 2, 3, 4), device=where)
    given = {"dropout_p": 0.0, "enable_gqa": True}
    assert gt.scaled_dot_product_attention(x, x, x, **given).shape == x.shape
    with pytest.raises(ValueError, match=r"dropout_p: got 0\.5; expected 0: apply dropout"):
        gt.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
    x = gt.asarray(np.random.default_rng().standard_normal((1, 2, 3, 4)), device=where)
    causal = gt.scaled_dot_product_attention(x, x, x, is_causal=True)
    assert gt.all(gt.scaled_dot_product_attention(x, x, x, None, 0.0, True) == causal).item()
    y = gt.asarray([1.0, 3.0], device=where)
    assert [one.item() for one in gt.std_mean(y, dim=0, unbiased=False)] == [1, 2]
    assert [one.item() for one in gt.var_mean(y, dim=0, unbiased=True)] == [2, 2]


def test_device_is_made_current_by_its_method(where):
    with gt.Device("host"):
        assert gt.Device(where).use() == gt.Device(where)
        assert gt.ones(1).device == gt.Device(where)
