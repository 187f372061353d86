"""Tiny products on a simulated GPU: sizes, layouts, views, epilogues, batches, captures, bits."""

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor._kernels.launch import forget_kernels, loaded_programs, nvrtc
from gputensor.blas import backends
from gputensor.blas.kernels import padding
from gputensor.blas.plan import plan_count
from gputensor.errors import DeviceError
from tests.conformance.products.test_matmul import (
    assert_within,
    bound,
    numpy_dtype,
    random_array,
    random_tensor,
    wide,
)
from tests.support import kernel_compiler
from tests.support.internals import tile_of

PAIRS = (
    ("float32", "float32"),
    ("float16", "float16"),
    ("bfloat16", "bfloat16"),
    ("float16", "float32"),
    ("bfloat16", "float32"),
)
# m, n, k for both tiles: one element, whole tiles, one more and one less, two rounds of terms.
SIZES = (
    (1, 1, 1),
    (16, 16, 16),
    (17, 33, 15),
    (64, 64, 64),
    (5, 130, 128),
    (33, 1, 21),
    (33, 2, 127),
    (1, 31, 23),
)
# Products of 16-bit types leave these sizes to the library.
LONG = ((19, 35, 129), (40, 16, 256), (170, 197, 37), (180, 200, 128))
# Longer or larger results than one wave of tiles has, of few terms.
FEW = ((131, 1104, 3), (6, 4501, 2), (4301, 7, 1), (4301, 33, 3))
TINY = next(row["number"] for row in backends.backend_table() if row["name"] == "tiny")


def plans():
    """The number of plans of tiny products."""
    return plan_count(TINY)


@pytest.fixture(autouse=True)
def no_plans():
    """Forget plans, so that each test plans its own products."""
    blas.forget_plans()


def stored(array, is_turned, offset):
    """A tensor of the array's values in rows with a gap, from column `offset`; maybe transposed."""
    turned = array.T if is_turned else array
    rows, columns = turned.shape
    base = np.full((rows + 1, columns + 3), np.nan).astype(array.dtype)
    flat = base.reshape(-1)
    view = np.lib.stride_tricks.as_strided(
        flat[offset:], turned.shape, (base.strides[0], base.itemsize)
    )
    view[...] = turned
    tensor = gt.asarray(flat, device="cuda")
    part = gt.reshape(tensor, (rows + 1, columns + 3))[:rows, offset : offset + columns]
    return part.T if is_turned else part


def test_layouts(rng):
    """Every size with both operands and the result in every layout, at odd addresses."""
    for name, out_name in PAIRS:
        for m, n, k in SIZES + (LONG if name == "float32" else ()):
            before = plans()
            a, b = random_array(rng, (m, k), name), random_array(rng, (k, n), name)
            exact = wide(a) @ wide(b)
            limit = bound(a, b, out_name)
            turns = rng.integers(0, 2, (3, 3)) if m * n > 5000 else np.ndindex(2, 2, 2)
            for turn_a, turn_b, turn_out in turns:
                x = stored(a, turn_a, int(rng.integers(0, 4)))
                y = stored(b, turn_b, int(rng.integers(0, 4)))
                poison = np.full((m, n), np.nan, dtype=numpy_dtype(out_name))
                base = stored(poison, turn_out, 1)
                assert gt.matmul(x, y, out=base) is base
                assert_within(base.numpy(), exact, limit)
            assert plans() > before, (m, n, k)
    tiles = {tile_of(11, *size) for size in SIZES + LONG}
    assert tiles == {16, 32}


def test_few_terms(rng):
    """Results without gaps, whose rows begin anywhere, in every layout of the operands."""
    for name, out_name in PAIRS:
        for m, n, k in FEW:
            before = plans()
            a, b = random_array(rng, (m, k), name), random_array(rng, (k, n), name)
            exact, limit = wide(a) @ wide(b), bound(a, b, out_name)
            for turn_a, turn_b, turn_out in rng.integers(0, 2, (2, 3)):
                turn_out, is_aligned = turn_out and k < 3, n % 8 == 0
                x = gt.asarray(a.T.copy(), device="cuda").T if turn_a else stored(a, False, 1)
                y = gt.asarray(b, device="cuda") if is_aligned else stored(b, turn_b, 2)
                poison = np.full((n, m) if turn_out else (m, n), np.nan, numpy_dtype(out_name))
                base = gt.asarray(poison, device="cuda")
                gt.matmul(x, y, out=base.T if turn_out else base)
                assert_within(base.numpy().T if turn_out else base.numpy(), exact, limit)
            assert plans() > before, (m, n, k)
            assert tile_of(11, m, n, k) == 0
    a, b = random_array(rng, (7, 300, 2), "float16"), random_array(rng, (7, 2, 264), "float16")
    x, y = gt.asarray(a, device="cuda"), gt.asarray(b, device="cuda")
    before = plans()
    assert_within(gt.matmul(x, y).numpy(), np.matmul(wide(a), wide(b)), bound(a, b, "float16"))
    assert plans() > before


def test_few_terms_of_large_results(rng):
    """Results of more bytes than one wave of threads writes: a thread has several columns."""
    name = str(rng.choice(["float32", "bfloat16", "float16"]))
    k, n = int(rng.integers(1, 4)), 8 * int(rng.integers(200, 240))
    m = (18 << 20) // (n * numpy_dtype(name).itemsize) - int(rng.integers(0, 4))
    a, b = random_array(rng, (m, k), name), random_array(rng, (k, n), name)
    x, y = (gt.asarray(one, device="cuda") for one in (a, b))
    if k < 3 and rng.random() < 0.5:
        y = gt.asarray(b.T.copy(), device="cuda").T
    base = gt.full((m, n), float("nan"), dtype=x.dtype, device="cuda")
    forget_kernels(0)
    gt.matmul(x, y, out=base)
    assert any(("COLUMNS", 4) in program.defines for program in loaded_programs(0))
    assert_within(base.numpy(), wide(a) @ wide(b), bound(a, b, name))


def test_low_rank(rng):
    """Large results of 3 to 12 terms, in every layout, with columns that begin anywhere."""
    for k in range(3, 13, 2):
        m, n = (int(rng.integers(1448, 1600)) for _ in range(2))
        is_aligned, turn_out = k > 4 or rng.integers(2), rng.integers(2)
        m, n = (x - x % 4 if is_aligned else x | 1 for x in (m, n))
        a, b = random_array(rng, (m, k), "float32"), random_array(rng, (k, n), "float32")
        turn_a, turn_b = rng.integers(0, 2, 2)
        x, y = stored(a, turn_a, 1), stored(b, turn_b, 2)
        base = gt.full((n, m) if turn_out else (m, n), np.nan, dtype=x.dtype, device="cuda")
        forget_kernels(0)
        gt.matmul(x, y, out=base.T if turn_out else base)
        assert any("low_rank" in program.path for program in loaded_programs(0))
        got = base.numpy().T if turn_out else base.numpy()
        assert_within(got, wide(a) @ wide(b), bound(a, b, "float32"))
    a, b = random_array(rng, (3, 900, 4), "float32"), random_array(rng, (3, 4, 801), "float32")
    c, exact = random_array(rng, (2700, 801), "float32"), np.matmul(wide(a), wide(b))
    x, y, z = (gt.asarray(one, device="cuda") for one in (a, b, c))
    assert_within(gt.matmul(x, y).numpy(), exact, bound(a, b, "float32"))
    got = gt.addmm(z, gt.reshape(x, (2700, 4)), y[1], alpha=0.5, beta=-2.0).numpy()
    exact = 0.5 * wide(a).reshape(2700, 4) @ wide(b[1]) - 2 * wide(c)
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


def test_views(rng):
    """Products of views of any kind write their result and no memory around it."""
    for name, _ in PAIRS[:3]:
        for _ in range(12):
            m, n, k = (int(x) for x in rng.integers(1, 60, 3))
            a, array_a = random_tensor(rng, (m, k), name, "cuda")
            b, array_b = random_tensor(rng, (k, n), name, "cuda")
            base = gt.full((m + 2, n + 2), 7.0, dtype=a.dtype, device="cuda")
            gt.matmul(a, b, out=base[1:-1, 1:-1])
            got = base.numpy()
            limit = bound(array_a, array_b, name)
            assert_within(got[1:-1, 1:-1], wide(array_a) @ wide(array_b), limit)
            got[1:-1, 1:-1] = 7
            assert np.all(got == 7)
    assert plans() > 0


def test_epilogues(rng):
    """alpha, beta, an addend in place or elsewhere, a bias along rows or columns, activations."""
    for name, _ in PAIRS[:3]:
        unit = {"float32": 2.0**-22, "float16": 2.0**-9, "bfloat16": 2.0**-6}[name]
        for m, n, k in ((20, 37, 50), (3, 64, 128), (150, 220, 9), (900, 333, 2)):
            a, b, c = (random_array(rng, s, name) for s in ((m, k), (k, n), (m, n)))
            row = random_array(rng, (n,), name)
            x, y, z, bias = (gt.asarray(array, device="cuda") for array in (a, b, c, row))
            product = wide(a) @ wide(b)

            def check(got, exact, a=a, b=b, c=c, row=row, name=name, unit=unit, product=product):
                size = np.abs(exact) + np.abs(product) + 3 * np.abs(wide(c)) + np.abs(wide(row))
                assert_within(got.numpy(), exact, 2 * bound(a, b, name) + unit * size)

            check(gt.addmm(z, x, y, alpha=0.5, beta=-2.0), 0.5 * product - 2 * wide(c))
            poisoned = gt.full((m, n), np.nan, dtype=x.dtype, device="cuda")
            check(gt.addmm(poisoned, x, y, beta=0, alpha=2.0), 2 * product)
            check(gt.addmm(bias, x, y), product + wide(row))
            here = gt.asarray(c.copy(), device="cuda")
            check(gt.addmm(here, x, y, out=here), product + wide(c))
            there = gt.full((n, m), np.nan, dtype=x.dtype, device="cuda").T
            check(gt.addmm(z, x, y, out=there), product + wide(c))
            turned = gt.full((n, m), np.nan, dtype=x.dtype, device="cuda").T
            check(gt.linear(x, y.T, bias, out=turned), product + wide(row))
            total = product + wide(row)
            check(gt.linear(x, y.T, bias, activation="relu"), np.maximum(total, 0))
            inner = np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)
            gelu = 0.5 * total * (1 + np.tanh(inner))
            check(gt.linear(x, y.T, bias, activation="gelu_tanh"), gelu)
            check(gt.linear(x, y.T, bias, activation="silu"), total / (1 + np.exp(-total)))
    assert plans() > 0


def test_batches(rng):
    """Batches by one stride, broadcast ones, and those that take several launches."""
    shapes = [((4, 9, 17), (4, 17, 20)), ((1, 9, 17), (5, 17, 20)), ((2, 1, 6, 30), (3, 30, 8))]
    shapes += [((30, 33, 8), (30, 8, 34)), ((7,), (7,)), ((3, 12), (12,)), ((12,), (2, 12, 5))]
    for name, _ in PAIRS[:3]:
        for shape_a, shape_b in shapes:
            before = plans()
            a, array_a = random_tensor(rng, shape_a, name, "cuda")
            b, array_b = random_tensor(rng, shape_b, name, "cuda")
            exact = np.matmul(wide(array_a), wide(array_b))
            out = gt.full(exact.shape, np.nan, dtype=a.dtype, device="cuda")
            gt.matmul(a, b, out=out)
            assert_within(out.numpy(), exact, bound(array_a, array_b, name))
            assert plans() >= before


def test_special(rng):
    """NaN and infinity propagate as in a sum, and the padding of a tile adds neither."""
    a = rng.integers(-3, 4, (19, 21)).astype(np.float32)
    b = rng.integers(-3, 4, (21, 18)).astype(np.float32)
    a[3, 4], a[7, 0], b[20, 17] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = a @ b
    got = gt.matmul(gt.asarray(a, device="cuda"), gt.asarray(b, device="cuda")).numpy()
    np.testing.assert_array_equal(got, expected)
    relu = gt.linear(
        gt.asarray(a, device="cuda"), gt.asarray(b.T.copy(), device="cuda"), activation="relu"
    )
    np.testing.assert_array_equal(relu.numpy(), np.maximum(expected, 0))


def test_captures(rng):
    """A captured tiny product replays with new values; the first call may be the captured one."""
    a, _ = random_tensor(rng, (8, 24), "bfloat16", "cuda", fill=0)
    b, array_b = random_tensor(rng, (24, 9), "bfloat16", "cuda")
    out = gt.full((8, 9), np.nan, dtype=gt.bfloat16, device="cuda")
    gt.matmul(a, b, out=out)
    graph = gt.graphs.CUDAGraph()
    with gt.graphs.graph(graph):
        gt.matmul(a, b, out=out)
    for _ in range(3):
        fresh = rng.standard_normal((8, 24)).astype(ml_dtypes.bfloat16)
        a[...] = gt.asarray(fresh, device="cuda")
        out[...] = np.nan
        graph.replay()
        assert_within(out.numpy(), wide(fresh) @ wide(array_b), bound(fresh, array_b, "bfloat16"))
    assert plans() == 1


def test_bits(rng):
    """The same operands give the same bits, whatever their place in the tiles and the stream."""
    a = gt.asarray(random_array(rng, (64, 200), "float32"), device="cuda")
    b = gt.asarray(random_array(rng, (200, 64), "float32"), device="cuda")
    first = gt.matmul(a, b).numpy()
    with gt.stream(gt.Stream("cuda")):
        assert np.array_equal(gt.matmul(a, b).numpy(), first)
    part = gt.matmul(a[16:32], b[:, 32:48]).numpy()
    assert np.array_equal(part, first[16:32, 32:48])


def test_choices(rng, monkeypatch):
    """Products use a library if one or a padding is chosen, or if kernels cannot be compiled."""
    a = gt.asarray(random_array(rng, (8, 24), "float32"), device="cuda")
    b = gt.asarray(random_array(rng, (24, 8), "float32"), device="cuda")
    for library in ("cublas", "cublaslt"):
        blas.preferred_blas_library(library)
        a @ b
    blas.preferred_blas_library("auto")
    padding("never")
    a @ b
    padding("auto")
    assert plans() == 0
    blas.forget_plans()

    def missing(*arguments):
        raise DeviceError("no compiler")

    monkeypatch.setattr(nvrtc, "version", missing)
    expected = wide(a.numpy()) @ wide(b.numpy())
    limit = bound(a.numpy(), b.numpy(), "float32")
    assert_within(gt.matmul(a, b).numpy(), expected, limit)
    kernel_compiler.install()
    blas.forget_plans()
    assert_within(gt.matmul(a, b).numpy(), expected, limit)
    known_plans = plans()
    gt.matmul(a, b)
    assert plans() == known_plans
    gt.ones((300, 600), device="cuda") @ gt.ones((600, 300), device="cuda")
    assert plans() == known_plans
