"""User kernels, checked against NumPy on any CUDA device, real or simulated."""

import numpy as np

import gputensor as gt

ADD = r"""
__device__ float twice(float x) { return 2 * x; }
extern "C" __global__ void scaled_add(const float* x, const double* y, float* out, int n,
                                      float factor, bool negated) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (negated ? -1.0f : 1.0f) * (twice(x[i]) + factor * (float)y[i]);
}
"""
SUM = r"""
extern "C" __global__ void block_sum(const long long* x, long long* out, int n) {
    __shared__ long long parts[64];
    long long sum = 0;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) sum += x[i];
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int t = 1; t < 64; ++t) sum += parts[t];
        out[blockIdx.x] = sum;
    }
}
"""


def check_raw(device, rng):
    """A kernel with pointers and numbers of several types, twice."""
    kernel = gt.RawKernel(ADD, "scaled_add")
    x, y = rng.normal(size=300).astype("float32"), rng.normal(size=300)
    for n, factor, negated in ((300, 2, False), (np.int32(200), np.float32(0.5), True)):
        out = gt.full(300, 7.0, device=device)
        kernel((3,), (128, 1, 1), (gt.asarray(x, device=device), gt.asarray(y, device=device), out,
                                   n, factor, negated))  # fmt: skip
        expected = np.full(300, 7, "float32")
        expected[:n] = (-1 if negated else 1) * (2 * x + factor * y)[:n]
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)


def check_raw_shared(device, rng):
    """A kernel with shared memory and barriers."""
    values = rng.integers(-100, 100, 1000)
    out = gt.zeros(4, "int64", device=device)
    gt.RawKernel(SUM, "block_sum")((4,), (64,), (gt.asarray(values, device=device), out, 1000))
    assert int(out.sum()) == values.sum()


def check_order(device, rng):
    """Launches are ordered with the library's own work, on several streams."""
    kernel = gt.RawKernel(ADD, "scaled_add")
    zero = gt.zeros(300, "float64", device=device)
    x = gt.ones(300, device=device)
    for turn in range(6):
        with gt.stream(gt.Stream(device)):
            out = gt.empty_like(x)
            kernel((3,), (128,), (x, zero, out, 300, 0, False))
        x = out + 1 if turn % 2 else out - 1
    value = 1.0
    for turn in range(6):
        value = 2 * value + (1 if turn % 2 else -1)
    assert x.tolist() == [value] * 300


def check_elementwise(device, rng):
    """Dtypes, type letters, broadcasting, strides, given outputs and numbers."""
    kernel = gt.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "distance")
    for dtype in ("float32", "float64", "int32", "int64", "float16"):
        a, b = (rng.integers(-8, 8, shape).astype(dtype) for shape in ((5, 7), (7,)))
        x, y = gt.asarray(a, device=device), gt.asarray(b, device=device)
        result = kernel(x, y)
        assert result.dtype == x.dtype and result.shape == (5, 7)
        np.testing.assert_array_equal(result.numpy(), (a - b) ** 2)
        np.testing.assert_array_equal(kernel(x.T[::-1], 2).numpy(), (a.T[::-1] - 2) ** 2)
    out = gt.zeros((7, 5), "float16", device=device).T
    assert kernel(x, y, out) is out
    np.testing.assert_array_equal(out.numpy(), (a - b) ** 2)
    two = gt.ElementwiseKernel("float32 x", "float32 s, int64 n", "s = x * x; n = (long long)i")
    squares, numbers = two(gt.arange(5, dtype="float32", device=device))
    assert squares.tolist() == [0, 1, 4, 9, 16] and numbers.tolist() == [0, 1, 2, 3, 4]
    assert kernel(gt.zeros((0, 7), device=device), gt.zeros(7, device=device)).shape == (0, 7)


def check_raw_parameters(device, rng):
    """`raw` parameters are indexed by the text; `size` counts elements where all are raw."""
    values = rng.normal(size=9).astype("float32")
    x = gt.asarray(values, device=device)
    back = gt.ElementwiseKernel("raw T x", "T z", "z = x[_ind.size() - i - 1]", "reverse")
    np.testing.assert_array_equal(back(x, gt.empty_like(x)).numpy(), values[::-1])
    spread = gt.ElementwiseKernel("raw T x", "raw T out", "out[2 * i] = x[i]", "spread")
    out = gt.zeros(10, device=device)
    assert spread(x, out, size=5) is out
    np.testing.assert_array_equal(out.numpy()[::2], values[:5])
    pick = gt.ElementwiseKernel("raw T table, int64 k", "T z", "z = table[k]", "pick")
    index = rng.integers(0, 9, (2, 3))
    np.testing.assert_array_equal(
        pick(x[::-1], gt.asarray(index, device=device)).numpy(), values[::-1][index]
    )


def check_complex(device, rng):
    """Complex numbers have the library's operators, `re` and `im`."""
    values = (rng.normal(size=6) + 1j * rng.normal(size=6)).astype("complex64")
    kernel = gt.ElementwiseKernel("T x", "T z, float32 r", "z = x * x; r = x.re", "squared")
    z, r = kernel(gt.asarray(values, device=device))
    np.testing.assert_allclose(z.numpy(), values**2, rtol=1e-5)
    np.testing.assert_array_equal(r.numpy(), values.real)


def check_module(device, rng):
    """Several kernels of one text, and templates by name expressions."""
    text = r"""
    template <class T> __device__ T twice(T x) { return 2 * x; }
    template <class T> __global__ void scale(T* x, T factor, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] = twice(x[i]) * factor;
    }
    extern "C" __global__ void add_one(int* x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] += 1;
    }"""
    module = gt.RawModule(code=text, name_expressions=["scale<float>", "scale<double>"])
    for dtype, name in (("float32", "scale<float>"), ("float64", "scale<double>")):
        values = rng.normal(size=50).astype(dtype)
        x = gt.asarray(values, device=device)
        module.get_function(name)((1,), (64,), (x, 0.5, 40))
        np.testing.assert_array_equal(x.numpy(), values)
        module.get_function(name)((1,), (64,), (x, 1.5, 40))
        np.testing.assert_allclose(x.numpy(), np.append(values[:40] * 3, values[40:]), rtol=1e-6)
    x = gt.zeros(9, "int32", device=device)
    module.get_function("add_one")((1,), (32,), (x, 9))
    assert x.tolist() == [1] * 9


def check_reduction(device, rng):
    """Axes, dtypes, layouts, several inputs and outputs, given outputs."""
    norm = gt.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    for dtype, rtol in (("float32", 1e-5), ("float64", 1e-12), ("float16", 2e-3)):
        a = rng.normal(size=(5, 7, 40)).astype(dtype)
        x = gt.asarray(a, device=device)
        for axis in (None, 0, -1, (0, 2), (1, 2)):
            for keepdims in (False, True):
                want = np.sqrt((a.astype("float64") ** 2).sum(axis, keepdims=keepdims))
                got = norm(x, axis=axis, keepdims=keepdims)
                assert got.dtype == a.dtype and got.shape == want.shape
                np.testing.assert_allclose(got.numpy(), want, rtol=rtol)
        got = norm(gt.permute_dims(x, (2, 1, 0))[::2], axis=0)
        want = np.sqrt((a.T[::2].astype("float64") ** 2).sum(0))
        np.testing.assert_allclose(got.numpy(), want, rtol=rtol)
    out = gt.full((5, 40), 7.0, "float16", device=device).T
    assert norm(gt.permute_dims(x, (2, 0, 1)), out=out, axis=-1) is out
    want = np.sqrt((a.transpose(2, 0, 1).astype("float64") ** 2).sum(-1))
    np.testing.assert_allclose(out.numpy(), want, rtol=2e-3)
    dots = gt.ReductionKernel("T x, T y", "float64 z, int64 n", "x * y", "a + b",
                              "z = a; n = (long long)a", "0", reduce_type="float64")  # fmt: skip
    a, b = rng.integers(-9, 9, (6, 3)), rng.integers(-9, 9, 3)
    z, n = dots(gt.asarray(a, device=device), gt.asarray(b, device=device), axis=1)
    assert z.tolist() == (a * b).sum(1).tolist() and n.tolist() == (a * b).sum(1).tolist()


def check_reduction_in_parts(device, rng):
    """Few outputs of many elements take two launches; types of the text take one."""
    a = rng.integers(-100, 100, (2, 70_001))
    x = gt.asarray(a, device=device)
    total = gt.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0")
    assert total(x).item() == a.sum() and total(x, axis=1).tolist() == a.sum(1).tolist()
    assert total(x[:, :0], axis=1).tolist() == [0, 0]
    text = """struct Extremes { long long low, high;
        __device__ Extremes(long long x = 0) : low(x), high(x) {}
        __device__ Extremes(long long x, long long y) : low(x), high(y) {} };"""
    both = gt.ReductionKernel(
        "int64 x", "int64 low, int64 high", "Extremes(x)",
        "Extremes(a.low < b.low ? a.low : b.low, a.high < b.high ? b.high : a.high)",
        "low = a.low; high = a.high", None, "extremes", reduce_type="Extremes", preamble=text,
    )  # fmt: skip
    low, high = both(x[:, :999], axis=1)
    assert low.tolist() == a[:, :999].min(1).tolist()
    assert high.tolist() == a[:, :999].max(1).tolist()
    table = gt.ReductionKernel("int64 k, raw T table", "T y", "table[k]", "a + b", "y = a", "0")
    values, index = rng.normal(size=9), rng.integers(0, 9, (4, 3))
    got = table(gt.asarray(index, device=device), gt.asarray(values, device=device), axis=1)
    # Three terms below 6, added in two orders: four roundings of at most 2**-53 * 18.
    np.testing.assert_allclose(got.numpy(), values[index].sum(1), rtol=0, atol=1e-14)


def check_attributes(device, rng):
    """Attributes of a kernel before and after launches, and settings of shared memory."""
    text = """extern "C" __global__ void reflect(float* x, const short n, double unused) {
        x[threadIdx.x] = n - 1 - x[threadIdx.x];
    }"""
    kernel = gt.RawKernel(text, "reflect")
    with gt.Device(device):
        for _turn in range(2):
            found = kernel.attributes
            assert len(found) == 10 and found["num_regs"] == kernel.num_regs > 0
            assert kernel.max_threads_per_block == 1024
            assert kernel.shared_size_bytes == kernel.local_size_bytes == 0
            assert kernel.binary_version >= 50 and kernel.ptx_version >= 50
            kernel((1,), (1,), (gt.zeros(1, device=device), 1, 0), shared_mem=4)
        x = gt.arange(64, dtype="float32", device=device)
        for nbytes in (256, 60_000):  # more than a kernel may use by default
            kernel((1,), (64,), (x, 64, 0), shared_mem=nbytes)
        assert x.tolist() == list(range(64))
        kernel.max_dynamic_shared_size_bytes = 70_000
        kernel.preferred_shared_memory_carveout = 50
        assert kernel.max_dynamic_shared_size_bytes == 70_000
        assert kernel.attributes["preferred_shared_memory_carveout"] == 50
        kernel((1,), (64,), (x, np.int16(64), 0.5), shared_mem=70_000)
        assert x.tolist() == list(range(63, -1, -1))


CHECKS = (check_raw, check_raw_shared, check_order, check_elementwise, check_raw_parameters)
CHECKS += (check_complex, check_module, check_reduction, check_reduction_in_parts)
CHECKS += (check_attributes,)
