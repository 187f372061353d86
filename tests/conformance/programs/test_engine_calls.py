"""Solvers and transforms in programs: the results of eager calls, sizes that vary, control flow."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_devices import NAMES, device_of


@pytest.fixture(params=NAMES)
def where(request):
    number = device_of(request.param)
    if number is None:
        pytest.skip("no CUDA device: run on a machine with one")
    return gt.Device(number)


def positive(x):
    return x @ x.mT + 4 * gt.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def ridge(x, y):
    """Least squares with a small penalty, by the normal equations."""
    return gt.linalg.solve(x.mT @ x + 0.1 * gt.eye(x.shape[1], device=x.device), x.mT @ y)


def smoothed(x):
    """A circular convolution with a short kernel."""
    kernel = gt.arange(x.shape[-1], dtype="float32", device=x.device) < 3
    return gt.fft.irfft(gt.fft.rfft(x) * gt.fft.rfft(kernel.astype("float32")), n=x.shape[-1])


def principal(x):
    """Scores of the two principal directions, up to their signs."""
    u, s, _ = gt.linalg.svd(x - gt.mean(x, 0), full_matrices=False)
    return gt.abs(u[:, :2] * s[:2])


def whitened(x):
    values, vectors = gt.linalg.eigh(positive(x))
    return gt.abs(vectors) / gt.sqrt(values)[..., None, :], gt.linalg.slogdet(positive(x))[1]


def powers(x):
    """Inverses in a loop that ends by a computed condition."""
    return gt.while_loop(lambda y: gt.sum(gt.abs(y)) > 2.0, lambda y: gt.linalg.inv(positive(y)), x)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (ridge, ((40, 5), (40,))),
        (smoothed, ((3, 24),)),
        (principal, ((30, 4),)),
        (whitened, ((2, 4, 4),)),
        (powers, ((4, 4),)),
    ],
)
def test_program_gives_the_results_of_eager_calls(where, rng, tmp_path, function, shapes):
    path = tmp_path / "program.gtp"
    gt.compile(function, *map(gt.spec, shapes)).save(path)
    program = gt.load_program(path, device=where)
    for _ in range(3):
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        tensors = [gt.asarray(array, device=where) for array in arrays]
        want, got = function(*tensors), program(*tensors)
        want, got = (one if isinstance(one, tuple) else (one,) for one in (want, got))
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-4, atol=2e-4)


def test_sizes_of_transforms_and_solvers_may_vary(where, rng):
    n, m = gt.Dim("n", 2, 40), gt.Dim("m", 2, 9)
    transform = gt.compile(lambda x: gt.fft.fftn(x), gt.spec((n, 6)), target=where)
    solve = gt.compile(lambda a, b: gt.linalg.solve(positive(a), b), gt.spec((m, m)),
                       gt.spec((m, 3)), target=where)  # fmt: skip
    for size in (2, 7, 40, 7):
        a = rng.standard_normal((size, 6)).astype(np.float32)
        got = transform(gt.asarray(a, device=where)).numpy()
        np.testing.assert_allclose(got, np.fft.fftn(a), rtol=1e-3, atol=1e-3)
    for size in (2, 9, 3):
        a, b = (rng.standard_normal((size, width)).astype(np.float32) for width in (size, 3))
        got = solve(gt.asarray(a, device=where), gt.asarray(b, device=where)).numpy()
        want = np.linalg.solve(a @ a.T + 4 * np.eye(size), b)
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_a_singular_matrix_raises_and_the_next_call_works(where):
    program = gt.compile(gt.linalg.inv, gt.spec((2, 2)), target=where)
    with pytest.raises(gt.linalg.LinAlgError):
        program(gt.zeros((2, 2), device=where)).numpy()
    got = program(gt.eye(2, device=where) * 2).numpy()
    np.testing.assert_allclose(got, np.eye(2) / 2)
    with program.session(check=True) as session:
        with pytest.raises(gt.ProgramRunError, match=r"^test_engine_calls.py:\d+: inv: "):
            session(gt.zeros((2, 2), device=where))
        np.testing.assert_array_equal(session(gt.eye(2, device=where) * 2).numpy(), got)
