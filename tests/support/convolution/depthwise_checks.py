"""Random depthwise convolutions whose channels are neighbours in memory, against NumPy."""

import itertools

import numpy as np

import gputensor as gt
from tests.support.convolution.window_checks import ACTIVATIONS, close, padded
from tests.support.row_checks import DTYPES


def depthwise_program(rng, device, has_many=False, is_turned=None):
    """Check one random depthwise convolution whose channels are neighbours in memory.

    `has_many`: many results of 16-bit floats, without a stride and an addend. `is_turned`: whether
    the images are turned over; None: in one of three programs.
    """
    dtype = str(rng.choice(["float32", "float16", "bfloat16"][has_many:]))
    how = {"dtype": getattr(gt, dtype), "device": device}
    kernel = [(3, 3), (3, 3), (1, 3), (3, 1), (2, 2), (2, 4)][rng.integers(6)]
    stride, dilation = rng.integers(1, 2 if has_many else 3, 2), rng.integers(1, 3, 2)
    pads = rng.integers(0, 3, (2, 2))
    channels = (
        8 * int(rng.choice([4, 5, 8, 11]))
        if has_many
        else (4 * int(rng.choice([1, 2, 8, 9, 17, 24, 53])))
    )
    reach = [int(d) * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    extents = [int(rng.integers(n, n + rng.choice([3, 12, 40]))) for n in reach]
    if has_many:
        extents = [int(rng.integers(12, 40)) for _ in reach]
    more = 8 * int(rng.integers(3)) if has_many else 4 * int(rng.integers(3))
    wide = rng.standard_normal(
        (2 if has_many else int(rng.integers(1, 4)), *extents, channels + more)
    )
    weight = rng.standard_normal((channels, 1, *kernel)).astype(DTYPES[dtype])
    x = gt.asarray(wide.astype(DTYPES[dtype]), **how)[..., more:]
    if rng.integers(3) == 0 if is_turned is None else is_turned:
        x = gt.flip(x, axis=int(rng.integers(1, 3)))
    x = gt.moveaxis(x, -1, 1)
    exact = padded(x.numpy().astype(float), pads, 0)
    counts = [(n - r) // s + 1 for n, r, s in zip(exact.shape[2:], reach, stride, strict=True)]
    want, magnitude = np.zeros((2, len(wide), channels, *counts))
    for tap in itertools.product(*map(range, kernel)):
        seen = tuple(
            slice(k * d, k * d + (count - 1) * s + 1, s)
            for k, d, s, count in zip(tap, dilation, stride, counts, strict=True)
        )
        term = exact[(..., *seen)] * weight[(slice(None), 0, *tap, None, None)].astype(float)
        want, magnitude = want + term, magnitude + np.abs(term)
    bias = addend = None
    if rng.integers(2):
        bias = gt.asarray(rng.standard_normal(channels).astype(DTYPES[dtype]), **how)
        each = bias.numpy().astype(float)[:, None, None]
        want, magnitude = want + each, magnitude + np.abs(each)
    if not has_many and rng.integers(3) == 0:
        addend = rng.standard_normal((len(wide), *counts, channels)).astype(DTYPES[dtype])
        addend = gt.moveaxis(gt.asarray(addend, **how), -1, 1)
        each = addend.numpy().astype(float)
        want, magnitude = want + each, magnitude + np.abs(each)
    activation = [None, "relu"][rng.integers(2)]
    result = gt.full((len(wide), *counts, channels), np.nan, **how)
    gt.synchronize()
    del result  # the result has its memory
    got = gt.conv2d(
        x, gt.asarray(weight, **how), bias, stride=tuple(map(int, stride)),
        padding=[tuple(map(int, pair)) for pair in pads], dilation=tuple(map(int, dilation)),
        groups=channels, addend=addend, activation=activation,
    )  # fmt: skip
    what = (dtype, wide.shape, more, kernel, stride, dilation, pads, activation)
    close(what, got, ACTIVATIONS[activation](want), dtype, magnitude)
