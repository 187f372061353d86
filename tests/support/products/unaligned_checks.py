"""Unaligned products, compared with float64: any layout, offset, pitch, type and split."""

import numpy as np

import gputensor as gt
from tests.conformance.products.test_matmul import TF32, assert_within, bound, numpy_dtype, wide
from tests.support.internals import unaligned_run

CODES = {"float16": 9, "bfloat16": 10, "float32": 11}
GUARD = 64


class Matrix:
    """A column-major batch at an odd offset in a poisoned buffer."""

    def __init__(self, rng, values, name, rows, columns, batch):
        self.ld = rows + int(rng.integers(0, 4))
        self.stride = self.ld * columns + int(rng.integers(0, 4))
        self.first = GUARD + int(rng.integers(0, 9))
        self.shape = (batch, columns, rows)
        self.name = name
        kind = numpy_dtype(name)
        array = np.full(self.first + self.stride * batch + GUARD, np.nan).astype(kind)
        if values is not None:
            self.view(array)[...] = values
        self.tensor = gt.asarray(array, device="cuda")
        self.before = array
        self.address = self.tensor.data_ptr() + self.first * array.itemsize

    def view(self, array):
        step = array.itemsize
        return np.lib.stride_tricks.as_strided(
            array[self.first :], self.shape, (self.stride * step, self.ld * step, step)
        )

    def result(self):
        """The matrix [batch, rows, columns]; everything around it must be untouched."""
        after = self.tensor.numpy().copy()
        got = self.view(after).copy()
        self.view(after)[...] = self.view(self.before)
        bits = np.dtype(f"u{after.itemsize}")
        assert np.array_equal(after.view(bits), self.before.view(bits)), "wrote outside the result"
        return got.swapaxes(1, 2)


def multiply(rng, name, out, operations, sizes, split, *, alpha=1.0, beta=0.0, has_bias=False):
    m, n, k, batch = sizes
    kind, wide_kind = numpy_dtype(name), numpy_dtype(out)
    left = rng.standard_normal((batch, m, k)).astype(kind)
    right = rng.standard_normal((batch, k, n)).astype(kind)
    a = left if operations[0] else left.swapaxes(1, 2)
    b = right if operations[1] else right.swapaxes(1, 2)
    a = Matrix(rng, a, name, a.shape[2], a.shape[1], batch)
    b = Matrix(rng, b, name, b.shape[2], b.shape[1], batch)
    addend = rng.standard_normal((batch, n, m)).astype(wide_kind)
    bias = rng.standard_normal(m).astype(wide_kind)
    c = Matrix(rng, addend, out, m, n, batch)
    d = Matrix(rng, None, out, m, n, batch)
    vector = Matrix(rng, bias, out, m, 1, 1)
    unaligned_run(
        0,
        gt.current_stream("cuda").cuda_stream,
        (CODES[name], CODES[out]),
        operations,
        sizes,
        (a.address, b.address, c.address, d.address, vector.address if has_bias else 0),
        ((a.ld, b.ld, c.ld, d.ld), (a.stride, b.stride, c.stride, d.stride)),
        split=split,
        alpha=alpha,
        beta=beta,
    )
    exact = alpha * (wide(left) @ wide(right))
    limit = abs(alpha) * bound(left, right, name, 2 * TF32 if name == "float32" else 0.0)
    if beta:
        exact = exact + beta * wide(addend).swapaxes(1, 2)
    if has_bias:
        exact = exact + wide(bias)[:, None]
    limit = limit + (2.0**-7 if out == "bfloat16" else 2.0**-10) * np.abs(exact) + 1e-6
    assert_within(d.result(), exact, limit)
