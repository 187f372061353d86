"""Functions of single elements, broadcast shapes, comparisons for tests, and CuPy's other names."""

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from gputensor import cuda, testing


def test_functions_of_numbers_take_tensors(where, rng):
    a, b = rng.integers(-9, 9, (3, 4)), rng.standard_normal((4,))
    x, y = gt.asarray(a, device=where), gt.asarray(b, device=where)

    def step(n, limit=0.0):
        return n if n > limit else limit - n

    got = gt.vectorize(step)(x, y)
    want = np.vectorize(step)(a, b)
    assert got.dtype == want.dtype and got.device == x.device
    np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(gt.vectorize(step)(x, limit=2).numpy(), np.vectorize(step)(a, 2))

    @gt.vectorize(otypes=["float32"])
    def half(n):
        """Return half of n."""
        return n / 2

    assert half(x).dtype == np.float32 and half(x[:0]).shape == (0, 4)
    np.testing.assert_array_equal(half(x).numpy(), a / 2)
    pair = gt.vectorize(lambda n: (n, -n))(x)
    assert [one.tolist() for one in pair] == [a.tolist(), (-a).tolist()]
    dots = gt.vectorize(np.dot, signature="(n),(n)->()")(x.astype("float64"), y)
    np.testing.assert_allclose(dots.numpy(), a @ b, 1e-12)
    with pytest.raises(TypeError, match="vectorize: pyfunc: got int; expected a function"):
        gt.vectorize(3)


def test_elements_are_enumerated(where, rng):
    a = rng.standard_normal((2, 3, 2))
    got = list(gt.ndenumerate(gt.asarray(a, device=where)[:, ::-1]))
    assert got == list(np.ndenumerate(a[:, ::-1]))


def test_shapes_and_paths_are_numpys(where, rng):
    arrays = [rng.standard_normal(shape) for shape in ((3, 1, 4), (5, 1), ())]
    tensors = [gt.asarray(one, device=where) for one in arrays]
    got, want = gt.broadcast(*tensors, 2.0), np.broadcast(*arrays, 2.0)
    for name in ("shape", "ndim", "size", "numiter"):
        assert getattr(got, name) == getattr(want, name)
    with pytest.raises(ValueError, match="broadcast"):
        gt.broadcast(tensors[0], gt.zeros(3, device=where))
    chain = [rng.standard_normal(shape) for shape in ((3, 40), (40, 5), (5, 6))]
    path, text = gt.einsum_path("ij,jk,kl->il", *(gt.asarray(one, device=where) for one in chain))
    assert (path, text) == np.einsum_path("ij,jk,kl->il", *chain)
    product = gt.einsum("ij,jk,kl->il", *(gt.asarray(one, device=where) for one in chain),
                        optimize=path)  # fmt: skip
    np.testing.assert_allclose(product.numpy(), np.linalg.multi_dot(chain), 1e-12)


def test_requirements_are_met(where, rng):
    x = gt.asarray(rng.standard_normal((3, 4)), device=where)
    assert gt.require(x, requirements="CW") is x or gt.require(x, requirements="CW").ptr == x.ptr
    assert gt.require(x.T, "float32", ["C"]).is_contiguous
    columns = gt.require(x, requirements=["F"])
    assert columns.T.is_contiguous and columns.tolist() == x.tolist()
    with pytest.raises(
        ValueError, match="require: requirements: got 'CF'; expected some of C or F"
    ):
        gt.require(x, requirements="CF")


def test_results_are_remembered(where):
    calls = []

    @gt.memoize(for_each_device=True)
    def doubled(n, more=0):
        calls.append(n)
        return 2 * n + more

    with gt.Device(where):
        assert [doubled(3), doubled(3), doubled(3, more=1)] == [6, 6, 7] and calls == [3, 3]
    gt.clear_memo()
    with gt.Device("host"):
        assert doubled(3) == 6 and calls == [3, 3, 3]


def test_comparisons_take_tensors(where, rng):
    a = rng.standard_normal((3, 4)).astype("float32")
    x = gt.asarray(a, device=where)
    testing.assert_allclose(x, a.tolist())
    testing.assert_array_equal(x, a)
    testing.assert_array_less(x, x + 1)
    testing.assert_array_almost_equal(x, x + 1e-7)
    testing.assert_array_list_equal([x, x], [a, a])
    testing.assert_close(x, x * (1 + 1e-7))
    testing.assert_close([x, 1.0], [gt.asarray(a, device=where), 1.0])
    nan = x * float("nan")
    testing.assert_close(nan, nan, equal_nan=True)
    short = x.astype("bfloat16")
    testing.assert_close(short, short * 1.01)
    for wrong in (
        lambda: testing.assert_allclose(x, x + 1),
        lambda: testing.assert_array_equal(x, x[:2]),
        lambda: testing.assert_close(x, x + 1e-3),
        lambda: testing.assert_close(x, x.astype("float64")),
        lambda: testing.assert_close(x, x[None]),
        lambda: testing.assert_close(nan, nan),
        lambda: testing.assert_close(short, short * 1.1),
        lambda: testing.assert_close([x], [x, x]),
        lambda: testing.assert_array_list_equal([x], [a, a]),
    ):
        with pytest.raises(AssertionError):
            wrong()
    with pytest.raises(
        ValueError, match="assert_close: rtol, atol: got one of them; expected both"
    ):
        testing.assert_close(x, x, rtol=1)


def test_calls_of_cupys_runtime(where):
    runtime = cuda.runtime
    with gt.Device(where):
        number = runtime.getDevice()
        assert number == gt.Device(where).number
        free, total = runtime.memGetInfo()
        assert 0 < free <= total
        facts = runtime.getDeviceProperties(number)
        assert facts["totalGlobalMem"] == gt.get_device_properties(where).total_memory
        assert isinstance(facts["name"], bytes)
        runtime.deviceSynchronize()
        runtime.streamSynchronize(gt.Stream(where).cuda_stream)
    assert runtime.getDeviceCount() == gt.device_count()


COMPOSED = {
    "lerp": lambda a, b, c: a + 0.3 * (b - a),
    "addcmul": lambda a, b, c: a + 0.7 * b * c,
    "addcdiv": lambda a, b, c: a + 0.7 * b / c,
    "logaddexp": lambda a, b, c: np.logaddexp(a, b),
    "logaddexp2": lambda a, b, c: np.logaddexp2(a, b),
    "hypot": lambda a, b, c: np.hypot(a, b),
    "xlogy": lambda a, b, c: a * np.log(b),
    "xlog1py": lambda a, b, c: a * np.log1p(b),
    "logit": lambda a, b, c: np.log(c / (1 - c)),
}


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_steps_of_composed_functions_do_not_round(rng, where, name, dtype):
    a, b, c = (np.clip(rng.normal(size=2000), -4, 4).astype(dtype) for _ in range(3))
    c[np.abs(c) < 0.01] = 1
    if name in ("xlogy", "xlog1py", "logit"):
        a, b, c = np.abs(a), np.abs(b) + dtype(0.1), (np.abs(c) / dtype(9)).astype(dtype)
    x, y, z = (gt.asarray(one, device=where) for one in (a, b, c))
    given = {
        "lerp": (x, y, 0.3), "addcmul": (x, y, z), "addcdiv": (x, y, z), "logit": (z,),
    }.get(name, (x, y))  # fmt: skip
    options = {"value": 0.7} if name.startswith("addc") else {}
    function = getattr(gt.special if name == "xlog1py" else gt, name)
    got = function(*given, **options)
    want = COMPOSED[name](*(one.astype(float) for one in (a, b, c)))
    assert got.dtype == dtype
    unit = np.finfo(dtype).eps if dtype is np.float16 else 2.0**-7
    error = np.abs(got.numpy().astype(float) - want)
    limit = 0.51 * unit * np.abs(want) + 2e-6 * (1 + np.abs(want))
    assert (error <= limit).all(), float((error / limit).max())
