"""Products of fp8 matrices with scales against float64, on every device.

The values of fp8 are exact in the reference, so the bound is that of the sums and of the result.
The fp8 tensor cores of Hopper add with about 14 bits within some 128 terms before float32 takes
over (docs/blas.md), which a GPU's bound allows for; the bound of a host device does not.
"""

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from tests.conformance.products.test_matmul import assert_within
from tests.conformance.products.test_operations import ACTIVATIONS, SLOPE

FP8 = {"float8_e4m3": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}
RESULTS = ("bfloat16", "float16", "float32")
ROUNDOFF = {
    "bfloat16": 2.0**-8,
    "float16": 2.0**-11,
    "float32": 2.0**-24,
    "float8_e4m3": 2.0**-4,
    "float8_e5m2": 2.0**-3,
}
SUBNORMAL = {"bfloat16": 0.0, "float16": 2.0**-24, "float32": 0.0}
SUBNORMAL |= {"float8_e4m3": 2.0**-9, "float8_e5m2": 2.0**-16}
TENSOR_CORE = 2.0**-11
KINDS = ("tensor", "rows", "terms", "blocks")


def wide(array):
    return np.asarray(array).astype(np.float64)


def random_matrix(rng, shape, name, place):
    """An fp8 matrix of random layout: either order, padded lines, an offset, poison around it."""
    values = rng.standard_normal(shape).astype(FP8[name])
    is_transposed = rng.random() < 0.5
    inner = values.T if is_transposed else values
    rows, columns = inner.shape
    pad = int(rng.choice([0, 0, 0, 5, 16]))
    offset = int(rng.choice([0, 0, 3, 16])) if pad else 0
    base = np.full((rows, columns + pad), np.nan).astype(FP8[name])
    first = min(offset, pad)
    base[:, first : first + columns] = inner
    tensor = gt.asarray(base, device=place)[:, first : first + columns]
    return (tensor.mT if is_transposed else tensor), values


def random_scale(rng, kind, rows, k, is_right, place):
    """A scale of one kind: the tensor, and its value for every element of a (rows, k) matrix."""
    blocks = (-(-rows // 128), -(-k // 128))
    shape = {"tensor": (1, 1), "rows": (rows, 1), "terms": (rows, blocks[1]), "blocks": blocks}[
        kind
    ]
    values = (2.0 ** rng.uniform(-3, 3, shape)).astype(np.float32)
    full = values
    for axis, length in enumerate((rows, k)):
        if full.shape[axis] not in (1, length):
            full = np.repeat(full, 128, axis=axis).take(range(length), axis=axis)
    full = np.broadcast_to(full, (rows, k))
    stored = values.T if is_right else values
    if kind == "tensor" and rng.random() < 0.5:
        stored = stored.reshape(())
    if rng.random() < 0.5 and stored.ndim == 2:
        # The other memory order; the library reads one of the two without a copy.
        tensor = gt.asarray(np.ascontiguousarray(stored.T), device=place).mT
    else:
        tensor = gt.asarray(np.ascontiguousarray(stored), device=place)
    return tensor, wide(full)


def random_out(rng, shape, name, place):
    """A poisoned matrix to write: row-major, column-major, padded, or without a unit stride."""
    kind = rng.integers(0, 4)
    if kind == 0:
        return None
    if kind == 1:
        return gt.full(shape[::-1], np.nan, dtype=name, device=place).mT
    extra = int(rng.choice([0, 3, 16]))
    step = 2 if kind == 3 else 1
    base = gt.full((shape[0], step * shape[1] + extra), np.nan, dtype=name, device=place)
    return base[:, : step * shape[1] : step]


def check_scaled(rng, place, *, types=None, kinds=None, result=None, sizes=None, core=TENSOR_CORE):
    """One random call against float64."""
    types = types or [str(x) for x in rng.choice(list(FP8), 2)]
    kinds = kinds or [str(x) for x in rng.choice(KINDS, 2)]
    result = result or str(rng.choice([*RESULTS, *FP8]))
    m, n, k = sizes or [int(rng.choice([1, 5, 16, 40, 128, 150, 272])) for _ in "mnk"]
    a, array_a = random_matrix(rng, (m, k), types[0], place)
    b, array_b = random_matrix(rng, (k, n), types[1], place)
    scale_a, full_a = random_scale(rng, kinds[0], m, k, False, place)
    scale_b, full_b = random_scale(rng, kinds[1], n, k, True, place)
    left, right = wide(array_a) * full_a, wide(array_b) * full_b.T
    exact, size = left @ right, np.abs(left) @ np.abs(right)
    keywords = {}
    if rng.random() < 0.4:
        name = "float32" if result in FP8 else result
        keywords["bias"] = gt.asarray(rng.standard_normal(n), dtype=name, device=place)
        offset = wide(keywords["bias"].numpy())
        exact, size = exact + offset, size + np.abs(offset)
    activation = None
    if rng.random() < 0.5:
        activation = str(rng.choice(["relu", "gelu", "gelu_tanh", "silu"]))
        keywords["activation"] = activation
        with np.errstate(over="ignore"):
            exact = ACTIVATIONS[activation](exact)
    factor = 1.0
    if result in FP8 or rng.random() < 0.1:
        # Scale into the middle of the fp8 range: values beyond the largest become NaN or infinity.
        factor = float(np.float32(100 / max(np.max(np.abs(exact), initial=0), 1e-3)))
        keywords["scale_result"] = gt.full((1,), factor, dtype="float32", device=place)
    unit = 2 * ROUNDOFF[result]
    limit = SLOPE[activation] * (core + (k + 4) * 2.0**-24 + 2 * unit) * size
    limit = limit + (2.0**-10 * size if activation else 0)
    out = random_out(rng, (m, n), result, place)
    if out is None:
        keywords["out_dtype"] = result
    with np.errstate(invalid="ignore"):
        got = gt.scaled_matmul(a, b, scale_a, scale_b, out=out, **keywords)
    assert out is None or got is out
    assert got.dtype == gt.finfo(result).dtype and got.shape == (m, n)
    assert_within(wide(got.numpy()), exact * factor, limit * factor * 1.01 + SUBNORMAL[result])


def core_of(place):
    """The relative error that tensor cores may add; 0 on host devices."""
    return 0.0 if place < 0 else TENSOR_CORE


@pytest.mark.parametrize("result", [*RESULTS, *FP8])
def test_any_layout_and_scales_are_within_their_bound(place, rng, result):
    for _ in range(25):
        check_scaled(rng, place, result=result, core=core_of(place))


@pytest.mark.parametrize("kind_b", KINDS)
@pytest.mark.parametrize("kind_a", KINDS)
def test_every_pair_of_kinds_of_scales(place, rng, kind_a, kind_b):
    for sizes in ((1, 48, 272), (17, 130, 144), (160, 256, 512), (130, 7, 200)):
        types = ["float8_e4m3", str(rng.choice(list(FP8)))]
        check_scaled(
            rng, place, types=types, kinds=[kind_a, kind_b], sizes=sizes, core=core_of(place)
        )


def test_small_integers_are_exact(place, rng):
    """Sums below 2**11 are exact even in the tensor cores, so a wrong element cannot hide."""
    for m, n, k in ((64, 48, 256), (33, 130, 200), (1, 16, 144), (128, 128, 128), (3, 3, 3)):
        a = rng.integers(-2, 3, (m, k)).astype(ml_dtypes.float8_e4m3fn)
        b = rng.integers(-2, 3, (k, n)).astype(ml_dtypes.float8_e4m3fn)
        rows = 2.0 ** rng.integers(-2, 3, (m, 1)).astype(np.float32)
        columns = 2.0 ** rng.integers(-2, 3, (1, n)).astype(np.float32)
        tensors = [gt.asarray(x, device=place) for x in (a, b, rows, columns)]
        got = gt.scaled_matmul(*tensors, out_dtype="float32").numpy()
        np.testing.assert_array_equal(got, wide(a) @ wide(b) * rows * columns)


def test_fast_accumulation_is_a_permission(place, rng):
    a, array_a = random_matrix(rng, (64, 512), "float8_e4m3", place)
    b, array_b = random_matrix(rng, (512, 48), "float8_e4m3", place)
    one = gt.ones((), dtype="float32", device=place)
    got = gt.scaled_matmul(a, b, one, None, out_dtype="float32", fast_accumulation=True).numpy()
    size = np.abs(wide(array_a)) @ np.abs(wide(array_b))
    assert_within(wide(got), wide(array_a) @ wide(array_b), 2.0**-8 * size)


def test_matmul_multiplies_fp8_by_value_into_bfloat16(place, rng):
    for shape_a, shape_b in (((33, 65), (65, 17)), ((2, 5, 32), (32, 16)), ((40,), (40, 3))):
        for other in FP8:
            a = rng.standard_normal(shape_a).astype(ml_dtypes.float8_e4m3fn)
            b = rng.standard_normal(shape_b).astype(FP8[other])
            left, right = gt.asarray(a, device=place), gt.asarray(b, device=place)
            assert gt.matmul(left, right).dtype == gt.bfloat16
            for result in RESULTS:
                got = gt.matmul(left, right, out_dtype=result)
                size = np.abs(wide(a)) @ np.abs(wide(b))
                limit = (core_of(place) + 2.0**-16 + 2 * ROUNDOFF[result]) * size
                assert_within(wide(got.numpy()), wide(a) @ wide(b), limit + 2.0**-24)
    got = gt.linear(left[None], right.mT, activation="relu").numpy()
    size = np.abs(wide(a)) @ np.abs(wide(b))
    assert_within(wide(got)[0], np.maximum(wide(a) @ wide(b), 0), 2.0**-6 * size)


def test_empty_results_and_sums_of_no_terms(place):
    def matrix(*shape):
        return gt.empty(shape, dtype="float8_e4m3", device=place)

    rows = gt.ones((3, 1), dtype="float32", device=place)
    assert gt.scaled_matmul(matrix(0, 16), matrix(16, 4), None, None).shape == (0, 4)
    out = gt.full((3, 4), np.nan, dtype="bfloat16", device=place)
    bias = gt.full((4,), 2.0, dtype="bfloat16", device=place)
    gt.scaled_matmul(matrix(3, 0), matrix(0, 4), rows, None, bias=bias, activation="relu", out=out)
    assert np.all(wide(out.numpy()) == 2)
    gt.scaled_matmul(matrix(3, 0), matrix(0, 4), None, None, out=out)
    assert np.all(wide(out.numpy()) == 0)


def test_wrong_arguments_are_named(place):
    a = gt.ones((16, 256), dtype="float8_e4m3", device=place)
    b = gt.ones((256, 32), dtype="float8_e4m3", device=place)
    one = gt.ones((), dtype="float32", device=place)

    def refused(error, text, *arguments, **keywords):
        with pytest.raises(error, match=text):
            gt.scaled_matmul(*arguments, **keywords)

    refused(TypeError, "a: got bfloat16; expected float8_e4m3", a.astype("bfloat16"), b, one, one)
    refused(ValueError, "b: got 1 dimensions; expected 2", a, b[:, 0], one, one)
    refused(ValueError, "inner dimensions", a, b[:128], one, one)
    refused(TypeError, r"argument: got str; expected a Tensor \(asarray makes", a, b, "a", one)
    refused(TypeError, "scale_b: got float64; expected float32", a, b, one, one.astype("float64"))
    text = r"scale_a: got shape \(16, 3\); expected one element, \(16, 1\) \(rows\)"
    refused(ValueError, text, a, b, gt.ones((16, 3), dtype="float32", device=place), one)
    text = r"scale_b: got shape \(32, 1\); expected one element, \(1, 32\) \(rows\)"
    refused(ValueError, text, a, b, one, gt.ones((32, 1), dtype="float32", device=place))
    refused(
        TypeError, "out_dtype: got .*; expected bfloat16, float16", a, b, one, one, out_dtype=int
    )
    text = "bias: got float32; expected bfloat16 for a result of bfloat16"
    bias = gt.ones((32,), dtype="float32", device=place)
    refused(TypeError, text, a, b, one, one, bias=bias)
    text = r"bias: got shape \(16,\); expected one value for each of the last extent"
    refused(ValueError, text, a, b, one, one, bias=bias[:16], out_dtype="float32")
    refused(ValueError, r"activation: got 'tanh'; expected None", a, b, one, one, activation="tanh")
    refused(
        TypeError, r"scale_result: got float32 of shape \(32,\)", a, b, one, one, scale_result=bias
    )
    text = r"out: got shape \(16, 31\); expected that of \(16, 256\) @ \(256, 32\)"
    refused(
        ValueError, text, a, b, one, one, out=gt.ones((16, 31), dtype=gt.bfloat16, device=place)
    )
    shared = gt.ones((16, 256), dtype="float8_e4m3", device=place)
    refused(
        ValueError,
        "out: got memory that it shares with the first operand",
        shared,
        b,
        one,
        one,
        out=shared[:, :32],
    )
    with pytest.raises(TypeError, match="no common dtype"):
        gt.matmul(a, b.astype("bfloat16"))
    with pytest.raises(TypeError, match="out_dtype: got .*; expected bfloat16, float16 or float32"):
        gt.matmul(a[None], b, out_dtype="float64")
