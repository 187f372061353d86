"""The heat equation on a square plate, by explicit steps on slices.

python examples/numpy_programs/heat_equation.py
"""

import gputensor as gt


def compute(xp, size=64, steps=200):
    """Return the temperature after some steps, and its mean."""
    plate = xp.zeros((size, size), dtype="float64")
    plate[0] = 100
    plate[size // 2, size // 4 : size // 2] = 50
    for _ in range(steps):
        inner = plate[1:-1, 1:-1]
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        plate[1:-1, 1:-1] = inner + 0.2 * (around - 4 * inner)
    return plate, plate.mean()


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
