"""The loss of connectionist temporal classification against a sum over all alignments."""

import itertools

import numpy as np
import pytest

import gputensor as gt


def loss_of(logs, labels, blank):
    """The definition: the sum over every path whose runs, without blanks, are the labels."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=logs.shape[0]):
        runs = [one for one, _ in itertools.groupby(path) if one != blank]
        if runs == list(labels):
            total += np.exp(sum(logs[i, one] for i, one in enumerate(path)))
    with np.errstate(divide="ignore"):
        return -np.log(total)


def recursion(logs, labels, blank):
    """The same by dynamic programming in float64, for targets too long to list their paths."""
    path = [blank]
    for one in labels:
        path += [one, blank]
    shares = np.zeros(len(path))
    shares[:2] = np.exp(logs[0, path[:2]])
    for frame in np.exp(logs[1:]):
        before = shares.copy()
        for s in range(len(path)):
            shares[s] = before[s] + (before[s - 1] if s else 0)
            if s > 1 and path[s] != blank and path[s] != path[s - 2]:
                shares[s] += before[s - 2]
            shares[s] *= frame[path[s]]
    return -np.log(shares[-1] + (shares[-2] if labels else 0))


def data(rng, frames, count, classes):
    scores = rng.normal(size=(frames, count, classes))
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


@pytest.mark.parametrize("blank", [0, 2])
def test_loss_is_the_sum_over_all_alignments(rng, where, blank):
    logs = data(rng, 5, 6, 4)
    frames, labels = [5, 3, 4, 4, 0, 0], [3, 2, 0, 3, 0, 1]
    others = [one for one in range(4) if one != blank]
    rows = rng.choice(others, (6, 3))
    rows[3] = others[0]  # four frames cannot hold three equal labels
    expected = np.asarray(
        [loss_of(logs[: frames[n], n], rows[n, : labels[n]], blank) for n in range(6)]
    )
    assert np.isinf(expected[3]) and np.isinf(expected[5])
    joined = np.concatenate([rows[n, : labels[n]] for n in range(6)])
    for n in range(6):
        rows[n, labels[n] :] = rng.choice([-7, 99])  # not read
    with gt.Device(where):
        x, short = gt.asarray(logs), gt.asarray(frames, dtype="int32")
        for targets, lengths in (
            (gt.asarray(rows), (frames, labels)),
            (gt.asarray(joined), (short, gt.asarray(labels))),
        ):
            how = {"blank": blank, "reduction": "none"}
            found = gt.ctc_loss(x, targets, *lengths, **how).numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            found = gt.ctc_loss(x, targets, *lengths, blank, "sum", zero_infinity=True)
            is_finite = np.isfinite(expected)
            np.testing.assert_allclose(found.item(), expected[is_finite].sum(), rtol=1e-12)
            found = gt.ctc_loss(x, targets, *lengths, blank=blank, zero_infinity=True)
            mean = np.where(is_finite, expected / np.maximum(labels, 1), 0).mean()
            np.testing.assert_allclose(found.item(), mean, rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "rtol"), [("float32", 1e-4), ("float64", 1e-11), ("float16", 1e-2)]
)
def test_loss_of_long_targets(rng, where, dtype, rtol):
    logs = data(rng, 60, 3, 9)
    rows, labels = rng.integers(1, 9, (3, 20)), [20, 11, 1]
    x = gt.asarray(logs, dtype=dtype, device=where)
    exact = x.astype("float64").numpy()
    expected = [recursion(exact[:, n], list(rows[n, : labels[n]]), 0) for n in range(3)]
    targets = gt.asarray(rows, device=where)
    found = gt.ctc_loss(x, targets, [60] * 3, labels, reduction="none")
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found.numpy(), expected, rtol=rtol)
    one = gt.ctc_loss(x[:, 1], targets[1, :11], 60, 11, reduction="none")
    assert one.shape == ()
    np.testing.assert_allclose(one.item(), expected[1], rtol=rtol)


def test_wrong_arguments_are_named(where):
    with gt.Device(where):
        x, labels = gt.zeros((4, 2, 3)), gt.asarray([[1, 2], [1, 1]])
        for call, text in (
            (lambda: gt.ctc_loss(x, labels, [4, 4], [2, 2], 3), "ctc_loss: blank: got 3"),
            (lambda: gt.ctc_loss(x, labels, [4], [2, 2]), "ctc_loss: shape of input_lengths"),
            (lambda: gt.ctc_loss(x, labels, [4, 5], [2, 2]), "ctc_loss: input_lengths: got 5"),
            (lambda: gt.ctc_loss(x, labels, [4, 4], [2, 3]), "ctc_loss: target_lengths: got 3"),
            (lambda: gt.ctc_loss(x, labels, [4, -1], [2, 2]), "ctc_loss: input_lengths: got -1"),
            (lambda: gt.ctc_loss(x, labels[:1], [4, 4], [2, 2]), "ctc_loss: shape of targets"),
            (lambda: gt.ctc_loss(x, labels.reshape(4), [4, 4], [2, 3]), "ctc_loss: target_len"),
            (lambda: gt.ctc_loss(x, x, [4, 4], [2, 2]), "ctc_loss: dtype of targets"),
            (lambda: gt.ctc_loss(labels, labels, [4], [2]), "ctc_loss: log_probs"),
        ):
            with pytest.raises((TypeError, ValueError), match=text):
                call()
