"""Unaligned matrices on tensor cores on a simulated GPU: by mma, and packed for wgmma."""

import pytest

import gputensor as gt
from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import programs
from tests.support import fused_checks, internals
from tests.support.internals import packing, schedule_of, tile_of
from tests.support.products import held_checks, packed_checks, tensor_cores_on_cpu
from tests.support.products.unaligned_checks import multiply
from tests.support.used_kernels import UsedKernels

pytestmark = [
    pytest.mark.orders("deferred"),
    pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="8"),
]
TYPES = [("float32", "float32"), ("float16", "float16"), ("bfloat16", "float32")]


@pytest.fixture(autouse=True)
def kernels_on_the_cpu(monkeypatch):
    monkeypatch.setattr(nvrtc, "compile_source", tensor_cores_on_cpu.compile_source)


def test_unaligned(rng):
    """Any layout; steps of several stages, and clusters whose blocks have few terms or none."""
    name, out = TYPES[rng.integers(len(TYPES))]
    operations = tuple(int(one) for one in rng.integers(0, 2, 2))
    split, batch = int(rng.choice([1, 2, 3, 8])), int(rng.integers(1, 3))
    m, n, k = (int(rng.integers(1, most)) for most in (150, 130, 900 * min(split, 3)))
    multiply(rng, name, out, operations, (m, n, k, batch), split)
    multiply(rng, name, out, operations, (m, n, min(k, 99), 1), split, alpha=-0.5, beta=2.0,
             has_bias=True)  # fmt: skip


def test_held(rng, monkeypatch):
    """Views with pitches, weights in both orders, biases with activations, addends."""
    used = UsedKernels(monkeypatch, programs, ["held"])
    gt.blas.forget_plans()
    internals.panel_configure(held=int(rng.choice(fused_checks.HELD_TURNED)))
    try:
        for name in ("float16", "bfloat16"):
            given = held_checks.sizes(rng)
            print(name, given)
            held_checks.check(rng, name, *given)
    finally:
        internals.panel_configure()
    print(used())
    assert {form[1] for form in used()} == {"float16", "bfloat16"}, "a library took the product"


def long(rng, name):
    """Sizes whose terms are divided among the four clusters: of a tile, or of strips alone."""
    itemsize = 4 if name == "float32" else 2
    while True:
        m, n = (int(size) for size in rng.integers(20, 60, 2))
        k = int(rng.integers(13200, 21000)) // itemsize
        if schedule_of(n, m, k, itemsize, 4)["units"]:
            return m, n, k


def large(rng):
    """Sizes that neither the kernel of tiny products takes nor that of unaligned ones."""
    while True:
        m, n, k = (int(rng.integers(*ends)) for ends in ((100, 600), (100, 600), (8, 384)))
        if not any(tile_of(code, *sizes, k) for code in (10, 11) for sizes in ((m, n), (n, m))):
            return m, n, k


def test_packed(rng, monkeypatch):
    """Tiles and strips divided among clusters or not, of rows and columns left over; addends."""
    name = str(rng.choice(["float32", "float16", "bfloat16"]))
    used = UsedKernels(monkeypatch, programs, ["packed"])
    gt.blas.forget_plans()
    packing("always")
    try:
        packed_checks.check(rng, name, *long(rng, name))
        packed_checks.check_addend(rng, name, *large(rng))
    finally:
        packing("auto")
        gt.blas.forget_plans()
    print(used())
    assert {form[4] for form in used()} == {False, True}, "no product was packed"
