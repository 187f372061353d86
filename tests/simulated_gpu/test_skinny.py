"""Skinny products by our own kernel on a simulated GPU: fragments, splits, tails, weights."""

import numpy as np
import pytest

from gputensor._kernels import testing
from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import programs
from tests.support import refused_calls, skinny_checks, skinny_on_cpu

pytestmark = pytest.mark.orders("deferred")
SHARED_NBYTES = (60000, 100000, 233472)


@pytest.fixture(autouse=True)
def device(monkeypatch, rng, request):
    """A device of four multiprocessors whose kernels of skinny products run on the CPU.

    With less shared memory x goes through it in spans; blocks of a given shape want all of it.
    """
    shapes = request.function in (
        test_shapes,
        test_refused_permission_for_shared_memory_leaves_no_module,
    )
    shared = 233472 if shapes else int(rng.choice(SHARED_NBYTES))
    print(f"{shared} bytes of shared memory")
    made = []
    for name in ("skinny", "skinny_mma"):
        source = getattr(programs, name)

        def counted(*given, source=source, **named):
            made.append(source)
            return source(*given, **named)

        monkeypatch.setattr(programs, name, counted)
    former = testing.replace_facts(0, 4, shared)
    monkeypatch.setattr(nvrtc, "compile_source", skinny_on_cpu.compile_source)
    yield
    testing.replace_facts(0, *former)
    assert made, "no product went to the kernel"


def test_plain(rng):
    skinny_checks.plain(rng)


def test_shapes(rng):
    skinny_checks.shapes(rng)


def test_quantized(rng):
    skinny_checks.quantized(rng)


def test_products(rng):
    skinny_checks.products(rng)


def test_layers(rng):
    skinny_checks.layers(rng)


def test_refused_permission_for_shared_memory_leaves_no_module():
    def product():
        skinny_checks.check(np.random.default_rng(7), skinny_checks.PLAIN, "float32", 7, 150, 1300)

    seen = refused_calls.sweep(product)
    assert {"module_load", "module_function", "function_allow_shared"} <= seen, seen
