"""Checks of a program's control flow on a device against NumPy."""

import numpy as np

import gputensor as gt
from gputensor.programs.program import Program
from tests.support.programs import loops

BOUNDS = [(0, 0), (3, 4), (-1, 1), (2, 7), (5, 2)]
LENGTHS = [0, 1, 2, 5]


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def call(program, device, *arrays):
    """Return a program's results, and check that a different call between two changes nothing."""
    inputs = [gt.asarray(np.asarray(array), device=device) for array in arrays]
    first = program(*inputs)
    program(*(gt.zeros_like(one) + 9 for one in inputs))
    second = program(*inputs)
    found = []
    for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (first, second)),
                          strict=True):  # fmt: skip
        np.testing.assert_array_equal(one.numpy(), other.numpy())
        found.append(one.numpy())
    return found


def check_while_loop(device, rng):
    program = Program(loops.while_program(), device)
    for turns in (0, 1, 2, 5):
        x, y = floats(rng, 6), abs(floats(rng, 6)) + 0.5
        steps, want = 0, x.copy()
        limit = np.float32((x + turns * y).max())
        while want.max() < limit:
            want, steps = want + y, steps + 1
        doubled, result = call(program, device, x, y, limit)
        np.testing.assert_array_equal(result, want)
        np.testing.assert_array_equal(doubled, want)


def check_cond(device, rng):
    data, w = loops.cond_program(rng)
    program = Program(data, device)
    for sign in (-1, 1):
        x = floats(rng, 6)
        x[0] = sign * abs(x[0]) + sign
        (result,) = call(program, device, x)
        np.testing.assert_array_equal(result, x + 1 if sign < 0 else x * w)


def check_fori_loop(device, rng, bounds):
    program = Program(loops.fori_program(*bounds), device)
    x, y = floats(rng, 6), floats(rng, 6)
    results = call(program, device, x, y)
    for index in range(*bounds):
        x, y = y, x + np.float32(index) * y
    np.testing.assert_allclose(results, (x, y), rtol=1e-5, atol=1e-5)


def check_scan(device, rng, length, reverse):
    program = Program(loops.scan_program(length, reverse), device)
    x, rows, y = floats(rng, 6), floats(rng, length, 6), floats(rng, 6)
    last, stacked = call(program, device, x, rows, y)
    want = np.zeros((length, 6), np.float32)
    for at in reversed(range(length)) if reverse else range(length):
        x = x * y + rows[at]
        want[at] = x
    np.testing.assert_allclose(last, x, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(stacked, want, rtol=1e-5, atol=1e-5)
