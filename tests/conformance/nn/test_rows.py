"""The row functions on every device: random shapes, strides, dtypes and masks against float64."""

import numpy as np
import pytest

import gputensor as gt
from gputensor import nn
from tests.support.row_checks import DTYPES, close, row_program


def test_random_calls(place, seed):
    rng = np.random.default_rng(seed)
    for _ in range(150):
        row_program(rng, place)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("columns", [1, 31, 128, 1000, 1001, 4096, 16384, 20000, 65536, 300000])
def test_widths(where, columns, dtype, rng):
    values = (rng.standard_normal((3, columns)) * 2).astype(DTYPES[dtype])
    x = gt.asarray(values, device=where)
    exact = values.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=1, keepdims=True))
    want = powers / powers.sum(axis=1, keepdims=True)
    close(f"softmax of {columns}", nn.softmax(x), want, dtype, 200 * want)
    away = exact - exact.mean(axis=1, keepdims=True)
    want = away / np.sqrt((away * away).mean(axis=1, keepdims=True) + 1e-5)
    close(f"layer_norm of {columns}", nn.layer_norm(x), want, dtype, 400 * (1 + np.abs(want)))


def test_norms_take_their_arguments_in_the_order_of_pytorch(where, rng):
    a, w, b = (rng.standard_normal(shape).astype("f4") for shape in ((3, 4, 5), (4, 5), (4, 5)))
    x, weight, bias = (gt.asarray(one, device=where) for one in (a, w, b))
    exact = a.astype(np.float64)
    away = exact - exact.mean(axis=(1, 2), keepdims=True)
    want = away / np.sqrt((away**2).mean(axis=(1, 2), keepdims=True) + 1e-3)
    for shape in ((4, 5), [4, 5]):
        got = nn.layer_norm(x, shape, weight, bias, 1e-3)
        np.testing.assert_allclose(got.numpy(), want * w + b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        nn.layer_norm(x, (4, 5), eps=1e-3).numpy(), want, rtol=1e-5, atol=1e-5
    )
    want = exact / np.sqrt((exact**2).mean(axis=2, keepdims=True) + 1e-2) * w[0]
    for got in (nn.rms_norm(x, 5, weight[0], 1e-2), nn.rms_norm(x, weight[0], eps=1e-2)):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
    for call, message in (
        (lambda: nn.layer_norm(x, (5, 4)), "layer_norm: normalized_shape: got .*; expected the"),
        (lambda: nn.layer_norm(x, ()), "layer_norm: normalized_shape: got"),
        (lambda: nn.rms_norm(x, 5, weight[0], 1e-2, 3), "rms_norm: arguments: got 4 after x"),
        (lambda: nn.layer_norm(x, weight, weight=weight), "layer_norm: weight: got two values"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("columns", [70000, 131072])
def test_wide_rows_with_parts_of_only_infinities(where, columns, dtype, rng):
    """A GPU splits these rows among blocks; some blocks here see only infinities."""
    values = rng.standard_normal((5, columns)).astype(DTYPES[dtype])
    values[0, : columns // 2], values[1, 4096:], values[2] = -np.inf, -np.inf, -np.inf
    values[3, 7], values[4, ::2] = np.nan, -np.inf
    x, exact = gt.asarray(values, device=where), values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        powers = np.exp(exact - exact.max(axis=1, keepdims=True))
    want = powers / powers.sum(axis=1, keepdims=True)
    close(f"softmax of {columns}", nn.softmax(x), want, dtype, 200 * want)
    mask = gt.asarray(values != -np.inf, device=where)
    want[2] = 0
    close(f"masked softmax of {columns}", nn.softmax(x, mask=mask), want, dtype, 200 * want)


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [(32768, "float32"), (70000, "float32"), (260000, "float32"), (70000, "bfloat16")],
)
def test_wide_rows_with_weights_that_a_gpu_keeps(where, columns, dtype, rng):
    """The blocks of a GPU take several rows each; equal rows have equal bits."""
    values = (rng.standard_normal((3, columns)) * 2 + 1).astype(DTYPES[dtype])
    w, b = (rng.standard_normal(columns).astype(DTYPES[dtype]) for _ in range(2))
    times = 60 if where == "cuda" else 1
    x = gt.tile(gt.asarray(values, device=where), (times, 1))
    weight, bias = (gt.asarray(one, device=where) for one in (w, b))
    exact, w, b = (one.astype(np.float64) for one in (values, w, b))
    away = exact - exact.mean(axis=1, keepdims=True)
    layer = away / np.sqrt((away * away).mean(axis=1, keepdims=True) + 1e-5) * w
    rms = exact / np.sqrt((exact * exact).mean(axis=1, keepdims=True) + 1e-5) * w
    for name, got, want, scale in (
        ("layer_norm", nn.layer_norm(x, weight, bias), layer + b, np.abs(layer) + np.abs(b)),
        ("rms_norm", nn.rms_norm(x, weight), rms, np.abs(rms)),
    ):
        close(name, got[:3], want, dtype, 400 * (np.abs(w) + scale))
        parts = got.numpy().reshape(times, 3, columns)
        assert (parts == parts[:1]).all(), name


@pytest.mark.parametrize("shape", [(5, 700, 33), (700, 64), (3, 2000, 5)])
def test_softmax_along_a_strided_axis(where, shape, rng):
    values = rng.standard_normal(shape).astype(np.float32)
    exact = values.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=-2, keepdims=True))
    want = powers / powers.sum(axis=-2, keepdims=True)
    close("softmax", nn.softmax(gt.asarray(values, device=where), -2), want, "float32", 200 * want)


def test_results_do_not_depend_on_timing(where, rng):
    x = gt.asarray(rng.standard_normal((70, 40000)).astype(np.float32), device=where)
    first = nn.softmax(x).numpy()
    assert all((nn.softmax(x).numpy() == first).all() for _ in range(3))
    alone = nn.softmax(x[11:12]).numpy()
    assert np.allclose(alone, first[11:12], rtol=1e-5)


def test_empty(where):
    assert nn.softmax(gt.ones((0, 3), device=where)).shape == (0, 3)
    assert nn.layer_norm(gt.ones((3, 0), device=where)).shape == (3, 0)
    assert (nn.logsumexp(gt.ones((2, 0), device=where)).numpy() == -np.inf).all()


def test_infinities_and_nan(where):
    x = np.array([[np.inf, 0], [-np.inf, 0], [-np.inf, -np.inf], [np.nan, 0]], np.float32)
    t = gt.asarray(x, device=where)
    assert np.array_equal(nn.logsumexp(t).numpy(), [np.inf, 0, -np.inf, np.nan], equal_nan=True)
    assert np.array_equal(nn.softmax(t).numpy()[1], [0, 1])
    assert np.isnan(nn.softmax(t).numpy()[[0, 2, 3]]).any(axis=1).all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: nn.softmax(x, 2), IndexError, "softmax: axis"),
        (lambda x: nn.softmax(x, mask=gt.ones(3, device="host")), ValueError, "do not broadcast"),
        (lambda x: nn.softmax(x, mask=gt.ones(5, dtype=gt.int32, device="host")), TypeError,
         "softmax: mask: got int32; expected bool or a floating-point dtype"),
        (lambda x: nn.softmax(x, dtype=gt.int32), TypeError, "softmax: dtype: got int32"),
        (lambda x: nn.layer_norm(x, x), ValueError, "layer_norm: shape of weight: got"),
        (lambda x: nn.rms_norm(x, residual=x[0]), ValueError, "rms_norm: shape of residual: got"),
        (lambda x: nn.group_norm(x, 3), ValueError, "group_norm: groups: got 3"),
        (lambda x: nn.softmax(gt.astype(x, gt.complex64)), TypeError, "softmax: x: got complex64"),
        (lambda x: gt.max_pool1d(x > 0, 2), TypeError, "max_pool1d: dtype of x: got bool; "),
        (lambda x: gt.pad(x, 1, value=3), TypeError, "got value=; expected constant_values="),
    ],
)  # fmt: skip
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call(gt.ones((2, 5), device="host"))


def test_the_epsilon_of_pytorchs_order(where):
    x = gt.asarray([[1e-3, 2e-3]], device=where)
    weight = gt.ones(2, device=where)
    own = (nn.rms_norm(x), nn.rms_norm(x, weight), nn.rms_norm(x, (2,), eps=1e-5))
    torchs = (
        nn.rms_norm(x, 2),
        nn.rms_norm(x, [2], weight),
        nn.rms_norm(x, (2,), weight, None),
        gt.rms_norm(x, normalized_shape=(2,)),
        gt.jit(lambda x: nn.rms_norm(x, (2,)))(x),
    )
    for results, epsilon in ((own, 1e-5), (torchs, 2.0**-23)):
        want = np.array([1e-3, 2e-3]) / np.sqrt(2.5e-6 + epsilon)
        for got in results:
            assert np.abs(got.numpy() - want).max() < 1e-6
