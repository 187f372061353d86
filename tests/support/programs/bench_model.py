"""A program of two functions for timings: a product, a loop with a condition, a state."""

import numpy as np

import gputensor as gt

ROWS = gt.Dim("n", 1, 8)


def norms(x, *, weights):
    h = gt.relu(x @ weights["w"])
    return gt.softmax(h), gt.while_loop(lambda c: gt.max(c) < 9, lambda c: c * 2 + 1, h)


def count(*, state):
    state["count"] += 1
    return state["count"] * 1


def two_functions(target):
    """Return the program, compiled for a target."""
    functions = {"norms": (norms, gt.spec((ROWS, 64))), "count": (count,)}
    weights = {"w": np.eye(64, dtype=np.float32)}
    return gt.compile(functions, weights=weights, state={"count": gt.spec((2,))}, target=target)
