"""Products of some rows, of any shape of blocks, layout and alignment, against float64."""

import gputensor as gt
from tests.conformance.products.test_matmul import TF32
from tests.support import internals
from tests.support.products import few_rows_checks

SHAPES = (
    *((rows, features) for rows in (16, 32, 48, 64) for features in (32, 64)),
    (16, 128),
    (32, 128),
)
GAPS = ((0, 0), (8, 8), (3, 5), (4, 0), (1, 2))


def case(rng, *, most, least=1, fewest=1):
    """Draw the arguments of a check: sizes up to `most`, one of them up to 64.

    Other kernels take products of fewer than `fewest` 17 rows, or of fewer than `least` 257 terms.
    """
    few, wide_extent = int(rng.integers(fewest, 65)), int(rng.integers(fewest, most))
    shape = (few, wide_extent) if rng.random() < 0.5 else (wide_extent, few)
    return {
        "sizes": (*shape, int(rng.integers(least, most))),
        "layout": str(rng.choice(("NN", "NT", "TN", "TT"))),
        "gaps": tuple(int(gap) for gap in GAPS[rng.integers(len(GAPS))]),
        "has_ends": bool(rng.random() < 0.3),
        "out": "float32" if rng.random() < 0.2 else None,
    }


def check(rng, name, given, form):
    """Compute a product with blocks of this form: rows, features, warps, splits."""
    given = dict(given)
    m, n, k = given.pop("sizes")
    print(name, (m, n, k), given, form)
    rows, features, warps, splits = form
    internals.narrow_configure(rows=rows, features=features, warps=warps, splits=splits)
    gt.blas.forget_plans()
    is_tf32 = name == "tf32"
    try:
        with gt.blas.allow_tf32(is_tf32):
            few_rows_checks.check(
                rng, "float32" if is_tf32 else name, m, n, k, unit=TF32 if is_tf32 else 0.0, **given
            )
    finally:
        internals.narrow_configure()
