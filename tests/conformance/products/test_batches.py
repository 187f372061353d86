"""Batches that no single stride describes, and batches longer than a grid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gputensor as gt
from tests.conformance.products.test_matmul import (
    assert_within,
    bound,
    random_array,
    random_tensor,
    wide,
)

TYPES = ("float32", "float16", "bfloat16", "float64", "complex64")


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_broadcast_of_any_views(where, name, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    batch = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
    shared = st.lists(st.booleans(), min_size=len(batch), max_size=len(batch))
    m, k, n = (data.draw(st.sampled_from([1, 2, 8, 16, 17, 33])) for _ in "mkn")
    shape_a = [1 if s else d for s, d in zip(data.draw(shared), batch, strict=True)] + [m, k]
    shape_b = [1 if s else d for s, d in zip(data.draw(shared), batch, strict=True)] + [k, n]
    a, array_a = random_tensor(rng, shape_a, name, where)
    b, array_b = random_tensor(rng, shape_b, name, where)
    exact = np.matmul(wide(array_a), wide(array_b))
    out, _ = random_tensor(rng, exact.shape, name, where, fill=np.nan)
    limit = bound(array_a, array_b, name)
    assert gt.matmul(a, b, out=out) is out
    assert_within(out.numpy(), exact, limit)
    assert_within(gt.matmul(a, b).numpy(), exact, limit)


@pytest.mark.parametrize("name", TYPES)
def test_views_with_steps_and_backward_batches(where, rng, name):
    base = random_array(rng, (6, 9, 16, 8), name)
    left = gt.asarray(base, device=where)
    array_b = random_array(rng, (5, 8, 16), name)
    b = gt.asarray(array_b, device=where)
    for key in (np.s_[::2, 1::2], np.s_[::-1, :5], np.s_[::-1, 8:3:-1], np.s_[4:, ::-2]):
        a, array_a = left[key], base[key]
        if array_a.shape[1] != 5:
            a, array_a = a[:, :1], array_a[:, :1]
        exact = np.matmul(wide(array_a), wide(array_b[::-1]))
        got = gt.matmul(a, b[::-1])
        assert_within(got.numpy(), exact, bound(array_a, array_b[::-1], name))


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_sums_with_an_addend_over_backward_batches(where, rng, name):
    for count in (2, 70):
        a, array_a = random_tensor(rng, (count, 8, 16), name, where)
        b, array_b = random_tensor(rng, (count, 16, 8), name, where)
        c, array_c = random_tensor(rng, (1, 8), name, where)
        exact = 3 * wide(array_c) + np.matmul(wide(array_a[::-1]), wide(array_b))
        got = gt.baddbmm(c, a[::-1], b, beta=3)
        unit = 2.0**-6 if name == "bfloat16" else 2.0**-22
        limit = bound(array_a[::-1], array_b, name) + unit * (
            np.abs(exact) + 3 * np.abs(wide(array_c))
        )
        assert_within(got.numpy(), exact, limit)


@pytest.mark.parametrize("is_backward", [False, True], ids=["one-stride", "pointers"])
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_batch_of_65537(where, rng, name, is_backward):
    a = rng.integers(-3, 4, (65537, 2, 8)).astype(np.float32)
    b = rng.integers(-3, 4, (65537, 8, 2)).astype(np.float32)
    left = gt.asarray(a, device=where).astype(name)
    right = gt.asarray(b, device=where).astype(name)
    exact = np.matmul(a[::-1] if is_backward else a, b)
    out = gt.full((65537, 2, 2), np.nan, dtype=name, device=where)
    gt.matmul(left[::-1] if is_backward else left, right, out=out)
    np.testing.assert_array_equal(out.numpy().astype(np.float32), exact)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_batch_of_65537_by_broadcasting(where, rng, name):
    """257 x 257 products of 257 matrices by 257 matrices: more than one grid holds."""
    a = rng.integers(-3, 4, (257, 1, 2, 8)).astype(np.float32)
    b = rng.integers(-3, 4, (257, 8, 2)).astype(np.float32)
    left = gt.asarray(a, device=where).astype(name)
    right = gt.asarray(b, device=where).astype(name)
    got = gt.matmul(left, right).numpy().astype(np.float32)
    np.testing.assert_array_equal(got, np.matmul(a, b))


def test_captured_batches_replay_with_new_values(where, rng):
    a = gt.zeros((3, 1, 8, 16), device=where)
    b_array = random_array(rng, (5, 16, 8), "float32")
    b = gt.asarray(b_array, device=where)
    out = gt.matmul(a, b)
    gt.synchronize(where)
    graph = gt.graphs.CUDAGraph()
    with gt.Device(where), gt.graphs.graph(graph):
        gt.matmul(a, b, out=out)
    for _ in range(3):
        fresh = random_array(rng, (3, 1, 8, 16), "float32")
        a[...] = gt.asarray(fresh, device=where)
        out[...] = np.nan
        graph.replay()
        exact = np.matmul(wide(fresh), wide(b_array))
        assert_within(out.numpy(), exact, bound(fresh, b_array, "float32"))
