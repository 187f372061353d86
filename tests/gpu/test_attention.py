"""Attention of many queries (by wgmma where the GPU has it) and of few, compared with float64."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver.registry import cuda_device_count
from tests.conformance.nn.test_attention import UNIT, reference
from tests.support.row_checks import DTYPES

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", range(8))
def test_many_queries(size, dtype, case, rng):
    batch, kept, shared = int(rng.integers(2, 4)), int(rng.integers(3, 6)), int(rng.integers(1, 4))
    queries, keys = int(rng.integers(900, 1400)), int(rng.integers(1, 900))
    check(rng, case, dtype, (batch, kept, shared, queries, keys, size))


@pytest.mark.parametrize("size", [64, 80, 128, 256])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", range(4))
def test_few_queries_whose_keys_are_cut_among_blocks(size, dtype, case, rng):
    """The keys of a step are shared by warps; the parts are joined by a second launch."""
    batch, kept, shared = int(rng.integers(1, 4)), int(rng.integers(1, 9)), int(rng.integers(1, 9))
    queries = int(rng.integers(1, 40 if case % 4 == 3 else 3))
    for keys in (int(rng.integers(512, 4097)), int(rng.integers(4097, 5000))):
        check(rng, case, dtype, (batch, kept, shared, queries, keys, size))


def test_few_queries_of_many_heads_whose_keys_are_cut(rng):
    check(rng, 5, "bfloat16", (34, 8, 3, 1, 1030, 64))


def check(rng, case, dtype, sizes):
    batch, kept, shared, queries, keys, size = sizes
    shapes = [(batch, kept * shared, queries, size)] + [(batch, kept, keys, size)] * 2
    arrays = [rng.standard_normal(shape).astype(DTYPES[dtype]) for shape in shapes]
    tensors = [gt.asarray(array, device="cuda") for array in arrays]
    if case % 2:  # heads adjacent in memory, as a projection produces them
        moved = [np.ascontiguousarray(np.swapaxes(array, 1, 2)) for array in arrays]
        tensors = [gt.swapaxes(gt.asarray(array, device="cuda"), 1, 2) for array in moved]
    how, length, cap = {}, keys, 0
    if case >= 4:
        length = int(rng.integers(0, keys + 1))
        how["kv_length"] = gt.asarray(np.array(length, np.int32), device="cuda")
    last = np.arange(queries)[:, None] + length - queries
    mask = np.where(np.arange(keys) < length, np.zeros((queries, keys)), -np.inf)
    if case % 4:
        how["is_causal"] = True
        mask = np.where(np.arange(keys) <= last, mask, -np.inf)
    if case % 4 == 2:
        how["window"] = int(rng.integers(1, 300))
        mask = np.where(np.arange(keys) > last - how["window"], mask, -np.inf)
    if case == 7:
        how["soft_cap"] = cap = 2.0
    want = reference(*(array.astype(float) for array in arrays), mask, size**-0.5, cap)
    out = gt.scaled_dot_product_attention(*tensors, **how)
    again = gt.scaled_dot_product_attention(*tensors, **how)
    assert gt.all(out == again).item()
    got = out.numpy().astype(float)
    largest = np.abs(arrays[2].astype(float)).max()
    assert np.abs(got - want).max() <= UNIT[dtype] * (np.abs(want).max() + largest / 8)
    seen = ~np.isinf(mask).all(axis=1)
    assert not got[:, :, ~seen].any()
