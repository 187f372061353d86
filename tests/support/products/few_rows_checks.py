"""Products of few rows, of any layout and alignment, against float64 on one device."""

import numpy as np

import gputensor as gt
from tests.support.products.skinny_checks import DTYPES, UNIT, on_device, wide


def operand(rng, name, rows, columns, *, is_turned, gap):
    """Return an array and a tensor of its values, whose lines are `gap` elements apart."""
    shape = (columns, rows + gap) if is_turned else (rows, columns + gap)
    whole = rng.standard_normal(shape).astype(DTYPES[name])
    tensor = on_device(whole)
    if is_turned:
        return whole[:, :rows].T, tensor[:, :rows].T
    return whole[:, :columns], tensor[:, :columns]


def check(rng, name, m, n, k, *, out=None, layout="NN", gaps=(0, 0), has_ends=False, unit=0.0):
    """Compute one product into poisoned memory and check it within the rounding of its sums.

    `layout` says which operand is transposed (T), `gaps` how many elements lie between its lines,
    and `has_ends` adds a scaled tensor. `unit` bounds the rounding of each operand, as to TF32.
    """
    out = out or name
    a, left = operand(rng, name, m, k, is_turned=layout[0] == "T", gap=gaps[0])
    b, right = operand(rng, name, k, n, is_turned=layout[1] == "T", gap=gaps[1])
    exact, size = wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b))
    result = gt.full((m, n), float("nan"), dtype=out, device="cuda")
    if has_ends:
        addend = rng.standard_normal((m, n)).astype(DTYPES[out])
        gt.addmm(on_device(addend), left, right, beta=0.5, alpha=-2.0, out=result)
        exact, size = 0.5 * wide(addend) - 2 * exact, np.abs(wide(addend)) + 2 * size
    else:
        gt.matmul(left, right, out=result)
    error = np.abs(wide(result.numpy()) - exact)
    limit = size * (2.0**-24 * (k + 10) + 2 * unit) + np.abs(exact) * UNIT[out] * 1.01 + 1e-7
    assert (error <= limit).all(), (name, m, n, k, layout, gaps, float(np.max(error / limit)))


def many(rng, count, *, most=3000):
    """Check random products of 1 to 16 rows or columns; the kernels take the first in any case."""
    names = list(DTYPES)
    for case in range(count):
        name = names[rng.integers(3)] if case else str(rng.choice(["float16", "bfloat16"]))
        few, wide_extent = int(rng.integers(1, 17) if case else 3), int(rng.integers(1, most))
        k = int(rng.integers(300, most))
        if rng.random() < 0.5:
            wide_extent, k = -(-wide_extent // 8) * 8, -(-k // 8) * 8
        gaps = rng.choice(((0, 0), (8, 8), (3, 5), (4, 0)))
        shape = (few, wide_extent) if rng.random() < 0.5 else (wide_extent, few)
        check(
            rng, name, *shape, k, out="float32" if rng.random() < 0.2 else name,
            layout=str(rng.choice(("NN", "NT", "TN", "TT"))), gaps=[int(gap) for gap in gaps],
            has_ends=rng.random() < 0.3,
        )  # fmt: skip
