"""Skinny products by our own kernel on a simulated GPU: fragments, splits, tails, weights."""

import os
import random

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.launch import nvrtc
from gputensor.blas import backends
from gputensor.blas.kernels import programs, quantized_programs
from gputensor.blas.kernels.programs import INT4, INT8
from tests.support.products import few_rows_checks, skinny_checks, skinny_on_cpu
from tests.support.used_kernels import UsedKernels

pytestmark = pytest.mark.orders("deferred")


def facts(*shared):
    """A mark for a device of four multiprocessors with a random one of these shared-memory sizes.

    With less shared memory x goes through it in spans; tests of block shapes need all of it.
    """
    # The processes of a parallel run must collect the same tests, so they draw the same size.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    shared = str(random.Random(run).choice(shared))
    return pytest.mark.process(FAKE_CUDA_SHARED=shared, FAKE_CUDA_MULTIPROCESSORS="4")


@pytest.fixture(autouse=True)
def kernels_on_the_cpu(monkeypatch):
    """Compile the kernels of skinny products for the CPU, and check that the test uses them."""
    print(os.environ["FAKE_CUDA_SHARED"], "bytes of shared memory")
    monkeypatch.setattr(nvrtc, "compile_source", skinny_on_cpu.compile_source)
    used = UsedKernels(monkeypatch, programs, ("skinny", "skinny_mma"))
    used.record(monkeypatch, quantized_programs, ("tile", "wgmma"))
    used.record(monkeypatch, backends, ("axpy_program", "dots_program"))
    yield used
    assert used(), "no product went to the kernel"


@facts(60000, 100000, 233472)
def test_plain(rng):
    skinny_checks.plain(rng)


@facts(233472)
def test_shapes(rng):
    skinny_checks.shapes(rng)


@facts(60000, 100000, 233472)
def test_quantized(rng):
    skinny_checks.quantized(rng)


@facts(233472)
def test_tiles(kernels_on_the_cpu, rng):
    weights, scales, *_ = skinny_checks.random_weights(rng, INT4, 32, 64, "bfloat16", 64)
    for rows, names in ((16, {"skinny_mma"}), (17, {"tile", "wgmma"})):
        x = gt.ones((rows, 64), gt.bfloat16, device="cuda")
        gt.quantized_linear(x, weights, scales)
        (call,) = kernels_on_the_cpu()
        assert call[0] in names
        kernels_on_the_cpu.clear()
    kinds = [(has_wgmma, form) for has_wgmma in (False, True) for form in (INT4, INT8)]
    skinny_checks.tiles(rng, [kinds[rng.integers(4)]])


@facts(233472)
def test_tiles_with_a_formula(kernels_on_the_cpu, rng):
    has_wgmma = bool(rng.integers(2))
    skinny_checks.endings(rng, [(has_wgmma, skinny_checks.FORMS[rng.integers(3)])])
    assert ("wgmma" if has_wgmma else "tile") in {call[0] for call in kernels_on_the_cpu()}


@facts(60000, 100000, 233472)
def test_products(rng):
    skinny_checks.products(rng)


@facts(60000, 100000, 233472)
def test_layers(rng):
    skinny_checks.layers(rng)


@facts(60000, 100000, 233472)
def test_turned(kernels_on_the_cpu, rng):
    skinny_checks.turned(rng)
    assert {call[0] for call in kernels_on_the_cpu()} == {"skinny"}


@facts(233472)
def test_refusals(rng):
    skinny_checks.refusals(rng)


@facts(233472)
@pytest.mark.parametrize("part", range(4))
def test_few_rows_of_any_layout_and_alignment(kernels_on_the_cpu, rng, part):
    few_rows_checks.many(rng, 6, most=1200)
    assert {call[0] for call in kernels_on_the_cpu()} & {"axpy_program", "dots_program"}


@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="132")
def test_batches_of_few_rows_are_no_longer_than_the_sum(kernels_on_the_cpu, rng):
    x, w = (rng.random((n, 4736)).astype("float16") for n in (1, 225))
    found = gt.asarray(x, device="cuda") @ gt.asarray(w, device="cuda").T
    expected = x.astype("float64") @ w.astype("float64").T
    assert abs(found.numpy() - expected).max() <= 2**-10 * expected.max()
    ((name, _x, _y, nbytes, _tokens, (features, k_warps), *_),) = kernels_on_the_cpu()
    assert name == "dots_program" and nbytes == 16
    assert 32 * k_warps * 8 * (8 // features) <= 4736


@facts(233472)
def test_rule_of_few_aligned_rows(kernels_on_the_cpu):
    """Libraries read aligned weights well if lines of the results are aligned as well."""
    for features, terms, is_ours in (
        (5376, 680, False), (1400, 2600, False), (928, 1152, True), (5341, 304, True),
    ):  # fmt: skip
        x = gt.ones((3, terms), dtype=gt.float16, device="cuda")
        w = gt.ones((features, terms), dtype=gt.float16, device="cuda")
        kernels_on_the_cpu.clear()
        assert np.all(gt.matmul(x, w.T).numpy() == terms)
        assert bool(kernels_on_the_cpu()) == is_ours, (features, terms)
        kernels_on_the_cpu.clear()
        assert np.all(gt.matmul(w, x.T).numpy() == terms)
        assert kernels_on_the_cpu(), "a column of results is not aligned"
