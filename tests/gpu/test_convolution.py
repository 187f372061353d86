"""Convolutions of networks on tensor cores, against float32 convolutions of the same values."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver.registry import cuda_device_count
from tests.support.convolution.depthwise_checks import depthwise_program
from tests.support.convolution.window_checks import (
    few_program,
    mapped_program,
    replayed_program,
    shifted_program,
    tile_program,
)

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")

# Batch, channels, outputs, extent, kernel, stride, groups: every form of tile, and split terms.
SHAPES = (
    (32, 64, 64, 56, 3, 1, 1),
    (64, 256, 256, 14, 3, 1, 1),
    (256, 128, 128, 28, 3, 2, 1),
    (1, 512, 512, 7, 3, 1, 1),
    (8, 3, 64, 224, 7, 2, 1),
    (4, 3, 32, 224, 3, 2, 1),
    (8, 256, 512, 56, 1, 2, 1),
    (32, 512, 512, 14, 3, 2, 1),
    (32, 1024, 2048, 14, 1, 2, 1),
    (3, 72, 200, 31, 3, 2, 1),
    (8, 128, 256, 28, 3, 1, 4),
    (8, 144, 144, 56, 3, 1, 144),
    (8, 96, 96, 113, 3, 2, 96),
    (32, 576, 576, 14, 3, 1, 576),
    (256, 960, 960, 7, 3, 1, 960),
    (32, 136, 136, 35, 3, 1, 136),
    (64, 40, 40, 113, 3, 1, 40),
)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_last", [True, False])
def test_networks(shape, dtype, is_last, rng):
    batch, channels, outputs, extent, kernel, stride, groups = shape
    x = rng.standard_normal((batch, extent, extent, channels), dtype=np.float32)
    w = rng.standard_normal((outputs, kernel, kernel, channels // groups), dtype=np.float32)
    x, w = (gt.asarray(one, device="cuda").astype(getattr(gt, dtype)) for one in (x, w))
    x, w = (gt.moveaxis(one, -1, 1) for one in (x, w))
    b = gt.asarray(rng.standard_normal(outputs, dtype=np.float32), device="cuda").astype(x.dtype)
    how = {"stride": stride, "padding": kernel // 2, "groups": groups, "activation": "relu"}
    want = gt.conv2d(*(one.astype(gt.float32) for one in (x, w, b)), **how)
    if not is_last:
        made = gt.empty(x.shape, dtype=x.dtype, device="cuda")
        made[...] = x
        x = made
    got = gt.conv2d(x, w, b, **how)
    again = gt.conv2d(x, w, b, **how)
    assert gt.all(got == again).item()
    unit = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
    bound = unit * gt.abs(want) + 1e-5 * (kernel * kernel * channels // groups) ** 0.5 + 1e-3
    wrong = gt.abs(got.astype(gt.float32) - want) > bound
    assert not gt.any(wrong).item(), gt.sum(wrong.astype(gt.int64)).item()


@pytest.mark.parametrize("kernel, stride", [(1, 2), (3, 1), (3, 2)])
def test_graphs_are_replayed_on_other_tensors(rng, kernel, stride):
    replayed_program(rng, 8, (28, 28, 64), 128, kernel, stride)


def test_graphs_of_depthwise_are_replayed_on_other_tensors(rng):
    replayed_program(rng, 32, (28, 28, 64), 64, 3, 1, groups=64)


def test_random_depthwise(rng):
    for _ in range(20):
        depthwise_program(rng, "cuda")
        depthwise_program(rng, "cuda", has_many=True)


def test_random_tiles(rng):
    for _ in range(60):
        tile_program(rng, "cuda")
    for channels in (1, 2, 3, 4, 5):
        tile_program(rng, "cuda", few=channels)
    for _ in range(20):
        few_program(rng, "cuda")
    for _ in range(8):
        shifted_program(rng, "cuda")
    for _ in range(20):
        mapped_program(rng, "cuda")
