"""Random arrays for the tensor tests, and the comparison with NumPy."""

import ml_dtypes
import numpy as np

import gputensor as gt

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = [np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("float64")]
COMPLEX = [np.dtype("complex64"), np.dtype("complex128")]
BOOL = np.dtype("bool")
DTYPES = [BOOL, *INTEGERS, *FLOATS, *COMPLEX]

# Units in the last place by which a correct result may differ, and more for longer chains.
EPSILON = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-22, "float64": 2**-50}


def random_array(rng, shape, dtype, low=-50, high=50):
    """Return small whole numbers (exact in every dtype) as `dtype`; wide floats with fractions."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.kind == "u":
        return np.asarray(rng.integers(0, high, shape)).astype(dtype)
    values = np.asarray(rng.integers(low, high, shape)).astype(np.float64)
    if dtype.kind == "c":
        return (values + 1j * rng.integers(low, high, shape)).astype(dtype)
    if dtype.kind in "fV" and dtype.itemsize >= 4:
        values = values + rng.random(shape)
    return np.asarray(values).astype(dtype)


def random_view(rng, array, device):
    """Return (ndarray, tensor) with equal values, in a random layout of `array`'s elements."""
    order = rng.permutation(array.ndim)
    inverse = np.argsort(order)
    steps = rng.integers(1, 3, array.ndim)
    store = np.zeros([n * s for n, s in zip(array.shape, steps, strict=True)], array.dtype)
    store[tuple(slice(None, None, s) for s in steps)] = array
    host = np.array(store.transpose(order), order="C")
    flips = [-1 if rng.integers(2) else 1 for _ in steps]
    host = np.flip(host, tuple(i for i in range(host.ndim) if flips[i] < 0))
    tensor = gt.flip(
        gt.asarray(host, device=device), axis=tuple(i for i in range(host.ndim) if flips[i] < 0)
    )
    tensor = gt.permute_dims(tensor, [int(i) for i in inverse])
    tensor = tensor[tuple(slice(None, None, int(s)) for s in steps)]
    return array, tensor


def check_same(actual, expected, tolerance=0.0, name=""):
    """Check shape, dtype and values, exactly or within `tolerance` relative to the largest."""
    assert isinstance(actual, gt.Tensor)
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, f"{name}: shape {actual.shape}, not {expected.shape}"
    assert actual.dtype == expected.dtype, f"{name}: dtype {actual.dtype}, not {expected.dtype}"
    got = actual.numpy()
    if expected.dtype.kind == "V":  # NumPy finds no NaN in the types of ml_dtypes
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    if not tolerance:
        np.testing.assert_array_equal(got, expected, err_msg=name)
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        got.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance, err_msg=name
    )
