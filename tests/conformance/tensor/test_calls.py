"""Every call of the registry: run eagerly, recorded on a phantom device, and run again."""

from importlib.util import find_spec

import pytest

import gputensor as gt
from gputensor import blas
from gputensor._kernels import calls
from gputensor._kernels.order_rules import MARK_TILE, MARK_WORD
from gputensor.tensor.engine import queue_call
from tests.support.recorded_calls import check_again
from tests.support.tensor_arrays import random_array

F32, F16, BF16, I32, FP8 = "float32", "float16", "bfloat16", "int32", "float8_e4m3"


def copied_in_parts(x):
    result = gt.empty(x.shape, dtype=x.dtype, device=x.device)
    result[...] = x
    result[0] = 0
    result[:, 1] = x[:, 0]
    return result


def scattered(x, i, y):
    x[:, i] = y
    return x


def added_in_place(c, a, b):
    return gt.addmm(c, a, b, beta=2, alpha=3, out=c)


def tf32(a, b):
    with blas.precision(allow_tf32=True, deterministic=True):
        return a @ b


def grouped(a, b, ends):
    return gt.grouped_matmul(a, b, gt.clip(ends, 3, 20))


def quantized(x, w, s, b):
    return gt.quantized_linear(x, w, s, b)


def counted(x):
    """The counts of 0 to 49 in a vector, by a direct call of `count`."""
    counts = gt.zeros(50, dtype="int64", device=x.device)
    queue_call("count", (), (counts,), (x,))
    return counts


def marks(x, rule="true"):
    """The bits and starts of the elements that a rule chooses, by a direct call of `mark`."""
    bits = gt.empty(-(-x.size // MARK_WORD), "uint32", device=x.device)
    starts = gt.empty(-(-x.size // MARK_TILE) + 1, "int64", device=x.device)
    queue_call("mark", (rule,), (bits, starts), (x,))
    return bits, starts


def seen(x):
    """Which of 320 integers from -40 on are in a vector, by a direct call of `seen`."""
    bits = gt.empty(10, "uint32", device=x.device)
    starts = gt.empty(2, "int64", device=x.device)
    queue_call("seen", (), (bits, starts), (x, gt.full(1, -40, dtype=x.dtype, device=x.device)))
    return bits


def picked(x):
    """All elements of a vector, by a direct call of `pick`."""
    out = gt.empty_like(x)
    queue_call("pick", (), (out,), (x, *marks(x == x)))
    return out


def placed(x):
    """The indices of all elements of a matrix, by a direct call of `places`."""
    out = gt.empty((2, x.size), "int64", device=x.device)
    queue_call("places", (x.shape,), (out,), marks(gt.reshape(x == x, -1)))
    return out


def spd(x):
    """Positive definite matrices, made from any matrices."""
    return x @ x.mT + 9 * gt.eye(x.shape[-1], dtype=x.dtype, device=x.device)


# Name -> the call that must be recorded, the function, and shapes and dtypes of its inputs.
CASES = {
    "arithmetic": ("elementwise", lambda x, y: (x + y * 2.5) ** 2, ((5, 7), F32), ((7,), F32)),
    "halves": ("elementwise", lambda x: gt.gelu(x.T) - 0.1, ((33, 18), F16)),
    "where": ("elementwise", lambda x, y: gt.where(x > 3, x, y[::-1]), ((9,), I32), ((9,), I32)),
    "complex": ("elementwise", lambda x: x * (1 + 2j), ((6,), "complex64")),
    "cast": ("elementwise", lambda x: x.astype(FP8).astype(F32), ((4, 5), F32)),
    "copies": ("elementwise", copied_in_parts, ((6, 8), F32)),
    "fill": ("elementwise", lambda x: gt.full((3, 5), 7, dtype=x.dtype, device=x.device),
             ((1,), "uint8")),
    "zeros": ("elementwise", lambda x: gt.zeros((3, 5), dtype=x.dtype, device=x.device),
              ((1,), "complex128")),
    "sum": ("reduce", lambda x: gt.sum(x, axis=(0, 2)), ((3, 40, 5), F32)),
    "argmax": ("reduce", lambda x: gt.argmax(x.T, axis=0), ((70, 9), I32)),
    "mean": ("reduce", lambda x: gt.mean(x), ((100, 3), BF16)),
    "gather": ("gather", lambda x, i: x[:, i, i.T], ((3, 9, 9), F32), ((4, 4), I32)),
    "take": ("gather", lambda x, i: gt.take(x, i, axis=1), ((3, 9), BF16), ((4,), "int64")),
    "scatter": ("scatter", scattered, ((3, 9), F32), ((1,), I32), ((3, 1), F32)),
    "nothing to gather": ("check_indices", lambda x, i: x[i], ((9, 0), F32), ((4,), I32)),
    "arange": ("arange", lambda x: gt.arange(5, 50, 3, dtype=x.dtype, device=x.device),
               ((1,), "int16")),
    "linspace of floats": ("arange", lambda x: gt.arange(0.5, 4, 0.25, dtype=x.dtype,
                                                         device=x.device), ((1,), F16)),
    "draw": ("random", lambda s: gt.random.normal(size=(3, 5), dtype="float64", generator=s),
             ((4,), "uint64")),
    "permutation": ("random", lambda s: gt.random.permutation(37, generator=s), ((4,), "uint64")),
    "category": ("random", lambda s, x: gt.random.categorical(s, x, shape=(2, 3)),
                 ((4,), "uint64"), ((3, 20), F16)),
    "sort": ("sort", lambda x: gt.sort(x, 0, descending=True), ((70, 3), F16)),
    "partition": ("partition", lambda x: gt.median(x, 1), ((3, 700), F32)),
    "argsort": ("argsort", lambda x: gt.argsort(x), ((3, 70), I32)),
    "topk": ("topk", lambda x: gt.topk(x, 5)[0], ((3, 70), BF16)),
    "search": ("search", lambda x, y: gt.searchsorted(gt.cumsum(x), y), ((50,), I32), ((20,), I32)),
    "count": ("count", lambda x: counted(x), ((500,), I32)),
    "histogram": ("histogram", lambda x, e: gt.histogram(x, e)[0], ((500,), F32), ((2,), F32)),
    "even ranges": ("histogram", lambda x: gt.histogram(x, 30, (-3, 3))[0], ((500,), F32)),
    "sums by index": ("add_at", lambda x, i, s: gt.index_add(x, 0, i % 9, s),
                      ((9, 4), I32), ((50,), I32), ((50, 4), I32)),
    "marks": ("mark", lambda x: marks(x > 3)[0], ((70000,), F32)),
    "starts": ("mark", lambda x: marks(x, "first")[1], ((70000,), I32)),
    "seen": ("seen", seen, ((7000,), I32)),
    "picked": ("pick", picked, ((70000,), F16)),
    "places": ("places", placed, ((33, 1009), I32)),
    "cumulate": ("cumulate", lambda x: gt.cumsum(x, 1), ((3, 5000, 2), F16)),
    "greatest so far": ("cumulate", lambda x: gt.cummax(x, 0)[1], ((3000,), F32)),
    "product so far": ("cumulate", lambda x: gt.cumprod(x), ((300,), I32)),
    "cholesky": ("matrix", lambda x: gt.linalg.cholesky(spd(x)), ((3, 5, 5), F32)),
    "least eigenvalues": ("matrix", lambda x: gt.linalg.eigvalsh(spd(x), "U"), ((5, 5), F32)),
    "qr": ("matrix_pair", lambda x: gt.linalg.qr(x, mode="complete")[0], ((2, 6, 3), "float64")),
    "eigh": ("matrix_pair", lambda x: gt.linalg.eigh(spd(x))[0], ((4, 4), F32)),
    "svd": ("svd", lambda x: gt.linalg.svd(x, full_matrices=False)[1], ((2, 4, 6), F32)),
    "lu": ("matrix_pair", lambda x: gt.linalg.lu_factor(x)[0], ((2, 5, 3), F32)),
    "rows of lu": ("matrix_pair", lambda x: gt.linalg.lu(x)[0], ((2, 5, 3), F32)),
    "lu_solve": ("lu_solve", lambda x, y: gt.linalg.lu_solve(gt.linalg.lu_factor(spd(x)), y, 1),
                 ((5, 5), F32), ((5, 2), F32)),
    "solve": ("solve", lambda x, y: gt.linalg.solve(spd(x), y), ((5, 5), F32), ((5,), F32)),
    "transform": ("transform", lambda x: gt.fft.rfft(x, n=20, axis=0), ((16, 3), F32)),
    "transforms of axes": ("transform", lambda x: gt.fft.irfftn(x, s=(4, 6), axes=(2, 0)),
                           ((5, 3, 4), "complex64")),
    "softmax": ("formula", lambda x: gt.softmax(x, 0, scale=0.5), ((17, 40), BF16)),
    "norm": ("formula", lambda x, w, r: gt.rms_norm(x, w, residual=r)[1], ((3, 7, 40), F16),
             ((40,), F16), ((3, 7, 40), F16)),
    "attention": ("attention", lambda q, k, n: gt.scaled_dot_product_attention(
                      q, k, k, is_causal=True, window=9, kv_length=n),
                  ((2, 4, 9, 40), F16), ((2, 2, 30, 40), F16), ((2,), I32)),
    "plain attention": ("attention", lambda q, k, m: gt.scaled_dot_product_attention(q, k, k, m),
                        ((2, 4, 9, 20), F32), ((2, 2, 30, 20), F32), ((9, 30), F32)),
    "convolution": ("convolution", lambda x, w, b: gt.conv2d(x, w, b, 2, (1, 2), 1, 2,
                                                             activation="relu6"),
                    ((2, 6, 7, 9), F32), ((4, 3, 3, 2), F32), ((4,), F32)),
    "channels apart": ("convolution", lambda x, w: gt.conv1d(x, w, groups=6, data_format="NLC"),
                       ((2, 9, 6), F16), ((6, 1, 3), F16)),
    "single elements": ("convolution", lambda x, w, b: gt.conv2d(x, w, b, data_format="NHWC"),
                        ((2, 5, 4, 8), F32), ((16, 8, 1, 1), F32), ((16,), F32)),
    "turned convolution": ("convolution", lambda x, w: gt.conv_transpose2d(x, w, stride=2),
                           ((1, 3, 4, 5), F32), ((3, 2, 3, 3), F32)),
    "window": ("window", lambda x: gt.avg_pool2d(x, 3, 2, 1, ceil_mode=True), ((2, 3, 6, 8), BF16)),
    "whole windows": ("window", lambda x: gt.adaptive_max_pool2d(x, (2, 3)), ((2, 3, 6, 8), F32)),
    "row result": ("formula", lambda x: gt.logsumexp(x, (0, 2), keepdims=True), ((3, 7, 9), F32)),
    "product": ("product", lambda a, b: a @ b, ((17, 40), F32), ((40, 24), F32)),
    "stacked": ("product", lambda a, b: a @ b.mT, ((2, 3, 8, 16), F16), ((3, 24, 16), F16)),
    "vector": ("product", lambda a, b: a @ b, ((40,), F32), ((40, 24), F32)),
    "integers": ("product", lambda a, b: gt.addmm(a, a, b, alpha=(1 << 62) + 1),
                 ((8, 8), "int64"), ((8, 8), "int64")),
    "complex factor": ("product", lambda a, b: gt.addmm(a, a, b, alpha=2j, beta=1 - 1j),
                       ((8, 8), "complex64"), ((8, 8), "complex64")),
    "in place": ("product", added_in_place, ((8, 16), F32), ((8, 12), F32), ((12, 16), F32)),
    "epilogue": ("product", lambda x, w, b, r: gt.linear(x, w, b, activation="gelu", residual=r),
                 ((9, 32), BF16), ((24, 32), BF16), ((24,), BF16), ((9, 24), BF16)),
    "scale": ("product", lambda a, b, s: gt.linear(a, b, scale=s, activation="silu"),
              ((9, 32), F16), ((24, 32), F16), ((24,), F32)),
    "no terms": ("product", lambda a, b: a @ b, ((3, 0), F32), ((0, 5), F32)),
    "no result": ("product", lambda a, b: a @ b, ((0, 3), F32), ((3, 5), F32)),
    "tf32": ("product", tf32, ((64, 96), F32), ((96, 64), F32)),
    "fp8": ("scaled_product", lambda a, b: gt.scaled_matmul(a, b.T, None, None, activation="relu"),
            ((32, 64), FP8), ((48, 64), FP8)),
    "fp8 rows": ("scaled_product",
                 lambda a, b, s, t, c: gt.scaled_matmul(a, b.T, s, t, bias=c, out_dtype="float16",
                                                        fast_accumulation=True),
                 ((32, 64), FP8), ((48, 64), FP8), ((32, 1), F32), ((1, 48), F32), ((48,), F16)),
    "offsets": ("offset_products", grouped, ((20, 32), F32), ((3, 32, 24), F32), ((3,), I32)),
    "offsets, halves": ("offset_products", grouped, ((20, 32), BF16), ((3, 32, 24), BF16),
                        ((3,), I32)),
    "int8 weights": ("quantized_product", quantized, ((5, 64), F16), ((32, 64), "int8"),
                     ((2, 32), F16), ((32,), F16)),
    "int4 weights": ("quantized_product", lambda x, w, s: gt.quantized_linear(x, w, s),
                     ((40, 64), BF16), ((2, 1, 512), "uint8"), ((1, 32), BF16)),
}  # fmt: skip


def check_case(name, place, rng):
    row, function, *inputs = CASES[name]
    dtypes = {FP8: gt.float8_e4m3, BF16: gt.bfloat16}
    arrays = [random_array(rng, shape, dtypes.get(dtype, dtype), 0, 9) for shape, dtype in inputs]
    tensors = [gt.asarray(array, device=place) for array in arrays]
    if name in ("scatter", "in place", "draw", "permutation", "category"):
        # The first input is written: each run gets a copy of its own.
        kept = function
        function = lambda x, *rest: kept(gt.copy(x), *rest)  # noqa: E731
    assert row in check_again(function, *tensors)


@pytest.mark.parametrize("name", CASES)
def test_repeated_calls_give_equal_bits(place, rng, name):
    if place == 0 and calls.CALLS[CASES[name][0]].waits and not find_spec("cupy"):
        pytest.skip("needs CuPy: pip install cupy-cuda12x or cupy-cuda13x")
    check_case(name, place, rng)


def test_every_call_has_a_case():
    by_passes = {
        "formula_product",
        "fused_product",
        "normed_product",
        "rotary_product",
        "row_product",
    }
    assert {row for row, *_rest in CASES.values()} == set(calls.CALLS) - by_passes
