"""Products of 16-bit types under each precision flag, against float64, on every device.

A flag changes the unit roundoff of some sums. With `allow_fp16_accumulation` every sum of a float16
product into float16 may be in float16; a tensor core may truncate rather than round, which doubles
the unit. With the reduction flags, a library that splits K into parts may round each part's sum, or
the sum of the parts so far, to the type of the result; a part has 32 terms or more. Results in
float32 come from float32 sums under each flag.
"""

import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from tests.conformance.products.test_matmul import (
    ROUNDOFF,
    assert_within,
    bound,
    random_tensor,
    wide,
)

FLAGS = {
    "allow_fp16_accumulation": "float16",
    "allow_fp16_reduced_precision_reduction": "float16",
    "allow_bf16_reduced_precision_reduction": "bfloat16",
}
SHAPES = ((33, 24, 17), (5, 65, 40), (64, 64, 64), (16, 128, 96))


def flag_bound(a, b, name, flag):
    """The largest admissible error of each element of a @ b in its own type under a flag."""
    terms = a.shape[-1]
    size = np.abs(wide(a)) @ np.abs(wide(b))
    if flag == "allow_fp16_accumulation":
        growth = (terms + 2) * 2.0**-10
        extra = growth / (1 - growth)
    else:
        extra = (terms // 32 + 1) * ROUNDOFF[name][1]
    return bound(a, b, name) + 1.01 * extra * size


def check_flag(rng, where, flag):
    """A product under a flag: in its own type, in float32, with a tensor as scale, and grouped."""
    name = FLAGS[flag]
    with blas.precision(**{flag: True}):
        for m, k, n in SHAPES:
            a, array_a = random_tensor(rng, (m, k), name, where)
            b, array_b = random_tensor(rng, (k, n), name, where)
            exact = wide(array_a) @ wide(array_b)
            limit = flag_bound(array_a, array_b, name, flag)
            out = gt.full((m, n), np.nan, dtype=name, device=where)
            assert_within(gt.matmul(a, b, out=out).numpy(), exact, limit)
            got = gt.matmul(a, b, scale=0.5)
            assert_within(got.numpy(), 0.5 * exact, limit)

            inner = bound(array_a, array_b, "float32")
            got = gt.matmul(a, b, out_dtype="float32")
            assert got.dtype == gt.float32
            assert_within(got.numpy(), exact, inner)
            factor = gt.full((), 0.5, device=where)
            got = gt.matmul(a, b, scale=factor)
            rounded = 2 * ROUNDOFF[name][1] * np.abs(exact) + 2.0**-24
            assert_within(got.numpy(), 0.5 * exact, inner + rounded)

            for got in gt.grouped_matmul([a] * 5, [b] * 5):
                assert_within(got.numpy(), exact, limit)


@pytest.mark.parametrize("flag", list(FLAGS))
def test_products_under_a_flag_stay_within_its_bound(where, rng, flag):
    check_flag(rng, where, flag)


@pytest.mark.parametrize("flag", list(FLAGS))
def test_a_flag_of_one_call_ends_with_the_call(where, rng, flag):
    name = FLAGS[flag]
    a, array_a = random_tensor(rng, (20, 64), name, where)
    b, array_b = random_tensor(rng, (64, 24), name, where)
    exact = wide(array_a) @ wide(array_b)
    setting = blas.Precision(**{flag: True})
    got = gt.matmul(a, b, precision=setting)
    assert_within(got.numpy(), exact, flag_bound(array_a, array_b, name, flag))
    got = gt.matmul(a, b, out_dtype="float32", precision=setting)
    assert_within(got.numpy(), exact, bound(array_a, array_b, "float32"))
    assert_within(gt.matmul(a, b).numpy(), exact, bound(array_a, array_b, name))
