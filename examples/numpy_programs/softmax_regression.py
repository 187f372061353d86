"""Softmax regression on the digits of scikit-learn, by gradient descent.

python examples/numpy_programs/softmax_regression.py
"""

import gputensor as gt


def compute(xp, steps=80):
    """Return the share of digits that are classified correctly, and the weights."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    x = xp.asarray(pixels / 16)
    y = xp.astype(xp.asarray(labels)[:, None] == xp.arange(10)[None], x.dtype)
    weights = xp.zeros((64, 10), dtype="float64")
    for _ in range(steps):
        logits = x @ weights
        share = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
        share = share / xp.sum(share, axis=1, keepdims=True)
        weights = weights - 0.5 * (x.T @ (share - y)) / x.shape[0] * 10
    right = xp.argmax(x @ weights, axis=1) == xp.argmax(y, axis=1)
    return xp.mean(xp.astype(right, "float64")), weights


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
