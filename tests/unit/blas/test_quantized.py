"""Quantized linear layers: exact packing, bounded rounding, the definition on the host device."""

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from gputensor.blas.host import int4_layout

NAMES = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
GROUPS = [None, 32, 64, 128]


def random_tensor(rng, shape, name="float32"):
    values = rng.standard_normal(shape).astype(np.float32)
    return gt.asarray(values, device="host").astype(getattr(gt, name))


def wide(tensor):
    return tensor.numpy().astype(np.float64)


def plain(q, scales, n, k):
    """The weights that integers and scales stand for, in float64."""
    values = q if q.dtype == np.int8 else gt.unpack_int4(q, (n, k))
    return wide(values) * np.repeat(wide(scales), k // scales.shape[0], axis=0).T


def test_packing_round_trips_every_shape(rng):
    for _ in range(40):
        n, k = (int(x) for x in rng.integers(1, 200, 2))
        values = rng.integers(-8, 8, (n, k)).astype(np.int8)
        packed = gt.pack_int4(gt.asarray(values, device="host"))
        assert packed.shape == int4_layout.packed_shape(n, k)
        np.testing.assert_array_equal(gt.unpack_int4(packed, (n, k)).numpy(), values)


def test_packed_weights_lie_where_the_documents_say(rng):
    n, k = 48, 192
    values = rng.integers(-8, 8, (n, k)).astype(np.int8)
    packed = gt.pack_int4(gt.asarray(values, device="host")).numpy()
    for _ in range(200):
        row, column = int(rng.integers(n)), int(rng.integers(k))
        g, r, h, t, e = row % 16 // 2, row % 2, column % 64 // 32, column % 32 // 8, column % 8
        words = packed[row // 16, column // 64].view("<u4").reshape(32, 4)
        lowest = 2 * e if e % 2 == 0 else 16 + 2 * (e - 1)
        assert (int(words[4 * g + t, 2 * h + r]) >> lowest & 15) - 8 == values[row, column]


def test_padding_of_packed_weights_is_zero():
    packed = gt.pack_int4(gt.full((1, 1), 5, dtype=gt.int8, device="host"))
    whole = gt.unpack_int4(packed, (16, 64)).numpy()
    assert whole[0, 0] == 5 and np.count_nonzero(whole) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("group", GROUPS)
def test_a_weight_is_off_by_half_a_step_at_most(group, name, rng):
    n, k = 24, 256
    weight = random_tensor(rng, (n, k), name)
    for quantize, largest in ((gt.quantize_int8, 127), (gt.quantize_int4, 7)):
        q, scales = quantize(weight, group)
        assert scales.shape == (k // (group or k), n) and scales.dtype == weight.dtype
        steps = np.repeat(wide(scales), group or k, axis=0).T
        # The rounding of a scale can push the largest weight past the last integer.
        slack = 0.5 + largest * NAMES[name] + 1e-5
        assert np.all(np.abs(plain(q, scales, n, k) - wide(weight)) <= slack * steps)


def test_rows_of_zeros_stay_zeros():
    weight = gt.zeros((3, 64), device="host")
    for quantize in (gt.quantize_int8, gt.quantize_int4):
        q, scales = quantize(weight)
        assert np.all(plain(q, scales, 3, 64) == 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("group", GROUPS)
def test_products_agree_with_float64(group, name, rng):
    n, k = int(rng.integers(1, 60)), 128 * int(rng.integers(1, 4))
    x, bias = random_tensor(rng, (2, 5, k), name), random_tensor(rng, (n,), name)
    for quantize in (gt.quantize_int8, gt.quantize_int4):
        q, scales = quantize(random_tensor(rng, (n, k), name), group)
        w = plain(q, scales, n, k)
        exact = wide(x) @ w.T + wide(bias)
        got = gt.quantized_linear(x, q, scales, bias)
        assert got.shape == (2, 5, n) and got.dtype == x.dtype
        terms = np.abs(wide(x)) @ np.abs(w).T + np.abs(wide(bias))
        limit = k * 2.0**-23 * terms + 1.01 * NAMES[name] * np.abs(exact)
        assert np.all(np.abs(wide(got) - exact) <= limit)
        # Views are accepted.
        turned = gt.quantized_linear(gt.permute_dims(x, (1, 0, 2)), q, scales, bias)
        assert np.all(np.abs(wide(turned) - exact.transpose(1, 0, 2)) <= limit.transpose(1, 0, 2))


def test_vectors_and_no_rows():
    q, scales = gt.quantize_int8(gt.ones((6, 32), device="host"))
    assert gt.quantized_linear(gt.ones((32,), device="host"), q, scales).shape == (6,)
    assert gt.quantized_linear(gt.ones((0, 32), device="host"), q, scales).shape == (0, 6)


def call(**changes):
    """A valid call with some arguments replaced."""
    q, scales = gt.quantize_int8(gt.ones((16, 128), device="host"), 64)
    given = {"x": gt.ones((2, 128), device="host"), "weight": q, "scales": scales, "bias": None}
    return gt.quantized_linear(**(given | changes))


@pytest.mark.parametrize(
    ("error", "message", "changes"),
    [
        (TypeError, "x: got int32; expected float16, bfloat16 or", {"x": (np.int32, (2, 128))}),
        (TypeError, "weight: got float32; expected int8, or", {"weight": (np.float32, (16, 128))}),
        (
            TypeError,
            "scales: got float16; expected float32, the dtype of x",
            {"scales": (np.float16, (2, 16))},
        ),
        (TypeError, "bias: got bfloat16; expected float32", {"bias": (ml_dtypes.bfloat16, (16,))}),
        (ValueError, r"x: got shape \(2, 0\); expected terms along", {"x": (np.float32, (2, 0))}),
        (ValueError, r"scales: got shape \(32,\); expected", {"scales": (np.float32, (32,))}),
        (ValueError, "scales: got 8 rows for 128 terms", {"scales": (np.float32, (8, 16))}),
        (ValueError, "weight: got .*", {"weight": (np.int8, (16, 64))}),
        (ValueError, "weight: got .*", {"weight": (np.uint8, (1, 1, 512))}),
        (ValueError, r"bias: got shape \(15,\); expected \(16,\)", {"bias": (np.float32, (15,))}),
    ],
)
def test_wrong_arguments_are_named(error, message, changes):
    made = {
        key: gt.asarray(np.ones(shape, dtype), device="host")
        for key, (dtype, shape) in changes.items()
    }
    with pytest.raises(error, match=message):
        call(**made)


def test_wrong_weights_are_named():
    ones = gt.ones((4, 96), device="host")
    with pytest.raises(ValueError, match=r"group_size: got 64; expected None \(all 96 terms\) or"):
        gt.quantize_int8(ones, 64)
    with pytest.raises(ValueError, match=r"group_size: got 48; expected None \(all 96 terms\) or"):
        gt.quantize_int4(ones, 48)
    with pytest.raises(ValueError, match="got NaN or infinities; expected finite"):
        gt.quantize_int8(gt.full((4, 32), np.inf, device="host"))
    with pytest.raises(TypeError, match="weight: got int32; expected float16, bfloat16 or float32"):
        gt.quantize_int8(gt.ones((4, 32), dtype=gt.int32, device="host"))
    with pytest.raises(
        ValueError, match="values: got -9 to 0; expected -8 to 7, the range of 4 bits"
    ):
        gt.pack_int4(gt.asarray(np.array([[0, -9]], np.int8), device="host"))
    with pytest.raises(TypeError, match="int8 Tensor"):
        gt.pack_int4(ones)
    with pytest.raises(ValueError, match=r"unpack_int4: packed: got shape \(1, 1, 512\)"):
        gt.unpack_int4(gt.zeros((1, 1, 512), dtype=gt.uint8, device="host"), (17, 64))
    for shape in (16, (16,), (16.0, 64), "ab"):
        with pytest.raises(TypeError, match="unpack_int4: shape: got .*; expected two ints, n and"):
            gt.unpack_int4(gt.zeros((1, 1, 512), dtype=gt.uint8, device="host"), shape)
