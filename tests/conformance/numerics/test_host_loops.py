"""NumPy's ``nditer`` and ``poly1d``, medians of complex numbers, and norms of no elements."""

import warnings

import numpy as np
import pytest

import gputensor as gt


def test_nditer_reads_in_numpys_order(rng, where):
    a = rng.normal(size=(3, 4)).astype("float32")
    x = gt.asarray(a, device=where)
    for order in "CF":
        for ours, theirs in ((x, a), (x.T, a.T)):
            found = [float(one) for one in gt.nditer(ours, order=order)]
            assert found == [float(one) for one in np.nditer(theirs, order=order)]
    loop = gt.nditer(x, flags=["multi_index"])
    assert all(float(one) == a[loop.multi_index] for one in loop)
    loop, seen = gt.nditer(x, flags=["f_index"]), []
    while not loop.finished:
        seen.append((loop.index, float(loop[0])))
        loop.iternext()
    assert sorted(seen) == list(enumerate(a.ravel("F").tolist()))


def test_nditer_writes_back(rng, where):
    a, b = rng.normal(size=(3, 4)), rng.normal(size=4)
    x, y = gt.asarray(a, device=where), gt.asarray(b, device=where)
    with gt.nditer([x, y], op_flags=[["readwrite"], ["readonly"]]) as loop:
        for one, other in loop:
            one[...] = one * other
    np.testing.assert_array_equal(x.numpy(), a * b)
    np.testing.assert_array_equal(y.numpy(), b)
    loop = gt.nditer([x, y, None])
    for one, other, made in loop:
        made[...] = one + other
    np.testing.assert_array_equal(loop.operands[2].numpy(), a * b + b)
    assert loop.operands[0] is x
    with pytest.raises(ValueError, match="nditer: arguments: got what NumPy refuses"):
        gt.nditer(x, flags=["none such"])
    with pytest.raises(ValueError, match="nditer: arguments"):
        gt.nditer([x, gt.ones(7, device=where)])


def test_poly1d_computes_as_numpys(rng, where):
    a, b = rng.normal(size=4), rng.normal(size=3)
    p, q = (gt.poly1d(gt.asarray(one, device=where)) for one in (a, b))
    r, s = np.poly1d(a), np.poly1d(b)
    points = rng.normal(size=(2, 3))
    for ours, theirs in (
        (p + q, r + s),
        (q - p, s - r),
        (p * q, r * s),
        (2 * p, 2 * r),
        (1 - p, 1 - r),
        (-p, -r),
        (p / 2, r / 2),
        (p**3, r**3),
        (p(q), r(s)),
        (p.deriv(), r.deriv()),
        (p.integ(2, k=1), r.integ(2, k=1)),
        (p / q, r / s),
    ):
        for one, other in zip(
            *((two if isinstance(two, tuple) else (two,)) for two in (ours, theirs)), strict=True
        ):
            np.testing.assert_allclose(one.c.numpy(), other.c, rtol=1e-9, atol=1e-12)
            assert one.order == other.order == len(one)
    found = p(gt.asarray(points, device=where)).numpy()
    np.testing.assert_allclose(found, r(points), rtol=1e-12)
    roots = np.sort_complex(p.r.numpy())
    np.testing.assert_allclose(roots, np.sort_complex(r.r), rtol=1e-6)
    made = gt.poly1d(gt.asarray([1.0, 2.0], device=where), True)
    assert made.c.tolist() == [1.0, -3.0, 2.0] and made[1].item() == -3 and made[7].item() == 0
    made[4] = 5
    assert made.c.tolist() == [5.0, 0.0, 1.0, -3.0, 2.0] and str(made).startswith("5 x^4 + 0 x^3")
    assert gt.poly1d(gt.asarray([0, 0, 3], device=where)) == gt.poly1d(
        gt.asarray([3], device=where)
    )
    assert p != q and gt.poly1d(p) == p
    for wrong in (lambda: p**-1, lambda: p["a"], lambda: gt.poly1d(gt.ones((2, 2), device=where))):
        with pytest.raises((TypeError, ValueError), match="^poly1d: .*: got .*; expected"):
            wrong()


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_medians_of_complex_numbers(rng, where, name, dtype):
    for shape, axis in (((5,), None), ((4, 3), 0), ((4, 3), (0, 1)), ((2, 3, 4), -1), ((1,), 0)):
        a = (rng.normal(size=shape).round() + 1j * rng.normal(size=shape)).astype(dtype)
        gaps = a.copy()
        gaps[rng.random(shape) < 0.3] = np.nan
        for values in (a, gaps):
            x = gt.asarray(values, device=where)
            for keepdims in (False, True):
                found = getattr(gt, name)(x, axis=axis, keepdims=keepdims)
                with warnings.catch_warnings(action="ignore"):
                    expected = getattr(np, name)(values, axis=axis, keepdims=keepdims)
                assert found.dtype == dtype
                np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_greatest_norms_of_no_elements_are_zero(where):
    for shape in ((0,), (0, 2), (3, 0), (2, 3, 0), (0, 3, 3)):
        for dtype in ("float32", "complex128"):
            a = np.zeros(shape, dtype)
            x = gt.asarray(a, device=where)
            for axis in (None, -1, 0):
                if axis is not None or len(shape) < 3:
                    found = gt.linalg.vector_norm(x, ord=np.inf, axis=axis)
                    expected = np.linalg.vector_norm(a, ord=np.inf, axis=axis)
                    np.testing.assert_array_equal(found.numpy(), expected)
            for ord in (1, 2, np.inf, "nuc", "fro") if len(shape) > 1 else ():
                for keepdims in (False, True):
                    found = gt.linalg.matrix_norm(x, ord=ord, keepdims=keepdims)
                    expected = np.linalg.matrix_norm(a, ord=ord, keepdims=keepdims)
                    assert found.dtype == expected.dtype
                    np.testing.assert_array_equal(found.numpy(), expected)
    with pytest.raises(ValueError, match="no elements"):
        gt.linalg.vector_norm(gt.zeros(0, device=where), ord=-np.inf)
