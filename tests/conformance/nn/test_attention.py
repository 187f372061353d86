"""Attention, rotary positions and embeddings on every device, against float64."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.row_checks import DTYPES

# 16-bit floats round the weights once, then the result; both errors are relative to the values.
UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-18, "float64": 2.0**-46}


def reference(q, k, v, mask, scale, cap):
    shared = q.shape[-3] // k.shape[-3]
    k, v = (np.repeat(one, shared, axis=-3) for one in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if cap:
        scores = cap * np.tanh(scores / cap)
    scores = scores + mask
    largest = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total) @ v


def attention_program(rng, place, has_tensor_cores=True):
    dtype = str(rng.choice(list(UNIT)))
    batch = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
    kept, shared = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    queries, keys = int(rng.integers(1, 20)), int(rng.integers(1, 40))
    size, width = int(rng.integers(1, 70)), int(rng.integers(1, 40))
    if not has_tensor_cores and width == size:
        width += 1  # equal head sizes may select a kernel with PTX
    shapes = [(*batch, kept * shared, queries, size), (*batch, kept, keys, size),
              (*batch, kept, keys, width)]  # fmt: skip
    arrays = [rng.standard_normal(shape).astype(DTYPES[dtype]) for shape in shapes]
    tensors = [gt.asarray(array, device=place) for array in arrays]
    how, mask, length = {}, np.zeros((queries, keys)), keys
    last = np.arange(queries)[:, None] + keys - queries
    if rng.integers(3) == 0:
        length = int(rng.integers(0, keys + 1))
        how["kv_length"] = gt.asarray(np.array(length, np.int32), device=place)
        last = last + length - keys
    mask = np.where(np.arange(keys) < length, mask, -np.inf)
    if rng.integers(2):
        how["is_causal"] = True
        mask = np.where(np.arange(keys) <= last, mask, -np.inf)
    if rng.integers(4) == 0:
        how["window"] = int(rng.integers(1, 9))
        inside = (np.arange(keys) <= last) & (np.arange(keys) > last - how["window"])
        mask = np.where(inside, mask, -np.inf)
    kind = rng.integers(3)
    if kind:
        shape = [int(rng.choice([1, n])) for n in (kept * shared, queries, keys)]
        given = rng.random(shape) < 0.7 if kind == 1 else rng.standard_normal(shape)
        given = given if kind == 1 else given.astype(np.float32)
        how["attn_mask"] = gt.asarray(given, device=place)
        mask = mask + (np.where(given, 0, -np.inf) if kind == 1 else given)
    scale, cap = 1 / np.sqrt(size), 0
    if rng.integers(3) == 0:
        scale = how["scale"] = 0.25
    if rng.integers(4) == 0:
        cap = how["soft_cap"] = 2.0
    want = reference(*(array.astype(np.float64) for array in arrays), mask, scale, cap)
    got = gt.scaled_dot_product_attention(*tensors, **how).numpy().astype(np.float64)
    assert got.shape == want.shape
    bound = UNIT[dtype] * (np.abs(arrays[2].astype(np.float64)).max() * 2 + 1)
    assert np.abs(got - want).max() <= bound, (dtype, shapes, sorted(how))


def test_attention(place, seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        attention_program(rng, place)


@pytest.mark.parametrize("window", [700, 1 << 20, (1 << 31) - 1])
def test_windows_beyond_all_keys_leave_out_none(where, rng, window):
    x = gt.asarray(rng.standard_normal((1, 2, 700, 64)).astype("float16"), device=where)
    length = gt.asarray(np.array(500, np.int32), device=where)
    how = {"kv_length": length, "is_causal": True}
    got = gt.scaled_dot_product_attention(x, x[:, :, :600], x[:, :, :600], window=window, **how)
    want = gt.scaled_dot_product_attention(x, x[:, :, :600], x[:, :, :600], **how)
    assert gt.all(got == want).item()


def test_lengths_of_a_batch(where, rng):
    q, k = (rng.standard_normal((3, 2, n, 8)).astype(np.float32) for n in (1, 9))
    lengths = np.array([9, 4, 1], np.int32)
    got = gt.scaled_dot_product_attention(
        *(gt.asarray(one, device=where) for one in (q, k, k)),
        is_causal=True, kv_length=gt.asarray(lengths, device=where),
    ).numpy()  # fmt: skip
    for one, length in enumerate(lengths):
        kept = k[one, :, :length].astype(float)
        want = reference(q[one].astype(float), kept, kept, 0.0, 8**-0.5, 0)
        assert np.abs(got[one] - want).max() < 1e-5


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rotary(where, dtype, interleaved, rng):
    x = rng.standard_normal((2, 5, 12)).astype(DTYPES[dtype])
    positions = rng.integers(0, 100, 5)
    angles = positions[:, None] * 10000.0 ** (-np.arange(6) / 6)
    exact, turn = x.astype(np.float64), np.exp(1j * angles)
    pairs = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(6), slice(6, None))
    turned = (exact[..., pairs[0]] + 1j * exact[..., pairs[1]]) * turn
    want = np.empty_like(exact)
    want[..., pairs[0]], want[..., pairs[1]] = turned.real, turned.imag
    got = gt.rotary(gt.asarray(x, device=where), gt.asarray(positions, device=where),
                    interleaved=interleaved).numpy().astype(np.float64)  # fmt: skip
    rounding = 2.0**-8 if dtype == "bfloat16" else 0
    assert (np.abs(got - want) <= rounding * np.abs(want) + 1e-4).all()


def test_rotary_of_float64_and_of_positions_for_each_sample(where, rng):
    x, positions = rng.standard_normal((2, 3, 5, 8)), rng.integers(0, 4000, (2, 1, 5))
    turn = np.exp(1j * positions[..., None] * 10000.0 ** (-np.arange(4) / 4))
    turned = (x[..., :4] + 1j * x[..., 4:]) * turn
    got = gt.rotary(gt.asarray(x, device=where), gt.asarray(positions, device=where)).numpy()
    assert np.abs(got - np.concatenate([turned.real, turned.imag], -1)).max() < 1e-11
    with pytest.raises(ValueError, match=r"positions: got \(2, 5\); expected one that broadcasts"):
        gt.rotary(gt.asarray(x, device=where), gt.asarray(positions[:, 0], device=where))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("size", [3, 16])
def test_keys_beyond_the_length_may_be_anything(where, size, dtype, rng):
    q, k, v = (rng.standard_normal((2, 2, n, size)).astype(dtype) for n in (4, 9, 9))
    lengths = rng.integers(0, 9, 2)
    unused = np.arange(9)[:, None] >= lengths[:, None, None, None]
    results = []
    for filler in (0, np.nan):
        given = [np.where(unused, np.asarray(filler, dtype), one) for one in (k, v)]
        tensors = [gt.asarray(one, device=where) for one in (q, *given, lengths)]
        results.append(gt.scaled_dot_product_attention(*tensors[:3], kv_length=tensors[3]))
    assert np.array_equal(results[0].numpy(), results[1].numpy())


@pytest.mark.parametrize("size", [3, 16])
def test_lengths_outside_of_the_keys(where, size, rng):
    arrays = [rng.standard_normal((2, 2, n, size)).astype(DTYPES["bfloat16"]) for n in (4, 9, 9)]
    tensors = [gt.asarray(one, device=where) for one in arrays]
    length = gt.asarray([-3, 50], device=where)
    got = gt.scaled_dot_product_attention(*tensors, is_causal=True, kv_length=length).numpy()
    want = gt.scaled_dot_product_attention(*tensors, is_causal=True, kv_length=9).numpy()
    assert (got[0] == 0).all()
    assert np.array_equal(got[1], want[1])


@pytest.mark.parametrize(
    ("kind", "text", "mask"),
    [
        (TypeError, "attn_mask: got int64; expected bool or a floating-point", ((5,), gt.int64)),
        (ValueError, r"shape of attn_mask: got \(4, 5\); expected one that .* \(2, 5, 5\)",
         ((4, 5), gt.bool)),
    ],
)  # fmt: skip
def test_masks_that_do_not_fit(kind, text, mask):
    x, mask = gt.ones((2, 5, 6), device="host"), gt.ones(mask[0], dtype=mask[1], device="host")
    with pytest.raises(kind, match=f"scaled_dot_product_attention: {text}"):
        gt.scaled_dot_product_attention(x, x, x, mask)


def test_heads_without_elements_give_the_mean(where, rng):
    q, k = (gt.empty((1, n, 0), device=where) for n in (2, 3))
    v = rng.standard_normal((1, 3, 4)).astype(np.float32)
    got = gt.scaled_dot_product_attention(q, k, gt.asarray(v, device=where)).numpy()
    assert np.abs(got - v.mean(1, keepdims=True)).max() < 1e-6


def test_embedding(where, rng):
    table = rng.standard_normal((9, 4)).astype(np.float32)
    indices = rng.integers(0, 9, (2, 3))
    got = gt.embedding(gt.asarray(indices, device=where), gt.asarray(table, device=where))
    assert np.array_equal(got.numpy(), table[indices])


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((2, 3, 4), (2, 5, 6), (2, 5, 4)), "head size of key: got 6; expected 4"),
        (((2, 3, 4), (2, 5, 4), (2, 6, 4)), "shape of value: got"),
        (((3, 3, 4), (2, 5, 4), (2, 5, 4)), "heads of key: got 2; expected a divisor of 3"),
        (((2, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)), "shape of key: got"),
    ],
)
def test_shapes_that_do_not_fit(shapes, text):
    with pytest.raises(ValueError, match=f"scaled_dot_product_attention: {text}"):
        gt.scaled_dot_product_attention(*(gt.ones(shape, device="host") for shape in shapes))


@pytest.mark.parametrize(("window", "error"), [(0, ValueError), (2.0, TypeError), (-1, ValueError)])
def test_invalid_windows_are_refused(window, error):
    x = gt.ones((1, 2, 4), device="host")
    with pytest.raises(error, match="scaled_dot_product_attention: window: got"):
        gt.scaled_dot_product_attention(x, x, x, window=window)
