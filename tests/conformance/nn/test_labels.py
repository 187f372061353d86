"""Losses of several classes, bags of embeddings and bilinear layers, against loops in float64."""

import numpy as np
import pytest

import gputensor as gt


def reduced(losses, reduction):
    return {"none": losses, "sum": np.sum(losses), "mean": np.mean(losses)}[reduction]


def check(found, expected, dtype="float64"):
    tolerance = {"float64": 1e-11, "float32": 1e-4, "float16": 2e-2}[dtype]
    assert found.dtype == dtype and found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


def margins(x, target, p, margin, weight):
    losses = []
    for scores, at in zip(x, target, strict=True):
        terms = [
            weight[at] * max(0, margin - scores[at] + one) ** p
            for i, one in enumerate(scores)
            if i != at
        ]
        losses.append(sum(terms) / len(scores))
    return np.asarray(losses)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_margins_of_one_class(rng, where, reduction):
    x, target, weight = rng.normal(size=(5, 7)), rng.integers(0, 7, 5), rng.random(7)
    for dtype in ("float64", "float32"):
        a, t, w = (gt.asarray(one, device=where) for one in (x, target, weight))
        a, w = a.astype(dtype), w.astype(dtype)
        for p, margin in ((1, 1.0), (2, 0.5)):
            found = gt.multi_margin_loss(a, t, p, margin, w, reduction=reduction)
            check(found, reduced(margins(x, target, p, margin, weight), reduction), dtype)
        found = gt.multi_margin_loss(a[0], t[0], reduction=reduction)
        ones = np.ones(7)
        expected = margins(x[:1], target[:1], 1, 1.0, ones)[0]
        check(found, expected, dtype)


def label_margins(x, target):
    losses = []
    for scores, row in zip(x, target, strict=True):
        labels = []
        for one in row:
            if one < 0:
                break
            labels.append(one)
        others = [i for i in range(len(scores)) if i not in labels]
        total = sum(max(0, 1 - scores[j] + scores[i]) for j in labels for i in others)
        losses.append(total / len(scores))
    return np.asarray(losses)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_margins_of_several_classes(rng, where, reduction):
    x, target = rng.normal(size=(6, 5)), np.stack([rng.permutation(5) for _ in range(6)])
    for row, count in enumerate((0, 1, 2, 3, 5, 4)):
        target[row, count:] = -1
    target[1, 2:] = 3  # not read behind the first negative number
    a, t = gt.asarray(x, device=where), gt.asarray(target, device=where)
    found = gt.multilabel_margin_loss(a, t, reduction=reduction)
    check(found, reduced(label_margins(x, target), reduction))
    check(gt.multilabel_margin_loss(a[3], t[3]), label_margins(x[3:4], target[3:4])[0])
    y, w = (rng.random((6, 5)) < 0.5).astype(float), rng.random(5)
    p = 1 / (1 + np.exp(-x))
    terms = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    how = {"weight": gt.asarray(w, device=where), "reduction": reduction}
    found = gt.multilabel_soft_margin_loss(a, gt.asarray(y, device=where), **how)
    check(found, reduced((terms * w).mean(1), reduction))


def test_triplets_with_any_distance(rng, where):
    x, y, z = rng.normal(size=(3, 6, 4))
    a, b, c = (gt.asarray(one, device=where) for one in (x, y, z))

    def far(one, other):
        return abs(one - other).sum(-1)

    near = far(x, y)
    for swap in (False, True):
        away = np.minimum(far(x, z), far(y, z)) if swap else far(x, z)
        expected = np.maximum(near - away + 0.5, 0)
        how = {"distance_function": far, "margin": 0.5, "swap": swap, "reduction": "none"}
        check(gt.triplet_margin_with_distance_loss(a, b, c, **how), expected)
        found = gt.triplet_margin_with_distance_loss(a, b, c, swap=swap)
        assert abs(found.item() - gt.triplet_margin_loss(a, b, c, swap=swap).item()) < 1e-12


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_rows(rng, where, mode):
    table, indices = rng.normal(size=(9, 4)), rng.integers(0, 9, 12)
    offsets = np.asarray([0, 3, 3, 4, 12])  # the second bag and the last are empty
    ends = [*offsets[1:], 12]
    t, i = gt.asarray(table, device=where), gt.asarray(indices, device=where)

    def bag(rows):
        return getattr(rows, mode)(0) if len(rows) else np.zeros(4)

    expected = np.stack([bag(table[indices[a:b]]) for a, b in zip(offsets, ends, strict=True)])
    check(gt.embedding_bag(i, t, gt.asarray(offsets, device=where), mode=mode), expected)
    expected = np.stack([bag(table[row]) for row in indices.reshape(3, 4)])
    check(gt.embedding_bag(i.reshape(3, 4), t, mode=mode), expected)
    if mode == "sum":
        w = rng.normal(size=(3, 4))
        how = {"mode": mode, "per_sample_weights": gt.asarray(w, device=where)}
        expected = (table[indices.reshape(3, 4)] * w[..., None]).sum(1)
        check(gt.embedding_bag(i.reshape(3, 4), t, **how), expected)


def test_bilinear_layers(rng, where):
    x, y, w, b = (rng.normal(size=s) for s in ((2, 3, 4), (2, 3, 5), (6, 4, 5), (6,)))
    found = gt.bilinear(*(gt.asarray(one, device=where) for one in (x, y, w, b)))
    expected = np.asarray(
        [[[x[i, j] @ w[o] @ y[i, j] + b[o] for o in range(6)] for j in range(3)] for i in range(2)]
    )
    check(found, expected)


def test_wrong_arguments_are_named(where):
    with gt.Device(where):
        x, t = gt.ones((2, 3)), gt.asarray([0, 1])
        for call, text in (
            (lambda: gt.multi_margin_loss(x, t, 3), "multi_margin_loss: p: got 3"),
            (lambda: gt.multi_margin_loss(x, t[:1]), "multi_margin_loss: target: got"),
            (lambda: gt.multi_margin_loss(x, t, weight=t), "multi_margin_loss: shape of weight"),
            (lambda: gt.multilabel_margin_loss(x, t), "multilabel_margin_loss: target: got"),
            (lambda: gt.multilabel_margin_loss(t, t), "multilabel_margin_loss: x: got"),
            (lambda: gt.multilabel_soft_margin_loss(x, t), "multilabel_soft_margin_loss: shape"),
            (lambda: gt.embedding_bag(t, x), "embedding_bag: indices: got 1 dimensions"),
            (lambda: gt.embedding_bag(t, x, t, mode="min"), "embedding_bag: mode: got 'min'"),
            (lambda: gt.embedding_bag(t[None], t), "embedding_bag: table: got"),
            (
                lambda: gt.embedding_bag(t[None], x, per_sample_weights=x),
                "embedding_bag: per_sample_weights: got mode 'mean'",
            ),
            (lambda: gt.bilinear(x, x, x), "bilinear: shapes of x1, x2, weight: got"),
        ):
            with pytest.raises((TypeError, ValueError), match=text):
                call()
