"""Sorting, counting, transforms and solvers agree with NumPy for random shapes, layouts and dtypes.

On CUDA devices solvers, transforms and sorts of complex numbers are CuPy's algorithms on our
memory, so these tests need CuPy there.
"""

import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gputensor as gt
from tests.conformance.tensor.test_numpy_names import agree
from tests.support.tensor_arrays import BFLOAT16, DTYPES, check_same, random_array, random_view

QUICK = settings(max_examples=25, deadline=None)
SHAPES = st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple)
SEEDS = st.integers(0, 2**32)
NUMPYS = [one for one in DTYPES if one.kind != "V"]
FLOATS = [np.dtype(name) for name in ("float32", "float64", "complex64", "complex128")]


@pytest.fixture(autouse=True)
def with_cupy(request):
    is_cuda = "place" in request.fixturenames and request.getfixturevalue("place") >= 0
    if is_cuda and importlib.util.find_spec("cupy") is None:
        pytest.skip("needs CuPy: install gputensor[cuda12] or gputensor[cuda13]")


def sample(place, shape, dtype, seed):
    rng = np.random.default_rng(seed)
    return random_view(rng, random_array(rng, shape, dtype, -6, 6), place)


@QUICK
@given(shape=SHAPES, dtype=st.sampled_from(NUMPYS), seed=SEEDS, descending=st.booleans())
def test_sort_and_argsort(place, shape, dtype, seed, descending):
    a, x = sample(place, shape, dtype, seed)
    axis = seed % len(shape)
    expected = np.sort(a, axis)
    check_same(
        gt.sort(x, axis, descending=descending), np.flip(expected, axis) if descending else expected
    )
    order = gt.argsort(x, axis, descending=descending)
    extent = max(shape[axis], 1)
    if descending:  # equal elements keep their order
        stable = extent - 1 - np.flip(np.argsort(np.flip(a, axis), axis, kind="stable"), axis)
    else:
        stable = np.argsort(a, axis, kind="stable")
    check_same(order, stable.astype(np.int64))
    x.sort(axis)
    check_same(x, expected)


def test_nan_comes_last_and_bfloat16_sorts(place):
    values = np.array([np.nan, 1, -np.inf, np.nan, np.inf, 0], np.float32)
    x = gt.asarray(values, device=place)
    check_same(gt.sort(x), np.sort(values))
    check_same(gt.sort(x.astype(BFLOAT16)), np.sort(values).astype(BFLOAT16))
    check_same(gt.sort(x, descending=True), np.sort(values)[::-1])


@QUICK
@given(shape=SHAPES, dtype=st.sampled_from(NUMPYS), seed=SEEDS)
def test_unique_of_each_kind(place, shape, dtype, seed):
    a, x = sample(place, shape, dtype, seed)
    check_same(gt.unique(x), np.unique(a))
    for got, expected in zip(
        gt.unique(x, True, True, True), np.unique(a, True, True, True), strict=True
    ):
        agree(got, expected)
    check_same(gt.unique_values(x), np.sort(np.unique_values(a)))
    for name in ("unique_counts", "unique_inverse", "unique_all"):
        got = getattr(gt, name)(x)
        assert got._fields == getattr(np, name)(a)._fields
        for part, expected in zip(got, getattr(np, name)(a), strict=True):
            agree(part, expected)


def test_nan_is_unique_once_or_each(place):
    values = np.array([np.nan, 1, np.nan, 1], np.float32)
    x = gt.asarray(values, device=place)
    check_same(gt.unique(x), np.unique(values))
    assert gt.unique_values(x).shape == (3,)
    assert gt.unique_counts(x).counts.tolist() == [2, 1, 1]


@QUICK
@given(shape=SHAPES, dtype=st.sampled_from(NUMPYS), seed=SEEDS, product=st.booleans())
def test_cumulative_sums_and_products(place, shape, dtype, seed, product):
    a, x = sample(place, shape, dtype, seed)
    a, x = (a, x) if dtype.kind not in "fc" else (a / a.dtype.type(4), x / 4)
    axis = seed % len(shape)
    cumulate, standard, reference = (
        (gt.cumprod, gt.cumulative_prod, np.cumprod)
        if product
        else (gt.cumsum, gt.cumulative_sum, np.cumsum)
    )
    wide = {"f": np.float64, "c": np.complex128}.get(dtype.kind, dtype)
    expected = reference(a.astype(wide), axis)
    agree(cumulate(x, axis), expected, 1e-4)
    agree(cumulate(x), reference(a.astype(wide)), 1e-3)
    got = standard(x, axis=axis, include_initial=True)
    first = np.full([n if i != axis else 1 for i, n in enumerate(shape)], int(product))
    agree(got, np.concatenate([first.astype(expected.dtype), expected], axis), 1e-4)
    out = gt.full(shape, 7, dtype=got.dtype, device=place)
    assert cumulate(x, axis, out=out) is out
    agree(out, expected, 1e-4)


@QUICK
@given(seed=SEEDS, dtype=st.sampled_from([one for one in NUMPYS if one.kind != "c"]))
def test_searches_counts_and_histograms(place, seed, dtype):
    rng = np.random.default_rng(seed)
    a, x = sample(place, (int(rng.integers(1, 30)),), dtype, seed)
    b, y = sample(place, (int(rng.integers(0, 5)), 3), dtype, seed + 1)
    for side in ("left", "right"):
        got = gt.searchsorted(gt.sort(x), y, side)
        check_same(got, np.searchsorted(np.sort(a), b, side).astype(np.int64))
        check_same(gt.searchsorted(x, y, side, gt.argsort(x)), got.numpy())
    check_same(gt.isin(x, y), np.isin(a, b))
    check_same(gt.isin(x, y, invert=True), ~np.isin(a, b))
    k = int(rng.integers(0, a.size + 1))
    values, places = gt.topk(x, k)
    check_same(values, np.sort(a)[::-1][:k])
    check_same(gt.take(x, places), values.numpy())
    if dtype.kind == "b":
        return
    edges = np.array([-4, 0, 1, 5], np.float64)
    for bins in (7, edges):
        counts, got = gt.histogram(
            x, bins if bins is not edges else gt.asarray(edges, device=place)
        )
        expected = np.histogram(a.astype(np.float64), bins)
        agree(got, expected[1])
        if bins is edges:
            check_same(counts, expected[0])
        assert counts.sum().item() == expected[0].sum()
    for name in ("median", "quantile", "percentile"):
        share = {"median": (), "quantile": (0.3,), "percentile": ([20, 70],)}[name]
        agree(getattr(gt, name)(x, *share), getattr(np, name)(a.astype(np.float64), *share), 2e-3)
    if dtype.kind in "iu":
        small = np.abs(a.astype(np.int64))
        t = gt.asarray(small, device=place)
        check_same(gt.bincount(t, minlength=3), np.bincount(small, minlength=3))
        agree(gt.bincount(t, t / 2), np.bincount(small, small / 2))


# ---- transforms

ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
REAL_INPUT = ("rfft", "ihfft", "rfftn", "rfft2")


@pytest.mark.parametrize("name", ONE_AXIS + SEVERAL)
@settings(max_examples=10, deadline=None)
@given(
    shape=st.lists(st.integers(2, 6), min_size=2, max_size=3).map(tuple),
    dtype=st.sampled_from(FLOATS),
    norm=st.sampled_from(["backward", "ortho", "forward"]),
    seed=SEEDS,
)
def test_transform(place, name, shape, dtype, norm, seed):
    if name in REAL_INPUT and dtype.kind == "c":
        dtype = np.dtype(np.float32)
    a, x = sample(place, shape, dtype, seed)
    choices = [{}, {"n": 5, "axis": 0}] if name in ONE_AXIS else [{}, {"s": (3, 6), "axes": (1, 0)}]
    tolerance = 1e-4 if dtype.itemsize // (1 + (dtype.kind == "c")) == 4 else 1e-10
    for options in choices:
        got = getattr(gt.fft, name)(x, norm=norm, **options)
        expected = getattr(np.fft, name)(a, norm=norm, **options)
        agree(got, expected, tolerance * 10)
        assert got.dtype == expected.dtype


def test_frequencies_and_shifts(place):
    for n in (1, 4, 5):
        for name in ("fftfreq", "rfftfreq"):
            expected = getattr(np.fft, name)(n, 0.5).astype(np.float32)
            check_same(getattr(gt.fft, name)(n, d=0.5, device=place), expected, 1e-6)
    a = np.arange(15).reshape(3, 5)
    x = gt.asarray(a, device=place)
    for axes in (None, 0, (1,)):
        check_same(gt.fft.fftshift(x, axes=axes), np.fft.fftshift(a, axes))
        check_same(gt.fft.ifftshift(x, axes=axes), np.fft.ifftshift(a, axes))


# ---- linear algebra


def well_conditioned(rng, batch, n, dtype):
    a = rng.standard_normal((*batch, n, n))
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal((*batch, n, n))
    return (a + 3 * n * np.eye(n)).astype(dtype)


BATCHES = st.lists(st.integers(0, 3), max_size=2).map(tuple)
by_matrix = given(
    batch=BATCHES,
    n=st.integers(1, 5),
    m=st.integers(1, 5),
    dtype=st.sampled_from(FLOATS),
    seed=SEEDS,
)


def epsilon(dtype):
    return 2e-3 if dtype in (np.float32, np.complex64) else 1e-8


@QUICK
@by_matrix
def test_solvers(place, batch, n, m, dtype, seed):
    rng = np.random.default_rng(seed)
    a, x = random_view(rng, well_conditioned(rng, batch, n, dtype), place)
    b, y = random_view(rng, random_array(rng, (n, m), dtype, -3, 3), place)
    eps = epsilon(dtype)
    agree(gt.linalg.solve(x, y), np.linalg.solve(a, b), eps)
    agree(gt.linalg.solve(x, y[:, 0]), np.linalg.solve(a, b[:, :1])[..., 0], eps)
    agree(gt.linalg.inv(x), np.linalg.inv(a), eps)
    agree(gt.linalg.det(x), np.linalg.det(a), eps)
    for got, expected in zip(gt.linalg.slogdet(x), np.linalg.slogdet(a), strict=True):
        agree(got, expected, eps)
    agree(gt.linalg.matrix_power(x, -2), np.linalg.matrix_power(a, -2), eps)
    agree(gt.linalg.cond(x), np.linalg.cond(a), 0.1)


@QUICK
@by_matrix
def test_lu_decompositions(place, batch, n, m, dtype, seed):
    rng = np.random.default_rng(seed)
    n, m = 7 * n, 6 * m  # beyond the columns that are eliminated one by one
    a, x = random_view(rng, random_array(rng, (*batch, n, m), dtype, -3, 3), place)
    eps = epsilon(dtype) * 10
    p, low, up = gt.linalg.lu(x)
    agree(p @ low @ up, a, eps)
    agree(gt.sum(p, -1), np.ones((*batch, n), dtype))
    agree(gt.sum(p, -2), np.ones((*batch, n), dtype))
    agree(gt.triu(low), np.broadcast_to(np.eye(n, min(n, m), dtype=dtype), low.shape))
    agree(gt.tril(up, k=-1), np.zeros(up.shape, dtype))
    assert (np.abs(low.numpy()) <= 1.5).all()  # pivots are chosen by |re| + |im|
    left, right = gt.linalg.lu(x, permute_l=True)
    agree(left @ right, a, eps)
    a, x = random_view(rng, well_conditioned(rng, batch, n, dtype), place)
    b, y = random_view(rng, random_array(rng, (n, m), dtype, -3, 3), place)
    factors = gt.linalg.lu_factor(x)
    assert factors.piv.dtype == np.int32 and factors.piv.shape == (*batch, n)
    for trans, one in enumerate((a, a.mT, a.mT.conj())):
        agree(gt.linalg.lu_solve(factors, y, trans), np.linalg.solve(one, b), eps)
    agree(gt.linalg.lu_solve(factors, y[:, 0]), np.linalg.solve(a, b[:, :1])[..., 0], eps)


def test_lu_factors_are_those_of_scipy(rng):
    linalg = pytest.importorskip("scipy.linalg")
    # In double precision no two candidates for a pivot are as close as their roundings.
    for shape, dtype in (((40, 40), "f8"), ((50, 23), "f8"), ((23, 50), "c16"), ((3, 3), "c16")):
        a = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        a = (a if dtype[0] == "c" else a.real).astype(dtype)
        got, want = gt.linalg.lu_factor(gt.asarray(a, device="host")), linalg.lu_factor(a)
        agree(got.lu, want[0], 1e-8)
        assert np.array_equal(got.piv.numpy(), want[1])


def test_svd_in_the_form_of_pytorch(place, rng):
    a = rng.standard_normal((2, 5, 3))
    x = gt.asarray(a, device=place)
    u, s, v = gt.svd(x)
    agree((u * s[..., None, :]) @ v.mT, a, 1e-8)
    assert u.shape == (2, 5, 3) and v.shape == (2, 3, 3)
    assert gt.svd(x, some=False)[0].shape == (2, 5, 5)
    u, s, v = gt.svd(x, compute_uv=False)
    agree(s, np.linalg.svd(a).S, 1e-8)
    assert not u.any() and not v.any() and (u.shape, v.shape) == ((2, 5, 5), (2, 3, 3))


@QUICK
@by_matrix
def test_decompositions_rebuild_the_matrix(place, batch, n, m, dtype, seed):
    rng = np.random.default_rng(seed)
    a, x = random_view(rng, random_array(rng, (*batch, n, m), dtype, -3, 3), place)
    eps = epsilon(dtype)
    for mode in ("reduced", "complete"):
        q, r = gt.linalg.qr(x, mode=mode)
        agree(q @ r, a, eps)
        agree(
            gt.conj(q.mT) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (*batch, *q.shape[-1:] * 2)).astype(dtype),
            eps,
        )
        assert r.shape == np.linalg.qr(a, mode).R.shape
    for full in (True, False):
        u, s, vh = gt.linalg.svd(x, full_matrices=full)
        k = min(n, m)
        agree((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, eps)
        assert (u.shape, vh.shape) == tuple(np.linalg.svd(a, full)[i].shape for i in (0, 2))
        agree(s, np.linalg.svd(a, full).S, eps)
    # The norm of `a` is below 22, so the condition number of the sum is below 7.
    agree(gt.linalg.pinv(x + 30 * gt.eye(n, m, dtype=dtype, device=place)),
          np.linalg.pinv(a + 30 * np.eye(n, m, dtype=dtype)), eps)  # fmt: skip
    hermitian = a @ np.conj(a.mT) + np.eye(n, dtype=dtype)
    y = x @ gt.conj(x.mT) + gt.eye(n, dtype=dtype, device=place)
    values, vectors = gt.linalg.eigh(y)
    agree(values, np.linalg.eigvalsh(hermitian), eps)
    agree((vectors * values[..., None, :]) @ gt.conj(vectors.mT), hermitian, eps)
    agree(gt.linalg.eigvalsh(y, "U"), np.linalg.eigvalsh(hermitian), eps)
    agree(gt.linalg.cholesky(y), np.linalg.cholesky(hermitian), eps)
    agree(gt.linalg.cholesky(y, upper=True), np.linalg.cholesky(hermitian, upper=True), eps)
    agree(gt.linalg.matrix_rank(y), np.linalg.matrix_rank(hermitian))


@QUICK
@by_matrix
def test_norms(place, batch, n, m, dtype, seed):
    rng = np.random.default_rng(seed)
    a, x = random_view(rng, random_array(rng, (*batch, n, m), dtype, -3, 3), place)
    eps = epsilon(dtype)
    for ord in ("fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2):
        agree(gt.linalg.matrix_norm(x, ord=ord), np.linalg.matrix_norm(a, ord=ord), eps)
        agree(gt.norm(x, ord, (-2, -1), True), np.linalg.norm(a, ord, (-2, -1), True), eps)
    for ord in (np.inf, -np.inf, 0, 1, 2, 3, 0.5):
        got = gt.linalg.vector_norm(x, axis=-1, ord=ord)
        agree(got, np.linalg.vector_norm(a, axis=-1, ord=ord), eps)
    agree(x.norm(), np.linalg.norm(a), eps)


def test_least_squares(place, rng):
    a, b = rng.standard_normal((7, 3)), rng.standard_normal((7, 2))
    got = gt.linalg.lstsq(*(gt.asarray(one, device=place) for one in (a, b)))
    for part, expected in zip(got, np.linalg.lstsq(a, b), strict=True):
        agree(part, expected, 1e-8)


def test_general_eigenvalues_on_the_host_device(rng):
    a = rng.standard_normal((3, 4, 4))
    x = gt.asarray(a, device="host")
    values, vectors = gt.linalg.eig(x)
    agree(x.astype("complex128") @ vectors, (vectors * values[..., None, :]).numpy(), 1e-8)
    agree(gt.linalg.eigvals(x), np.linalg.eigvals(a), 1e-8)


def test_products_of_several_matrices_take_the_cheapest_order(place, rng):
    arrays = [rng.standard_normal(shape) for shape in ((2, 9), (9, 3), (3, 8), (8,))]
    got = gt.linalg.multi_dot([gt.asarray(one, device=place) for one in arrays])
    agree(got, np.linalg.multi_dot(arrays), 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: gt.linalg.inv(x), "inv: x: got shape (2, 3); expected square matrices"),
        (lambda x: gt.linalg.qr(x, mode="q"), "qr: mode: got 'q'; expected 'reduced', "
         "'complete' or 'r'"),
        (lambda x: gt.linalg.lu_solve((x[:, :2], gt.zeros(2, "int32", device=x.device)), x, 3),
         "lu_solve: trans: got 3; expected 0, 1 or 2"),
        (lambda x: gt.linalg.lu_solve((x[:, :2], gt.zeros(3, "int32", device=x.device)), x),
         "lu_solve: piv: got shape (3,); expected (2,), one for each row"),
        (lambda x: gt.linalg.svd(x[0]), "svd: x: got 1 dimensions; expected 2 or more"),
        (lambda x: gt.topk(x, 4), "topk: k: got 4; expected 0 to 3, the extent"),
        (lambda x: gt.quantile(x, 2), "quantile: q: got 2; expected 0 to 1"),
        (lambda x: gt.fft.fft(x, n=0), "fft: n: got 0; expected 1 or more"),
        (lambda x: gt.fft.rfft(x * 1j), "rfft: x: got complex64; expected a real dtype"),
        (lambda x: gt.cumulative_sum(x), "cumulative_sum: axis: got None for 2 dimensions; "
         "expected an axis unless x has 1 dimension"),
        (lambda x: gt.searchsorted(x[0, 0], 1), "searchsorted: x: got 0 dimensions; expected 1 "
         "or more"),
        (lambda x: gt.bincount(gt.asarray([-1], device=x.device)), "bincount: x: got -1; expected "
         "0 or more in every element"),
    ],
)  # fmt: skip
def test_wrong_argument_is_explained(place, call, message):
    x = gt.ones((2, 3), device=place)
    with pytest.raises((ValueError, TypeError)) as raised:
        call(x)
    assert str(raised.value) == message


def test_singular_matrix_raises(place):
    x = gt.zeros((2, 2), device=place)
    with pytest.raises(gt.linalg.LinAlgError):
        gt.linalg.inv(x).numpy()
    with pytest.raises(gt.linalg.LinAlgError):
        gt.linalg.cholesky(x - 1).numpy()
