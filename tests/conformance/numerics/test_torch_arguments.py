"""Calls with PyTorch's positions and keywords give its results; the references are written out."""

import numpy as np
import pytest

import gputensor as gt


def tensor(where, rng, *shape, dtype="float32"):
    a = (rng.normal(size=shape) * 9).astype(dtype)
    return a, gt.asarray(a, device=where)


def test_selections_take_options_by_position(where, rng):
    a, x = tensor(where, rng, 3, 7)
    ascending = np.sort(a, axis=1)
    for got in (gt.topk(x, 2, 1, False), x.topk(2, 1, False, True), gt.topk(x, 2, -1, False)):
        assert got.values.tolist() == ascending[:, :2].tolist()
        np.testing.assert_array_equal(np.take_along_axis(a, got.indices.numpy(), 1), got.values)
    found = gt.topk(input=x, k=2, dim=1, largest=True, sorted=False)
    assert found.values.tolist() == ascending[:, :-3:-1].tolist()
    assert gt.kthvalue(x, 2, 1, True).values.tolist() == ascending[:, 1:2].tolist()
    i = gt.asarray([[5, 1, 5], [2, 2, 1]], device=where)
    assert gt.mode(i, 1, True).values.tolist() == [[5], [2]]
    for got in (gt.sort(x, 1, True), x.sort(1, True)):
        assert got.values.tolist() == ascending[:, ::-1].tolist()
        np.testing.assert_array_equal(np.take_along_axis(a, got.indices.numpy(), 1), got.values)
    assert gt.sort(x, 1, False).values.tolist() == ascending.tolist()
    assert gt.sort(x, 1, "mergesort").tolist() == ascending.tolist()
    assert x.tolist() == a.tolist()


def test_runs_of_equal_slices(where, rng):
    lines = rng.integers(0, 2, (9, 2, 3))
    lines[rng.integers(1, 9, 4)] = 1
    counts = [1]
    kept = [lines[0]]
    inverse = [0]
    for line in lines[1:]:
        if (line == kept[-1]).all():
            counts[-1] += 1
        else:
            kept.append(line)
            counts.append(1)
        inverse.append(len(kept) - 1)
    for axis in (0, 1, -1):
        x = gt.asarray(np.moveaxis(lines, 0, axis), device=where)
        got = gt.unique_consecutive(x, return_inverse=True, return_counts=True, dim=axis)
        np.testing.assert_array_equal(got[0].numpy(), np.moveaxis(kept, 0, axis))
        assert got[1].tolist() == inverse and got[2].tolist() == counts
    assert gt.unique_consecutive(x[:, :, :0], dim=2).shape == x[:, :, :0].shape


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_scattered_elements_are_added_or_multiplied(where, rng, dtype):
    a, x = (one for one in tensor(where, rng, 3, 4, dtype=dtype))
    b, source = tensor(where, rng, 2, 5, dtype=dtype)
    index = rng.integers(0, 4, (2, 5))
    places = gt.asarray(index, device=where)
    for reduce, join in (("add", np.add), ("multiply", np.multiply)):
        for values, given in ((b, source), (np.full((2, 5), 3, dtype), 3)):
            want = a.astype("float64" if dtype != "int64" else dtype)
            for (row, column), place in np.ndenumerate(index):
                want[row, place] = join(want[row, place], values[row, column])
            for got in (
                gt.scatter(x, 1, places, given, reduce=reduce),
                gt.scatter(x, dim=1, index=places, value=given, reduce=reduce),
                x.clone().scatter_(1, places, given, reduce=reduce),
            ):
                assert got.dtype == dtype
                tolerance = 3e-2 if dtype == "float16" else 1e-4
                known = np.abs(want) < 6e4
                np.testing.assert_allclose(got.numpy()[known], want[known], tolerance, tolerance)
    with pytest.raises(ValueError, match="scatter: reduce: got 'mean'; expected 'add', 'multiply'"):
        gt.scatter(x, 1, places, 3, reduce="mean")
    assert gt.scatter(x, 1, places, value=3)[0, int(index[0, 0])].item() == 3


def test_axes_and_counts_one_by_one(where, rng):
    a, x = tensor(where, rng, 2, 3, 4)
    for got, want in (
        (x.flip(0, -1), np.flip(a, (0, 2))), (x.flip(1), np.flip(a, 1)), (x.flip(), np.flip(a)),
        (x.flip((0, 1)), np.flip(a, (0, 1))), (x.flip(dims=[1]), np.flip(a, 1)),
        (x.flip(axis=2), np.flip(a, 2)), (x.tile(2, 1, 3), np.tile(a, (2, 1, 3))),
        (x.tile(2), np.tile(a, 2)), (x.tile((1, 2)), np.tile(a, (1, 2))),
        (x.tile(dims=(2, 1)), np.tile(a, (2, 1))), (x.tile(reps=2), np.tile(a, 2)),
        (gt.select(x, dim=1, index=2), a[:, 2]), (gt.select(x, 1, 2), a[:, 2]),
    ):  # fmt: skip
        np.testing.assert_array_equal(got.numpy(), want)


def test_triangles_by_rows_columns_and_offset(where):
    for got, want in (
        (gt.tril_indices(3, 4, offset=-1, device=where), np.tril_indices(3, -1, 4)),
        (gt.triu_indices(row=3, col=2, device=where), np.triu_indices(3, 0, 2)),
        (gt.triu_indices(3, col=5, offset=2, device=where), np.triu_indices(3, 2, 5)),
        (gt.tril_indices(3, 1, device=where), np.tril_indices(3, 1)),
        (gt.tril_indices(3, offset=1, device=where), np.tril_indices(3, 1)),
        (gt.triu_indices(4, offset=-1, device=where), np.triu_indices(4, -1)),
    ):
        assert [one.tolist() for one in got] == [one.tolist() for one in want]


def test_axes_and_flags_may_be_arrays_of_numpy(where, rng):
    a, x = tensor(where, rng, 2, 3)
    assert x.transpose(np.array([1, 0])).tolist() == a.T.tolist()
    assert gt.sort(x, 0, np.True_)[0].tolist() == np.sort(a, 0)[::-1].tolist()


def test_positions_of_32_bits(where, rng):
    a, x = tensor(where, rng, 5, 3)
    edges = np.sort(rng.normal(size=6).astype("float32"))
    found = gt.searchsorted(gt.asarray(edges, device=where), x, out_int32=True)
    assert found.dtype == gt.int32
    assert found.tolist() == np.searchsorted(edges, a).tolist()
    found = gt.bucketize(x, gt.asarray(edges, device=where), right=True, out_int32=False)
    assert found.dtype == gt.int64
    assert found.tolist() == np.searchsorted(edges, a, "right").tolist()


def test_activations_in_place(where, rng):
    for name in ("relu", "leaky_relu", "elu", "silu", "hardtanh", "mish", "relu6", "selu"):
        a, x = tensor(where, rng, 4, 5)
        want = getattr(gt, name)(x)
        assert getattr(gt, name)(x, inplace=False) is not x and x.tolist() == a.tolist()
        view = x[:, ::2]
        assert getattr(gt, name)(view, inplace=True) is view
        np.testing.assert_array_equal(x[:, ::2].numpy(), want[:, ::2].numpy())
        assert x[:, 1].tolist() == a[:, 1].tolist()
    assert gt.dropout(x, 1.0, inplace=True) is x and not x.any()
    whole = gt.asarray([3, -1], device=where)
    with pytest.raises(TypeError, match="celu: dtype of x: got int64; expected a dtype that holds"):
        gt.celu(whole, inplace=True)
    assert whole.tolist() == [3, -1]


def test_activations_take_inplace_by_position(where, rng):
    calls = {"relu": (), "silu": (), "relu6": (), "selu": (), "mish": (), "hardswish": (),
             "hardsigmoid": (), "leaky_relu": (0.2,), "elu": (1.5,), "celu": (1.5,),
             "hardtanh": (-0.5, 0.5), "threshold": (0.1, 2.0)}  # fmt: skip
    for name, arguments in calls.items():
        a, x = tensor(where, rng, 4, 5)
        function = getattr(gt, name)
        want = function(x, *arguments)
        assert gt.array_equal(function(x, *arguments, False), want) and x.tolist() == a.tolist()
        assert function(x, *arguments, True) is x and gt.array_equal(x, want)
    out = gt.empty_like(x)
    assert gt.relu(x, out) is out
    assert gt.dropout(x, 1.0, True, True) is x and not x.any()
    with pytest.raises(TypeError, match="relu6"):
        gt.relu6(x, 3)


def test_names_of_the_first_argument_of_losses_and_layers(where, rng):
    a, x = tensor(where, rng, 3, 4)
    b, y = tensor(where, rng, 3, 4)
    np.testing.assert_allclose(gt.mse_loss(input=x, target=y).item(), np.mean((a - b) ** 2), 1e-5)
    labels = gt.asarray([0, 3, 1], device=where)
    shifted = a - a.max(1, keepdims=True)
    scores = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    want = -scores[np.arange(3), [0, 3, 1]].mean()
    np.testing.assert_allclose(gt.cross_entropy(input=x, target=labels).item(), want, 1e-5)
    centred = a - a.mean(1, keepdims=True)
    want = centred / np.sqrt(a.var(1, keepdims=True) + 1e-5) * b[0]
    for got in (
        gt.layer_norm(x, normalized_shape=[4], weight=y[0]),
        gt.layer_norm(input=x, normalized_shape=(4,), weight=y[0]),
    ):
        np.testing.assert_allclose(got.numpy(), want, 1e-3, 1e-5)
    pairs = a.reshape(3, 2, 2)
    want = (pairs - pairs.mean(2, keepdims=True)) / np.sqrt(pairs.var(2, keepdims=True) + 1e-5)
    got = gt.group_norm(input=x, num_groups=2)
    np.testing.assert_allclose(got.numpy(), want.reshape(3, 4), 1e-3, 1e-3)
    assert gt.embedding(labels, gt.stack([y[0]] * 4), padding_idx=0).shape == (3, 4)
    rows = gt.stack([y[0], y[1]] * 2)
    assert gt.embedding(input=labels, weight=rows).tolist() == rows[labels].tolist()
    assert gt.relu(input=x).tolist() == np.maximum(a, 0).tolist()


def test_options_of_linalg(where, rng):
    a, x = tensor(where, rng, 2, 3, 4, dtype="float64")
    for order in ("fro", "nuc", 1, -2, np.inf):
        want = np.linalg.norm(a, order, axis=(0, 2), keepdims=True)
        for got in (
            gt.linalg.matrix_norm(x, order, dim=(0, 2), keepdim=True),
            gt.linalg.matrix_norm(x, ord=order, dim=(0, -1), keepdim=True),
        ):
            np.testing.assert_allclose(got.numpy(), want, 1e-9)
        got = gt.linalg.matrix_norm(x, order)
        np.testing.assert_allclose(got.numpy(), np.linalg.norm(a, order, axis=(1, 2)), 1e-9)
    b = rng.normal(size=(4, 4)) + 9 * np.eye(4)
    square = gt.asarray(b, device=where)
    got = gt.linalg.solve(square, x, left=False)
    np.testing.assert_allclose(got.numpy() @ b, a, 1e-9)
    got = gt.linalg.solve(square, x[0, 0], left=False)
    np.testing.assert_allclose(got.numpy() @ b, a[0, 0], 1e-9)
    np.testing.assert_allclose(
        gt.linalg.lstsq(square, x[0].mT, driver="gelsd")[0].numpy(),
        np.linalg.solve(b, a[0].T),
        1e-9,
    )
    assert len(gt.linalg.lu(square, pivot=True)) == 3
    with pytest.raises(ValueError, match="lu: pivot: got False; expected True"):
        gt.linalg.lu(square, pivot=False)
    np.testing.assert_allclose(gt.cov(x[0], correction=0).numpy(), np.cov(a[0], ddof=0), 1e-9)
    steps = np.sort(rng.normal(size=3))
    for spacing, given in ((2.0, (2.0,)), ([2.0, 0.5], (2.0, 0.5)),
                           ([gt.asarray(steps, device=where), 2.0], (steps, 2.0))):  # fmt: skip
        want = np.gradient(a[0], *given)
        got = gt.gradient(x[0], spacing=spacing)
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one.numpy(), other, 1e-9)


def test_new_tensors_need_no_gradient(where):
    made = (
        gt.zeros(2, 3, device=where, requires_grad=False),
        gt.tensor([[1.0, 2, 3]] * 2, device=where, requires_grad=False),
        gt.randn(2, 3, device=where, requires_grad=False),
        gt.full((2, 3), 1.0, device=where, requires_grad=False),
        gt.zeros(2, 3, device=where, order="F"),
    )
    assert all(one.shape == (2, 3) for one in made)
    with pytest.raises(ValueError, match="zeros: requires_grad: got True; expected False: there"):
        gt.zeros(2, 3, device=where, requires_grad=True)


def test_the_host_has_pytorchs_name_too():
    assert gt.device("cpu") == gt.Device("cpu") == gt.device("host")
    x = gt.ones(2, device="cpu")
    assert x.device == "host" and x.to(device="cpu") is x and x.to("cpu", gt.int8).dtype == gt.int8
    with gt.Device("cpu"):
        assert gt.zeros(1).device == "host"
    with pytest.raises(ValueError, match="device: got 'cpu:1'; expected 'cuda', 'cuda:N', 'host'"):
        gt.device("cpu:1")


def test_methods_of_pytorch_write_to_their_tensor(where, rng):
    a, x = tensor(where, rng, 3, 3, dtype="float64")
    for name, arguments, want in (
        ("absolute_", (), np.abs(a)),
        ("addr_", (x[0], x[1]), a + np.outer(a[0], a[1])),
        ("clamp_max_", (2.0,), np.minimum(a, 2)),
        ("clamp_min_", (-2.0,), np.maximum(a, -2)),
        ("fix_", (), np.trunc(a)),
        ("greater_", (0.5,), a > 0.5),
        ("i0_", (), np.i0(a)),
        ("ldexp_", (2,), a * 4),
        ("sgn_", (), np.sign(a)),
        ("sinc_", (), np.sinc(a)),
        ("true_divide_", (3.0,), a / 3),
        ("threshold_", (0.0, 20.0), np.where(a > 0, a, 20)),
        ("leaky_relu_", (0.5,), np.where(a > 0, a, a / 2)),
        ("hardtanh_", (-2.0, 3.0), np.clip(a, -2, 3)),
        ("elu_", (), np.where(a > 0, a, np.expm1(a))),
    ):
        y = x.copy()
        is_function = name in ("threshold_", "leaky_relu_", "hardtanh_", "elu_")
        found = getattr(gt, name)(y, *arguments) if is_function else getattr(y, name)(*arguments)
        assert found is y
        np.testing.assert_allclose(y.numpy(), want, 1e-12, err_msg=name)
    counts = gt.asarray([4, 6], device=where)
    assert counts.copy().gcd_(6).tolist() == [2, 6] and counts.copy().lcm_(6).tolist() == [12, 6]
    assert counts.bitwise_left_shift_(1).tolist() == [8, 12]


def test_facts_of_pytorchs_tensors(where):
    x = gt.ones((2, 3), device=where)
    assert not any((x.is_sparse, x.is_quantized, x.is_meta, x.is_conj(), x.is_pinned()))
    assert not x.is_shared() and not x.is_inference() and x.grad is None
    x.grad = None
    with pytest.raises(ValueError, match="(?s)grad: got .*; expected None: there is no"):
        x.grad = x
    assert x.dim_order() == (0, 1) and x.T.dim_order() == (1, 0)
    assert x.resolve_conj() is x and x.resolve_neg() is x
    assert x.conj_physical() is not x and gt.isfortran(x.T) and not gt.isfortran(x)
    assert not gt.is_grad_enabled() and gt.is_inference_mode_enabled()
    y = x.narrow_copy(1, 0, 2)
    y += 1
    assert x.tolist() == [[1, 1, 1]] * 2 and gt.rsub(x, 3, alpha=2).tolist() == [[1, 1, 1]] * 2
    with pytest.raises(ValueError, match="asarray_chkfinite: a: got infinities or NaN"):
        gt.asarray_chkfinite([1.0, np.nan], device=where)
    assert gt.asarray_chkfinite([1.0, 2.0], order="F", device=where).tolist() == [1, 2]
    assert (gt.add.nin, gt.add.nout, gt.add.identity, gt.exp.nin) == (2, 1, 0, 1)
    assert gt.divmod.nout == 2 and gt.hypot.nargs == 3


def test_transforms_of_hermitian_signals_over_several_axes(where, rng):
    exact = pytest.importorskip("scipy.fft", reason="needs SciPy")
    a = rng.normal(size=(3, 4, 5)) + 1j * rng.normal(size=(3, 4, 5))
    for name in ("hfft2", "hfftn", "ihfft2", "ihfftn"):
        given = a.real if name[0] == "i" else a
        x = gt.asarray(given, device=where)
        for norm in ("backward", "ortho", "forward"):
            for options in ({}, {"s": (3, 6), "axes": (0, 2)}):
                want = getattr(exact, name)(given, norm=norm, **options)
                got = getattr(gt.fft, name)(x, norm=norm, **options)
                np.testing.assert_allclose(got.numpy(), want, 1e-10, 1e-10)
