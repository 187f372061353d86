"""Formulas along rows: their limits, the text of their kernels, and parts on the host."""

import os
import subprocess
import sys

import numpy as np
import pytest

from gputensor._kernels.formula import (
    MAX_DEPTH,
    MAX_LOADS,
    MAX_STEPS,
    MAX_WRITTEN,
    OPERATIONS,
    formula,
)
from gputensor._kernels.host import formula as host_formula

X = ("load", 0)
TEXT_OF_TWO_KEPT_STEPS = """
from gputensor._kernels import row_program
from gputensor._kernels.formula import formula

x = ("load", 0)
root, power, wave = ("sqrt", x), ("exp", x), ("sin", x)
first = ("fold", "sum", ("add", ("add", root, power), wave))
made = formula([("sub", ("mul", ("mul", root, power), wave), first)])
print(row_program.program(made, {
    "dtypes": (11, 11), "modes": (0, 0), "vector": 4, "units": 2, "lanes": 32, "rows": 8,
    "across": 0, "cluster": 1, "loop": 0, "cached": 0, "together": 0, "map": 0, "full": 0,
    "ahead": 0, "column_axes": 1, "kept_axes": 1, "is_double": False,
}).text())
"""


def nested(depth):
    tree = X
    for _ in range(depth):
        tree = ("neg", tree)
    return tree


def doubled(times):
    tree = X
    for _ in range(times):
        tree = ("add", tree, tree)
    return tree


def chain(steps):
    """A tree of `steps` distinct steps that is not deep."""
    parts = [("add", X, ("number", float(i))) for i in range(steps)]
    while len(parts) > 1:
        parts = [("add", *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)] + (
            parts[-1:] if len(parts) % 2 else []
        )
    return parts[0]


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (nested(MAX_DEPTH + 1), f"expected at most {MAX_DEPTH}$"),
        (doubled(10), f"expected at most {MAX_WRITTEN}$"),
        (chain(MAX_STEPS), f"distinct steps; expected at most {MAX_STEPS}$"),
        (("load", MAX_LOADS), "got step 'load'"),
    ],
)
def test_trees_beyond_a_limit(tree, text):
    with pytest.raises(ValueError, match=text):
        formula([tree])


def test_each_operation_is_a_step():
    for name, row in OPERATIONS.items():
        assert formula([("neg", (name, *[X] * row.arity))]).loads == 1


def test_trees_at_the_limits():
    assert formula([nested(MAX_DEPTH)]).loads == 1
    assert formula([doubled(8)]).loads == 1
    assert formula([("load", MAX_LOADS - 1)]).loads == MAX_LOADS


def test_text_is_the_same_in_each_process():
    # The disk cache finds a kernel by its text.
    texts = {
        subprocess.run(
            [sys.executable, "-c", TEXT_OF_TWO_KEPT_STEPS],
            env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(texts) == 1 and "sqrt" in texts.pop()


@pytest.mark.parametrize("kept", [(9, 4), (1, 30), (1, 1, 7, 3), (41,), (1,)])
def test_the_host_computes_rows_in_parts(rng, monkeypatch, kept):
    """Results do not depend on the size of a part; row numbers and constants along rows hold."""
    x = rng.standard_normal((*kept, 2, 5)).astype(np.float32)
    weight = np.broadcast_to(rng.standard_normal((2, 5)).astype(np.float32), x.shape)
    load, row = ("load", 0), ("add", ("row",), ("rows",))
    trees = (
        ("mul", ("sub", load, ("fold", "mean", load)), ("add", ("load", 1), row)),
        ("fold", "max", ("add", load, ("column",))),
    )
    number = np.arange(kept[-1], dtype=np.float32).reshape(-1, 1, 1) + kept[-1]
    flat = x.reshape(*kept, 10) + np.arange(10, dtype=np.float32)
    wanted = (x - x.mean((-2, -1), keepdims=True)) * (weight + number), flat.max(-1)
    for part in (1, 37, 1 << 18):
        monkeypatch.setattr(host_formula, "PART", part)
        outs = np.full_like(x, np.nan), np.full((*kept, 1, 1), np.nan, np.float32)
        host_formula.run(trees, 2, *outs, x, weight)
        np.testing.assert_allclose(outs[0], wanted[0], rtol=2e-5, atol=1e-4)
        np.testing.assert_array_equal(outs[1][..., 0, 0], wanted[1])
