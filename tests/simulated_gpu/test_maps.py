"""Formulas without folds, launch by launch: parts of long rows, strides, broadcast operands."""

import numpy as np

import gputensor as gt
from tests.conformance.nn import test_fuse, test_layers
from tests.support.row_checks import DTYPES, close, on_device, strided


def test_long_and_strided(rng):
    for shape in ((1 << 19,), (5001,), (3, 4097), (2, 3, 5, 7), (1,), (300, 3)):
        x = strided(rng, shape, DTYPES["float32"])
        got = gt.leaky_relu(on_device(x, "cuda"), 0.5)
        exact = x.astype(float)
        close(f"leaky_relu {shape}", got, np.where(exact > 0, exact, exact / 2), "float32", 1)


def test_fused(rng):
    for name in test_fuse.CASES:
        for dtype in ("float32", "bfloat16"):
            test_fuse.test_values("cuda", name, dtype, rng)


def test_channels(rng):
    for is_last in (False, True):
        test_layers.test_batch_norm("cuda", "bfloat16", is_last, rng)
