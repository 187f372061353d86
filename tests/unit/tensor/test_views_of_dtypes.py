"""``x.view(dtype)`` with dtypes of another size: NumPy's results, or an error."""

import numpy as np
import pytest

import gputensor as gt

NAMES = ("int8", "uint16", "int32", "float32", "float64", "complex64", "complex128", "uint64")


def views(array):
    """Yield random views of an array."""
    rng = np.random.default_rng()
    yield array
    for _ in range(6):
        part = array
        for axis in range(array.ndim):
            start, step = rng.integers(0, 3), rng.choice([1, 1, 2])
            part = part[(slice(None),) * axis + (slice(start, None, step),)]
        yield part
        yield part.transpose(rng.permutation(part.ndim))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", NAMES)
def test_view_with_another_dtype_is_numpys(name, other):
    rng = np.random.default_rng()
    shape = tuple(rng.integers(1, 9, 3))
    source = rng.integers(0, 255, (*shape[:2], shape[2] * 16), dtype=np.uint8).view(name)
    x = gt.asarray(source, device="host")
    for a in views(source):
        offset = a.__array_interface__["data"][0] - source.__array_interface__["data"][0]
        steps = [step // a.itemsize for step in a.strides]
        part = gt.as_strided(x, a.shape, steps, offset // a.itemsize)
        try:
            expected = a.view(other)
        except ValueError:
            with pytest.raises(ValueError, match="reinterpreted: dtype: got"):
                part.view(other)
            continue
        try:
            found = part.view(other)
        except ValueError:  # elements of tensors are aligned, and so are their strides
            size = np.dtype(other).itemsize
            is_aligned = all(step % size == 0 for step, n in zip(a.strides[:-1], a.shape[:-1],
                                                                 strict=True) if n > 1)  # fmt: skip
            assert not is_aligned or part.data_ptr() % size
            continue
        assert found.shape == expected.shape and found.data_ptr() == part.data_ptr()
        assert found.numpy().tobytes() == expected.tobytes()


def test_view_with_a_smaller_dtype_writes_to_the_same_memory():
    x = gt.zeros(2, dtype="complex64", device="host")
    x.view("float32")[1::2] = 5.0
    assert x.tolist() == [5j, 5j]


def test_view_of_no_axes_or_elements():
    with pytest.raises(ValueError, match="reinterpreted: dtype: got int8"):
        gt.ones((), device="host").view("int8")
    assert gt.ones((0, 0), dtype="float64", device="host").view("int32").shape == (0, 0)
    assert gt.ones((2, 0), dtype="int8", device="host").view("int32").shape == (2, 0)


def test_dtype_by_name_as_in_pytorch():
    x = gt.asarray([1.0], device="host")
    assert x.view(dtype="int32").tolist() == x.view("int32").tolist() == [1065353216]
    with pytest.raises(TypeError, match="view: shape: got tuple; expected none beside dtype="):
        x.view(1, dtype="int32")
