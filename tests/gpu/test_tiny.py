"""Tiny products on a real GPU: the kernel's arithmetic, and its time compared to the library's."""

import time

import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor._driver.registry import cuda_device_count
from tests.conformance.products.test_matmul import (
    assert_within,
    bound,
    numpy_dtype,
    random_array,
    wide,
)
from tests.support.internals import tile_of

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")
CODES = {"float16": 9, "bfloat16": 10, "float32": 11}
LAUNCHES = 200


def both_orders(array):
    """The same matrix row-major and column-major."""
    turned = gt.asarray(np.ascontiguousarray(array.T), device="cuda").T
    return gt.asarray(array, device="cuda"), turned


@pytest.mark.parametrize("name", list(CODES))
def test_every_size_and_order_is_within_its_bound(rng, name):
    sizes = [tuple(int(x) for x in rng.integers(1, 129, 3)) for _ in range(40)]
    sizes += [(64, 64, 64), (128, 128, 128), (1, 1, 1)]
    if name == "float32":
        sizes += [(200, 190, 63), (128, 128, 256), (33, 65, 255), (256, 256, 128)]
    for m, n, k in sizes:
        # few_rows takes a matrix times a vector of more than 23 terms.
        assert tile_of(CODES[name], m, n, k) or (min(m, n) == 1 and k > 23)
        a, b = random_array(rng, (m, k), name), random_array(rng, (k, n), name)
        exact, limit = wide(a) @ wide(b), bound(a, b, name)
        for x in both_orders(a):
            for y in both_orders(b):
                for out in both_orders(np.full((m, n), np.nan, dtype=numpy_dtype(name))):
                    gt.matmul(x, y, out=out)
                    assert_within(out.numpy(), exact, limit)


@pytest.mark.parametrize("name", list(CODES))
def test_epilogue_adds_and_activates(rng, name):
    unit = {"float32": 2.0**-21, "float16": 2.0**-8, "bfloat16": 2.0**-5}[name]
    for m, n, k in ((64, 64, 64), (17, 33, 128), (150, 220, 9)):
        a, b, c = (random_array(rng, s, name) for s in ((m, k), (k, n), (m, n)))
        row = random_array(rng, (n,), name)
        x, y, z, bias = (gt.asarray(array, device="cuda") for array in (a, b, c, row))
        product = wide(a) @ wide(b)
        total = product + wide(row)
        gelu = 0.5 * total * (1 + np.tanh(np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)))
        poison = gt.full((m, n), np.nan, dtype=x.dtype, device="cuda")
        for got, exact in (
            (gt.addmm(z, x, y, alpha=0.5, beta=-2.0), 0.5 * product - 2 * wide(c)),
            (gt.addmm(poison, x, y, beta=0, alpha=2.0), 2 * product),
            (gt.linear(x, y.T, bias, activation="relu"), np.maximum(total, 0)),
            (gt.linear(x, y.T, bias, activation="gelu_tanh"), gelu),
        ):
            size = np.abs(exact) + np.abs(product) + 3 * np.abs(wide(c)) + np.abs(wide(row))
            assert_within(got.numpy(), exact, 2 * bound(a, b, name) + unit * size)


def test_batches_and_odd_addresses(rng):
    a = random_array(rng, (7, 19, 23), "bfloat16")
    b = random_array(rng, (7, 23, 31), "bfloat16")
    got = gt.asarray(a, device="cuda") @ gt.asarray(b, device="cuda")
    assert_within(got.numpy(), wide(a) @ wide(b), bound(a, b, "bfloat16"))
    flat = gt.zeros((19 * 23 + 1,), dtype=gt.bfloat16, device="cuda")
    flat[1:] = gt.asarray(a[0].reshape(-1), device="cuda")
    odd = gt.matmul(gt.reshape(flat[1:], (19, 23)), gt.asarray(b[0], device="cuda"))
    assert_within(odd.numpy(), wide(a[0]) @ wide(b[0]), bound(a[0], b[0], "bfloat16"))


def test_captured_product_replays_and_equals_the_direct_one_bit_for_bit(rng):
    a, b = (gt.asarray(random_array(rng, (64, 64), "float32"), device="cuda") for _ in range(2))
    direct = gt.matmul(a, b)
    out = gt.full((64, 64), np.nan, dtype=gt.float32, device="cuda")
    graph = gt.graphs.CUDAGraph()
    with gt.graphs.graph(graph):
        gt.matmul(a, b, out=out)
    graph.replay()
    assert np.array_equal(out.numpy(), direct.numpy())


def microseconds(library, a, b, out):
    """GPU time of one product, from replays of a graph of many."""
    blas.preferred_blas_library(library)
    try:
        gt.matmul(a, b, out=out)
        graph = gt.graphs.CUDAGraph()
        with gt.graphs.graph(graph):
            for _ in range(LAUNCHES):
                gt.matmul(a, b, out=out)
    finally:
        blas.preferred_blas_library("auto")
    best = float("inf")
    for _ in range(8):
        gt.synchronize()
        start = time.perf_counter()
        for _ in range(5):
            graph.replay()
        gt.synchronize()
        best = min(best, time.perf_counter() - start)
    return best / (5 * LAUNCHES) * 1e6


@pytest.mark.alone
@pytest.mark.parametrize("name", list(CODES))
def test_gpu_time_is_near_the_librarys(name):
    rows = []
    for m, n, k in ((16, 16, 16), (64, 64, 64), (128, 128, 128), (180, 180, 64), (256, 256, 64)):
        a = gt.ones((m, k), dtype=getattr(gt, name), device="cuda")
        b = gt.ones((k, n), dtype=getattr(gt, name), device="cuda")
        out = gt.empty((m, n), dtype=getattr(gt, name), device="cuda")
        own, library = (microseconds(which, a, b, out) for which in ("auto", "cublaslt"))
        rows.append((m, n, k, round(own, 2), round(library, 2)))
    print(f"\n{name}: m, n, k, own us, library us: {rows}")
    assert all(own <= 1.25 * library + 0.3 for *_, own, library in rows), rows
