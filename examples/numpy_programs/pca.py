"""Principal components by the singular values of centred data.

python examples/numpy_programs/pca.py
"""

import numpy as np

import gputensor as gt


def compute(xp):
    """Return the share of the variance in each component, and the data in two of them."""
    rng = np.random.default_rng(2)
    data = xp.asarray(rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6)))
    centred = data - xp.mean(data, axis=0)
    _, values, directions = xp.linalg.svd(centred, full_matrices=False)
    share = values**2 / xp.sum(values**2)
    return share, xp.abs(centred @ directions[:2].T)


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
