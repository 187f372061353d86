"""Grouped products and pointer batches on a GPU: exact integers, large sizes, every tile form."""

import threading

import numpy as np
import pytest

import gputensor as gt


def integers(rng, shape, name, low=-4, high=5):
    """Small integers, whose products are exact in every type, as an array and as a tensor."""
    array = rng.integers(low, high, shape).astype(np.float32)
    return array, gt.asarray(array, device="cuda").astype(name)


def expected_rows(tokens, weights, ends):
    result = np.zeros((len(tokens), weights.shape[2]))
    start = 0
    for group, end in enumerate(ends):
        result[start:end] = tokens[start:end].astype(np.float64) @ weights[group]
        start = end
    return result


@pytest.mark.parametrize("is_turned", [False, True], ids=["along-columns", "along-terms"])
@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_every_tile_form_is_exact(cuda, rng, name, is_turned):
    """64, 128 and 192 rows, 64, 128 and 256 columns, partial tiles, NaN next to the operands."""
    for groups, tokens, k, n in (
        (1, 64, 64, 64),
        (3, 100, 128, 128),
        (4, 1000, 192, 256),
        (2, 9000, 136, 4096),
        (16, 8000, 64, 2048),
        (5, 777, 1000, 264),
        (3, 129, 8, 72),
        (6, 4000, 100, 1024),
    ):
        padded = (k + 7) // 8 * 8
        x, tokens_ = integers(rng, (tokens, padded), name)
        w, weights = integers(rng, (groups, n, padded), name)
        if padded != k:
            tokens_[:, k:] = np.nan
            weights[:, :, k:] = np.nan
        weights = gt.permute_dims(weights, (0, 2, 1))[:, :k]
        if not is_turned:
            weights = weights.copy()
        ends = np.sort(rng.integers(0, tokens + 1, groups)).astype(np.int32)
        out = gt.full((tokens, n), np.nan, device="cuda")
        gt.grouped_matmul(tokens_[:, :k], weights, gt.asarray(ends, device="cuda"), out=out)
        exact = expected_rows(x[:, :k], w.transpose(0, 2, 1)[:, :k], ends)
        np.testing.assert_array_equal(out.numpy(), exact)


def test_weights_past_2_31_elements(cuda, rng):
    groups, k, n = 130, 4096, 4160
    weights = gt.empty((groups, k, n), dtype="bfloat16", device="cuda")
    for group in range(groups):
        weights[group] = float(group % 7 - 3)
    ends = np.arange(1, groups + 1, dtype=np.int32) * 3
    x = gt.ones((3 * groups, k), dtype="bfloat16", device="cuda")
    offsets = gt.asarray(ends, device="cuda")
    got = gt.grouped_matmul(x, weights, offsets, out_dtype="float32").numpy()
    exact = np.repeat((np.arange(groups) % 7 - 3) * float(k), 3)[:, None]
    np.testing.assert_array_equal(got, np.broadcast_to(exact, got.shape))


def test_hundreds_of_pairs_from_many_streams(cuda):
    failures = []

    def work(seed):
        own = np.random.default_rng(seed)
        with gt.stream(gt.Stream("cuda")):
            for _ in range(5):
                sizes = own.integers(1, 50, (300, 3))
                left = [integers(own, (m, 8 * k), "bfloat16") for m, k, _ in sizes]
                right = [integers(own, (8 * k, n), "bfloat16") for _, k, n in sizes]
                out = gt.grouped_matmul([t for _, t in left], [t for _, t in right])
                for (a, _), (b, _), got in zip(left, right, out, strict=True):
                    exact = (a.astype(np.float64) @ b).astype(got.dtype)
                    if not np.array_equal(got.numpy(), exact):
                        failures.append((seed, a.shape, b.shape))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_pointer_batches_of_many_small_products(cuda, rng):
    for name in ("float32", "float16", "bfloat16"):
        for shape_a, shape_b in (
            ((40, 1, 16, 32), (1, 50, 32, 24)),
            ((3, 1, 17, 1, 64, 64), (5, 1, 2, 64, 64)),
            ((300, 1, 8, 8), (300, 8, 8)),
        ):
            a, left = integers(rng, shape_a, name)
            b, right = integers(rng, shape_b, name)
            got = gt.matmul(left, right, out_dtype="float32").numpy()
            np.testing.assert_array_equal(got, np.matmul(a.astype(np.float64), b))
