"""Options of NumPy's functions: the results are those of NumPy."""

import io

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same

V = np.asarray([3.0, 1.0, 2.0, 5.0])
N = np.asarray([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]])
M = np.arange(6.0).reshape(2, 3)
I = np.asarray([-7, 5, 2, 9])  # noqa: E741
K = np.asarray([7, 3, 5])
#: Function, arguments and keywords of NumPy and gputensor alike.
CALLS = [
    ("take", (V, I), {"mode": "wrap"}),
    ("take", (V, I), {"mode": "clip"}),
    ("take", (M, I), {"mode": "clip", "axis": 1}),
    ("take", (M, np.asarray([1, 0])), {"mode": "raise", "axis": 0}),
    ("choose", (I, (I, I * 2)), {"mode": "wrap"}),
    ("choose", (I, (I, I * 2)), {"mode": "clip"}),
    ("ravel_multi_index", ((K, K), (4, 6)), {"mode": "wrap"}),
    ("ravel_multi_index", ((K, K), (4, 6)), {"mode": ("clip", "wrap")}),
    ("ravel_multi_index", ((K - 3, K - 2), (5, 6)), {"order": "F"}),
    ("unravel_index", (K, (4, 6)), {"order": "F"}),
    ("unravel_index", (K, (4, 6)), {"order": "C"}),
    ("nansum", (N,), {"where": M > 1, "axis": 1}),
    ("nanmean", (N,), {"where": M != 2}),
    ("nanmax", (N,), {"initial": 4.5, "axis": 0}),
    ("nanmin", (N,), {"initial": 2.5, "axis": 1}),
    ("nanprod", (N,), {"initial": 2.0, "where": M < 5}),
    ("nansum", (N,), {"initial": 10.0}),
    ("nanvar", (N,), {"where": M != 4}),
    ("nanstd", (N,), {"correction": 1}),
    ("nansum", (K,), {"where": K > 3}),
    ("cov", (M,), {"dtype": np.float64}),
    ("cov", (M,), {"fweights": np.asarray([1, 2, 3])}),
    ("cov", (M,), {"aweights": np.asarray([0.5, 1.0, 2.0])}),
    ("cov", (M,), {"aweights": np.asarray([0.5, 1.0, 2.0]), "fweights": np.asarray([2, 1, 1])}),
    ("cov", (M,), {"aweights": np.asarray([0.5, 1.0, 2.0]), "ddof": 0}),
    ("cross", (M.T, M.T), {"axisa": 0, "axisb": 0, "axisc": 0}),
    ("intersect1d", (I, I[::-1]), {"assume_unique": True}),
    ("intersect1d", (np.asarray([1, 1, 2, 3]), np.asarray([3, 3, 1, 9])), {"return_indices": True}),
    ("setdiff1d", (I, K), {"assume_unique": True}),
    ("setxor1d", (I, K), {"assume_unique": True}),
    ("indices", ((2, 3),), {"sparse": True}),
    ("concatenate", ((V, V),), {"casting": "unsafe"}),
    ("quantile", (V, 0.3), {"overwrite_input": True}),
    ("std", (V,), {"mean": np.asarray(2.75)}),
    ("unique", (V,), {"sorted": True}),
    ("isin", (V, V[:2]), {"kind": "sort"}),
    ("sort", (V,), {"order": None}),
    ("meshgrid", (V, V), {"copy": False}),
    ("linalg.pinv", (M @ M.T,), {"hermitian": True}),
    ("linalg.matrix_rank", (M @ M.T,), {"hermitian": True}),
    ("linspace", (0, 10, 4), {"dtype": int}),
    ("linspace", (-3.5, 2, 7), {"dtype": np.int32}),
    ("linspace", (V, V * 2, 5), {}),
    ("linspace", (V, 9.0, 5), {"axis": 1, "endpoint": False}),
    ("logspace", (V, V + 1, 3), {"axis": -1}),
    ("geomspace", (V, V * 9, 3), {}),
    ("lexsort", (np.asarray([[2, 1, 2], [0, 3, 0]]),), {"axis": 0}),
    ("polyfit", (V, V**2, 1), {"rcond": 1e-10}),
    ("polyfit", (V, V**2, 1), {"cov": True}),
    ("polyfit", (V, V**2, 2), {"cov": "unscaled", "w": V}),
    ("polyfit", (V, np.stack([V**2, V], 1), 1), {"cov": True}),
    ("polyfit", (V, V**2, 1), {"full": True}),
    ("linspace", (V, V * 2, 1), {}),
    ("linspace", (V, V * 2, 4), {"retstep": True}),
    ("trim_zeros", (np.asarray([0, 0, 1, 0, 2, 0]),), {"axis": 0}),
]  # fmt: skip


def found(library, name):
    for part in name.split("."):
        library = getattr(library, part)
    return library


def on_host(value):
    if isinstance(value, tuple):
        return tuple(map(on_host, value))
    return gt.asarray(value, device="host") if isinstance(value, np.ndarray) else value


def same(result, expected):
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            same(one, other)
        return
    wide = np.result_type(expected, np.float64)
    check_same(gt.asarray(result, device="host").astype(wide), np.asarray(expected, wide), 1e-6)


@pytest.mark.parametrize(("name", "arguments", "keywords"), CALLS)
def test_options_give_numpy_results(name, arguments, keywords):
    expected = found(np, name)(*arguments, **keywords)
    is_made = not any(isinstance(one, (np.ndarray, tuple)) for one in arguments)
    place = {"device": "host"} if is_made or name == "indices" else {}
    ours = {key: on_host(value) for key, value in keywords.items()}
    same(found(gt, name)(*on_host(arguments), **ours, **place), expected)


@pytest.mark.parametrize(
    "name", ["zeros", "ones", "empty", "asarray", "copy", "zeros_like", "full_like"]
)
@pytest.mark.parametrize("order", ["C", "F", "K"])
def test_order_is_the_layout_of_memory(name, order):
    x = gt.asarray(M, device="host")
    arguments = {"asarray": (x,), "copy": (x,), "zeros_like": (x,), "full_like": (x, 1.0)}
    made = getattr(gt, name)(*arguments.get(name, ((2, 3),)), order=order,
                             **({} if name in arguments else {"device": "host"}))  # fmt: skip
    assert made.shape == (2, 3) and made.strides == tuple(
        made.itemsize * one for one in ((1, 2) if order == "F" else (3, 1))
    )
    if name in ("asarray", "copy"):
        assert made.tolist() == M.tolist()
    with pytest.raises(ValueError, match="order: got 'Q'; expected C, F, A or K"):
        getattr(gt, name)(*arguments.get(name, ((2, 3),)), order="Q")


def test_methods_take_the_options_of_numpy():
    x = gt.asarray(M, device="host")
    assert x.copy(order="F").strides == (8, 16) and x.flatten(order="F").tolist() == [
        0,
        3,
        1,
        4,
        2,
        5,
    ]
    assert x.astype("int32", casting="unsafe", subok=False, order="K").dtype == gt.int32
    assert x.take([7], mode="wrap").tolist() == [1]
    y = gt.zeros(3, device="host")
    y.put([4, -1], [5.0, 6.0], mode="wrap")
    assert y.tolist() == [0, 5, 6]


@pytest.mark.parametrize("name", ["rfft", "fft", "ifft", "irfft"])
def test_transforms_write_to_out(name):
    x = gt.asarray(V, device="host")
    expected = getattr(gt.fft, name)(x)
    out = gt.full(expected.shape, 7, dtype=expected.dtype, device="host")
    assert getattr(gt.fft, name)(x, out=out) is out
    assert out.tolist() == expected.tolist()


def test_out_of_another_shape_or_kind_is_refused_and_unchanged():
    x = gt.asarray(V, device="host")
    for out, error in ((gt.zeros(3, device="host"), ValueError),
                       (gt.zeros(2, dtype="int32", device="host"), TypeError)):  # fmt: skip
        with pytest.raises(error, match="take: out"):
            gt.take(x, [0, 1], out=out)
        assert not out.any()
    with pytest.raises(TypeError):
        gt.take(x, [0, 1], out=np.zeros(2))


def test_like_gives_the_device():
    x = gt.ones(2, device="host")
    assert gt.zeros(3, like=x).device == x.device and gt.arange(3, like=x).device == x.device
    with pytest.raises(TypeError):
        gt.zeros(3, like=np.zeros(2))


def test_values_without_a_meaning_are_refused():
    x = gt.asarray(V, device="host")
    for call in (
        lambda: gt.take(x, [0], mode="around"),
        lambda: gt.sort(x, order="name"),
        lambda: gt.concatenate([x, x], casting="none"),
        lambda: gt.unravel_index(gt.asarray([1], device="host"), (2, 2), order="A"),
    ):
        with pytest.raises(ValueError, match="got"):
            call()


def test_can_cast_takes_the_casting_rules_of_numpy():
    assert gt.can_cast(gt.float64, gt.float32, casting="same_kind")
    assert not gt.can_cast(gt.float64, gt.int32, casting="same_kind")


def test_files_take_the_options_of_numpy():
    file = io.BytesIO()
    gt.save(file, gt.asarray(V, device="host"), allow_pickle=False)
    file.seek(0)
    assert gt.load(file, device="host", mmap_mode=None, allow_pickle=True).tolist() == V.tolist()


def test_arange_takes_tensors_of_one_element():
    stop = gt.asarray(3, device="host")
    assert gt.arange(stop, device="host").tolist() == [0, 1, 2]
    assert gt.arange(1, stop, device="host").tolist() == [1, 2]
