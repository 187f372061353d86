"""Grouped products against float64: lists of pairs, and rows in groups against stacked weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gputensor as gt
from tests.conformance.products.test_matmul import (
    TF32,
    assert_within,
    bound,
    random_array,
    random_shapes,
    random_tensor,
    wide,
)

TYPES = ("float32", "float16", "bfloat16")


def random_ends(rng, groups, tokens):
    ends = np.sort(rng.integers(0, tokens + 1, groups))
    if groups > 2 and rng.random() < 0.5:
        ends[1] = ends[0]
    if rng.random() < 0.5:
        ends[-1] = tokens
    return ends


def exact_rows(tokens, weights, ends):
    """The result in float64 and the bound of each element; rows outside all groups are 0."""
    exact = np.zeros((len(tokens), weights.shape[2]))
    limit = np.zeros_like(exact)
    start = 0
    for group, end in enumerate(ends):
        rows = slice(start, end)
        exact[rows] = wide(tokens[rows]) @ wide(weights[group])
        limit[rows] = bound(tokens[rows], weights[group], tokens.dtype.name)
        start = end
    return exact, limit


@pytest.mark.parametrize("name", [*TYPES, "float64", "complex64"])
def test_pairs_of_any_shapes_and_views(where, rng, name):
    for count in (1, 2, 5, 40):
        pairs = [random_shapes(rng) for _ in range(count)]
        left = [random_tensor(rng, shape, name, where) for shape, _ in pairs]
        right = [random_tensor(rng, shape, name, where) for _, shape in pairs]
        exact = [wide(a) @ wide(b) for (_, a), (_, b) in zip(left, right, strict=True)]
        out = [random_tensor(rng, e.shape, name, where, fill=np.nan)[0] for e in exact]
        a, b = [t for t, _ in left], [t for t, _ in right]
        assert gt.grouped_matmul(a, b, out=out) is out
        for results in (out, gt.grouped_matmul(a, b)):
            for got, e, (_, x), (_, y) in zip(results, exact, left, right, strict=True):
                assert_within(got.numpy(), e, bound(x, y, name))


@pytest.mark.parametrize("name", TYPES)
def test_plain_matrices_of_any_sizes_and_leading_dimensions(where, rng, name):
    """Cases that one library call can serve: contiguous and padded matrices, transposed or not."""
    for count in (3, 4, 100, 250):
        left, right, out = [], [], []
        for _ in range(count):
            m, k, n = (int(rng.choice([0, 1, 7, 8, 16, 33, 64])) for _ in range(3))
            sizes = {"a": (m, k), "b": (k, n), "out": (m, n)}
            for key, target in (("a", left), ("b", right), ("out", out)):
                rows, columns = sizes[key]
                padding = 8 * int(rng.integers(0, 2))
                values = random_array(rng, (rows, columns + padding), name)
                if rng.random() < 0.3:
                    values = random_array(rng, (columns, rows + padding), name)
                    view = gt.asarray(values, device=where)[:, :rows].T
                    target.append((view, values[:, :rows].T))
                else:
                    view = gt.asarray(values, device=where)[:, :columns]
                    target.append((view, values[:, :columns]))
        for view, _ in out:
            view[...] = np.nan
        gt.grouped_matmul([t for t, _ in left], [t for t, _ in right], out=[t for t, _ in out])
        for (got, _), (_, a), (_, b) in zip(out, left, right, strict=True):
            assert_within(got.numpy(), wide(a) @ wide(b), bound(a, b, name))


def test_precision_of_a_call_reaches_the_groups(where, rng):
    a = [random_tensor(rng, (30, 70), "float32", where) for _ in range(5)]
    b = [random_tensor(rng, (70, 20), "float32", where) for _ in range(5)]
    got = gt.grouped_matmul([t for t, _ in a], [t for t, _ in b], precision="tf32")
    for one, (_, x), (_, y) in zip(got, a, b, strict=True):
        assert_within(one.numpy(), wide(x) @ wide(y), bound(x, y, "float32", extra=2 * TF32))


@pytest.mark.parametrize("is_on_device", [False, True], ids=["host-offsets", "device-offsets"])
@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_rows_in_groups(where, name, is_on_device, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    groups = data.draw(st.integers(1, 12))
    tokens = data.draw(st.sampled_from([0, 1, 5, 64, 65, 128, 300]))
    k = data.draw(st.sampled_from([0, 1, 8, 16, 17, 64, 100]))
    n = data.draw(st.sampled_from([0, 1, 8, 63, 64, 130]))
    x, array_x = random_tensor(rng, (tokens, k), name, where)
    w, array_w = random_tensor(rng, (groups, k, n), name, where)
    out, _ = random_tensor(rng, (tokens, n), name, where, fill=np.nan)
    ends = random_ends(rng, groups, tokens)
    exact, limit = exact_rows(array_x, array_w, ends)
    offsets = gt.asarray(ends.astype(np.int32), device=where) if is_on_device else ends
    assert gt.grouped_matmul(x, w, offsets, out=out) is out
    assert_within(out.numpy(), exact, limit)
    assert_within(gt.grouped_matmul(x, w, offsets).numpy(), exact, limit)
    if name != "float32":
        got = gt.grouped_matmul(x, w, offsets, out_dtype="float32")
        assert got.dtype == gt.float32
        assert_within(got.numpy(), exact, limit)


def test_layouts_that_models_use(where, rng):
    """Contiguous and transposed weights, aligned and not; more groups than one pass holds."""
    for name in TYPES:
        for groups, tokens, k, n in ((8, 1000, 128, 192), (8, 37, 64, 256), (1500, 1100, 16, 8)):
            x = random_array(rng, (tokens, k), name)
            w = random_array(rng, (groups, n, k), name)
            ends = random_ends(rng, groups, tokens)
            exact, limit = exact_rows(x, w.transpose(0, 2, 1), ends)
            offsets = gt.asarray(ends, device=where)
            tokens_ = gt.asarray(x, device=where)
            turned = gt.permute_dims(gt.asarray(w, device=where), (0, 2, 1))
            for weights in (turned, turned.copy()):
                got = gt.grouped_matmul(tokens_, weights, offsets)
                assert_within(got.numpy(), exact, limit)


def test_offsets_on_the_device_are_clamped(where, rng):
    x = random_array(rng, (20, 8), "float32")
    w = random_array(rng, (4, 8, 6), "float32")
    cases = [[-5, 7, 3, 99], [30, 40, 50, 60], [4, -(2**31), 9, 2**31 - 1]]
    # Values beyond int32 are clamped as well, and do not wrap.
    cases += [[2, 2**40, 5, 7], [3, -(2**40) + 9, 9, 2**32 + 1], [2**63 - 1, 0, 0, -(2**63)]]
    for wild in cases:
        ends = np.minimum(np.maximum.accumulate(np.maximum(wild, 0)), 20)
        exact, limit = exact_rows(x, w, ends)
        out = gt.full((20, 6), np.nan, device=where)
        name = np.int32 if max(map(abs, wild)) <= 2**31 else np.int64
        offsets = gt.asarray(np.array(wild, name), device=where)
        gt.grouped_matmul(
            gt.asarray(x, device=where), gt.asarray(w, device=where), offsets, out=out
        )
        assert_within(out.numpy(), exact, limit)


def test_offsets_are_read_in_stream_order(where, rng):
    """Other streams write tokens and offsets; a captured call reads new ones at each replay."""
    side = gt.Stream(where)
    x, w = random_array(rng, (40, 16), "float32"), random_array(rng, (3, 16, 5), "float32")
    weights = gt.asarray(w, device=where)
    tokens, offsets = gt.zeros((40, 16), device=where), gt.zeros(3, dtype="int32", device=where)
    for _ in range(5):
        ends = random_ends(rng, 3, 40)
        with gt.stream(side):
            tokens[...] = gt.asarray(x, device=where)
            offsets[...] = gt.asarray(ends.astype(np.int32), device=where)
        exact, limit = exact_rows(x, w, ends)
        assert_within(gt.grouped_matmul(tokens, weights, offsets).numpy(), exact, limit)
    out = gt.full((40, 5), np.nan, device=where)
    gt.synchronize(where)
    graph = gt.graphs.CUDAGraph()
    with gt.Device(where), gt.graphs.graph(graph):
        gt.grouped_matmul(tokens, weights, offsets, out=out)
    for _ in range(3):
        ends = random_ends(rng, 3, 40)
        offsets[...] = gt.asarray(ends.astype(np.int32), device=where)
        out[...] = np.nan
        graph.replay()
        exact, limit = exact_rows(x, w, ends)
        assert_within(out.numpy(), exact, limit)


def test_captured_pairs_replay_with_new_values(where, rng):
    a = [gt.zeros((9, 16), device=where) for _ in range(6)]
    b = [gt.asarray(random_array(rng, (16, 7), "float32"), device=where) for _ in range(6)]
    out = [gt.full((9, 7), np.nan, device=where) for _ in range(6)]
    gt.grouped_matmul(a, b, out=out)
    gt.synchronize(where)
    graph = gt.graphs.CUDAGraph()
    with gt.Device(where), gt.graphs.graph(graph):
        gt.grouped_matmul(a, b, out=out)
    for _ in range(3):
        fresh = [random_array(rng, (9, 16), "float32") for _ in a]
        for tensor, values, result in zip(a, fresh, out, strict=True):
            tensor[...] = gt.asarray(values, device=where)
            result[...] = np.nan
        graph.replay()
        for values, right, got in zip(fresh, b, out, strict=True):
            matrix = right.numpy()
            assert_within(
                got.numpy(), wide(values) @ wide(matrix), bound(values, matrix, "float32")
            )


def test_wrong_arguments_are_named_and_nothing_is_written(where):
    x, w = gt.ones((6, 4), device=where), gt.ones((3, 4, 5), device=where)
    out = gt.full((6, 5), 7.0, device=where)
    pairs = [gt.ones((2, 3), device=where)] * 3, [gt.ones((3, 2), device=where)] * 3
    results = [gt.full((2, 2), 7.0, device=where) for _ in range(3)]
    half = gt.ones((6, 4), dtype="float16", device=where)
    cases = [
        (ValueError, "offsets: got None for tokens and weights", (x, w), {}),
        (ValueError, "offsets: got offsets with sequences of pairs", (*pairs, [1]), {}),
        (
            ValueError,
            "offsets: got 2 after 3; expected 3 to 6",
            (x, w, [3, 2, 6]),
            {"out": out},
        ),
        (
            ValueError,
            "offsets: got 7 after 4; expected 4 to 6",
            (x, w, [3, 4, 7]),
            {"out": out},
        ),
        (
            ValueError,
            "offsets: got 2; expected 3, one for each group",
            (x, w, [3, 6]),
            {"out": out},
        ),
        (ValueError, "one for each of the 3", (x, w, gt.zeros(2, dtype="int32", device=where)), {}),
        (TypeError, "offsets: got float32; expected int32", (x, w, gt.zeros(3, device=where)), {}),
        (TypeError, "sequence of ints", (x, w, 3), {}),
        (TypeError, "sequence of ints", (x, w, [1, 2.5, 6]), {"out": out}),
        (TypeError, "sequence of ints", (x, w, np.array([1.0, 2.0, 6.0])), {"out": out}),
        (TypeError, "sequence of ints", (x, w, "126"), {"out": out}),
        (ValueError, r"weights: got shape \(6, 4\) for tokens of shape \(6, 4\)", (x, x, [6]), {}),
        (
            ValueError,
            r"out: got shape \(6, 4\); expected \(6, 5\), that of the result",
            (x, w, [1, 2, 3]),
            {"out": x},
        ),
        (TypeError, "element types", (half, w, [1, 2, 3]), {}),
        (TypeError, "element types", (x, w, [1, 2, 3]), {"out_dtype": "float16"}),
        (ValueError, "equally many", (pairs[0], pairs[1][:2]), {}),
        (ValueError, "inner dimensions", (pairs[0], pairs[0]), {}),
        (TypeError, "a list or tuple", (pairs[0], 3), {}),
        (ValueError, "out of pair 2", pairs, {"out": [*results[:2], results[0]]}),
    ]
    for error, message, arguments, options in cases:
        with pytest.raises(error, match=message):
            gt.grouped_matmul(*arguments, **options)
    assert np.all(out.numpy() == 7)
    assert all(np.all(one.numpy() == 7) for one in results)
    square = [gt.ones((3, 3), device=where) for _ in range(4)]
    written = [*(gt.ones((3, 3), device=where) for _ in range(3)), square[0]]
    with pytest.raises(ValueError, match="shares with the second operand of pair 3"):
        gt.grouped_matmul([gt.ones((3, 3), device=where)] * 4, square[::-1], out=written)


def test_no_pairs_and_empty_pairs(where):
    assert gt.grouped_matmul([], []) == []
    empty, full = gt.grouped_matmul(
        [gt.ones((0, 3), device=where), gt.ones((2, 0), device=where)],
        [gt.ones((3, 2), device=where), gt.ones((0, 4), device=where)],
    )
    assert empty.shape == (0, 2)
    assert np.all(full.numpy() == np.zeros((2, 4)))
