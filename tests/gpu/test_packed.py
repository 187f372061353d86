"""Packed products on a real GPU: every layout, offset and edge against float64; no write outside
the result; the same bits each time."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import cuda
from gputensor._driver.registry import cuda_device_count
from tests.conformance.products.test_matmul import assert_within, random_array, wide
from tests.support.internals import packing
from tests.support.products.packed_checks import (
    POISON,
    check,
    check_addend,
    limit_of,
    placed,
    precision,
)

pytestmark = pytest.mark.skipif(
    cuda_device_count() == 0 or cuda.device_info(0)["compute_capability"] != (9, 0),
    reason="needs a Hopper GPU",
)
NAMES = ["float16", "bfloat16", "float32"]
# Not multiples of a tile; strips of rows, columns or both; less than one tile; short and long K.
SHAPES = [
    (1023, 1025, 1027),
    (2049, 300, 515),
    (300, 2050, 129),
    (513, 769, 3001),
    (257, 260, 65),
    (130, 33, 1000),
    (300, 50257, 96),
]


@pytest.fixture(autouse=True)
def always_packed():
    gt.blas.forget_plans()
    packing("always")
    yield
    packing("auto")
    gt.blas.forget_plans()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_views_of_any_order_offset_and_pitch_are_within_their_bound(rng, name, shape):
    for _ in range(4):
        check(rng, name, *shape)


@pytest.mark.parametrize("name", NAMES)
def test_random_shapes_are_exact_in_small_integers(rng, name):
    for _ in range(12):
        m, n, k = (int(x) for x in rng.integers(1, 1500, 3))
        a, b = (rng.integers(-2, 3, s).astype(np.float32) for s in ((m, k), (k, n)))
        a, b = (x.astype(random_array(rng, (1,), name).dtype) for x in (a, b))
        _, x = placed(rng, a)
        _, y = placed(rng, b)
        _, out = placed(rng, np.full((m, n), POISON, dtype=a.dtype))
        gt.matmul(x, y, out=out, precision=precision(name))
        exact = (wide(a) @ wide(b)).astype(np.float32).astype(a.dtype)
        assert np.array_equal(out.numpy(), exact), (m, n, k)


@pytest.mark.parametrize("name", NAMES)
def test_addend_and_factors(rng, name):
    check_addend(rng, name, 515, 261, 300)


@pytest.mark.parametrize("name", NAMES)
def test_batches(rng, name):
    a, b = random_array(rng, (3, 301, 99), name), random_array(rng, (3, 99, 305), name)
    x, y = gt.asarray(a, device="cuda"), gt.asarray(b, device="cuda")
    out = gt.full((3, 301, 305), POISON, dtype=x.dtype, device="cuda")
    gt.matmul(x, y, out=out, precision=precision(name))
    assert_within(out.numpy(), wide(a) @ wide(b), limit_of(a, b, name))


@pytest.mark.parametrize("shape", [(2049, 2047, 2000), (1023, 1025, 1027), (400, 600, 5001)])
def test_same_bits_each_time_on_any_stream_and_in_a_graph(rng, shape):
    m, n, k = shape
    a, b = (gt.asarray(random_array(rng, s, "bfloat16"), device="cuda") for s in ((m, k), (k, n)))
    first = gt.matmul(a, b).numpy()
    out = gt.full((m, n), POISON, dtype=a.dtype, device="cuda")
    graph = gt.graphs.CUDAGraph()
    with gt.graphs.graph(graph):
        gt.matmul(a, b, out=out)
    for _ in range(3):
        out[...] = POISON
        graph.replay()
        assert np.array_equal(out.numpy(), first)
    with gt.Stream():
        other = gt.matmul(a, b)
    assert np.array_equal(other.numpy(), first)
