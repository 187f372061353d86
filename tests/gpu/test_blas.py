"""Properties of products that only a real GPU shows; tests/conformance tests the rest."""

import ctypes
import threading

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor._driver import cuda
from gputensor._driver.registry import cuda_device_count
from gputensor.blas import foreign as c_entry
from gputensor.blas.kernels import padding
from tests.conformance.products.test_matmul import TF32, assert_within, bound, numpy_dtype, wide
from tests.support import internals
from tests.support.products import held_checks

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")


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
    """Row-major operands of a dtype, as arrays and as tensors."""
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


def test_padded_products_add_their_addend(padded, rng):
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


SLOTS = 25


class Slots:
    """Matrices of one shape in one buffer, each at an aligned address and followed by NaN."""

    def __init__(self, shape, name="float32", values=None):
        self.size = shape[0] * shape[1]
        self.shape = (SLOTS, *shape)
        # Pitches are multiples of at least 256 bytes, with one NaN or more between matrices.
        host = np.full((SLOTS, (self.size // 128 + 1) * 128), np.nan).astype(numpy_dtype(name))
        if values is not None:
            host[:, : self.size] = values.reshape(SLOTS, -1)
        self.buffer = gt.asarray(host, device="cuda")
        self.matrices = [gt.reshape(self.buffer[i, : self.size], shape) for i in range(SLOTS)]

    def poison(self):
        self.buffer[...] = np.nan

    def hold(self, expected):
        """Whether the matrices are as expected and the gaps between them are unchanged."""
        host = wide(self.buffer.numpy())
        got = host[:, : self.size].reshape(self.shape)
        return np.array_equal(got, expected) and np.all(np.isnan(host[:, self.size :]))


def many_products(seed, count, failures):
    """Compute and compare exact products of small integers on this thread's own stream."""
    rng = np.random.default_rng(seed)
    with gt.stream(gt.Stream("cuda")):
        work = []
        for m, n, k in ((8, 16, 24), (33, 17, 9), (64, 64, 64), (5, 128, 31)):
            a = rng.integers(-8, 9, (SLOTS, m, k)).astype(np.float32)
            b = rng.integers(-8, 9, (k, n)).astype(np.float32)
            right = gt.asarray(b, device="cuda")
            work.append((Slots((m, k), values=a), right, Slots((m, n)), a @ b))
        done = 0
        while done < count:
            for _, _, out, _ in work:
                out.poison()
            for slot in range(SLOTS):
                for left, right, out, _ in work:
                    gt.matmul(left.matrices[slot], right, out=out.matrices[slot])
                    done += 1
            for _, _, out, expected in work:
                if not out.hold(expected):
                    failures.append((seed, done, expected.shape))


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


# For all but the first two shapes, the measured algorithm of the H200 splits k.
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
            # Products of other streams run at the same time and change the order of blocks.
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


def test_workspaces_can_be_released_at_any_time(rng):
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
    """The struct DLTensor of c_entry.h, with its nested structs flattened."""

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


CODES = {"float32": (2, 32), "float16": (2, 16), "bfloat16": (4, 16)}


class Placed:
    """A matrix in either order, of any pitch, at an offset in a buffer of NaN, as a DLTensor."""

    def __init__(self, rng, rows, columns, name, values=None):
        self.shape = (rows, columns)
        is_row_major = rng.random() < 0.5
        length, lines = (columns, rows) if is_row_major else (rows, columns)
        pitch = max(1, length + int(rng.integers(0, 4)))
        self.first = int(rng.integers(0, 9))
        self.steps = (pitch, 1) if is_row_major else (1, pitch)
        host = np.full(self.first + pitch * lines + 16, np.nan).astype(numpy_dtype(name))
        if values is not None:
            self.of(host)[...] = values
        self.buffer = gt.asarray(host, device="cuda")
        sizes = (ctypes.c_int64 * 2)(*self.shape)
        steps = (ctypes.c_int64 * 2)(*self.steps)
        code, bits = CODES[name]
        self.tensor = DLTensor(
            *(self.buffer.data_ptr(), 2, 0, 2, code, bits, 1, sizes, steps),
            self.first * host.itemsize,
        )

    def of(self, host):
        """The view of the matrix in a host array laid out like the buffer."""
        steps = [step * host.itemsize for step in self.steps]
        return np.lib.stride_tricks.as_strided(host[self.first :], self.shape, steps)

    def result(self):
        """The contents of the matrix; everything around it must be unchanged."""
        host = self.buffer.numpy().copy()
        got = self.of(host).copy()
        self.of(host)[...] = np.nan
        assert np.all(np.isnan(wide(host))), "wrote outside the result"
        return got


def described(tensor):
    """A row-major CUDA tensor as a DLTensor without strides."""
    code, bits = CODES[tensor.dtype.name]
    sizes = (ctypes.c_int64 * 2)(*tensor.shape)
    return DLTensor(tensor.data_ptr(), 2, 0, 2, code, bits, 1, sizes, None, 0)


def c_entry_on(stream):
    """Return a function of three DLTensors that queues their product on a stream."""
    entry = ctypes.CDLL(c_entry.library_path())
    entry.gputensor_last_error.restype = ctypes.c_char_p
    queue = ctypes.c_void_p(stream.cuda_stream)

    def multiply(*tensors):
        status = entry.gputensor_mm_out(*map(ctypes.byref, tensors), queue)
        assert status == 0, (status, entry.gputensor_last_error())

    return multiply


@pytest.mark.parametrize("name", list(CODES))
def test_the_c_entry_writes_every_layout_and_nothing_else(rng, name):
    stream = gt.Stream("cuda")
    multiply = c_entry_on(stream)
    with gt.stream(stream):
        for _ in range(60):
            m, n = (int(rng.choice([1, 2, 16, 33, 64, int(rng.integers(1, 200))])) for _ in "mn")
            k = int(rng.choice([0, 1, 8, 17, 64, 500]))
            array_a, array_b = (
                rng.standard_normal(shape).astype(numpy_dtype(name)) for shape in ((m, k), (k, n))
            )
            a = Placed(rng, m, k, name, array_a)
            b = Placed(rng, k, n, name, array_b)
            out = Placed(rng, m, n, name)
            multiply(out.tensor, a.tensor, b.tensor)
            exact = wide(array_a) @ wide(array_b)
            assert_within(out.result(), exact, bound(array_a, array_b, name))


def test_the_c_entry_from_many_threads_without_the_gil():
    failures = []

    def work(seed):
        own = np.random.default_rng(seed)
        name = list(CODES)[seed % 3]
        stream = gt.Stream("cuda")
        multiply = c_entry_on(stream)
        # Sums of 24 products of at most 4, which are exact in bfloat16.
        a = own.integers(-2, 3, (SLOTS, 40, 24))
        b = own.integers(-2, 3, (24, 56))
        try:
            with gt.stream(stream):
                left, out = Slots((40, 24), name, a), Slots((40, 56), name)
                right = gt.asarray(b.astype(numpy_dtype(name)), device="cuda")
                pairs = [
                    (described(o), described(x))
                    for o, x in zip(out.matrices, left.matrices, strict=True)
                ]
                for _ in range(40):
                    out.poison()
                    for target, source in pairs:
                        multiply(target, source, described(right))
                    assert out.hold(a @ b), "a result is wrong"
        except BaseException as error:
            failures.append((seed, repr(error)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.skipif(
    cuda_device_count() == 0 or cuda.device_info(0)["compute_capability"] != (9, 0),
    reason="needs a Hopper GPU",
)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("held", [0, -1], ids=["held", "library"])
def test_many_rows_by_few_terms(rng, name, held):
    blas.forget_plans()
    internals.panel_configure(held=held)
    try:
        for case in range(12):
            held_checks.check(rng, name, *held_checks.sizes(rng, 1024 if case < 8 else 9000))
    finally:
        internals.panel_configure()
        blas.forget_plans()
