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
