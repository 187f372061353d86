"""Products of floats on a host device have the bits of NumPy's, written into any result."""

import numpy as np
import pytest

import gputensor as gt

SHAPES = {
    "matrices": ((7, 5), (5, 9)),
    "of one term": ((6, 1), (1, 8)),
    "stacks of one term": ((3, 6, 1), (3, 1, 4)),
    "one term for all": ((2, 3, 6, 1), (1, 4)),
    "of no terms": ((3, 0), (0, 4)),
    "stacks": ((3, 4, 5), (5, 2)),
    "vectors": ((9,), (9,)),
    "vectors of one element": ((1,), (1,)),
    "a matrix and a vector": ((4, 1), (1,)),
    "a vector and a matrix": ((1,), (1, 4)),
    "large of one term": ((300, 1), (1, 200)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_products_are_numpys(rng, name, dtype):
    first, second = SHAPES[name]
    a, b = (rng.choice([-1.5, -0.0, 0.0, 0.1, 3.7], shape).astype(dtype) for shape in SHAPES[name])
    if dtype.startswith("complex"):
        a = a + 1j * rng.choice([0.0, -2.5], first).astype(a.real.dtype)
    want = np.matmul(a, b)
    given = gt.asarray(a, device="host"), gt.asarray(b, device="host")
    assert gt.matmul(*given).numpy().tobytes() == np.asarray(want).tobytes()
    for order in (range(want.ndim), reversed(range(want.ndim))):
        order = tuple(order)
        whole = gt.full((*(want.shape[i] for i in order), 2), 7, dtype=dtype, device="host")
        out = gt.permute_dims(whole[..., 0], tuple(int(i) for i in np.argsort(order)))
        gt.matmul(*given, out=out)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-6, atol=1e-6)
        assert (whole[..., 1].numpy() == 7).all()


def test_products_of_one_term_with_infinities_and_nan(rng):
    a = np.array([[np.inf], [-np.inf], [np.nan], [0.0], [-2.0]])
    b = np.array([[1.0, -0.0, np.inf, np.nan, 3.0]])
    for dtype in ("float32", "float64"):
        x, y = a.astype(dtype), b.astype(dtype)
        with np.errstate(all="ignore"):
            want = np.matmul(x, y)
        got = gt.matmul(gt.asarray(x, device="host"), gt.asarray(y, device="host")).numpy()
        np.testing.assert_array_equal(got, want)
        numbers = ~np.isnan(want)
        assert (np.signbit(got) == np.signbit(want))[numbers].all()
