"""Linear systems: a general one, and a symmetric one by Cholesky's factor.

python examples/numpy_programs/linear_solves.py
"""

import numpy as np

import gputensor as gt


def compute(xp, size=50):
    """Return both solutions and the largest residual."""
    rng = np.random.default_rng(10)
    a, b = xp.asarray(rng.normal(size=(size, size))), xp.asarray(rng.normal(size=(size, 3)))
    x = xp.linalg.solve(a, b)
    symmetric = a @ a.T + size * xp.eye(size, dtype="float64")
    lower = xp.linalg.cholesky(symmetric)
    y = xp.linalg.solve(lower.T, xp.linalg.solve(lower, b))
    residual = xp.maximum(xp.max(xp.abs(a @ x - b)), xp.max(xp.abs(symmetric @ y - b)))
    return x, y, xp.round(residual, 6)


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
