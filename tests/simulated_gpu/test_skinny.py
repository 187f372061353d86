"""Skinny products by our own kernel on a simulated GPU: fragments, splits, tails, weights."""

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas import backends
from gputensor.blas.kernels import programs
from tests.support import skinny_checks, skinny_on_cpu

pytestmark = pytest.mark.orders("deferred")
SHARED_NBYTES = (60000, 100000, 233472)


@pytest.fixture(autouse=True)
def device(monkeypatch, rng, request):
    """A device of four multiprocessors whose kernels of skinny products run on the CPU.

    With less shared memory x goes through it in spans; blocks of a given shape want all of it.
    """
    shapes = request.function is test_shapes
    shared = 233472 if shapes else int(rng.choice(SHARED_NBYTES))
    print(f"{shared} bytes of shared memory")
    known, made = backends.device_info, []
    for name in ("skinny", "skinny_mma"):
        source = getattr(programs, name)

        def counted(*given, source=source, **named):
            made.append(source)
            return source(*given, **named)

        monkeypatch.setattr(programs, name, counted)
    facts = {"shared_nbytes_per_multiprocessor": shared, "multiprocessors": 4}
    monkeypatch.setattr(backends, "device_info", lambda device: known(device) | facts)
    monkeypatch.setattr(nvrtc, "compile_source", skinny_on_cpu.compile_source)
    yield
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


def test_refusals(rng):
    skinny_checks.refusals(rng)
