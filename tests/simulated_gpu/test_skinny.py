"""Skinny products by our own kernel on a simulated GPU: fragments, splits, tails, weights."""

import os
import random

import pytest

import gputensor as gt
from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import programs, quantized_programs
from gputensor.blas.kernels.programs import INT4, INT8
from tests.support import skinny_checks, skinny_on_cpu

pytestmark = pytest.mark.orders("deferred")


def facts(*shared, own=()):
    """A mark for a device of four multiprocessors with a random one of these shared-memory sizes.

    With less shared memory x goes through it in spans; tests of block shapes need all of it.
    """
    # The processes of a parallel run must collect the same tests, so they draw the same size.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    shared = str(random.Random(run).choice(shared))
    return pytest.mark.process(*own, FAKE_CUDA_SHARED=shared, FAKE_CUDA_MULTIPROCESSORS="4")


@pytest.fixture(autouse=True)
def kernels_on_the_cpu(monkeypatch):
    """Compile the kernels of skinny products for the CPU, and check that the test uses them."""
    print(os.environ["FAKE_CUDA_SHARED"], "bytes of shared memory")
    made = []
    makers = [(programs, name) for name in ("skinny", "skinny_mma")]
    makers += [(quantized_programs, name) for name in ("tile", "wgmma")]
    for module, name in makers:
        source = getattr(module, name)

        def counted(*given, source=source, **named):
            made.append(source)
            return source(*given, **named)

        monkeypatch.setattr(module, name, counted)
    monkeypatch.setattr(nvrtc, "compile_source", skinny_on_cpu.compile_source)
    yield made
    assert made, "no product went to the kernel"


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
        (maker,) = kernels_on_the_cpu
        assert maker.__name__ in names
        kernels_on_the_cpu.clear()
    kinds = [(has_wgmma, form) for has_wgmma in (False, True) for form in (INT4, INT8)]
    skinny_checks.tiles(rng, [kinds[rng.integers(4)]])


@facts(233472)
def test_tiles_with_a_formula(kernels_on_the_cpu, rng):
    has_wgmma = bool(rng.integers(2))
    skinny_checks.endings(rng, [(has_wgmma, skinny_checks.FORMS[rng.integers(3)])])
    assert kernels_on_the_cpu[-1].__name__ == ("wgmma" if has_wgmma else "tile")


@facts(60000, 100000, 233472)
def test_products(rng):
    skinny_checks.products(rng)


@facts(60000, 100000, 233472)
def test_layers(rng):
    skinny_checks.layers(rng)


# In a shared process, another test may have compiled the same kernel.
@facts(60000, 100000, 233472, own=("own",))
def test_turned(kernels_on_the_cpu, rng):
    skinny_checks.turned(rng)
    assert {maker.__name__ for maker in kernels_on_the_cpu} == {"skinny"}


@facts(233472)
def test_refusals(rng):
    skinny_checks.refusals(rng)
