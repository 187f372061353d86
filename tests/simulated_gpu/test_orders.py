"""Sorts, selection, search, counts, scans and choices, launch by launch: tiles, digits, chunks."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._engines import cupy_calls
from gputensor.tensor import places
from tests.conformance.numerics import test_array_likes as array_likes
from tests.conformance.numerics import test_numerics as numerics
from tests.conformance.numerics import test_progressions as progressions
from tests.conformance.numerics import test_random_calls as random_calls
from tests.conformance.numerics import test_ufunc_options as ufunc_options
from tests.conformance.tensor import test_choices as choices
from tests.conformance.tensor import test_order_statistics as order_statistics
from tests.conformance.tensor import test_orders as orders
from tests.support import cupy_on_cpu

pytestmark = pytest.mark.orders("deferred")


def row_of(name):
    return next(row for row in orders.SUMMED if row.name == name)


def test_sorts_and_selections(rng):
    orders.check_sort(rng, 0, row_of("float32"), (3, 2100))
    orders.check_sort(rng, 0, row_of("int64"), (40, 2))
    orders.check_search(rng, 0, row_of("bfloat16"))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("float32", (17_000,)),
        ("int64", (9_000,)),
        ("float16", (9_000,)),
        ("uint32", (9_000,)),
        ("int8", (17_000,)),
    ],
)
def test_sorts_of_long_rows(rng, name, shape):
    orders.check_sort(rng, 0, row_of(name), shape)


def test_digits_that_all_keys_of_a_row_share_need_no_pass(rng):
    a = rng.integers(-(1 << 31), 1 << 31, (5, 4500)).astype(np.int32)
    a[1] = 7
    a[2] &= 0xFFFF
    a[3] &= 0x00FF00FF
    a[4] = a[4] & 0xFF | 1 << 20
    x = gt.asarray(a, device=0)
    np.testing.assert_array_equal(gt.sort(x).numpy(), np.sort(a))
    np.testing.assert_array_equal(gt.sort(x, descending=True).numpy(), np.sort(a)[:, ::-1])
    np.testing.assert_array_equal(gt.argsort(x).numpy(), np.argsort(a, kind="stable"))


@pytest.mark.parametrize("name", ["bool", "float32", "complex64", "bfloat16"])
def test_choices(rng, name):
    for rule in ("true", "first", "first_nan"):
        choices.check_choice(rng, 0, row_of(name), 20_001, rule)


@pytest.mark.process(FAKE_CUDA_SHARED="233472")
@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int32", "uint64"])
def test_integers_seen(rng, name, monkeypatch):
    row = next(row for row in choices.WHOLE if row.name == name)
    choices.test_integers_seen(0, rng, row)
    choices.test_unique_integers(0, rng, row, monkeypatch)


def test_integers_far_apart_are_sorted(rng, monkeypatch):
    """A sample says so, or the whole; then nothing else is queued."""
    monkeypatch.setattr(places, "LEAST_WIDE", 5000)
    used = []
    queue = places.queue_call
    monkeypatch.setattr(places, "queue_call", lambda *call: (used.append(call[0]), queue(*call)))
    for last, expected in ((2499, "seen"), (2500, "mark"), (1 << 40, "mark")):
        a = rng.integers(0, 9, 5000)
        a[4321], a[17] = last, 0
        used.clear()
        assert np.array_equal(gt.unique(gt.asarray(a, device=0)).numpy(), np.unique(a))
        assert used[0] == expected, last


def test_masks(rng):
    mask = rng.random((3, 111, 333)) < 0.3
    x, key = gt.asarray(np.arange(mask.size).reshape(mask.shape), device=0), gt.asarray(mask)
    assert np.array_equal(x[key].numpy(), np.flatnonzero(mask))
    for got, want in zip(gt.nonzero(key), np.nonzero(mask), strict=True):
        assert np.array_equal(got.numpy(), want)
    flat = np.append(rng.integers(0, 50, 9000), [7, 7])
    assert np.array_equal(gt.unique(gt.asarray(flat)).numpy(), np.unique(flat))


def test_groups_of_tiles(rng):
    """More tiles than one group has."""
    mask = rng.random(8192 * 258 + 5) < 0.01
    assert np.array_equal(gt.nonzero(gt.asarray(mask))[0].numpy(), np.flatnonzero(mask))
    got = gt.cumsum(gt.asarray(mask[None])).numpy()
    assert np.array_equal(got, np.cumsum(mask))


@pytest.mark.parametrize("name", ["bool", "float32", "float16", "int64"])
def test_histograms(rng, name):
    choices.check_histogram(rng, 0, row_of(name), 3000)


@pytest.mark.parametrize("name", ["int8", "float32", "bfloat16", "complex64", "uint64"])
def test_sums_by_index(rng, name):
    for shape, axis in (((7,), 0), ((5, 8), 0), ((3, 9, 4), 1)):
        choices.check_sum(rng, 0, row_of(name), shape, axis)


def test_counts(rng):
    for length in (256, 5000):
        orders.check_count(rng, 0, length)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("float32", (9000,)),
        ("int32", (2, 20_000)),
        ("float16", (2, 300, 5)),
        ("complex128", (3, 130)),
        ("bool", (5000,)),
    ],
)
def test_scans(rng, name, shape):
    orders.check_scan(rng, 0, row_of(name), shape)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("int64", (20_000,)), ("float16", (300, 5)), ("bool", (2, 9000)), ("uint8", (3, 70))],
)
def test_scans_of_extremes(rng, dtype, shape):
    numerics.check_extremes(rng, 0, dtype, shape, 0)
    numerics.check_extremes(rng, 0, dtype, shape, -1)


def test_scans_of_exponentials(rng):
    numerics.check_exponentials(rng, 0, "float32", 1e-4)


@pytest.fixture
def engines(monkeypatch):
    """A stand-in for CuPy, which few of the functions below need."""
    cupy_calls.library.cache_clear()
    cupy_on_cpu.install(monkeypatch)
    yield
    cupy_calls.library.cache_clear()


@pytest.mark.parametrize("name", progressions.CHECKS)
def test_progressions_and_memory_orders(rng, engines, name):
    progressions.CHECKS[name](rng, "cuda")


def test_lists_give_the_results_of_tensors(rng, engines):
    for call in rng.choice(array_likes.CALLS, 40, replace=False):
        array_likes.check_list(call, "cuda")


def test_random_calls(rng, engines):
    for name in rng.choice(list(random_calls.CASES), 12, replace=False):
        random_calls.check_calls(rng, "cuda", name, 3)


def test_options_of_ufuncs(rng, engines):
    for name in rng.choice(ufunc_options.NAMES, 12, replace=False):
        ufunc_options.check_options(rng, "cuda", name)


def test_search_of_lines(rng, engines):
    order_statistics.check_search_of_lines(rng, "cuda")


def test_composed_special_functions(rng):
    pytest.importorskip("scipy", reason="needs SciPy")
    from tests.conformance.numerics import test_special as special

    for i in rng.choice(len(special.COMPOSED), 4, replace=False):
        special.check_composed(rng, "cuda", *special.COMPOSED[i])


def test_facts_of_unique_values_counts_and_points(rng):
    whole, real = rng.integers(0, 9, 3000), np.round(rng.normal(size=3000), 1).astype("float32")
    for a in (whole, real):
        want = np.unique(a, True, True, True)
        for flags in ((True, True, True), (False, True, False), (False, False, True)):
            kept = [one for one, is_there in zip(want, (True, *flags), strict=True) if is_there]
            for got, one in zip(gt.unique(gt.asarray(a, device=0), *flags), kept, strict=True):
                np.testing.assert_array_equal(got.numpy(), one)
    x = gt.asarray(whole, device=0)
    np.testing.assert_array_equal(gt.bincount(x).numpy(), np.bincount(whole))
    with pytest.raises(ValueError, match="bincount: x: got -1; expected 0 or more"):
        gt.bincount(x - 1)
    points = np.unique(real)[:40]
    got = gt.interp(gt.asarray(real, device=0), gt.asarray(points, device=0), x[:40]).numpy()
    np.testing.assert_allclose(got, np.interp(real, points, whole[:40]), 1e-4, 1e-4)
