"""Kernels of programs, checked against NumPy on any CUDA device, real or simulated."""

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
    """Dtypes, letters, broadcasting, strides, given outputs and numbers."""
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


CHECKS = (check_raw, check_raw_shared, check_order, check_elementwise, check_raw_parameters)
CHECKS += (check_complex,)
