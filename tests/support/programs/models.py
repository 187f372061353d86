"""Hand-written programs, some with NumPy references."""

import numpy as np

from gputensor.programs.dims import Dim
from tests.support.programs.builder import Builder, program_data

N = ("dim", "n")


def mlp(rng, widths=(12, 16, 8), dtype="float32"):
    """Return (ProgramData, reference): x -> relu(x @ w + b) ..., with 1 to 64 rows."""
    build = Builder("mlp", [Dim("n", 1, 64)])
    x = build.input("x", dtype, (N, widths[0]))
    layers = []
    for number, (rows, columns) in enumerate(zip(widths, widths[1:], strict=False)):
        w = rng.standard_normal((rows, columns)).astype(dtype)
        b = rng.standard_normal((1, columns)).astype(dtype)
        layers.append((w, b))
        product = build.product(x, build.weight(f"{number}.w", w))
        total = build.elementwise("add", product, build.weight(f"{number}.b", b), dtype=dtype)
        x = build.elementwise("maximum", total, 0.0, dtype=dtype)
    build.output(x)

    def reference(x):
        x = x.astype(np.float64)
        for w, b in layers:
            x = np.maximum(x @ w.astype(np.float64) + b, 0)
        return x

    return program_data(build), reference


def counter():
    """Return a program with a state of 8 float32: `step(x)` adds x, returns it and its double."""
    build = Builder("step")
    x, total = build.input("x", "float32", (8,)), build.state("total", "float32", (8,))
    total = build.write(total, build.elementwise("add", total, x))
    build.output(build.elementwise("mul", total, 1.0), build.elementwise("mul", total, 2.0))
    return program_data(build)


def chain(length, count=1, shape=(64, 64)):
    """Return a program of `count` inputs, each added `length` // `count` times to a sum."""
    build = Builder("chain")
    inputs = [build.input(f"x{i}", "float32", shape) for i in range(count)]
    total = build.elementwise("mul", inputs[0], 1.0)
    for number in range(length - 1):
        total = build.elementwise("add", total, inputs[(number + 1) % count])
    build.output(total)
    return program_data(build)
