"""Borders by odd reflection, sinc of complex numbers, `put` and `gradient`: NumPy's results."""

import numpy as np
import pytest

import gputensor as gt


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "uint8", "complex128"])
def test_odd_reflections_are_those_of_numpy(where, rng, mode, dtype):
    for _ in range(25):
        shape = tuple(rng.integers(1, 7, rng.integers(1, 4)).tolist())
        x = (rng.integers(0, 100, shape) + (0.5 if dtype[0] in "fc" else 0)).astype(dtype)
        widths = rng.integers(0, 9, (len(shape), 2)).tolist()
        got = gt.pad(gt.asarray(x, device=where), widths, mode, reflect_type="odd")
        assert got.dtype == dtype
        want = np.pad(x, widths, mode, reflect_type="odd")
        np.testing.assert_allclose(got.numpy(), want, 1e-5 if dtype == "float32" else 1e-13)


def test_arguments_of_reflections(where):
    x = gt.asarray([1.0, 2.0, 4.0], device=where)
    assert gt.pad(x, 2, "reflect", reflect_type="even").tolist() == [4, 2, 1, 2, 4, 2, 1]
    assert gt.pad(x, 0, "reflect", reflect_type="odd").tolist() == [1, 2, 4]
    with pytest.raises(ValueError, match="pad: reflect_type: got 'both'; expected 'even' or 'odd'"):
        gt.pad(x, 2, "reflect", reflect_type="both")
    with pytest.raises(ValueError, match="pad: x: got axis 0 with extent 0"):
        gt.pad(x[:0], 1, "reflect", reflect_type="odd")
    with pytest.raises(TypeError, match="pad: keyword: got edges=; expected none"):
        gt.pad(x, 2, "reflect", edges=3)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sinc_of_complex_numbers(where, rng, dtype):
    x = rng.standard_normal(500) + 1j * rng.standard_normal(500)
    x[:4] = 0, 1, 1j, 1e-30
    x = x.astype(dtype)
    got = gt.sinc(gt.asarray(x, device=where))
    assert got.dtype == dtype
    error = np.abs(got.numpy() - np.sinc(x.astype("complex128")))
    scale = np.abs(np.sinc(x.astype("complex128"))) + 1 / (1 + np.abs(x))
    assert (error <= (3e-6 if dtype == "complex64" else 1e-14) * scale * (1 + np.abs(x))).all()


def test_put_writes_in_place_and_returns_none(where):
    x = gt.zeros((2, 3), device=where)
    assert x.put([0, -1], [1.0, 2.0]) is None
    assert x.tolist() == [[1, 0, 0], [0, 0, 2]]


@pytest.mark.parametrize("axis", [None, 0, -1, (1,), (0, 2), [2, 0], ()])
def test_gradient_has_the_form_of_numpys(where, rng, axis):
    x = rng.standard_normal((4, 5, 6))
    got, want = gt.gradient(gt.asarray(x, device=where), axis=axis), np.gradient(x, axis=axis)
    assert isinstance(got, tuple) == isinstance(want, tuple)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for one, other in pairs:
        np.testing.assert_allclose(one.numpy(), other, 1e-13, 1e-13)
