"""Options that NumPy's functions also take by position: the results are those of NumPy."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same

V = np.asarray([3.0, 1.0, 2.0, 5.0])
M = np.arange(6.0).reshape(2, 3)
I = np.asarray([-7, 5, 2, 9])  # noqa: E741
K = np.asarray([7, 3, 5])
#: Function and arguments of NumPy and gputensor alike.
CALLS = [
    ("take", (V, I, None, None, "clip")),
    ("take", (M, I, 1, None, "wrap")),
    ("choose", (I, (I, I * 2), None, "wrap")),
    ("compress", (np.asarray([True, False, True]), M, 1, None)),
    ("ravel_multi_index", ((K, K), (4, 6), "clip")),
    ("ravel_multi_index", ((K, K), (4, 6), ("clip", "wrap"), "F")),
    ("unravel_index", (K, (4, 6), "F")),
    ("logspace", (0, 2, 5, True, 10.0, np.float64)),
    ("logspace", (V, V + 1, 5, True, 10.0, None, 1)),
    ("geomspace", (1, 16, 5, True, np.float64)),
    ("geomspace", (V, V + 1, 5, False, None, -1)),
    ("linspace", (V, V + 1, 5, True, False, None, 1)),
    ("cross", (M.T, M.T[:, ::-1], 0, 0)),
    ("cross", (M.T, M, 0, 1, 0)),
    ("cross", (M.T, M.T[:, ::-1], -1, -1, -1, 0)),
    ("cross", (M.T, M.T[:, ::-1], 1, 1, 1, 0)),
    ("cross", (M, M[::-1], -1, -1, -1, None)),
    ("intersect1d", (I, I[::-1], True)),
    ("intersect1d", (I, I[::-1], True, True)),
    ("setdiff1d", (I, K, True)),
    ("setxor1d", (I, K, True)),
    ("linalg.pinv", (M @ M.T, 1e-10, True)),
    ("linalg.matrix_rank", (M @ M.T, None, True)),
    ("zeros_like", (M, np.int32, "F", False, (4,))),
]


def named(package, name):
    for part in name.split("."):
        package = getattr(package, part)
    return package


def given(value, device):
    if isinstance(value, np.ndarray):
        return gt.asarray(value, device=device)
    return tuple(given(one, device) for one in value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_options_follow_by_position(device, name, arguments):
    expected = named(np, name)(*arguments)
    found = named(gt, name)(*(given(one, device) for one in arguments))
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    for one, other in zip(found, expected, strict=True):
        check_same(one, other, tolerance=1e-5)


def test_out_by_position_is_written(device):
    x, i = gt.asarray(V, device=device), gt.asarray([3, 0], device=device)
    out = gt.empty(2, x.dtype, device=device)
    assert gt.take(x, i, None, out) is out and out.tolist() == [5, 3]
    assert x.take(i, None, out, "raise") is out
    assert gt.choose(gt.asarray([1, 0], device=device), (x[:2], x[2:]), out, "raise") is out
    assert out.tolist() == [2, 1]


def test_put_takes_its_mode_by_position(device):
    x, expected = gt.asarray(V, device=device), V.copy()
    gt.put(x, gt.asarray(I, device=device), 7.0, "clip")
    np.put(expected, I, 7.0, "clip")
    assert x.tolist() == expected.tolist()
    x.put(gt.asarray([5], device=device), 1.0, "wrap")
    assert x[1].item() == 1


def test_astype_takes_order_and_casting_by_position(device):
    x = gt.asarray(M, device=device)
    assert x.astype("float32", "F").strides == (4, 8)
    made = x.astype("float64", "C", "unsafe", True, False)
    assert made.data_ptr() == x.data_ptr()
    assert gt.copy(x.T, "K", False).strides == x.T.copy(order="K").strides


def test_choice_takes_shuffle_by_position(device):
    found = gt.random.default_rng(0, device).choice(5, 5, False, None, 0, False)
    assert sorted(found.tolist()) == list(range(5))


def test_three_arguments_of_cross_are_vectors_and_the_axis(device):
    x = gt.asarray(M.T, device=device)
    assert gt.cross(x, x * x, 0).shape == (3, 2)


def test_an_option_twice_or_too_many_arguments_raise():
    x, i = gt.asarray(V, device="host"), gt.asarray([0], device="host")
    with pytest.raises(TypeError, match="mode: got the argument twice"):
        gt.take(x, i, None, None, "clip", mode="wrap")
    with pytest.raises(TypeError):
        gt.take(x, i, None, None, "clip", 1)
    with pytest.raises(TypeError):
        gt.zeros(2, "int8", 3)
