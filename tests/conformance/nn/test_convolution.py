"""Convolution and pooling on every device, against direct loops in float64."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.convolution.window_checks import (
    convolution_program,
    pooling_program,
    single_elements_with_addend,
)


def test_convolutions(place, seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        convolution_program(rng, place)


def test_poolings(place, seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        pooling_program(rng, place)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_max_pool_of_integers(where, dtype, rng):
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (2, 3, 9), dtype=dtype)
    got = gt.max_pool1d(gt.asarray(x, device=where), 3, padding=1).numpy()
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1)], constant_values=info.min)
    assert got.dtype == x.dtype
    assert np.array_equal(got, wide[:, :, :9].reshape(2, 3, 3, 3).max(axis=-1))


def test_max_pool_propagates_nan(where):
    x = np.array([[[1.0, np.nan, 3.0, 4.0]]], np.float32)
    got = gt.max_pool1d(gt.asarray(x, device=where), 2).numpy()
    assert np.isnan(got[0, 0, 0])
    assert got[0, 0, 1] == 4


def test_same_padding(where, rng):
    for extent, kernel, stride in ((7, 3, 2), (8, 3, 2), (5, 4, 1), (9, 1, 3)):
        x = rng.standard_normal((1, 2, extent)).astype(np.float32)
        w = rng.standard_normal((3, 2, kernel)).astype(np.float32)
        got = gt.conv1d(*(gt.asarray(one, device=where) for one in (x, w)), stride=stride,
                        padding="same").numpy()  # fmt: skip
        count = -(-extent // stride)
        total = max(0, (count - 1) * stride + kernel - extent)
        wide = np.pad(x.astype(float), [(0, 0), (0, 0), (total // 2, total - total // 2)])
        for place in range(count):
            patch = wide[0, :, place * stride : place * stride + kernel]
            want = np.tensordot(w.astype(float), patch, 2)
            assert np.abs(got[0, :, place] - want).max() < 1e-5


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_pointwise_convolution_with_trailing_padding(where, dtype):
    x = gt.ones((2, 3, 4, 5), dtype=getattr(gt, dtype), device=where)
    weight = gt.ones((2, 3, 1, 1), dtype=x.dtype, device=where)
    for stride in (1, 2):
        got = gt.conv2d(x, weight, stride=stride, padding=((0, 3), (0, 2))).numpy()
        want = np.zeros((2, 2, 7, 7))
        want[:, :, :4, :5] = 3
        assert np.array_equal(got, want[:, :, ::stride, ::stride])


def test_pointwise_convolution_with_an_addend(where, rng):
    single_elements_with_addend(rng, where)


def test_global_pooling(where, rng):
    x = rng.standard_normal((2, 3, 5, 4)).astype(np.float32)
    t = gt.asarray(x, device=where)
    assert np.allclose(gt.global_avg_pool(t).numpy(), x.mean((2, 3), keepdims=True), atol=1e-6)
    assert np.array_equal(gt.global_max_pool(t).numpy(), x.max((2, 3), keepdims=True))
    last = gt.global_avg_pool(gt.moveaxis(t, 1, -1), data_format="NHWC")
    assert last.shape == (2, 1, 1, 3)


def test_results_keep_the_memory_order(where):
    x = gt.moveaxis(gt.ones((2, 5, 6, 8), device=where), -1, 1)
    w = gt.ones((4, 8, 3, 3), device=where)
    assert gt.conv2d(x, w).strides[1] == 4
    assert gt.max_pool2d(x, 2).strides[1] == 4
    assert gt.conv2d(gt.ones((2, 8, 5, 6), device=where), w).strides[3] == 4


def test_without_a_batch(where, rng):
    x = rng.standard_normal((3, 5, 6)).astype(np.float32)
    w = rng.standard_normal((4, 3, 2, 2)).astype(np.float32)
    t, v = (gt.asarray(one, device=where) for one in (x, w))
    whole = gt.conv2d(t[None], v)[0].numpy()
    assert np.array_equal(gt.conv2d(t, v).numpy(), whole)
    assert gt.max_pool2d(t, 2).shape == (3, 2, 3)
    assert gt.conv2d(gt.ones((0, 3, 5, 6), device=where), v).shape == (0, 4, 4, 5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, w: gt.conv2d(x, w, groups=4), "conv2d: groups: got 4; expected a divisor"),
        (lambda x, w: gt.conv2d(x, w, groups=2), "conv2d: channels of x: got 4; expected 8"),
        (lambda x, w: gt.conv2d(x, w, stride=0), "conv2d: stride: got 0; expected an int of 1"),
        (lambda x, w: gt.conv2d(x, w, padding="all"), "conv2d: padding: got 'all'; expected"),
        (lambda x, w: gt.conv2d(x, w, dilation=9), "conv2d: extent of x: got 5; expected 19"),
        (lambda x, w: gt.conv2d(x, w, bias=w), "conv2d: shape of bias: got"),
        (lambda x, w: gt.conv2d(x, w, addend=x), "conv2d: shape of addend: got"),
        (lambda x, w: gt.conv2d(x, w, activation="no"), "conv2d: activation: got 'no'; expected"),
        (lambda x, w: gt.conv2d(x, w, data_format="CHW"), "conv2d: data_format: got 'CHW'"),
        (lambda x, w: gt.conv1d(x, w), "conv1d: shape of x: got"),
        (lambda x, w: gt.max_pool2d(x, 3, padding=3), "max_pool2d: padding: got 3; expected"),
        (lambda x, w: gt.avg_pool2d(x, (0, 1)), "avg_pool2d: kernel_size: got"),
        (lambda x, w: gt.adaptive_avg_pool2d(x, 0), "adaptive_avg_pool2d: output_size: got"),
        (lambda x, w: gt.conv_transpose2d(x, gt.moveaxis(w, 0, 1), padding=7),
         "conv_transpose2d: padding: got 7; expected"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(call, text):
    x, w = gt.ones((1, 4, 5, 5), device="host"), gt.ones((6, 4, 3, 3), device="host")
    with pytest.raises(ValueError, match=text.replace("(", "\\(")):
        call(x, w)


def test_dtypes_that_do_not_fit():
    x, w = gt.ones((1, 4, 5), device="host"), gt.ones((6, 4, 3), dtype=gt.float16, device="host")
    with pytest.raises(
        TypeError, match="dtypes of x and weight: got float32 and float16; expected"
    ):
        gt.conv1d(x, w)
    with pytest.raises(TypeError, match="dtype of bias: got float16; expected float32"):
        gt.conv1d(x, w.astype("float32"), gt.ones(6, dtype=gt.float16, device="host"))
    with pytest.raises(TypeError, match="avg_pool1d: dtype of x: got"):
        gt.avg_pool1d(gt.astype(x, gt.int32), 2)


def test_pointwise_convolution_reads_nothing_behind_x(where, rng):
    """Results in padding are 0, whatever follows x in memory."""
    whole = np.full((2, 3, 9), np.nan, np.float32)
    whole[..., :7] = rng.standard_normal((2, 3, 7))
    w = rng.standard_normal((4, 3, 1)).astype(np.float32)
    x = gt.asarray(whole, device=where)[..., :7]
    for stride in (1, 2):
        got = gt.conv1d(x, gt.asarray(w, device=where), stride=stride, padding=[(0, 2)]).numpy()
        wide = np.where(np.arange(9) < 7, whole, 0)[..., ::stride]
        assert np.allclose(got, np.einsum("oc,ncl->nol", w[..., 0], wide), atol=1e-5)
