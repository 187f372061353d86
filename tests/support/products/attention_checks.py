"""Attention by one kernel, compared with float64: options, layouts, and a derived bound."""

import itertools

import numpy as np

import gputensor as gt
from tests.conformance.nn.test_attention import reference
from tests.support.row_checks import DTYPES

#: Half the distance of neighbouring numbers from 1 on, and the error of the smallest ones.
ROUNDING = {"float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 2.0**-133)}


def options(rng, queries, keys, *, masks=()):
    """Random options of a call; `masks` are the dtypes that a mask may have."""
    how = {}
    if rng.integers(3) == 0:
        how["kv_length"] = int(rng.integers(0, keys + 1))
    if rng.integers(2):
        how["is_causal"] = True
        if rng.integers(2):
            how["window"] = int(rng.integers(1, keys + queries))
    if rng.integers(4) == 0:
        how["soft_cap"] = float(rng.choice([0.5, 2.0, 30.0]))
    if rng.integers(4) == 0:
        how["scale"] = 0.25
    if len(masks) and rng.integers(4):
        how["mask"] = str(rng.choice(masks))
    return how


def seen(queries, keys, length, how):
    """0 where a query sees a key, -infinity elsewhere."""
    last = np.arange(queries)[:, None] + length - queries
    column = np.arange(keys)
    is_seen = np.broadcast_to(column < length, (queries, keys))
    if how.get("is_causal"):
        is_seen = is_seen & (column <= last)
    if how.get("window"):
        is_seen = is_seen & (column > last - how["window"])
    return np.where(is_seen, 0, -np.inf)


def random_mask(rng, dtype, shape):
    """A mask that is broadcast along some axes; rows of a boolean one may be empty."""
    shape = [int(rng.choice([1, n])) for n in shape]
    if dtype == "bool":
        given = rng.random(shape) < rng.choice([0.02, 0.7])
        return given, np.where(given, 0, -np.inf)
    given = rng.standard_normal(shape).astype(DTYPES[dtype])
    given[rng.random(shape) < 0.2] = -np.inf
    return given, given.astype(float)


def on_device(rng, array):
    """A tensor whose heads are adjacent, or the rows of a head; or a part of a larger tensor."""
    kind = rng.integers(3)
    if kind == 0:
        return gt.asarray(array, device="cuda")
    if kind == 1:
        moved = np.ascontiguousarray(np.swapaxes(array, 1, 2))
        return gt.swapaxes(gt.asarray(moved, device="cuda"), 1, 2)
    size = array.shape[-1]
    larger = np.full((*array.shape[:-1], size + 8), np.nan, array.dtype)
    larger[..., 8:] = array
    return gt.asarray(larger, device="cuda")[..., 8:]


def check(rng, dtype, sizes, how):
    """Compare one call with float64; `how` is as `options` makes it, or has several lengths."""
    batch, kept, shared, queries, keys, size = sizes
    length, scale = how.get("kv_length", keys), how.get("scale", size**-0.5)
    lengths = np.broadcast_to(length, batch)
    shapes = [(batch, kept * shared, queries, size)] + [(batch, kept, keys, size)] * 2
    arrays = [np.full(shape, np.nan, DTYPES[dtype]) for shape in shapes]
    arrays[0][:] = rng.standard_normal(shapes[0])
    for array, (one, count) in itertools.product(arrays[1:], enumerate(lengths)):
        array[one, :, :count] = rng.standard_normal(array[one, :, :count].shape)
    # The reference leaves out the keys that are not read, but one: it needs a key.
    least_read = max(lengths.max(), 1)
    exact = [arrays[0].astype(float)]
    exact += [array[:, :, :least_read].astype(float) for array in arrays[1:]]
    given = dict(how)
    mask = np.stack([seen(queries, keys, one, how) for one in lengths])[:, None]
    if "kv_length" in how:
        kind = rng.choice([np.int32, np.int64])
        given["kv_length"] = gt.asarray(np.array(length, kind), device="cuda")
    if "mask" in how:
        values, added = random_mask(rng, given.pop("mask"), (kept * shared, queries, keys))
        given["attn_mask"] = gt.asarray(values, device="cuda")
        mask = mask + added
    for array, (one, count) in itertools.product(exact[1:], enumerate(lengths)):
        array[one, :, count:] = 0
    mask = mask[..., :least_read]
    cap = how.get("soft_cap", 0)
    want = reference(*exact, mask, scale, cap)
    magnitude = reference(*exact[:2], np.abs(exact[2]), mask, scale, cap)
    tensors = [on_device(rng, array) for array in arrays]
    gt.full(want.shape, np.nan, dtype=dtype, device="cuda")  # memory that the result may get
    out = gt.scaled_dot_product_attention(*tensors, **given)
    again = gt.scaled_dot_product_attention(*tensors, **given)
    assert gt.all(out == again).item(), (dtype, sizes, how)
    # The weights are rounded, then the result; scores are sums in float32.
    unit, least = ROUNDING[dtype]
    bound = unit * (magnitude + np.abs(want)) + 2.0**-13 * magnitude
    bound = bound + least * (1 + keys * np.abs(exact[2]).max())
    wrong = ~(np.abs(out.numpy().astype(float) - want) <= bound)
    assert not wrong.any(), (dtype, sizes, how, np.argwhere(wrong)[:4].tolist())
    is_empty = np.isinf(mask).all(axis=-1)
    assert not out.numpy()[np.broadcast_to(is_empty, want.shape[:-1])].any()
