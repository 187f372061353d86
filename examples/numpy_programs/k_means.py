"""K-means: points go to the nearest of k centres, centres to the mean of their points.

python examples/numpy_programs/k_means.py
"""

import numpy as np

import gputensor as gt


def compute(xp, steps=10):
    """Return the centres, the label of each point, and the sum of squared distances."""
    rng = np.random.default_rng(1)
    middle = rng.normal(size=(4, 2)) * 6
    points = xp.asarray(np.concatenate([rng.normal(size=(200, 2)) + one for one in middle]))
    centres = points[::200]
    for _ in range(steps):
        distance = xp.sum((points[:, None] - centres[None]) ** 2, axis=-1)
        label = xp.argmin(distance, axis=1)
        member = xp.astype(label[:, None] == xp.arange(4)[None], points.dtype)
        centres = (member.T @ points) / xp.sum(member, axis=0)[:, None]
    return centres, label, xp.sum(xp.min(distance, axis=1))


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
