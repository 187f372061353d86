"""Attention of many queries (by wgmma where the GPU has it) and of few, compared with float64."""

import pytest

from gputensor._driver.registry import cuda_device_count
from tests.support.products.attention_checks import check, options

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")
MASKS = ("bool", "float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("size", [32, 64, 128])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", range(8))
def test_many_queries(size, dtype, case, rng):
    batch, kept, shared = int(rng.integers(2, 4)), int(rng.integers(3, 6)), int(rng.integers(1, 4))
    queries, keys = int(rng.integers(900, 1400)), int(rng.integers(1, 900))
    how = options(rng, queries, keys, masks=MASKS if case == 0 else ())
    check(rng, dtype, (batch, kept, shared, queries, keys, size), how)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", range(6))
def test_few_blocks(dtype, case, rng):
    batch, kept, shared = int(rng.integers(1, 3)), int(rng.integers(1, 13)), int(rng.integers(1, 3))
    queries, keys = int(rng.integers(17, 129)), int(rng.integers(1, 256 if case % 2 else 129))
    size = 8 * int(rng.integers(1, 9))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, dtype, (batch, kept, shared, queries, keys, size), how)


@pytest.mark.parametrize("size", [64, 80, 128, 256])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", range(4))
def test_few_queries_whose_keys_are_cut_among_blocks(size, dtype, case, rng):
    """Warps and blocks share the keys of a row; the parts are joined by a second launch."""
    batch, kept, shared = int(rng.integers(1, 4)), int(rng.integers(1, 9)), int(rng.integers(1, 9))
    queries = int(rng.integers(1, 40 if case == 3 else 3))
    for keys in (int(rng.integers(512, 4097)), int(rng.integers(4097, 5000))):
        how = options(rng, queries, keys, masks=MASKS)
        check(rng, dtype, (batch, kept, shared, queries, keys, size), how)


def test_few_queries_of_many_heads_whose_keys_are_cut(rng):
    check(rng, "bfloat16", (34, 8, 3, 1, 1030, 64), {"is_causal": True, "kv_length": 800})


# Of 132 multiprocessors: blocks that share one, and blocks of clusters and others that do not.
@pytest.mark.parametrize("units", [(1, 1), (1, 8), (4, 8), (5, 8), (8, 8), (11, 12), (25, 8)])
@pytest.mark.parametrize("size", [56, 64, 128])
def test_few_queries_of_very_many_keys(size, units, rng):
    """Keys and values come by tensor maps where the GPU has them."""
    shared = int(rng.integers(1, 17 if units[0] < 8 else 3))
    keys = max(256, (1 << 15) // (units[0] * units[1])) + int(rng.integers(0, 300))
    queries = int(rng.integers(1, 16 // shared + 1))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(["float16", "bfloat16"])), (*units, shared, queries, keys, size), how)
