"""Products of any layout, offset, pitch and type without copies, on a real GPU."""

import itertools

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver.registry import cuda_device_count
from tests.conformance.products.test_matmul import assert_within, bound, wide
from tests.support.products import narrow_checks
from tests.support.products.unaligned_checks import multiply

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")


@pytest.fixture(autouse=True)
def on_hopper():
    if gt.get_device_capability("cuda") != (9, 0):
        pytest.skip("needs compute capability 9.0")


@pytest.mark.parametrize("operations", list(itertools.product((0, 1), repeat=2)))
@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("float32", "float32"),
        ("bfloat16", "bfloat16"),
        ("float16", "float16"),
        ("bfloat16", "float32"),
    ],
)
def test_any_offset_pitch_and_layout_without_writes_outside_the_result(operations, name, out, rng):
    for split in (1, 3, 5, 8):
        m, n, k = (int(x) for x in rng.integers(1, 420, 3))
        multiply(rng, name, out, operations, (m, n, k, int(rng.integers(1, 4))), split)
    m, n = (int(x) for x in rng.integers(1, 300, 2))
    multiply(rng, name, out, operations, (m, n, 1555, 1), 5, alpha=-0.5, beta=2.0, has_bias=True)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_edges_of_steps_tiles_and_splits(name, rng):
    depth = 32 if name == "float32" else 64
    for k in (1, depth - 1, depth, depth + 1, 5 * depth, 5 * depth + 1):
        multiply(rng, name, name, (1, 0), (129, 127, k, 1), 5)
        multiply(rng, name, name, (0, 1), (128, 257, k, 1), 2)


def operand_pair(rng, m, n, k, kind):
    return [
        gt.asarray(rng.standard_normal(shape).astype(np.float32), device="cuda").astype(kind)
        for shape in ((m, k), (k, n))
    ]


def test_results_have_equal_bits_from_run_to_run_and_in_a_graph(rng):
    for kind, precision in ((gt.float32, "tf32"), (gt.bfloat16, None)):
        a, b = operand_pair(rng, 333, 777, 1555, kind)
        first = gt.matmul(a, b, precision=precision).numpy()
        for _ in range(10):
            again = gt.matmul(a, b, precision=precision).numpy()
            assert np.array_equal(first, again)
        out = gt.empty((333, 777), dtype=kind, device="cuda")
        graph = gt.graphs.CUDAGraph()
        with gt.graphs.graph(graph):
            gt.matmul(a, b, out=out, precision=precision)
        graph.replay()
        assert np.array_equal(first, out.numpy())


@pytest.mark.parametrize("precision", ["tf32", None])
def test_nan_and_infinity_reach_their_rows_and_columns_alone(precision, rng):
    kind = gt.float32 if precision else gt.bfloat16
    array_a = rng.standard_normal((333, 1555)).astype(np.float32)
    array_a[7, 1554] = np.nan
    array_a[11, 0] = np.inf
    # NaNs whose mantissas are all ones: rounding them up would carry into the sign.
    array_a.view(np.uint32)[13, 3] = 0x7FFFFFFF
    array_a.view(np.uint32)[17, 5] = 0xFFFFFFFF
    b = gt.asarray(rng.standard_normal((1555, 777)).astype(np.float32), device="cuda").astype(kind)
    a = gt.asarray(array_a, device="cuda").astype(kind)
    got = gt.matmul(a, b, precision=precision).numpy().astype(np.float32)
    assert np.isnan(got[[7, 13, 17]]).all()
    assert np.isinf(got[11]).all()
    assert np.isfinite(np.delete(got, [7, 11, 13, 17], axis=0)).all()


def test_bias_and_activation(rng):
    array_x, array_w = rng.standard_normal((2, 513, 515)).astype(np.float32)
    array_bias = rng.standard_normal(513).astype(np.float32)
    x, w, bias = (
        gt.asarray(array, device="cuda").astype(gt.bfloat16)
        for array in (array_x, array_w, array_bias)
    )
    exact = wide(x.numpy()) @ wide(w.numpy()).T + wide(bias.numpy())
    limit = bound(x.numpy(), w.numpy().T, "bfloat16") + 2.0**-7 * np.abs(exact)
    got = gt.linear(x, w, bias, activation="relu").numpy()
    assert_within(got, np.maximum(exact, 0), limit)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "tf32", "float32"])
def test_products_of_some_rows_with_any_shape_of_blocks(name, rng):
    for _case in range(6):
        shape = narrow_checks.SHAPES[rng.integers(len(narrow_checks.SHAPES))]
        form = (*shape, int(rng.choice((1, 2, 4))), int(rng.choice((1, 2, 4, 8))))
        narrow_checks.check(rng, name, narrow_checks.case(rng, most=3000), form)
    given = narrow_checks.case(rng, most=3000, least=300, fewest=17)
    narrow_checks.check(rng, name, given, (0, 0, 0, 0))
