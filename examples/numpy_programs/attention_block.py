"""One block of a transformer: attention with a causal mask, a residual, a norm.

python examples/numpy_programs/attention_block.py
"""

import numpy as np

import gputensor as gt


def compute(xp, length=32, heads=4, width=64):
    """Return the block's result and the attention of its first head."""
    rng = np.random.default_rng(9)
    x = xp.asarray(rng.normal(size=(length, width)))
    weights = [xp.asarray(rng.normal(size=(width, width)) / width**0.5) for _ in range(4)]
    q, k, v = (
        xp.permute_dims(xp.reshape(x @ one, (length, heads, -1)), (1, 0, 2)) for one in weights[:3]
    )
    score = q @ xp.matrix_transpose(k) / (width // heads) ** 0.5
    score = xp.where(xp.tril(xp.ones((length, length))) > 0, score, -xp.inf)
    share = xp.exp(score - xp.max(score, axis=-1, keepdims=True))
    share = share / xp.sum(share, axis=-1, keepdims=True)
    mixed = xp.reshape(xp.permute_dims(share @ v, (1, 0, 2)), (length, width))
    y = x + mixed @ weights[3]
    y = (y - xp.mean(y, axis=-1, keepdims=True)) / xp.std(y, axis=-1, keepdims=True)
    return y, share[0]


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
