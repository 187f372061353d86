"""Packed products, compared with float64: views of any order and offset, addends, factors."""

import numpy as np

import gputensor as gt
from tests.conformance.products.test_matmul import assert_within, bound, random_array, wide

POISON = 7.0


def placed(rng, array):
    """The array on the device as a view at an odd offset, with padded lines, in either order."""
    turned = bool(rng.integers(2))
    lines = array.T if turned else array
    rows, columns = lines.shape
    pitch, offset = columns + int(rng.integers(0, 4)), int(rng.integers(0, 9))
    flat = gt.full((offset + rows * pitch + 64,), POISON, dtype=array_type(array), device="cuda")
    view = gt.reshape(flat[offset : offset + rows * pitch], (rows, pitch))[:, :columns]
    view[...] = gt.asarray(np.ascontiguousarray(lines), device="cuda")
    return flat, (view.T if turned else view)


def array_type(array):
    return gt.asarray(np.zeros(1, dtype=array.dtype)).dtype


def precision(name):
    return "tf32" if name == "float32" else None


def limit_of(a, b, name):
    # TF32 has 11 bits: each factor is off by 2**-11 at most, rounded or cut off.
    if name == "float32":
        return bound(a, b, name) + 2.0**-9 * (np.abs(wide(a)) @ np.abs(wide(b)))
    return bound(a, b, name)


def check(rng, name, m, n, k):
    """Compare one product of views of any order, offset and pitch with float64."""
    a, b = random_array(rng, (m, k), name), random_array(rng, (k, n), name)
    x, y = placed(rng, a)[1], placed(rng, b)[1]
    flat, out = placed(rng, np.full((m, n), POISON, dtype=a.dtype))
    gt.matmul(x, y, out=out, precision=precision(name))
    assert_within(out.numpy(), wide(a) @ wide(b), limit_of(a, b, name))
    out[...] = POISON
    assert np.all(flat.numpy().astype(np.float64) == POISON), "written outside the result"


def check_addend(rng, name, m, n, k):
    """Compare products with an addend and factors with float64; with factor 0 it is not read."""
    unit = {"float32": 2.0**-21, "float16": 2.0**-8, "bfloat16": 2.0**-5}[name]
    a, b, c = (random_array(rng, s, name) for s in ((m, k), (k, n), (m, n)))
    x, y, z = (placed(rng, array)[1] for array in (a, b, c))
    poison = gt.full((m, n), np.nan, dtype=x.dtype, device="cuda")
    with gt.blas.precision(allow_tf32=True):
        for got, exact in (
            (gt.addmm(z, x, y, alpha=0.5, beta=-2.0), 0.5 * (wide(a) @ wide(b)) - 2 * wide(c)),
            (gt.addmm(poison, x, y, beta=0, alpha=2.0), 2 * (wide(a) @ wide(b))),
        ):
            size = np.abs(exact) + 3 * np.abs(wide(c))
            assert_within(got.numpy(), exact, 2 * limit_of(a, b, name) + unit * size)
