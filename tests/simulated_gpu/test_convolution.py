"""Convolution and pooling, launch by launch: random windows, single elements, depthwise strips."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels import programs
from gputensor._kernels.launch import nvrtc
from tests.support.convolution import tile_on_cpu
from tests.support.convolution.depthwise_checks import depthwise_program
from tests.support.convolution.window_checks import (
    convolution_program,
    convolved,
    pooling_program,
    replayed_program,
    single_elements_with_addend,
)
from tests.support.used_kernels import UsedKernels


@pytest.fixture(autouse=True)
def tiles_on_the_cpu(monkeypatch):
    """Compile tensor-core tiles for the CPU: some 16-bit convolutions use them."""
    monkeypatch.setattr(nvrtc, "compile_source", tile_on_cpu.compile_source)


@pytest.fixture
def used_boxes(monkeypatch):
    """Return what records the variants of depthwise_boxes.cuh that a test uses."""
    return UsedKernels(monkeypatch, programs, ["depthwise_boxes"])


def test_convolutions(rng):
    for _ in range(12):
        convolution_program(rng, "cuda", most=6)


def test_a_bias_whose_elements_are_apart_is_added_before_the_rounding(rng):
    dtype = np.dtype(gt.bfloat16)
    x, w, b = (rng.standard_normal(shape).astype(dtype) for shape in ((1, 40, 16), (3, 16, 1), 6))
    want = x[0].astype(float) @ w[..., 0].T.astype(float) + b[::2].astype(float)
    x, w, b = (gt.asarray(one, device="cuda") for one in (x, w, b))
    got = gt.conv1d(x, w, b[::2], data_format="NLC").numpy()[0].astype(float)
    assert (np.abs(got - want) <= 2.0**-8 * np.abs(want) + 1e-5).all()


def test_single_elements_and_an_addend(rng):
    single_elements_with_addend(rng, "cuda")


def test_single_elements_padded_behind():
    x = gt.ones((1, 2, 3, 4), device="cuda")
    got = gt.conv2d(x, gt.ones((1, 2, 1, 1), device="cuda"), padding=((0, 2), (0, 1))).numpy()
    want = np.zeros((1, 1, 5, 5))
    want[:, :, :3, :4] = 2
    assert np.array_equal(got, want)


@pytest.mark.process(FAKE_CUDA_MULTIPROCESSORS="1", FAKE_CUDA_MAPS="0")
@pytest.mark.parametrize("height", [7, 18, 22])
def test_strips_of_depthwise(height, rng):
    """Enough results for the GPU, so that each thread has 4 x 7; some strips are cut."""
    x = rng.standard_normal((9, height, 18, 64)).astype(np.float16)
    weight = rng.standard_normal((64, 1, 3, 3)).astype(np.float16)
    given = ((1, 1), [(1, 1), (1, 1)], (1, 1), 64)
    want = convolved(np.moveaxis(x, -1, 1).astype(float), weight.astype(float), *given)
    x = gt.moveaxis(gt.asarray(x, device="cuda"), -1, 1)
    got = gt.conv2d(x, gt.asarray(weight, device="cuda"), padding=1, groups=64)
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-3, atol=1e-4)


@pytest.mark.process(FAKE_CUDA_MULTIPROCESSORS="1")
def test_long_strips_of_depthwise_with_a_stride(rng, monkeypatch):
    """Between two numbers of results each thread has a strip of 14, unless some would be cut."""
    used = UsedKernels(monkeypatch, programs, ["depthwise_tiles"])
    given = ((2, 2), [(1, 1), (1, 1)], (1, 1), 44)
    weight = rng.standard_normal((44, 1, 3, 3)).astype(np.float16)
    for height in (56, 42):
        x = rng.standard_normal((1, height, 56, 44)).astype(np.float16)
        want = convolved(np.moveaxis(x, -1, 1).astype(float), weight.astype(float), *given)
        x = gt.moveaxis(gt.asarray(x, device="cuda"), -1, 1)
        got = gt.conv2d(x, gt.asarray(weight, device="cuda"), stride=2, padding=1, groups=44)
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-3, atol=1e-4)
    assert [dict(call[3:])["tile"] for call in used()] == [(1, 14, 3), (1, 7, 6)]


@pytest.mark.process(FAKE_CUDA_MULTIPROCESSORS="1")
def test_depthwise(rng):
    """Random channels, extents and windows; channels cut from more, and images turned over."""
    for _ in range(25):
        depthwise_program(rng, "cuda")


def test_poolings(rng):
    for _ in range(12):
        pooling_program(rng, "cuda", most=6)


@pytest.mark.process(FAKE_CUDA_MULTIPROCESSORS="2", FAKE_CUDA_SHARED="233472")
def test_boxes_of_depthwise(rng, used_boxes):
    """Enough results for boxes: cut channels, columns, lines; several tiles and blocks."""
    for _ in range(8):
        depthwise_program(rng, "cuda", has_many=True, is_turned=False)
    used = [dict(call[3:]) for call in used_boxes()]
    assert len({(one["tile"], one["lanes"]) for one in used}) > 1


# The maps of a captured kernel are parameters whose first words are addresses.
@pytest.mark.process(FAKE_CUDA_MULTIPROCESSORS="1", FAKE_CUDA_SHARED="233472")
def test_graphs_of_boxes_are_replayed_on_other_tensors(rng, used_boxes):
    replayed_program(rng, 2, (13, 18, 72), 72, 3, 1, groups=72)
    assert used_boxes()


# A driver without tensor maps, or whose maps do not fit: other kernels are chosen.
@pytest.mark.process(FAKE_CUDA_MULTIPROCESSORS="2", FAKE_CUDA_MAPS="0")
def test_no_boxes_without_maps(rng, used_boxes):
    depthwise_program(rng, "cuda", has_many=True, is_turned=False)
    assert not used_boxes()


@pytest.mark.process(FAKE_CUDA_MULTIPROCESSORS="2", FAKE_CUDA_SHARED="233472")
def test_no_boxes_of_images_turned_over(rng, used_boxes):
    depthwise_program(rng, "cuda", has_many=True, is_turned=True)
    assert not used_boxes()
