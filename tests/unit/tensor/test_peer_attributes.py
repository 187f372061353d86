"""Names of dtypes, attributes, small functions and files that programs of other libraries use."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same


def host(values, dtype=None):
    return gt.asarray(values, dtype=dtype, device="host")


def test_dtypes_have_the_names_of_numpy_and_pytorch():
    for name in ("double single half csingle cdouble intp uintp int_ uint intc uintc longlong "
                 "short ushort ubyte long ulong").split():  # fmt: skip
        assert getattr(gt, name) == np.dtype(getattr(np, name)), name
    assert (gt.float, gt.int, gt.long) == (gt.float32, gt.int32, gt.int64)  # PyTorch's
    assert gt.tensor([1, 2], dtype=gt.long, device="host").dtype == gt.int64
    assert gt.issubdtype(gt.float32, gt.floating) and not gt.issubdtype(gt.int8, gt.inexact)
    assert isinstance(host([1.0]).dtype, gt.dtype)


def test_star_import_keeps_int_and_float():
    names = {}
    exec("from gputensor import *", names)
    assert "int" not in names and "float" not in names and "asarray" in names


def test_floating_point_errors_can_be_silenced():
    with gt.errstate(divide="ignore", invalid="ignore"):
        assert gt.log(gt.zeros(1, device="host")).tolist() == [-np.inf]


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 3), (2, 3, 4), (0, 3), (1, 1)])
def test_flags_are_those_of_numpy(shape):
    array = np.zeros(shape)
    for x, a in ((host(array), array), (host(array).T, array.T)):
        for name in ("c_contiguous", "f_contiguous", "contiguous", "forc", "fnc"):
            assert getattr(x.flags, name) == getattr(a.flags, name), name
        for name in ("C_CONTIGUOUS", "F_CONTIGUOUS", "C", "F"):
            assert x.flags[name] == a.flags[name], name
    with pytest.raises(KeyError, match="flags: name"):
        host(array).flags["X"]


def test_ascontiguousarray_is_row_major_without_gaps():
    array = np.arange(35, dtype="int16").reshape(5, 7)
    x = gt.asarray(array, device="host")
    for view, expected in ((x.T, array.T), (x[:, :3], array[:, :3]), (x[0, 0], array[0, 0])):
        made = gt.ascontiguousarray(view)
        assert made.strides == np.ascontiguousarray(expected).strides
        np.testing.assert_array_equal(made.numpy(), np.ascontiguousarray(expected))
    assert gt.ascontiguousarray(x).data_ptr() == x.data_ptr()
    assert np.ascontiguousarray(x.T).strides == (10, 2)


def test_asfortranarray_is_column_major():
    a = np.random.default_rng().normal(size=(3, 4))
    for source in (a, a.T, a[:, 1]):
        x = gt.asfortranarray(host(source))
        assert x.flags.f_contiguous and x.tolist() == source.tolist()


def test_adjoints_are_conjugate_transposes():
    rng = np.random.default_rng()
    a = rng.normal(size=(2, 3, 4)) + 1j * rng.normal(size=(2, 3, 4))
    check_same(host(a).mH, a.conj().swapaxes(1, 2))
    check_same(host(a[0]).H, a[0].conj().T)
    check_same(gt.adjoint(host(a[0].real)), a[0].real.T)
    with pytest.raises(ValueError, match="H: x: got 3"):
        host(a).H  # noqa: B018


def test_blocks_without_gradients_change_nothing():
    x = host([1.0])

    @gt.no_grad()
    def first(x):
        return x + 1

    @gt.inference_mode()
    def second(x):
        return x + 1

    with gt.no_grad(), gt.inference_mode():
        assert first(x).tolist() == second(x).tolist() == gt.no_grad(first)(x).tolist() == [2]
    assert x.requires_grad is False


def test_matrix_functions_of_pytorch_are_those_of_linalg():
    rng = np.random.default_rng()
    a = rng.normal(size=(2, 3, 3)) + 3 * np.eye(3)
    x = host(a)
    check_same(gt.det(x), np.linalg.det(a), 1e-8)
    check_same(gt.inverse(x), np.linalg.inv(a), 1e-8)
    check_same(x.inverse(), np.linalg.inv(a), 1e-8)
    check_same(x.matrix_power(3), np.linalg.matrix_power(a, 3), 1e-8)
    check_same(gt.slogdet(x)[1], np.linalg.slogdet(a)[1], 1e-6)
    expected = [logarithm if sign > 0 else np.nan
                for sign, logarithm in zip(*np.linalg.slogdet(a), strict=True)]  # fmt: skip
    check_same(gt.logdet(x), np.asarray(expected), 1e-6)
    assert gt.logdet(gt.zeros((2, 2), device="host")).item() == -np.inf
    positive = a[0] @ a[0].T
    check_same(host(positive).cholesky(), np.linalg.cholesky(positive), 1e-8)
    q, r = x.qr()
    check_same(q @ r, a, 1e-8)


def test_least_and_greatest_elements_come_together():
    a = np.random.default_rng().normal(size=(3, 5))
    least, greatest = gt.aminmax(host(a), dim=1, keepdim=True)
    check_same(least, a.min(1, keepdims=True))
    check_same(greatest, a.max(1, keepdims=True))
    both = host(a).aminmax()
    assert both.min.item() == a.min() and both.max.item() == a.max()


def test_tensors_are_filled_with_random_numbers_in_place():
    gt.manual_seed(3)
    x = gt.empty((200, 3), dtype="float64", device="host")
    for fill, low, high in (
        (lambda: x.uniform_(2, 3), 2, 3),
        (lambda: x.normal_(5, 0.0), 5, 5),
        (lambda: x.exponential_(2.0), 0, np.inf),
        (lambda: x.bernoulli_(0.5), 0, 1),
        (lambda: x.random_(7), 0, 6),
        (lambda: x.random_(-2, 2), -2, 1),
    ):
        x[...] = np.nan
        assert fill() is x
        assert x.min().item() >= low and x.max().item() <= high
    n = gt.zeros(100, dtype="int32", device="host")
    assert set(n.random_(2, 4).tolist()) <= {2, 3}


def test_random_tensors_like_another():
    x = gt.zeros((4, 3), dtype="float64", device="host")
    for make in (gt.rand_like, gt.randn_like, lambda x: gt.randint_like(x, 2, 9)):
        made = make(x)
        assert made.shape == x.shape and made.dtype == x.dtype and made.device == x.device
    assert gt.rand_like(x, dtype="float32").dtype == gt.float32
    found = gt.randint_like(x, 3)
    assert ((found >= 0) & (found < 3)).all()


def test_text_and_raw_files_hold_the_values(tmp_path):
    a = np.random.default_rng().normal(size=(3, 2))
    x = host(a)
    gt.savetxt(tmp_path / "a.txt", x, delimiter=",")
    assert np.loadtxt(tmp_path / "a.txt", delimiter=",").tolist() == a.tolist()
    for load in (gt.loadtxt, gt.genfromtxt):
        check_same(load(tmp_path / "a.txt", delimiter=",", device="host"), a)
    x.T.tofile(tmp_path / "raw")
    check_same(gt.fromfile(tmp_path / "raw", device="host"), a.T.ravel())
    check_same(gt.fromfile(tmp_path / "raw", "float64", 2, device="host"), a.T.ravel()[:2])
    check_same(gt.fromstring("1,2", dtype="int64", sep=",", device="host"), np.asarray([1, 2]))


def test_scalar_tensors_have_no_axes():
    x = gt.scalar_tensor(2, device="host")
    assert x.shape == () and x.dtype == gt.float32
    assert gt.clamp_min(host([1, 5]), 2).tolist() == [2, 5]
    assert gt.clamp_max(host([1, 5]), 2).tolist() == [1, 2]
