"""Choices by rules, histograms and sums by index against NumPy: random input, poisoned outputs."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from gputensor.tensor import places
from gputensor.tensor.engine import queue_call
from tests.support.tensor_arrays import random_array, random_view

COMPUTED = [row for row in DTYPES if row.kind != "small"]
REAL = [row for row in COMPUTED if row.kind != "complex"]
WHOLE = [row for row in DTYPES if row.kind in ("bool", "int", "uint")]
SUMMED = [row for row in DTYPES if row.kind not in ("bool", "small")]


def poisoned(shape, dtype, place):
    return gt.full(shape, 77, dtype=dtype, device=place)


def runs(rng, row, count):
    """Values in runs of equal ones, with zeros, and NaN among floats."""
    a = random_array(rng, (count,), row.numpy, 0 if row.kind in ("bool", "uint") else -2, 2)
    a = np.repeat(a, rng.integers(1, 4, count))[:count]
    if row.kind in ("float", "complex") and count > 3:
        start = int(rng.integers(count - 3))
        a[start : start + 3] = np.nan
    return a


def check_choice(rng, place, row, count, rule):
    a = runs(rng, row, count)
    if rule == "true":
        flags = a.astype(bool)
    else:
        wide = a.astype(np.float32) if row.numpy.kind == "V" else a
        flags = np.append(True, wide[1:] != wide[:-1])
        if rule == "first_nan" and row.kind in ("float", "complex"):
            flags[1:] &= ~(np.isnan(wide[1:]) & np.isnan(wide[:-1]))
    x = gt.asarray(a, device=place)
    bits = poisoned(-(-count // 32), "uint32", place)
    starts = poisoned(-(-count // (1 << 15)) + 1, "int64", place)
    queue_call("mark", (rule,), (bits, starts), (x,))
    edges = [*range(0, count, 1 << 15), count]
    assert starts.tolist() == [int(flags[:edge].sum()) for edge in edges]
    got = np.unpackbits(bits.numpy().view(np.uint8), bitorder="little")
    assert np.array_equal(got[:count], flags) and not got[count:].any()
    total = int(flags.sum())
    if total:
        out = poisoned((1, total), "int64", place)
        queue_call("places", ((count,),), (out,), (bits, starts))
        assert np.array_equal(out.numpy()[0], np.flatnonzero(flags))
        out = poisoned(total, a.dtype, place)
        queue_call("pick", (), (out,), (x, bits, starts))
        assert out.numpy().tobytes() == a[flags].tobytes()


def check_seen(rng, place, row, words):
    """The integers from the least on; some elements are below it or beyond the bits.

    There are more than one block of threads takes, few of them equal, and memory behind the bits.
    """
    low, high = (0, 1) if row.kind == "bool" else (np.iinfo(row.numpy).min, np.iinfo(row.numpy).max)
    least = int(rng.integers(low, high, dtype=np.uint64 if low == 0 else np.int64))
    span = max(2, min(32 * words, 1 << 20))
    near = [least + int(n) for n in rng.integers(-span // 2, 2 * span, 40_000)]
    a = np.array([min(max(n, low), high) for n in near], row.numpy)[int(rng.integers(0, 3)) :]
    x, first = gt.asarray(a, device=place), gt.asarray(np.array([least], row.numpy), device=place)
    room = poisoned(words + 4, "uint32", place)
    bits = room[:words]
    starts = poisoned(-(-32 * words // (1 << 15)) + 1, "int64", place)
    queue_call("seen", (), (bits, starts), (x, first))
    flags = np.zeros(32 * words, bool)
    flags[[n - least for n in set(a.tolist()) if 0 <= n - least < flags.size]] = True
    got = np.unpackbits(bits.numpy().view(np.uint8), bitorder="little").view(bool)
    assert np.array_equal(got, flags) and room[words:].tolist() == [77] * 4
    edges = [*range(0, flags.size, 1 << 15), flags.size]
    assert starts.tolist() == [int(flags[:edge].sum()) for edge in edges]


def check_histogram(rng, place, row, count):
    low = 0 if row.kind in ("bool", "uint") else -40
    a, x = random_view(rng, random_array(rng, (count, 3), row.numpy, low, 40), place)
    if row.kind == "float":
        a = a.copy()
        a.reshape(-1)[:3] = np.nan, np.inf, -np.inf
        x = gt.asarray(a, device=place)
    bins = int(rng.integers(1, 700))
    wide = a.astype(np.float64 if row.numpy.itemsize > 2 else np.float32).reshape(-1)
    for ours, kind in ((bins, "even"), (np.unique(rng.uniform(-45, 45, bins + 1)), "given")):
        span = (-33.5, 37.25) if kind == "even" else None
        given = ours if kind == "even" else gt.asarray(ours.astype(np.float32), device=place)
        counts, edges = gt.histogram(x, given, span)
        at = edges.numpy().astype(np.float64)
        inside = wide[(wide >= at[0]) & (wide <= at[-1])].astype(np.float64)
        place_of = np.minimum(np.searchsorted(at, inside, "right") - 1, at.size - 2)
        want = np.bincount(place_of, minlength=at.size - 1)
        assert counts.dtype == np.int64 and np.array_equal(counts.numpy(), want), (row.name, kind)


def check_sum(rng, place, row, shape, axis):
    low = 0 if row.kind == "uint" else -5
    a, x = random_view(rng, rng.integers(low, 5, shape).astype(row.numpy), place)
    count = int(rng.integers(1, 40))
    taken = (*shape[:axis], count, *shape[axis + 1 :])
    b, y = random_view(rng, rng.integers(low, 5, taken).astype(row.numpy), place)
    extent = shape[axis]
    one = rng.integers(-extent, extent, count).astype(rng.choice(["int32", "int64", "int16"]))
    each = rng.integers(-extent, extent, taken)
    wide = np.complex128 if row.kind == "complex" else np.float64
    if row.kind in ("int", "uint"):
        wide = row.numpy

    def summed(index):
        want, add = a.astype(wide), b.astype(wide)
        grid = list(np.ogrid[tuple(slice(n) for n in taken)])
        grid[axis] = index
        np.add.at(want, tuple(grid), add)
        return want

    lines = one.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    want = summed(np.broadcast_to(lines, taken)).astype(row.numpy)
    # Sums of small whole numbers are exact in every dtype.
    got = gt.index_add(x, axis, gt.asarray(one, device=place), y)
    assert got.dtype == row.numpy and np.array_equal(got.numpy(), want), (row.name, shape, axis)
    spread = gt.broadcast_to(gt.asarray(lines.copy(), device=place), taken)
    assert np.array_equal(gt.scatter_add(x, axis, spread, y).numpy(), want)
    got = gt.scatter_add(x, axis, gt.asarray(each, device=place), y)
    assert np.array_equal(got.numpy(), summed(each).astype(row.numpy))
    assert np.array_equal(x.numpy(), a)


@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: row.name)
def test_choices(place, rng, row):
    for rule in ("true", "first", "first_nan"):
        for count in (1, 33, 1 << 15, 70_001):
            check_choice(rng, place, row, count, rule)


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
def test_integers_seen(place, rng, row):
    for words in (1, 7, 1500, 60_000):  # the last more than shared memory holds
        check_seen(rng, place, row, words)


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
def test_unique_integers(place, rng, row, monkeypatch):
    """Near each other and not, at both ends of the range and at its middle."""
    monkeypatch.setattr(places, "LEAST_WIDE", 5000)
    low, high = (0, 1) if row.kind == "bool" else (np.iinfo(row.numpy).min, np.iinfo(row.numpy).max)
    for count, span in ((5000, 3), (9001, 2000), (20_000, 40_000), (70_000, 30_000)):
        for start in (low, max(low, -(span // 2)), max(low, high - span + 1)):
            steps = rng.integers(0, min(span, high - start + 1), count)
            a = np.array([start + int(n) for n in steps], row.numpy)
            x = gt.asarray(a, device=place)
            for part, from_ in ((x, a), (x[3:], a[3:]), (x[::-2], a[::-2])):
                got = gt.unique(part)
                assert got.dtype == row.numpy and np.array_equal(got.numpy(), np.unique(from_))


@pytest.mark.parametrize("row", REAL, ids=lambda row: row.name)
def test_histograms(place, rng, row):
    for count in (1, 3, 4001):
        check_histogram(rng, place, row, count)


@pytest.mark.parametrize("row", SUMMED, ids=lambda row: row.name)
def test_sums_by_index(place, rng, row):
    for shape, axis in (((7,), 0), ((5, 6), 0), ((5, 8), 1), ((3, 9, 4), 1), ((2, 3, 5), 2)):
        check_sum(rng, place, row, shape, axis)


def test_sums_of_a_part(place, rng):
    a, b = rng.integers(0, 9, (6, 5)), rng.integers(0, 9, (4, 3))
    index = rng.integers(0, 6, (2, 3))
    want = a.copy()
    np.add.at(want, (index, np.arange(3)), b[:2])
    x, y, picks = (gt.asarray(one, device=place) for one in (a, b, index))
    assert np.array_equal(gt.scatter_add(x, 0, picks, y).numpy(), want)


def test_weights_of_ranges(place, rng):
    a, weights = rng.normal(size=2000), rng.integers(0, 5, 2000).astype(np.float64)
    x, w = gt.asarray(a, device=place), gt.asarray(weights, device=place)
    counts, _ = gt.histogram(x, 9, (-1, 1), weights=w)
    assert np.array_equal(counts.numpy(), np.histogram(a, 9, (-1, 1), weights=weights)[0])
    places = rng.integers(0, 9, 2000)
    got = gt.bincount(gt.asarray(places, device=place), w)
    assert np.array_equal(got.numpy(), np.bincount(places, weights))


def test_edges_that_equal_elements(place, rng):
    a = rng.integers(0, 11, 5000).astype(np.float32) / 10
    counts, edges = gt.histogram(gt.asarray(a, device=place), 10, (0, 1))
    assert np.array_equal(counts.numpy(), np.histogram(a, edges.numpy())[0])


def test_wrong_arguments_of_sums(place):
    x, index = gt.zeros((2, 3), device=place), gt.zeros(2, dtype="int64", device=place)
    with pytest.raises(TypeError, match="index: got float32; expected an integer dtype"):
        gt.index_add(x, 0, gt.ones(2, device=place), x)
    with pytest.raises(ValueError, match=r"source: got shape \(2, 3\)"):
        gt.index_add(x, 1, index, x)
    with pytest.raises(ValueError, match="got 1 and 2 dimensions; expected 2"):
        gt.scatter_add(x, 1, index, x)


def test_places_of_scattered_elements_are_checked(where, rng):
    a = rng.integers(0, 9, (3, 4, 5)).astype(np.float32)
    x = gt.asarray(a, device=where)
    for scatter in (gt.scatter_add, lambda *given: gt.scatter_reduce(*given, "sum")):
        index = rng.integers(-4, 4, (2, 1, 3))
        source = rng.integers(0, 9, (2, 1, 3)).astype(np.float32)
        want = a.copy()
        rows, _, columns = np.indices(index.shape)
        np.add.at(want, (rows, index, columns), source)
        source = gt.asarray(source, device=where)
        got = scatter(x, 1, gt.asarray(index, device=where), source)
        assert np.array_equal(got.numpy(), want)
        with pytest.raises(ValueError, match=r"index: got shape .*; expected \(3, 4, 5\) or less"):
            wide = gt.zeros((2, 1, 6), device=where)
            scatter(x, 1, gt.zeros((2, 1, 6), dtype="int64", device=where), wide)
        if gt.Device(where).type == "host":
            for wrong in (4, -5):  # inside of the whole, outside of the axis
                index[1, 0, 1] = wrong
                with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
                    scatter(x, 1, gt.asarray(index, device=where), source).numpy()
