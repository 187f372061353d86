"""PageRank of a random web, by power iteration.

python examples/numpy_programs/page_rank.py
"""

import numpy as np

import gputensor as gt


def compute(xp, pages=200, steps=60, damping=0.85):
    """Return the rank of each page, and the first ten pages."""
    links = np.random.default_rng(7).random((pages, pages)) < 0.03
    links = xp.astype(xp.asarray(links), "float64")
    out = xp.sum(links, axis=0)
    columns = xp.where(out > 0, links / xp.maximum(out, 1.0), 1 / pages)
    rank = xp.full((pages,), 1 / pages, dtype="float64")
    for _ in range(steps):
        rank = damping * (columns @ rank) + (1 - damping) / pages
    return rank, xp.argsort(rank)[::-1][:10]


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
