"""Row formulas launch by launch: lanes along and across, rows read again, several axes."""

import numpy as np
import pytest

import gputensor as gt
from gputensor import nn
from tests.conformance.nn.test_attention import attention_program
from tests.support.row_checks import DTYPES, close, row_program


def test_random_calls(rng):
    for _ in range(25):
        row_program(rng, "cuda", most=120)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(40, 128), (3, 1001), (1, 600000), (9000, 3), (1, 7)])
def test_widths(shape, dtype, rng):
    # The CPU has no clusters of blocks: rows of 16,384 to 524,288 columns are for tests/gpu.
    values = (rng.standard_normal(shape) * 2).astype(DTYPES[dtype])
    exact = values.astype(np.float64)
    for axis in (0, 1):
        powers = np.exp(exact - exact.max(axis=axis, keepdims=True))
        want = powers / powers.sum(axis=axis, keepdims=True)
        got = nn.softmax(gt.asarray(values, device="cuda"), axis)
        close(f"softmax {shape} {axis}", got, want, dtype, 200 * want)


def test_attention(rng):
    for _ in range(8):
        attention_program(rng, "cuda")
