"""Conway's Game of Life on a torus, by rolled copies.

python examples/numpy_programs/game_of_life.py
"""

import numpy as np

import gputensor as gt


def compute(xp, steps=40):
    """Return the cells after some steps, and the number of live ones."""
    cells = xp.asarray(np.random.default_rng(4).random((48, 48)) < 0.3)
    for _ in range(steps):
        number = xp.astype(cells, "int32")
        count = sum(
            xp.roll(number, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx
        )
        cells = (count == 3) | (cells & (count == 2))
    return cells, xp.sum(cells)


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
