"""Convolution on tensor cores on a simulated GPU: taps, tails, groups, copies, parts."""

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import convolution_programs
from tests.support.convolution import shifted_on_cpu
from tests.support.convolution.window_checks import (
    few_program,
    mapped_program,
    replayed_program,
    shifted_program,
    tile_program,
)
from tests.support.used_kernels import UsedKernels

# With 200 multiprocessors the few tiles of a small convolution are split along their terms.
pytestmark = pytest.mark.orders("deferred")


@pytest.fixture(autouse=True)
def kernels_on_the_cpu(monkeypatch):
    """Compile the tiles for the CPU, and check that the test uses them."""
    names = ("tile", "few", "shifted", "mapped")
    monkeypatch.setattr(nvrtc, "compile_source", shifted_on_cpu.compile_source)
    used = UsedKernels(monkeypatch, convolution_programs, names)
    yield
    print(used())
    assert used(), "no convolution went to the kernel"


@pytest.mark.process(FAKE_CUDA_SHARED="100000", FAKE_CUDA_MULTIPROCESSORS="1")
def test_whole_tiles(rng):
    for _ in range(6):
        tile_program(rng, "cuda")


@pytest.mark.process(FAKE_CUDA_SHARED="100000", FAKE_CUDA_MULTIPROCESSORS="1")
def test_few_channels(rng):
    for channels in (1, 2, 3, 4, 5):
        tile_program(rng, "cuda", few=channels)


@pytest.mark.process(FAKE_CUDA_SHARED="100000", FAKE_CUDA_MULTIPROCESSORS="1")
def test_rows_of_few_channels(rng):
    for _ in range(8):
        few_program(rng, "cuda")


@pytest.mark.process(FAKE_CUDA_SHARED="200000", FAKE_CUDA_MULTIPROCESSORS="1")
def test_deep_tiles(rng):
    for _ in range(6):
        tile_program(rng, "cuda")


@pytest.mark.process(FAKE_CUDA_SHARED="200000", FAKE_CUDA_MULTIPROCESSORS="200")
def test_parts_of_the_terms(rng):
    for _ in range(6):
        tile_program(rng, "cuda")


# Few tiles for the multiprocessors: in most cases clusters cut the terms. The driver refuses tensor
# maps, which convolutions without groups and addend would use.
@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="4", FAKE_CUDA_MAPS="0")
def test_shifted_patches(rng):
    shifted_program(rng, "cuda")


@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="4")
def test_tensor_maps(rng):
    for _ in range(3):
        mapped_program(rng, "cuda")


# One multiprocessor: a block computes several tiles, and its rings go round.
@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="1")
def test_tensor_maps_of_several_tiles(rng):
    mapped_program(rng, "cuda")


# The maps of a captured kernel are parameters whose first words are addresses.
@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="4")
def test_graphs_are_replayed_on_other_tensors(rng):
    replayed_program(rng, 2, (8, 8, 64), 64, 3, 2)


# A driver whose maps have their address in another word too: kernels without maps are chosen.
@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="4", FAKE_CUDA_MAPS="2")
def test_maps_that_cannot_be_moved_are_not_used(rng, monkeypatch):
    monkeypatch.setattr(convolution_programs, "mapped", None)
    replayed_program(rng, 2, (8, 8, 64), 64, 3, 2)
