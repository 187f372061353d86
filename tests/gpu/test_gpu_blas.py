"""Products on a real GPU: what the host device cannot show. tests/conformance has the rest."""

import ctypes
import threading

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor._driver.registry import cuda_device_count
from gputensor.blas import c_entry
from gputensor.blas.pad import padding
from tests.conformance.test_matmul import TF32, assert_within, bound, numpy_dtype, wide

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")


@pytest.fixture
def rng():
    return np.random.default_rng()


@pytest.fixture(params=["auto", "cublas", "cublaslt"])
def library(request):
    blas.preferred_blas_library(request.param)
    yield request.param
    blas.preferred_blas_library("auto")


@pytest.fixture(params=["auto", "never", "inputs", "all"])
def padded(request):
    padding(request.param)
    yield request.param
    padding("auto")


def random_pair(rng, m, n, k, name):
    """Row-major operands of a dtype, as arrays and tensors."""
    arrays = [rng.standard_normal(s).astype(numpy_dtype(name)) for s in ((m, k), (k, n))]
    return arrays, [gt.asarray(x, device="cuda") for x in arrays]


ODD = [
    (17, 33, 65),
    (333, 777, 1555),
    (255, 1, 129),
    (1, 257, 511),
    (129, 1025, 64),
    (640, 641, 642),
]


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "tf32"])
def test_odd_sizes_are_within_bounds_however_they_are_padded(padded, rng, name):
    dtype = "float32" if name == "tf32" else name
    setting, extra = ("tf32", 2 * TF32) if name == "tf32" else (None, 0.0)
    for m, n, k in ODD:
        (array_a, array_b), (a, b) = random_pair(rng, m, n, k, dtype)
        exact = wide(array_a) @ wide(array_b)
        limit = bound(array_a, array_b, dtype, extra)
        out = gt.full((m, n), np.nan, dtype=a.dtype, device="cuda")
        gt.matmul(a, b, out=out, precision=setting)
        assert_within(out.numpy(), exact, limit)
        turned = gt.full((n, m), np.nan, dtype=a.dtype, device="cuda").T
        gt.matmul(a, b, out=turned, precision=setting)
        assert_within(turned.numpy(), exact, limit)


def test_padded_products_add_what_is_there(padded, rng):
    (array_a, array_b), (a, b) = random_pair(rng, 333, 401, 1555, "bfloat16")
    c = rng.standard_normal((333, 401)).astype(ml_dtypes.bfloat16)
    got = gt.addmm(gt.asarray(c, device="cuda"), a, b, beta=-2.0, alpha=0.5)
    exact = 0.5 * (wide(array_a) @ wide(array_b)) - 2.0 * wide(c)
    limit = bound(array_a, array_b, "bfloat16") + 2.0**-7 * (np.abs(exact) + 2 * np.abs(wide(c)))
    assert_within(got.numpy(), exact, limit)


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "complex64"])
def test_both_libraries_give_every_layout(library, rng, name):
    for _ in range(10):
        m, n, k = (int(x) for x in rng.integers(1, 200, 3))
        (array_a, array_b), (a, b) = random_pair(rng, m, n, k, name)
        for left in (a, gt.asarray(np.ascontiguousarray(array_a.T), device="cuda").T):
            for right in (b, gt.asarray(np.ascontiguousarray(array_b.T), device="cuda").T):
                limit = bound(array_a, array_b, name)
                assert_within((left @ right).numpy(), wide(array_a) @ wide(array_b), limit)


@pytest.mark.parametrize("offset", [1, 2, 3, 4, 7])
def test_misaligned_addresses(library, rng, offset):
    (array_a, array_b), _ = random_pair(rng, 64, 64, 64, "bfloat16")
    tensors = []
    for array in (array_a, array_b):
        flat = gt.zeros(64 * 64 + 8, dtype=gt.bfloat16, device="cuda")
        flat[offset : offset + 4096] = gt.asarray(array.reshape(-1), device="cuda")
        tensors.append(gt.reshape(flat[offset : offset + 4096], (64, 64)))
    got = gt.matmul(*tensors).numpy()
    assert_within(got, wide(array_a) @ wide(array_b), bound(array_a, array_b, "bfloat16"))


def test_a_cached_plan_is_used_again(rng):
    _, (a, b) = random_pair(rng, 96, 80, 64, "float32")
    out = gt.matmul(a, b)
    known = blas.plan_count()
    for _ in range(5):
        gt.matmul(a, b, out=out)
    assert blas.plan_count() == known


def many_products(seed, count, failures):
    """Exact products of small integers on a stream of this thread's own."""
    rng = np.random.default_rng(seed)
    with gt.stream(gt.Stream("cuda")):
        pairs = []
        for m, n, k in ((8, 16, 24), (33, 17, 9), (64, 64, 64), (5, 128, 31)):
            a = rng.integers(-8, 9, (m, k)).astype(np.float32)
            b = rng.integers(-8, 9, (k, n)).astype(np.float32)
            tensors = [gt.asarray(x, device="cuda") for x in (a, b)]
            out = gt.full((m, n), np.nan, dtype=gt.float32, device="cuda")
            pairs.append((*tensors, out, a @ b))
        for turn in range(count):
            a, b, out, expected = pairs[turn % len(pairs)]
            gt.matmul(a, b, out=out)
            if turn % 50 < len(pairs) and not np.array_equal(out.numpy(), expected):
                failures.append((seed, turn))


@pytest.mark.parametrize("threads", [2, 16])
def test_threads_with_their_own_streams_are_exact(threads):
    failures = []
    workers = [
        threading.Thread(target=many_products, args=(seed, 20000 // threads, failures))
        for seed in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


# All but the first two are shapes whose known way on an H200 cuts k among the multiprocessors.
@pytest.mark.parametrize(
    ("name", "precision", "shape"),
    [
        ("float32", None, (64, 64, 16384)),
        ("bfloat16", None, (64, 64, 16384)),
        ("float32", None, (16, 4096, 11008)),
        ("float32", None, (128, 11008, 4096)),
        ("float32", "tf32", (128, 4096, 14336)),
        ("float32", "tf32", (1024, 4096, 4096)),
    ],
)
def test_deterministic_products_are_bitwise_equal_across_streams(rng, name, precision, shape):
    m, n, k = shape
    (_, _), (a, b) = random_pair(rng, m, n, k, name)
    results = []
    with blas.precision(deterministic=True):
        streams = [gt.Stream("cuda") for _ in range(4)]
        for turn in range(8):
            # Beside products of the other streams, so that blocks run in other orders.
            with gt.stream(streams[turn % 4]):
                results.append(gt.matmul(a, b, precision=precision))
    assert len({result.numpy().tobytes() for result in results}) == 1


@pytest.mark.parametrize("shape", [(64, 64, 64), (333, 777, 1555), (16, 64, 65536)])
def test_a_captured_product_replays_with_new_values(rng, shape):
    m, n, k = shape
    (array_a, array_b), (a, b) = random_pair(rng, m, n, k, "bfloat16")
    out = gt.matmul(a, b)
    graph = gt.graphs.CUDAGraph()
    with gt.graphs.graph(graph):
        gt.matmul(a, b, out=out)
    for _ in range(3):
        fresh = rng.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
        a[...] = gt.asarray(fresh, device="cuda")
        out[...] = np.nan
        graph.replay()
        gt.matmul(gt.ones((512, 8192), device="cuda"), gt.ones((8192, 64), device="cuda"))
        limit = bound(fresh, array_b, "bfloat16")
        assert_within(out.numpy(), wide(fresh) @ wide(array_b), limit)


def test_workspaces_can_be_given_back_at_any_time(rng):
    (array_a, array_b), (a, b) = random_pair(rng, 64, 64, 32768, "float32")
    for _ in range(3):
        got = gt.matmul(a, b)
        blas.clear_workspaces()
        assert_within(
            got.numpy(), wide(array_a) @ wide(array_b), bound(array_a, array_b, "float32")
        )


def test_results_of_more_than_two_to_the_31_elements(rng):
    free, _ = gt.memory.mem_get_info()
    if free < 12 << 30:
        pytest.skip("needs 12 GiB of free GPU memory")
    m, n, k = 65536, 33000, 16
    a = rng.integers(-3, 4, (m, k)).astype(ml_dtypes.bfloat16)
    b = rng.integers(-3, 4, (k, n)).astype(ml_dtypes.bfloat16)
    out = gt.matmul(gt.asarray(a, device="cuda"), gt.asarray(b, device="cuda"))
    for rows in (slice(0, 3), slice(32766, 32770), slice(m - 3, m)):
        expected = wide(a[rows]) @ wide(b)
        np.testing.assert_array_equal(wide(out[rows].numpy()), expected)


def test_integer_products_of_wide_matrices(rng):
    a = rng.integers(-9, 10, (3, 5)).astype(np.int32)
    b = rng.integers(-9, 10, (5, 65535 * 16 + 40)).astype(np.int32)
    got = gt.matmul(gt.asarray(a, device="cuda"), gt.asarray(b, device="cuda")).numpy()
    np.testing.assert_array_equal(got, a @ b)


class DLTensor(ctypes.Structure):
    """The struct of c_entry.h, flat."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def described(tensor):
    """A float32 CUDA tensor as a DLTensor."""
    pointer = tensor.__cuda_array_interface__["data"][0]
    shape = (ctypes.c_int64 * 2)(*tensor.shape)
    return DLTensor(pointer, 2, 0, 2, 2, 32, 1, shape, None, 0)


def test_the_c_entry_from_many_threads_without_the_gil(rng):
    entry = ctypes.CDLL(c_entry.library_path())
    entry.gputensor_last_error.restype = ctypes.c_char_p
    failures = []

    def work(seed):
        own = np.random.default_rng(seed)
        stream = gt.Stream("cuda")
        a = own.integers(-8, 9, (40, 24)).astype(np.float32)
        b = own.integers(-8, 9, (24, 56)).astype(np.float32)
        with gt.stream(stream):
            tensors = [gt.full((40, 56), np.nan, dtype=gt.float32, device="cuda")]
            tensors += [gt.asarray(x, device="cuda") for x in (a, b)]
        arguments = [ctypes.byref(described(x)) for x in tensors]
        for _ in range(1000):
            status = entry.gputensor_mm_out(*arguments, ctypes.c_void_p(stream.cuda_stream))
            if status:
                failures.append((seed, entry.gputensor_last_error()))
                return
        stream.synchronize()
        if not np.array_equal(tensors[0].numpy(), a @ b):
            failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
