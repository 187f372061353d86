"""Orders on the host device are stable, with NaN of either sign last and both zeros equal."""

import math

import numpy as np
import pytest

from gputensor._kernels.host import orders


def rows_of(rng, dtype, shape):
    a = rng.integers(0 if dtype == "uint32" else -3, 4, shape).astype(dtype)
    if dtype == "uint32":
        a[:, ::3] += np.uint32(2**32 - 4)
    if a.dtype.kind == "f":
        a[:, : shape[1] // 2] = rng.normal(size=(shape[0], shape[1] // 2)) * 1e3
        picks = rng.integers(0, shape[1], 12)
        a[:, picks] = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0] * 2
    elif dtype == "int32":
        a[:, ::5] = np.iinfo(dtype).min
    return a


def places(row, is_descending):
    """The stable order of one row, by Python's sort."""
    sign = -1 if is_descending else 1

    def key(i):
        value = float(row[i])
        return (sign, 0.0) if math.isnan(value) else (0, sign * value)

    return sorted(range(len(row)), key=key)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "uint32", "float64", "int8"])
@pytest.mark.parametrize("shape", [(3, 40), (1, 1000), (2, 20000)])
def test_orders_of_rows_are_stable(rng, dtype, shape):
    x = rows_of(rng, dtype, shape)
    kept = x.copy()
    for is_descending in (False, True):
        want = np.array([places(row, is_descending) for row in x])
        order = np.full(shape, -7)
        orders.run_argsort(is_descending, order, x)
        np.testing.assert_array_equal(order, want)
        for count in (1, 7, shape[1] // 3, shape[1]):
            values, order = np.full((shape[0], count), 9, dtype), np.full((shape[0], count), -7)
            orders.run_topk(is_descending, values, order, x)
            np.testing.assert_array_equal(order, want[:, :count])
            np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))
    assert x.tobytes() == kept.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_even_ranges_are_those_of_the_edges(rng, monkeypatch, dtype):
    """Elements on edges and beside them, edges that are rounded together, several parts."""
    monkeypatch.setattr(orders, "HISTOGRAM_PART", 500)
    for _ in range(20):
        count, low = int(rng.integers(1, 300)), rng.normal() * 10 ** rng.uniform(-2, 3)
        wide = np.dtype(np.float32 if dtype == "float16" else dtype)
        width = 10 ** rng.uniform(-44, -30) if rng.integers(4) == 0 else 10 ** rng.uniform(-6, 3)
        low = 0.0 if width < 1e-20 else low
        edges = np.linspace(low, low + width, count + 1).astype(wide)
        x = np.concatenate([edges, np.nextafter(edges, -np.inf), rng.choice(edges, 900)])
        x = np.append(x + rng.choice([0, 1], x.size) * rng.normal(size=x.size), [np.nan, np.inf])
        x = x.astype(dtype)
        inside = x[(x >= edges[0]) & (x <= edges[-1])].astype(wide)
        place = np.clip(np.searchsorted(edges, inside, "right") - 1, 0, count - 1)
        counts = np.full(count, 7)
        orders.run_histogram(True, counts, x, edges)
        np.testing.assert_array_equal(counts, 7 + np.bincount(place, minlength=count))
