"""Activations, norms by channel, interpolation and losses on every device, against float64."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.row_checks import DTYPES, close, on_device, strided

ROOT = np.sqrt(2 / np.pi)


def tail(x):
    return np.log1p(np.exp(-np.abs(x)))


def selu(x):
    scale = 1.0507009873554805
    return scale * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))


# Name -> further arguments, and the values in float64.
ACTIVATIONS = {
    "relu6": ((), lambda x: np.clip(x, 0, 6)),
    "leaky_relu": ((0.25,), lambda x: np.where(x > 0, x, 0.25 * x)),
    "elu": ((0.5,), lambda x: np.where(x > 0, x, 0.5 * np.expm1(np.minimum(x, 0)))),
    "selu": ((), selu),
    "celu": ((2.0,), lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0) / 2))),
    "hardtanh": ((-2.0, 1.5), lambda x: np.clip(x, -2, 1.5)),
    "hardsigmoid": ((), lambda x: np.clip(x + 3, 0, 6) / 6),
    "hardswish": ((), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "softplus": ((2.0, 5.0), lambda x: np.where(2 * x > 5, x, np.log1p(np.exp(2 * x)) / 2)),
    "softsign": ((), lambda x: x / (1 + np.abs(x))),
    "mish": ((), lambda x: x * np.tanh(np.maximum(x, 0) + tail(x))),
    "logsigmoid": ((), lambda x: np.minimum(x, 0) - tail(x)),
    "threshold": ((0.5, -3.0), lambda x: np.where(x > 0.5, x, -3.0)),
    "hardshrink": ((0.75,), lambda x: np.where(np.abs(x) > 0.75, x, 0)),
    "softshrink": ((0.75,), lambda x: x - np.clip(x, -0.75, 0.75)),
    "tanhshrink": ((), lambda x: x - np.tanh(x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_activation(where, name, dtype, rng):
    further, function = ACTIVATIONS[name]
    for shape in ((7,), (3, 5, 4), (2, 300, 3), ()):
        x = strided(rng, shape, DTYPES[dtype]) * np.array(2).astype(DTYPES[dtype])
        want = function(x.astype(np.float64))
        got = getattr(gt, name)(on_device(x, where), *further)
        close(name, got, want, dtype, 16 * (1 + np.abs(x.astype(float))))


def test_activation_of_special_values(where):
    x = gt.asarray(np.array([np.nan, np.inf, -np.inf], np.float32), device=where)
    for name in set(ACTIVATIONS) - {"softsign", "tanhshrink", "softshrink"}:
        got = getattr(gt, name)(x, *ACTIVATIONS[name][0]).numpy()
        assert np.isnan(got[0]) or name in ("threshold", "hardshrink"), name
        assert got[1] == (6 if name == "relu6" else 1.5 if name == "hardtanh" else
                          1 if name == "hardsigmoid" else 0 if name == "logsigmoid" else
                          np.inf), name  # fmt: skip


def test_prelu_and_glu(where, rng):
    x = rng.standard_normal((3, 4, 6)).astype(np.float32)
    w = rng.standard_normal(4).astype(np.float32)
    t = gt.asarray(x, device=where)
    got = gt.prelu(t, gt.asarray(w, device=where)).numpy()
    assert np.allclose(got, np.where(x > 0, x, x * w[:, None]), atol=1e-6)
    one = gt.prelu(t, gt.asarray(w[:1], device=where)).numpy()
    assert np.allclose(one, np.where(x > 0, x, x * w[0]), atol=1e-6)
    for axis in (1, -1):
        first, second = np.split(x.astype(float), 2, axis)
        assert np.allclose(gt.glu(t, axis).numpy(), first / (1 + np.exp(-second)), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("is_last", [False, True])
def test_batch_norm(where, dtype, is_last, rng):
    for shape in ((5, 3), (2, 6, 7), (2, 8, 5, 4)):
        x = rng.standard_normal(shape).astype(DTYPES[dtype])
        beside = (-1, *(1,) * (len(shape) - 2))
        mean, weight, bias = (rng.standard_normal(shape[1]).astype(np.float32) for _ in range(3))
        variance = rng.random(shape[1]).astype(np.float32) + 0.5
        columns = [one.astype(float).reshape(beside) for one in (mean, variance, weight, bias)]
        t = gt.asarray(np.moveaxis(x, 1, -1) if is_last else x, device=where)
        t = gt.moveaxis(t, -1, 1) if is_last else t
        given = [gt.asarray(one, device=where) for one in (mean, variance, weight, bias)]
        got = gt.batch_norm(t, *given, eps=1e-3)
        exact = (x.astype(float) - columns[0]) / np.sqrt(columns[1] + 1e-3)
        close("batch_norm", got, exact * columns[2] + columns[3], dtype,
              16 * (1 + np.abs(exact) * np.abs(columns[2]) + np.abs(columns[3])))  # fmt: skip
        close("plain", gt.batch_norm(t, *given[:2], eps=1e-3), exact, dtype, 32 + np.abs(exact))


def test_instance_norm(where, rng):
    x = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    weight, bias = (rng.standard_normal(3).astype(np.float32) for _ in range(2))
    got = gt.instance_norm(*(gt.asarray(one, device=where) for one in (x, weight, bias))).numpy()
    away = x - x.mean((2, 3), keepdims=True, dtype=float)
    want = away / np.sqrt((away**2).mean((2, 3), keepdims=True) + 1e-5)
    want = want * weight[:, None, None] + bias[:, None, None]
    assert np.abs(got - want).max() < 1e-4


def test_instance_norm_takes_its_arguments_in_the_order_of_pytorch(where, rng):
    a = rng.standard_normal((2, 3, 4, 5)).astype(np.float32)
    x = gt.asarray(a, device=where)
    mean, variance, weight, bias = (gt.asarray(rng.random(3, np.float32), device=where)
                                    for _ in range(4))  # fmt: skip
    want = gt.instance_norm(x, weight, bias, eps=1e-3)
    for got in (
        gt.instance_norm(x, None, None, weight, bias, True, 0.1, 1e-3),
        gt.instance_norm(x, weight=weight, bias=bias, use_input_stats=True, eps=1e-3),
    ):
        assert gt.array_equal(got, want)
    assert gt.array_equal(gt.instance_norm(x, weight, eps=1e-3), gt.instance_norm(
        x, None, None, weight, None, eps=1e-3))  # fmt: skip
    got = gt.instance_norm(x, mean, variance, weight, bias, False)
    assert gt.array_equal(got, gt.batch_norm(x, mean, variance, weight, bias))
    first, second = mean.numpy(), variance.numpy()
    got = gt.instance_norm(x, mean, variance, weight, bias, True, 0.25, 1e-3)
    assert gt.array_equal(got, want)
    moved = first + 0.25 * (a.mean((2, 3)).mean(0) - first)
    np.testing.assert_allclose(mean.numpy(), moved, rtol=1e-5, atol=1e-6)
    moved = second + 0.25 * (a.var((2, 3), ddof=1).mean(0) - second)
    np.testing.assert_allclose(variance.numpy(), moved, rtol=1e-5)
    with pytest.raises(TypeError, match="instance_norm: weight: got two values; expected one"):
        gt.instance_norm(x, weight, weight=weight)
    with pytest.raises(TypeError, match="instance_norm: arguments: got 8 after x; expected at"):
        gt.instance_norm(x, *[None] * 8)
    with pytest.raises(ValueError, match="instance_norm: shape of x: got .*two or more values"):
        gt.instance_norm(x[:, :, :1, :1], running_mean=mean)


def nearest_of(x, counts, steps, exact):
    for axis, (m, step) in enumerate(zip(counts, steps, strict=True), 2):
        place = np.floor((np.arange(m) + (0.5 if exact else 0)) * step + 1e-9).astype(int)
        x = np.take(x, np.minimum(place, x.shape[axis] - 1), axis)
    return x


def linear_of(x, counts, steps, corners):
    for axis, (m, step) in enumerate(zip(counts, steps, strict=True), 2):
        n = x.shape[axis]
        at = np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0) if corners else np.clip(
            (np.arange(m) + 0.5) * step - 0.5, 0, None)  # fmt: skip
        lines = np.moveaxis(x, axis, -1).reshape(-1, n)
        each = np.stack([np.interp(at, np.arange(n), line) for line in lines])
        moved = np.moveaxis(x, axis, -1).shape[:-1]
        x = np.moveaxis(each.reshape(*moved, m), -1, axis)
    return x


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_interpolate(where, dtype, rng):
    for spatial in (1, 2, 3):
        x = rng.standard_normal((2, 3, *rng.integers(2, 6, spatial))).astype(DTYPES[dtype])
        t, extents = gt.asarray(x, device=where), x.shape[2:]
        for counts in (tuple(int(n) for n in rng.integers(1, 12, spatial)),
                       tuple(2 * n for n in extents)):  # fmt: skip
            steps = [n / m for n, m in zip(extents, counts, strict=True)]
            for mode in ("nearest", "nearest-exact"):
                got = gt.interpolate(t, counts, mode=mode).numpy()
                want = nearest_of(x, counts, steps, mode == "nearest-exact")
                assert np.array_equal(got, want), (mode, extents, counts)
            for corners in (False, True):
                got = gt.interpolate(t, counts, mode="linear", align_corners=corners)
                want = linear_of(x.astype(float), counts, steps, corners)
                close("linear", got, want, dtype, 64 * np.abs(x.astype(float)).max())
    last = gt.interpolate(gt.moveaxis(t, 1, -1), scale_factor=2.0, data_format="NDHWC")
    assert last.shape == (2, *(2 * n for n in extents), 3)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_interpolation_of_an_empty_batch(where, mode):
    x = gt.ones((0, 3, 4, 5), dtype="float16", device=where)
    got = gt.interpolate(x, scale_factor=2, mode=mode)
    assert got.shape == (0, 3, 8, 10) and got.dtype == gt.float16
    last = gt.interpolate(gt.moveaxis(x, 1, -1), (2, 3), mode=mode, data_format="NHWC")
    assert last.shape == (0, 2, 3, 3)
    with pytest.raises(ValueError, match="shape of x: got .*; expected 3 to 5 axes, all but the"):
        gt.interpolate(gt.ones((1, 0, 4, 5), device=where), 2)


def test_interpolation_by_the_factor_or_by_the_extents(where, rng):
    x = gt.asarray(rng.standard_normal((2, 3, 5, 7)).astype(np.float32), device=where)
    for mode in ("nearest", "bilinear", "bicubic"):
        by_factor = gt.interpolate(x, scale_factor=1.7, mode=mode)
        by_extents = gt.interpolate(x, (8, 11), mode=mode)
        assert not gt.array_equal(by_factor, by_extents)
        for is_computed, want in ((None, by_factor), (False, by_factor), (True, by_extents)):
            got = gt.interpolate(x, None, 1.7, mode, None, is_computed)
            assert gt.array_equal(got, want)
            how = {"mode": mode, "recompute_scale_factor": is_computed, "data_format": "NHWC"}
            got = gt.interpolate(gt.moveaxis(x, 1, -1), scale_factor=(1.7, 1.7), **how)
            assert gt.array_equal(gt.moveaxis(got, -1, 1), want)
    got = gt.interpolate(x, None, 0.6, "bilinear", False, True, True)
    assert gt.array_equal(got, gt.interpolate(x, (3, 4), mode="bilinear", antialias=True))
    with pytest.raises(ValueError, match="recompute_scale_factor: got True; expected false with"):
        gt.interpolate(x, 4, recompute_scale_factor=True)


def entropy(x, target, weight, ignore, smoothing):
    x = np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])
    powers = x - x.max(1, keepdims=True)
    powers = powers - np.log(np.exp(powers).sum(1, keepdims=True))
    losses, shares = [], []
    for line, one in zip(powers, target.reshape(-1), strict=True):
        if one == ignore:
            losses.append(0.0)
            shares.append(0.0)
            continue
        plain, spread = -line[one] * weight[one], -(line * weight).sum() / x.shape[1]
        losses.append((1 - smoothing) * plain + smoothing * spread)
        shares.append(weight[one])
    return np.array(losses).reshape(target.shape), sum(shares)


@pytest.mark.parametrize("smoothing", [0.0, 0.125])
def test_cross_entropy(where, smoothing, rng):
    for shape in ((6, 5), (3, 4, 2, 3)):
        x = rng.standard_normal(shape).astype(np.float32)
        target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
        target.flat[0] = -100
        weight = rng.random(shape[1]).astype(np.float32) + 0.5
        want, share = entropy(x.astype(float), target, weight.astype(float), -100, smoothing)
        t, i, w = (gt.asarray(one, device=where) for one in (x, target, weight))
        how = {"label_smoothing": smoothing}
        got = gt.cross_entropy(t, i, w, reduction="none", **how).numpy()
        assert np.abs(got - want).max() < 1e-4
        assert abs(gt.cross_entropy(t, i, w, **how).item() - want.sum() / share) < 1e-4
        total = gt.cross_entropy(t, i, w, reduction="sum", **how).item()
        assert abs(total - want.sum()) < 1e-3


def test_cross_entropy_of_probabilities(where, rng):
    x = rng.standard_normal((6, 5)).astype(np.float32)
    share = rng.random((6, 5)).astype(np.float32)
    got = gt.cross_entropy(*(gt.asarray(one, device=where) for one in (x, share))).item()
    powers = x - np.log(np.exp(x.astype(float)).sum(1, keepdims=True))
    assert abs(got - -(powers * share).sum() / 6) < 1e-4


def test_losses_of_elements(where, rng):
    a, b = rng.normal(size=(2, 5, 3)) * 2
    p, q = (np.exp(one) / np.exp(one).sum(1, keepdims=True) for one in (a, b))
    yes, far = 1 / (1 + np.exp(-a)), np.abs(a - b)
    entropy = -(q * np.log(yes) + (1 - q) * np.log1p(-yes))
    wants = {
        "mse_loss": ((a, b), (a - b) ** 2),
        "l1_loss": ((a, b), far),
        "huber_loss": ((a, b), np.where(far < 1, far**2 / 2, far - 0.5)),
        "smooth_l1_loss": ((a, b), np.where(far < 1, far**2 / 2, far - 0.5)),
        "binary_cross_entropy": ((yes, q), entropy),
        "binary_cross_entropy_with_logits": ((a, q), entropy),
        "kl_div": ((np.log(p), q), q * np.log(q / p)),
    }
    for name, (arguments, want) in wants.items():
        x, target = (gt.asarray(one, device=where) for one in arguments)
        for reduction, value in (("none", want), ("sum", want.sum()), ("mean", want.mean())):
            got = getattr(gt, name)(x, target, reduction=reduction).numpy()
            np.testing.assert_allclose(got, value, 1e-9, 1e-12)
    x, y = (gt.asarray(one.astype(np.float16), device=where) for one in (a, b))
    size = np.linalg.norm(a, axis=1, keepdims=True)
    np.testing.assert_allclose(gt.normalize(x).numpy(), a / size, 0, 2**-9)
    cosine = (a * b).sum(1) / (size[:, 0] * np.linalg.norm(b, axis=1))
    np.testing.assert_allclose(gt.cosine_similarity(x, y, dim=1).numpy(), cosine, 0, 2**-8)
    one, all_of = a[:1, None], np.stack([a, b])
    got = gt.cosine_similarity(*(gt.asarray(x, device=where) for x in (one, all_of)), dim=1)
    wide = np.broadcast_to(one, all_of.shape)
    cosine = (wide * all_of).sum(1)
    cosine /= np.linalg.norm(wide, axis=1) * np.linalg.norm(all_of, axis=1)
    np.testing.assert_allclose(got.numpy(), cosine, 1e-9, 1e-12)
    images = gt.asarray(rng.normal(size=(2, 12, 3, 4)), device=where)
    large = gt.pixel_shuffle(images, 2)
    assert large[1, 2, 4, 3].item() == images[1, 9, 2, 1].item()
    assert gt.array_equal(gt.pixel_unshuffle(large, 2), images)


def test_losses_of_margins_and_likelihoods(where, rng):
    a, b, c = rng.normal(size=(3, 5, 4))
    norms, line = np.linalg.norm(np.stack([a - b, a - c]) + 1e-6, axis=-1), rng.choice([-1, 1], 5)
    signs, counts = rng.choice([-1, 1], (5, 4)), rng.integers(0, 6, (5, 4)).astype(float)
    cosine = (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))
    spread = rng.random(5)[:, None] + 0.1
    high = np.maximum(counts, 1)
    stirling = high * np.log(high) - high + np.log(2 * np.pi * high) / 2
    wants = {
        "pairwise_distance": ((a, b), {}, norms[0]),
        "triplet_margin_loss": ((a, b, c), {}, np.maximum(norms[0] - norms[1] + 1, 0)),
        "margin_ranking_loss": ((a, b, signs), {"margin": 0.5},
                                np.maximum(0.5 - signs * (a - b), 0)),
        "cosine_embedding_loss": ((a, b, line), {"margin": 0.25},
                                  np.where(line == 1, 1 - cosine, np.maximum(cosine - 0.25, 0))),
        "hinge_embedding_loss": ((a, signs), {}, np.where(signs == 1, a, np.maximum(1 - a, 0))),
        "soft_margin_loss": ((a, signs), {}, np.log1p(np.exp(-signs * a))),
        "gaussian_nll_loss": ((a, b, spread[:, 0]), {"full": True},
                              (np.log(2 * np.pi * spread) + (a - b) ** 2 / spread) / 2),
        "poisson_nll_loss": ((a, counts), {"full": True},
                             np.exp(a) - counts * a + np.where(counts > 1, stirling, 0)),
    }  # fmt: skip
    for name, (arguments, how, want) in wants.items():
        given = [gt.asarray(one, device=where) for one in arguments]
        how |= {"reduction": "none"} if name != "pairwise_distance" else {}
        got = getattr(gt, name)(*given, **how).numpy()
        np.testing.assert_allclose(got, want, 1e-9, 1e-9, err_msg=name)
    total = gt.poisson_nll_loss(*(gt.asarray(one, device=where) for one in (np.exp(a), counts)),
                                log_input=False, eps=0, reduction="sum")  # fmt: skip
    np.testing.assert_allclose(total.item(), (np.exp(a) - counts * a).sum(), 1e-9, 1e-9)


def test_local_response_norm(where, rng):
    for channels, size in ((6, 5), (5, 4), (2, 7)):
        x = rng.standard_normal((2, channels, 3))
        wide = np.pad(x**2, [(0, 0), (size // 2, (size - 1) // 2), (0, 0)])
        sums = sum(wide[:, i : i + channels] for i in range(size))
        got = gt.local_response_norm(gt.asarray(x, device=where), size, 0.5, 0.75, 2.0).numpy()
        np.testing.assert_allclose(got, x / (2 + 0.5 * sums / size) ** 0.75, 1e-9, 1e-12)
    images = gt.asarray(rng.standard_normal((2, 6, 3)), device=where)
    turned = gt.channel_shuffle(images, 3).numpy()
    assert np.array_equal(turned, images.numpy()[:, [0, 2, 4, 1, 3, 5]])


def test_dropout(where, rng):
    x = gt.asarray(rng.standard_normal((100, 200)).astype(np.float32), device=where)
    got, again = (
        gt.dropout(x, 0.25, generator=gt.random.generator(seed=3, device=where)).numpy()
        for _ in range(2)
    )
    assert np.array_equal(got, again)
    kept = got != 0
    assert 0.72 < kept.mean() < 0.78
    assert np.allclose(got[kept], x.numpy()[kept] / 0.75, rtol=1e-6)
    assert gt.dropout(x, 0.25, training=False) is x


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: gt.interpolate(x), "interpolate: size, scale_factor: got"),
        (lambda x: gt.interpolate(x, 4, mode="cubic"), "interpolate: mode: got 'cubic'"),
        (lambda x: gt.batch_norm(x, x, x), "batch_norm: shape of running_mean: got"),
        (lambda x: gt.dropout(x, 2), "dropout: p: got 2; expected 0 to 1"),
        (lambda x: gt.glu(x), "glu: extent of x: got 5; expected an even number"),
        (lambda x: gt.cross_entropy(x, gt.zeros(9, dtype=gt.int64, device="host")),
         "cross_entropy: target: got"),
        (lambda x: gt.prelu(x, gt.ones(9, device="host")), "prelu: shape of weight: got"),
        (lambda x: gt.mse_loss(x, x, "none at all"), "mse_loss: reduction: got 'none at all'"),
        (lambda x: gt.huber_loss(x, x, delta=0), "huber_loss: delta: got 0"),
        (lambda x: gt.channel_shuffle(x, 2), "channel_shuffle: channels: got 3; expected a mult"),
        (lambda x: gt.local_response_norm(x, 0), "local_response_norm: size: got 0"),
        (lambda x: gt.gaussian_nll_loss(x, x, 1.0, eps=0), "gaussian_nll_loss: eps: got 0"),
        (lambda x: gt.pixel_shuffle(x, 2), "pixel_shuffle: channels: got 2; expected a multiple"),
        (lambda x: gt.pixel_unshuffle(x, 2), r"pixel_unshuffle: height, width: got \(3, 5\)"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(call, text):
    with pytest.raises(ValueError, match=text):
        call(gt.ones((2, 3, 5), device="host"))


HALF_LOSSES = {
    "mse_loss": lambda a, b: (a - b) ** 2,
    "l1_loss": lambda a, b: np.abs(a - b),
    "huber_loss": lambda a, b: np.where(abs(a - b) < 1, (a - b) ** 2 / 2, abs(a - b) - 0.5),
    "smooth_l1_loss": lambda a, b: np.where(abs(a - b) < 1, (a - b) ** 2 / 2, abs(a - b) - 0.5),
    "binary_cross_entropy_with_logits": lambda a, b: np.maximum(a, 0) - a * b + tail(a),
    "kl_div": lambda a, b: b * np.log(b) - b * a,
    "poisson_nll_loss": lambda a, b: np.exp(a) - a * b,
    "soft_margin_loss": lambda a, b: np.log1p(np.exp(-a * b)),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", HALF_LOSSES)
def test_losses_of_16_bit_floats_round_once(where, name, dtype, rng):
    a = rng.standard_normal(200).astype(DTYPES[dtype])
    b = (rng.random(200) * 0.9 + 0.05).astype(DTYPES[dtype])
    want = HALF_LOSSES[name](a.astype(float), b.astype(float))
    x, y = gt.asarray(a, device=where), gt.asarray(b, device=where)
    close(name, getattr(gt, name)(x, y, reduction="none"), want, dtype, 32)
    close(name, getattr(gt, name)(x, y), want.mean(), dtype, 64)
    assert getattr(gt, name)(x, target=y.astype("float32")).dtype == gt.float32


def test_the_mean_of_no_losses_is_nan(where):
    x = gt.empty((0, 3), device=where)
    for target in (x, gt.empty(0, dtype=gt.int64, device=where)):
        assert np.isnan(gt.cross_entropy(x, target).item())


def test_local_response_norm_without_samples(where):
    assert gt.local_response_norm(gt.empty((0, 3, 4), device=where), 2).shape == (0, 3, 4)
