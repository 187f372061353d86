"""Eager products whose weights a block holds, compared with float64: views, biases, addends."""

import numpy as np

import gputensor as gt
from tests.conformance.products.test_matmul import assert_within, bound, random_array, wide
from tests.support.fused_checks import activated

POISON = 7.0


def placed(rng, array, *, turned=False):
    """The array on the device as a view at an aligned offset, with lines of whole 16 bytes."""
    lines = array.T if turned else array
    rows, columns = lines.shape
    pitch, offset = columns + 8 * int(rng.integers(0, 3)), 8 * int(rng.integers(0, 9))
    dtype = gt.asarray(np.zeros(1, dtype=array.dtype)).dtype
    flat = gt.full((offset + rows * pitch + 64,), POISON, dtype=dtype, device="cuda")
    view = gt.reshape(flat[offset : offset + rows * pitch], (rows, pitch))[:, :columns]
    view[...] = gt.asarray(np.ascontiguousarray(lines), device="cuda")
    return flat, (view.T if turned else view)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


def check(rng, name, m, n, k):
    """Compare a product with a bias and an activation, and one with an addend."""
    a, w, c = (random_array(rng, s, name) for s in ((m, k), (n, k), (m, n)))
    bias = random_array(rng, (n,), name)
    x, z = placed(rng, a)[1], placed(rng, c)[1]
    weight = placed(rng, w, turned=bool(rng.integers(2)))[1]
    exact, limit = wide(a) @ wide(w).T, bound(a, w.T, name)
    unit = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[name]
    activation = rng.choice([None, "relu", "gelu_tanh"])
    flat, out = placed(rng, np.full((m, n), POISON, dtype=a.dtype))
    gt.linear(x, weight, gt.asarray(bias, device="cuda"), activation=activation, out=out)
    expected = exact + wide(bias)
    more = limit + unit * np.abs(expected)
    end = gelu_tanh if activation == "gelu_tanh" else lambda given: activated(activation, given)
    assert_within(out.numpy(), end(expected), 1.2 * more)
    out[...] = POISON
    assert np.all(flat.numpy().astype(np.float64) == POISON), "written outside the result"
    expected = exact + wide(c)
    assert_within(gt.addmm(z, x, weight.T).numpy(), expected, limit + unit * np.abs(expected))


def sizes(rng, rows=1024):
    """Sizes that the model leaves to held weights on a Hopper GPU of any size."""
    m = rows + int(rng.integers(0, 200))
    return m, 8 * int(rng.integers(8, 24)), 8 * int(rng.integers(5, 16))
