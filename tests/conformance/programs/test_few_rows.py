"""Tokens of Llama-shaped models of random sizes, whose products include the steps around them."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.programs.decode_models import UNIT, DecodeModel


@pytest.mark.parametrize("form", ["plain", "int8", "int4:32", "int4:128"])
def test_tokens(rng, form):
    """With `each` the bits of eager; with `once` plain weights are as accurate as eager."""
    rows = 1 if form == "plain" else int(rng.integers(1, 17))
    dtype = str(rng.choice(["float16", "bfloat16"]))
    model = DecodeModel(rng, form, dtype, rows, 2048 if form == "plain" else None)
    inputs = [model.inputs() for _ in range(2)]
    found = {}
    for rounding in ("each", "once"):
        program = model.program("host", rounding=rounding)
        with program, program.session() as session:
            found[rounding] = [session(gt.asarray(x, device="host")).numpy() for x in inputs]
    for once, each in zip(found["once"], found["each"], strict=True):
        scale = np.abs(each.astype(np.float64)).max()
        np.testing.assert_allclose(
            once.astype(np.float64), each.astype(np.float64), rtol=0,
            atol=16 * UNIT[dtype] * scale,
        )  # fmt: skip
    if form == "plain":
        exact = model.eager("host", inputs, np.float64)
        for each, eager in zip(found["each"], model.eager("host", inputs), strict=True):
            np.testing.assert_array_equal(each, eager)
        for once, each, want in zip(found["once"], found["each"], exact, strict=True):
            least = np.abs(each.astype(np.float64) - want).max() + UNIT[dtype] * np.abs(want).max()
            assert np.abs(once.astype(np.float64) - want).max() <= 2 * least
