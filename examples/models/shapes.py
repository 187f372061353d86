"""Drawings of a shape and their captions, with NumPy alone."""

import numpy as np

EXTENT = 32  # of an image, in pixels
SHAPES = ("circle", "square", "triangle", "cross")
COLORS = {
    "red": (1, 0.15, 0.1), "green": (0.1, 0.8, 0.2), "blue": (0.15, 0.25, 1),
    "yellow": (1, 0.9, 0.1), "white": (1, 1, 1),
}  # fmt: skip
SIZES = {"small": (3.5, 4.6), "large": (6.4, 8.0)}
PLACES = {
    "in the middle": (0.5, 0.5), "at the top left": (0.28, 0.28), "at the top right": (0.28, 0.72),
    "at the bottom left": (0.72, 0.28), "at the bottom right": (0.72, 0.72),
}  # fmt: skip


def words():
    """Return all words of captions, in order; the end marker comes first."""
    texts = [*SHAPES, *COLORS, *SIZES, *PLACES]
    return ["", "a", *sorted({word for text in texts for word in text.split()})]


def caption(rng):
    """Return a random caption, such as "a small red circle at the top left"."""
    size, color, shape, place = (
        rng.choice(list(names)) for names in (SIZES, COLORS, SHAPES, PLACES)
    )
    return f"a {size} {color} {shape} {place}"


def drawn(text, rng):
    """Draw a caption with random variations: float32 (3, EXTENT, EXTENT), 0 to 1."""
    _a, size, color, shape, *place = text.split()
    radius = rng.uniform(*SIZES[size])
    middle = np.array(PLACES[" ".join(place)]) * EXTENT + rng.uniform(-1.5, 1.5, 2)
    y, x = np.meshgrid(*(np.arange(EXTENT) + 0.5 - at for at in middle), indexing="ij")
    turn = rng.uniform(-0.2, 0.2)
    x, y = x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)
    far = {
        "circle": np.hypot(x, y),
        "square": np.maximum(abs(x), abs(y)) * 1.15,
        "triangle": np.maximum(y * 1.5, 1.7 * abs(x) - 0.9 * y) * 0.9,
        "cross": np.maximum(np.minimum(abs(x), abs(y)) * 3, np.maximum(abs(x), abs(y))),
    }[shape]
    cover = np.clip(radius - far + 0.5, 0, 1)
    shade = np.array(COLORS[color]) * rng.uniform(0.75, 1)
    image = rng.uniform(0, 0.3) + rng.normal(0, 0.04, (3, EXTENT, EXTENT))
    image = image * (1 - cover) + shade[:, None, None] * cover
    return np.clip(image, 0, 1).astype(np.float32)
