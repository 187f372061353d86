"""Factorizations that report a number for each matrix, as PyTorch's functions with ``_ex`` do."""

import numpy as np
import pytest

import gputensor as gt

DTYPES = ("float32", "float64", "complex64", "complex128")


def tolerance(dtype):
    return 2e-3 if dtype in ("float32", "complex64") else 1e-9


def random_matrices(rng, dtype, shape):
    made = rng.normal(size=shape)
    if dtype.startswith("complex"):
        made = made + 1j * rng.normal(size=shape)
    return made.astype(dtype)


def failing_minor(a):
    """The least k whose leading minor of order k is not positive definite, by eigenvalues."""
    for k in range(1, a.shape[-1] + 1):
        if np.linalg.eigvalsh(a[:k, :k]).min() <= 0:
            return k
    return 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_ex_names_the_first_minor_that_is_not_positive(where, rng, dtype):
    a = random_matrices(rng, dtype, (2, 4, 5, 5))
    a = a @ a.conj().swapaxes(-1, -2) + np.eye(5, dtype=dtype)
    for place, k in (((0, 1), 0), ((1, 0), 2), ((1, 3), 4)):
        a[place][k, k] = -1
    factor, info = gt.linalg.cholesky_ex(gt.asarray(a, device=where))
    want = np.array([[failing_minor(one) for one in row] for row in a])
    assert info.dtype == np.int32 and factor.dtype == dtype
    np.testing.assert_array_equal(info.numpy(), want)
    assert want[0, 1] == 1 and want[1, 0] == 3 and want[1, 3] == 5
    factor = factor.numpy()
    assert np.isnan(factor[want > 0]).all()
    good = np.linalg.cholesky(a[want == 0])
    np.testing.assert_allclose(factor[want == 0], good, atol=tolerance(dtype))
    upper = gt.linalg.cholesky_ex(gt.asarray(a[0, 0], device=where), upper=True).L
    np.testing.assert_allclose(upper.numpy(), factor[0, 0].conj().T, atol=tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_inv_ex_and_solve_ex_give_nan_for_singular_matrices_only(where, rng, dtype):
    a, b = random_matrices(rng, dtype, (3, 4, 4)), random_matrices(rng, dtype, (3, 4, 2))
    a += 4 * np.eye(4, dtype=dtype)
    a[1] = 0
    a[1, 0, 0] = 1  # the second pivot is the first 0
    x, y = gt.asarray(a, device=where), gt.asarray(b, device=where)
    good = np.array([True, False, True])
    inverse, info = gt.linalg.inv_ex(x)
    solution, same = gt.linalg.solve_ex(x, y)
    lu, pivots, third = gt.linalg.lu_factor_ex(x)
    for one in (info, same, third):
        assert one.dtype == np.int32 and one.tolist() == [0, 2, 0]
    inverses, solutions = np.linalg.inv(a[good]), np.linalg.solve(a[good], b[good])
    for found, want in ((inverse, inverses), (solution, solutions)):
        assert found.dtype == dtype and np.isnan(found.numpy()[1]).all()
        np.testing.assert_allclose(found.numpy()[good], want, atol=tolerance(dtype))
    p, lower, upper = gt.lu_unpack(lu, pivots)
    np.testing.assert_allclose((p @ lower @ upper).numpy(), a, atol=tolerance(dtype))
    right = gt.linalg.solve_ex(x, gt.matrix_transpose(y), left=False).result.numpy()[good]
    np.testing.assert_allclose(right @ a[good], b.swapaxes(1, 2)[good], atol=tolerance(dtype))
    vector = gt.linalg.solve_ex(x[0], y[0, :, 0]).result.numpy()
    np.testing.assert_allclose(a[0] @ vector, b[0, :, 0], atol=tolerance(dtype))


def test_check_errors_raises_for_the_first_matrix_that_failed(where):
    bad = gt.asarray([[[1.0]], [[0.0]], [[-1.0]]], device=where)
    for name in ("cholesky_ex", "inv_ex", "lu_factor_ex"):
        with pytest.raises(np.linalg.LinAlgError, match=rf"{name}: x: got matrix 1 with info 1"):
            getattr(gt.linalg, name)(bad, check_errors=True)
    with pytest.raises(np.linalg.LinAlgError, match="solve_ex: x: got matrix 1 with info 1"):
        gt.linalg.solve_ex(bad, bad, check_errors=True)
    assert gt.linalg.inv_ex(bad[:1], check_errors=True).inverse.tolist() == [[[1.0]]]
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        gt.linalg.cholesky_ex(gt.ones((2, 3), device=where))


def test_matrices_without_elements_have_info_0(where):
    for shape in ((0, 2, 2), (3, 0, 0)):
        x = gt.zeros(shape, device=where)
        for name in ("cholesky_ex", "inv_ex", "lu_factor_ex"):
            found = getattr(gt.linalg, name)(x)
            assert found[0].shape == shape and found[-1].tolist() == [0] * shape[0]


def test_infos_in_a_program(where, rng):
    def checked(x):
        return (*gt.linalg.cholesky_ex(x), *gt.linalg.inv_ex(x))

    a = rng.normal(size=(3, 3)).astype("float32")
    good = a @ a.T + np.eye(3, dtype="float32")
    program = gt.compile(checked, gt.spec((2, 3, 3)), target=gt.Device(where))
    got = program(gt.asarray(np.stack([good, -good]), device=where))
    assert got[1].tolist() == [0, 1] and got[3].tolist() == [0, 0]
    np.testing.assert_allclose(got[2][0].numpy(), np.linalg.inv(good), atol=1e-3)


def test_vander_of_linalg_counts_powers_upwards(where, rng):
    for dtype in ("float64", "int32"):
        a = rng.integers(-4, 5, (2, 3, 4)).astype(dtype)
        x = gt.asarray(a, device=where)
        np.testing.assert_array_equal(gt.linalg.vander(x).numpy(), a[..., None] ** np.arange(4))
        got = gt.linalg.vander(x[0, 0], N=6)
        np.testing.assert_array_equal(got.numpy(), np.vander(a[0, 0], 6, increasing=True))
    with pytest.raises(ValueError, match="vander: x: got 0 dimensions"):
        gt.linalg.vander(gt.asarray(1.0, device=where))
