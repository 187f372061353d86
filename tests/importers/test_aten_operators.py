"""ATen operators whose results differ from NumPy's of the same name, or that NumPy lacks."""

import operator
from types import SimpleNamespace

import numpy as np
import pytest

import gputensor as gt
from tests.importers.exported_programs import Builder, Dtype, Target


def ran(*inputs, calls):
    """The results of a program that `calls` builds, run eagerly and compiled, as arrays."""
    built = Builder()
    nodes = [built.input(f"x{i}", one.shape, one.dtype.name) for i, one in enumerate(inputs)]
    made = calls(built, *nodes)
    built.output(*(made if isinstance(made, tuple) else (made,)))
    model = gt.from_exported(built.program)
    given = [gt.asarray(one, device="host") for one in inputs]
    eager = model.run(*given)
    with model.compile(target="host", rounding="each") as program:
        compiled = program(*given)
    found = []
    for a, b in zip(*(x if isinstance(x, list) else [x] for x in (eager, compiled)), strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-6, atol=1e-6)
        found.append(a.numpy())
    return found


def item(b, node, place):
    return b.call(operator.getitem, node, place)


X = (3, 4, 6)
ON_FLOATS = {
    "negative padding": (
        lambda b, x: b.call("aten.constant_pad_nd.default", x, [-1, 2, 1, -2], 5.0),
        lambda x: np.pad(x[:, :2, 1:], [(0, 0), (1, 0), (0, 2)], constant_values=5),
    ),
    "lower median": (
        lambda b, x: item(b, b.call("aten.median.dim", x, 2), 0),
        lambda x: np.sort(x, 2)[:, :, 2],
    ),
    "std of all": (lambda b, x: b.call("aten.std.default", x, False), lambda x: x.std()),
    "as strided": (
        lambda b, x: b.call("aten.as_strided.default", x, [2, 3], [5, 2], 1),
        lambda x: x.reshape(-1)[1 + np.arange(2)[:, None] * 5 + np.arange(3) * 2],
    ),
    "scatter of a value": (
        lambda b, x: b.call(
            "aten.scatter.value", x, 2, b.attribute("at", np.array([[[1, 4]]])), 7.0
        ),
        lambda x: np.where(np.isin(np.arange(72).reshape(X), (1, 4)), 7, x),
    ),
    "positions that repeat": (
        lambda b, x: b.call(
            "aten.index_put.default", x,
            [b.attribute("i", np.array([0, 0, 2])), b.attribute("j", np.array([1, 1, -1]))],
            b.attribute("new", np.float32([[1], [2], [3]])), True,
        ),
        lambda x: added(x),
    ),
    "positions that repeat behind free axes": (
        lambda b, x: b.call(
            "aten.index_put.default", x, [None, b.attribute("i", np.array([[0], [2]])),
                                          b.attribute("j", np.array([[1, -5]]))],
            b.attribute("new", np.float32([[[1, 2], [3, 4]]])), True,
        ),
        lambda x: x + np.array([[0, 3, 0, 0, 0, 0], [0] * 6, [0, 7, 0, 0, 0, 0], [0] * 6]),
    ),
    "select scatter": (
        lambda b, x: b.call(
            "aten.select_scatter.default", x, b.call("aten.select.int", x, 1, 0), 1, -1
        ),
        lambda x: np.concatenate([x[:, :3], x[:, :1]], 1),
    ),
    "division towards zero": (
        lambda b, x: b.call(
            "aten.div.Tensor_mode", b.call("aten.to.dtype", x, Dtype("int64")), 2,
            rounding_mode="trunc",
        ),
        lambda x: np.trunc(np.trunc(x) / 2).astype(np.int64),
    ),
    "columns of windows": (
        lambda b, x: b.call("aten.im2col.default", x, [2, 3], [1, 1], [0, 0], [1, 2]),
        lambda x: np.stack([x[:, i : i + 3, j : j + 3 : 2].reshape(3, -1)
                            for i in range(2) for j in range(3)], 1).reshape(18, 6),
    ),
    "nearest by a factor": (
        lambda b, x: b.call("aten.upsample_nearest1d.vec", x, None, [1.3]),
        lambda x: x[:, :, np.floor(np.arange(7) / 1.3).astype(int)],
    ),
    "largest of uneven windows": (
        lambda b, x: item(b, b.call("aten.adaptive_max_pool1d.default", x, [4]), 0),
        lambda x: np.stack([x[:, :, a:z].max(2) for a, z in ((0, 2), (1, 3), (3, 5), (4, 6))], 2),
    ),
    "places of maxima": (
        lambda b, x: item(b, b.call("aten.max_pool2d_with_indices.default", x, [2, 2]), 1),
        lambda x: places(x),
    ),
    "running sum of exponentials": (
        lambda b, x: b.call("aten.logcumsumexp.default", x, -1),
        lambda x: np.logaddexp.accumulate(x, -1),
    ),
    "back from a half spectrum": (
        lambda b, x: b.call(
            "aten._fft_c2r.default", b.call("aten._fft_r2c.default", x, [2], 0, True), [2], 2, 6
        ),
        lambda x: x,
    ),
    "bags of rows": (
        lambda b, x: item(b, b.call(
            "aten.embedding_bag.default", b.call("aten.select.int", x, 0, 0),
            b.attribute("rows", np.array([3, 1, 1, 0])), b.attribute("starts", np.array([0, 3, 3])),
            False, 1,
        ), 0),
        lambda x: np.stack([(x[0, 3] + 2 * x[0, 1]) / 3, np.zeros(6), x[0, 0]]),
    ),
    "shuffled channels": (
        lambda b, x: b.call("aten.channel_shuffle.default", x, 2),
        lambda x: x[:, [0, 2, 1, 3]],
    ),
    "weights of a length": (
        lambda b, x: b.call("aten._weight_norm.default", x, b.attribute(
            "g", np.full((3, 1, 1), 2, np.float32)), 0),
        lambda x: 2 * x / np.sqrt((x**2).sum((1, 2), keepdims=True)),
    ),
}  # fmt: skip


def added(x):
    y = x.copy()
    y[0, 1] += 3
    y[2, 3] += 3
    return y


def places(x):
    """The places of the maxima of 2 x 2 windows, within a matrix."""
    rows = x.reshape(3, 2, 2, 3, 2).transpose(0, 1, 3, 2, 4).reshape(3, 2, 3, 4).argmax(-1)
    return (np.arange(2)[:, None] * 2 + rows // 2) * 6 + np.arange(3) * 2 + rows % 2


@pytest.mark.parametrize("name", ON_FLOATS)
def test_operators_on_floats(name, rng):
    calls, reference = ON_FLOATS[name]
    x = rng.uniform(-3, 3, X).astype(np.float32)
    (found,) = ran(x, calls=calls)
    wanted = reference(x.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_number_in_a_tensor_does_not_widen_the_dtype(rng):
    x = rng.standard_normal(5).astype(np.float16)

    def calls(b, x):
        one = b.attribute("one", np.array(0.5, np.float32))
        least = b.call("aten.scalar_tensor.default", -1.0, dtype=Dtype("float64"))
        y = b.call("aten.mul.Tensor", x, one)
        return y, b.call("aten.maximum.default", y, least), b.call("aten.add.Tensor", 1, one)

    half, most, wide = ran(x, calls=calls)
    assert (half.dtype, most.dtype, wide.dtype) == (np.float16, np.float16, np.float32)
    np.testing.assert_array_equal(most, np.maximum(x * np.float16(0.5), -1))


@pytest.mark.parametrize("lengths", [(3, 5), (5, 3)])
def test_a_causal_mask_begins_at_the_first_key(lengths, rng):
    queries, keys = lengths
    q = rng.standard_normal((2, queries, 8), np.float32)
    k = rng.standard_normal((2, keys, 8), np.float32)

    def attend(b, q, k):
        return b.call("aten.scaled_dot_product_attention.default", q, k, k, None, 0.0, True)

    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) / np.sqrt(8)
    scores = np.where(np.tril(np.ones((queries, keys), bool)), scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    (found,) = ran(q, k, calls=attend)
    np.testing.assert_allclose(found, e / e.sum(-1, keepdims=True) @ k, rtol=1e-4, atol=1e-5)


def test_random_numbers_are_drawn_and_a_program_refuses_them():
    built = Builder()
    x = built.input("x", (40, 50), "float16")
    shares = built.call("aten.rand.default", [40, 50], dtype=Dtype("float64"), device="cpu")
    bells = built.call("aten.randn_like.default", x)
    dice = built.call("aten.randint.low", 1, 7, [40, 50], pin_memory=False)
    model = gt.from_exported(built.output(shares, bells, dice).program)
    gt.random.seed(3)
    x = gt.zeros(40, 50, dtype="float16", device="host")
    shares, bells, dice = (one.numpy() for one in model.run(x))
    assert [one.dtype.name for one in (shares, bells, dice)] == ["float64", "float16", "int64"]
    assert shares.min() >= 0 and shares.max() < 1 and set(dice.reshape(-1)) == set(range(1, 7))
    assert abs(shares.mean() - 0.5) < 0.05 and abs(bells.mean()) < 0.2 and 0.8 < bells.std() < 1.2
    with pytest.raises(gt.TraceError, match="a draw without a generator in a program"):
        model.compile(target="host")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("steps", [4, 70])
def test_recurrent_layers(steps, backwards, rng):
    x = rng.standard_normal((steps, 2, 3), np.float32)
    w, r = (rng.uniform(-0.5, 0.5, (16, n)).astype(np.float32) for n in (3, 4))
    b = rng.uniform(-0.5, 0.5, 16).astype(np.float32)
    kept = 2 if backwards else 1

    def calls(built, x):
        weights = [built.attribute(f"w{i}", one) for i, one in enumerate((w, r, b, b))] * kept
        first = built.attribute("first", np.zeros((kept, 2, 4), np.float32))
        how = True, 1, 0.0, False, backwards, False
        lstm = built.call("aten.lstm.input", x, [first, first], weights, *how)
        weights = [built.attribute(f"g{i}", one[:12]) for i, one in enumerate((w, r, b, b))] * kept
        gru = built.call("aten.gru.input", x, first, weights, *how)
        return item(built, lstm, 0), item(built, lstm, 2), item(built, gru, 0)

    outputs, cells, gated = ran(x, calls=calls)
    order = range(steps)[::-1] if backwards else range(steps)
    h, c, g = (np.zeros((2, 4)) for _i in range(3))
    for time in order:
        into, forget, new, out = np.split(x[time] @ w.T + h @ r.T + 2 * b, 4, 1)
        c = sigmoid(forget) * c + sigmoid(into) * np.tanh(new)
        h = sigmoid(out) * np.tanh(c)
        a, s = x[time] @ w[:12].T + b[:12], g @ r[:12].T + b[:12]
        reset, update = sigmoid(a + s)[:, :4], sigmoid(a + s)[:, 4:8]
        g = (1 - update) * np.tanh(a[:, 8:] + reset * s[:, 8:]) + update * g
    last = order[-1]
    np.testing.assert_allclose(outputs[last, :, -4:], h, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(cells[-1], c, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(gated[last, :, -4:], g, rtol=1e-3, atol=1e-4)


def nested(built, name, function, *inputs):
    """An attribute of a graph that contains the graph which `function` builds."""
    inside = Builder()
    nodes = [inside.input(f"a{i}", shape, dtype) for i, (shape, dtype) in enumerate(inputs)]
    inside.output(*function(inside, *nodes))
    return built.attribute(name, SimpleNamespace(graph=inside.graph))


def named(name):
    target = Target(name)
    target.__name__ = name
    return target


@pytest.mark.parametrize("sign", [1, -1])
def test_control_flow(sign, rng):
    x = sign * rng.uniform(1, 2, (3, 4)).astype(np.float32)
    row, number = ((4,), "float32"), ((), "int64")

    def calls(b, x):
        test = b.call("aten.gt.Scalar", b.call("aten.sum.default", x), 0)
        yes = nested(
            b, "yes", lambda g, a: [g.call("aten.mul.Tensor", a, 2.0)], ((3, 4), "float32")
        )
        no = nested(b, "no", lambda g, a: [g.call("aten.sub.Tensor", a, 1.0)], ((3, 4), "float32"))
        chosen = item(b, b.call(named("cond"), test, yes, no, (x,)), 0)

        goes = nested(b, "goes", lambda g, i, a: [g.call("aten.lt.Scalar", i, 3)], number, row)
        turn = nested(
            b,
            "turn",
            lambda g, i, a: [g.call("aten.add.Tensor", i, 1), g.call("aten.mul.Tensor", a, 3.0)],
            number,
            row,
        )
        start = b.attribute("start", np.array(0))
        first = b.call("aten.select.int", x, 0, 0)
        looped = b.call(named("while_loop"), goes, turn, (start, first), ())

        step = nested(
            b,
            "step",
            lambda g, c, a: [g.call("aten.add.Tensor", c, a), g.call("aten.mul.Tensor", c, a)],
            row,
            row,
        )
        scanned = b.call(named("scan"), step, [first], [x], ())
        return chosen, item(b, looped, 1), item(b, scanned, 0), item(b, scanned, 1)

    chosen, looped, total, rows = ran(x, calls=calls)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(chosen, wide * 2 if sign > 0 else wide - 1, rtol=1e-6)
    np.testing.assert_allclose(looped, wide[0] * 27, rtol=1e-6)
    sums = wide[0] + np.cumsum(np.concatenate([np.zeros((1, 4)), wide]), 0)
    np.testing.assert_allclose(total, sums[-1], rtol=1e-5)
    np.testing.assert_allclose(rows, sums[:-1] * wide, rtol=1e-5)


def test_sampling_at_places_of_an_affine_map(rng):
    x = rng.standard_normal((2, 3, 5, 4), np.float32)
    turn = np.float32([[[0, 1, 0], [-1, 0, 0]]] * 2)  # a quarter turn

    def calls(b, x, turn):
        grid = b.call("aten.affine_grid_generator.default", turn, [2, 3, 4, 5], True)
        return b.call("aten.grid_sampler_2d.default", x, grid, 0, 0, True)

    (found,) = ran(x, turn, calls=calls)
    np.testing.assert_allclose(found, np.rot90(x, -1, (2, 3)), rtol=1e-4, atol=1e-5)


def test_a_convolution_of_the_same_size_with_an_even_kernel(rng):
    x, w = rng.standard_normal((1, 1, 7), np.float32), rng.standard_normal((1, 1, 4), np.float32)
    (found,) = ran(x, w, calls=lambda b, x, w: b.call(
        "aten.conv1d.padding", x, w, None, [1], "same"))  # fmt: skip
    wide = np.pad(x[0, 0].astype(np.float64), (1, 2))
    np.testing.assert_allclose(found[0, 0], np.correlate(wide, w[0, 0]), rtol=1e-4, atol=1e-5)


def test_means_of_regions(rng):
    x = rng.standard_normal((2, 3, 8, 8), np.float32)
    boxes = np.float32([[1, 2, 2, 6, 4], [0, 0, 0, 7, 7]])

    def calls(b, x, boxes):
        return b.call("torchvision.roi_align.default", x, boxes, 1.0, 1, 2, 1, True)

    (found,) = ran(x, boxes, calls=calls)
    # With one sample a cell, it is the centre of the cell.
    np.testing.assert_allclose(found[0, :, 0], centres(x[1], 2.5, (2.5, 4.5)), atol=1e-5)
    np.testing.assert_allclose(found[1, :, 0], centres(x[0], 3.0, (1.25, 4.75)), atol=1e-5)


def centres(image, row, columns):
    """Linear samples of an image (channels, rows, columns) at one row and several columns."""
    low = int(row)
    line = image[:, low] * (1 - row + low) + image[:, min(low + 1, 7)] * (row - low)
    return np.stack([[np.interp(at, np.arange(8), one) for at in columns] for one in line])


def kept(boxes, scores, most_overlap):
    """The boxes that no better one overlaps by more, pair by pair."""
    found = []
    for i in np.argsort(-scores, kind="stable"):
        for j in found:
            low, high = (
                np.maximum(boxes[i, :2], boxes[j, :2]),
                np.minimum(boxes[i, 2:], boxes[j, 2:]),
            )
            common = max(high[0] - low[0], 0) * max(high[1] - low[1], 0)
            areas = [np.prod(boxes[k, 2:] - boxes[k, :2]) for k in (i, j)]
            if common > most_overlap * (sum(areas) - common):
                break
        else:
            found.append(i)
    return found


def test_boxes_that_overlap_better_ones_are_left_out(rng):
    built = Builder()
    nodes = built.input("boxes", (40, 4)), built.input("scores", (40,))
    model = gt.from_exported(built.output(
        built.call("torchvision.nms.default", *nodes, 0.25)).program)  # fmt: skip
    low = rng.integers(0, 10, (40, 2))  # whole numbers, of which all areas are exact
    boxes = np.concatenate([low, low + rng.integers(0, 9, (40, 2))], 1).astype(np.float32)
    scores = rng.permutation(40).astype(np.float32)
    given = [gt.asarray(one, device="host") for one in (boxes, scores)]
    assert model.run(*given).tolist() == kept(boxes.astype(np.float64), scores, 0.25)
    assert model.run(*(one[:0] for one in given)).shape == (0,)
    with pytest.raises(gt.TraceError):
        model.compile(target="host")


def sample(image, y, x):
    """A linear sample of a matrix with zeros around it."""
    total, (height, width) = 0.0, image.shape
    for i in (int(np.floor(y)), int(np.floor(y)) + 1):
        for j in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= i < height and 0 <= j < width:
                total += image[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


@pytest.mark.parametrize("has_mask", [True, False])
def test_a_convolution_with_shifted_terms(has_mask, rng):
    x, w = (
        rng.standard_normal((2, 4, 5, 4), np.float32),
        rng.standard_normal((6, 2, 2, 3), np.float32),
    )
    offsets = rng.uniform(-2, 2, (2, 2 * 6 * 2, 3, 3)).astype(np.float32)
    mask = rng.random((2, 2 * 6, 3, 3), np.float32)
    bias = rng.standard_normal(6, np.float32)

    def calls(b, *nodes):
        how = 2, 1, 1, 2, 1, 2, 2, 2, has_mask  # strides, padding, dilations, groups
        return b.call("torchvision.deform_conv2d.default", *nodes, *how)

    (found,) = ran(x, w, offsets, mask, bias, calls=calls)
    wanted = np.zeros((2, 6, 3, 3))
    shifts = offsets.reshape(2, 2, 2, 3, 2, 3, 3).astype(np.float64)
    factors = mask.reshape(2, 2, 2, 3, 3, 3) if has_mask else np.ones((2, 2, 2, 3, 3, 3))
    for n, out, row, column, c, i, j in np.ndindex(2, 6, 3, 3, 2, 2, 3):
        channel = out // 3 * 2 + c
        group = channel // 2
        down, right = shifts[n, group, i, j, :, row, column]
        at = row * 2 - 1 + i + down, column - 2 + j * 2 + right
        term = sample(x[n, channel], *at) * factors[n, group, i, j, row, column]
        wanted[n, out, row, column] += term * w[out, c, i, j]
    np.testing.assert_allclose(found, wanted + bias[:, None, None], rtol=1e-4, atol=1e-4)


def test_batches_are_normalized_by_running_values_where_they_are_given(rng):
    x = rng.standard_normal((4, 3), np.float32)
    centre, variance = rng.standard_normal(3, np.float32), rng.random(3, np.float32) + 0.5

    def calls(b, x, centre, variance):
        how = (False, 0.1, 1e-5)
        given = b.call(
            "aten._native_batch_norm_legit.default", x, None, None, centre, variance, *how
        )
        alone = b.call("aten._native_batch_norm_legit.no_stats", x, None, None, True, *how[1:])
        return item(b, given, 0), item(b, alone, 0)

    given, alone = ran(x, centre, variance, calls=calls)
    wide = x.astype(np.float64)
    # A few roundings of terms that may cancel.
    bound = 2.0**-20 * (np.abs(wide).max() + np.abs(centre).max()) / 0.5
    assert np.abs(given - (wide - centre) / np.sqrt(variance + 1e-5)).max() <= bound
    wanted = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    spread = 1 / np.sqrt(wide.var(0).min() + 1e-5)
    assert np.abs(alone - wanted).max() <= 2.0**-20 * (1 + spread * np.abs(wide).max()) ** 3


def test_a_factor_of_zero_forgets_the_addend():
    x, y = np.float32([1, 2]), np.float32([3, 4, 5])
    addend = np.full((2, 3), np.nan, np.float32)
    (found,) = ran(addend, x, y, calls=lambda b, *x: b.call("aten.addr.default", *x, beta=0))
    assert (found == np.outer(x, y)).all()


def test_attention_that_drops_weights_is_refused():
    x = np.ones((1, 2, 3, 4), np.float32)

    def calls(b, x):
        return b.call("aten.scaled_dot_product_attention.default", x, x, x, None, 0.5)

    with pytest.raises(gt.ModelError, match="got dropout_p 0.5; expected model.eval"):
        ran(x, calls=calls)


def test_a_softmax_of_a_row_that_is_all_masked_is_zero(rng):
    """PyTorch decomposes attention into it; another row with NaN keeps its NaN."""
    x = rng.standard_normal((3, 4), np.float32)
    x[0], x[1, 2], x[2, 1] = -np.inf, -np.inf, np.nan
    (found,) = ran(x, calls=lambda b, x: b.call("aten._safe_softmax.default", x, -1))
    powers = np.exp(x[1].astype(np.float64) - x[1].max())
    assert (found[0] == 0).all() and np.isnan(found[2]).all()
    np.testing.assert_allclose(found[1], powers / powers.sum(), rtol=1e-6, atol=1e-7)
