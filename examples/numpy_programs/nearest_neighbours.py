"""The ten nearest of many vectors, by cosine.

python examples/numpy_programs/nearest_neighbours.py
"""

import numpy as np

import gputensor as gt


def compute(xp, count=10):
    """Return the indices of the nearest vectors to each query, and their cosines."""
    rng = np.random.default_rng(11)
    base = xp.asarray(rng.normal(size=(2000, 32)))
    query = xp.asarray(rng.normal(size=(5, 32)))
    base, query = (one / xp.linalg.vector_norm(one, axis=1, keepdims=True) for one in (base, query))
    cosine = query @ base.T
    order = xp.argsort(-cosine, axis=1)[:, :count]
    return order, xp.take_along_axis(cosine, order, axis=1)


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
