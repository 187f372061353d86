"""Skinny products by our own kernel on a simulated GPU: fragments, splits, tails, weights."""

import os
import random

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import programs
from tests.support import skinny_checks, skinny_on_cpu

pytestmark = pytest.mark.orders("deferred")


def facts(*shared):
    """A process whose device has four multiprocessors with one of these amounts of shared memory.

    With less shared memory x goes through it in spans; blocks of a given shape want all of it.
    """
    # The processes of a parallel run have to find the same tests, so they draw the same.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    shared = str(random.Random(run).choice(shared))
    return pytest.mark.process(FAKE_CUDA_SHARED=shared, FAKE_CUDA_MULTIPROCESSORS="4")


@pytest.fixture(autouse=True)
def kernels_on_the_cpu(monkeypatch):
    """The kernels of skinny products are compiled for the CPU, and the test uses them."""
    print(os.environ["FAKE_CUDA_SHARED"], "bytes of shared memory")
    made = []
    for name in ("skinny", "skinny_mma"):
        source = getattr(programs, name)

        def counted(*given, source=source, **named):
            made.append(source)
            return source(*given, **named)

        monkeypatch.setattr(programs, name, counted)
    monkeypatch.setattr(nvrtc, "compile_source", skinny_on_cpu.compile_source)
    yield
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


@facts(60000, 100000, 233472)
def test_products(rng):
    skinny_checks.products(rng)


@facts(60000, 100000, 233472)
def test_layers(rng):
    skinny_checks.layers(rng)


@facts(233472)
def test_refusals(rng):
    skinny_checks.refusals(rng)
