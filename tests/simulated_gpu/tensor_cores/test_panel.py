"""Small products whose panels are in shared memory at once, in random orders of threads."""

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas.host import fused
from tests.support import fused_checks, internals
from tests.support.products import tensor_cores_on_cpu

pytestmark = [
    pytest.mark.orders("deferred"),
    pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="8"),
]
TILES = fused_checks.PANEL_TILES


@pytest.fixture(autouse=True)
def kernels_on_the_cpu(monkeypatch):
    """Nothing is computed by single calls."""

    def composed(*given, **named):
        raise AssertionError("the panels do not fit")

    for name in ("fused", "normed_product"):
        monkeypatch.setattr(fused, name, composed)
    monkeypatch.setattr(nvrtc, "compile_source", tensor_cores_on_cpu.compile_source)
    yield
    internals.panel_configure()


@pytest.mark.parametrize("rows, columns", TILES)
@pytest.mark.parametrize("is_along_terms", [True, False])
def test_products(rng, rows, columns, is_along_terms):
    internals.panel_configure(rows=rows, columns=columns)
    activation = rng.choice(["silu", "relu", "gelu", None])
    fused_checks.check_panel(
        rng, fused_checks.panel_sizes(rng), None, activation, writes_rows=False,
        is_along_terms=is_along_terms,
    )  # fmt: skip


@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("writes_rows", [True, False])
def test_norms(rng, norm, writes_rows):
    rows, columns = TILES[rng.integers(len(TILES))]
    internals.panel_configure(rows=rows, columns=columns)
    activation = rng.choice(["silu", "relu", "gelu", None])
    fused_checks.check_panel(
        rng, fused_checks.panel_sizes(rng), norm, activation, writes_rows=writes_rows,
        is_along_terms=bool(rng.integers(2)),
    )  # fmt: skip


@pytest.mark.parametrize("columns", fused_checks.HELD_COLUMNS)
@pytest.mark.parametrize("is_along_terms", [True, False])
def test_held_weights(rng, columns, is_along_terms):
    if not is_along_terms and columns not in fused_checks.HELD_TURNED:
        pytest.skip("wgmma takes 64 such columns")
    internals.panel_configure(held=columns)
    activation = rng.choice(["silu", "relu", "gelu", None])
    fused_checks.check_panel(
        rng, fused_checks.held_sizes(rng, columns), None, activation, writes_rows=False,
        is_along_terms=is_along_terms,
    )  # fmt: skip
