"""Products of few rows by weights [k, n], against float64 on one device."""

import numpy as np

import gputensor as gt
from tests.support.products.skinny_checks import DTYPES, UNIT, on_device, wide

#: Rows of x that the rule of `axpy.pxi` takes; more in float32 by weights of 60 MB.
MOST_ROWS = {"float32": 4, "float16": 1, "bfloat16": 1}


def check(rng, name, m, n, k, *, out=None, is_turned=False, x_is_turned=False, has_ends=False):
    """Compute one product into poisoned memory and check it within the rounding of its sums.

    `is_turned` makes the weights the first operand, [n, k] with k far apart, and `has_ends` adds a
    scaled tensor.
    """
    out = out or name
    unit = 16 // DTYPES[name].itemsize
    w = rng.standard_normal((k, n + unit)).astype(DTYPES[name])
    x = rng.standard_normal((k, m) if x_is_turned else (m, k)).astype(DTYPES[name])
    left, right = on_device(x), on_device(w)[:, :n]
    left = left.T if x_is_turned else left
    if is_turned:
        left, right = right.T, left.T
    shape = (n, m) if is_turned else (m, n)
    exact_x = wide(x.T if x_is_turned else x)
    exact, size = exact_x @ wide(w[:, :n]), np.abs(exact_x) @ np.abs(wide(w[:, :n]))
    if is_turned:
        exact, size = exact.T, size.T
    result = gt.full(shape, float("nan"), dtype=out, device="cuda")
    if has_ends:
        addend = rng.standard_normal(shape).astype(DTYPES[out])
        gt.addmm(on_device(addend), left, right, beta=0.5, alpha=-2.0, out=result)
        exact, size = 0.5 * wide(addend) - 2 * exact, np.abs(wide(addend)) + 2 * size
    else:
        gt.matmul(left, right, out=result)
    error = np.abs(wide(result.numpy()) - exact)
    limit = size * (2.0**-24 * (k + 10)) + np.abs(exact) * UNIT[out] * 1.01 + 1e-7
    assert (error <= limit).all(), (name, m, n, k, float(np.max(error / limit)))


def many(rng, count):
    """Check random products that the rule of `axpy.pxi` takes."""
    names = list(DTYPES)
    for _case in range(count):
        name = names[rng.integers(3)]
        unit = 16 // DTYPES[name].itemsize
        n = unit * int(rng.integers(512 // unit, 2048 // unit))
        least = -(-(1 << 20) // (n * DTYPES[name].itemsize))
        k = int(rng.integers(least, least + 700))
        out = "float32" if rng.random() < 0.2 else name
        rows = int(rng.integers(1, MOST_ROWS[name] + 1))
        check(rng, name, rows, n, k, out=out, is_turned=rng.random() < 0.4,
              x_is_turned=rng.random() < 0.3, has_ends=rng.random() < 0.3)  # fmt: skip
