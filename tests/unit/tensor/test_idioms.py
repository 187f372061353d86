"""Common idioms of NumPy, CuPy and PyTorch work, and errors explain common mistakes."""

import inspect
import json
import math
import pickle

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def x():
    return gt.asarray(X, device="host")


# An expression of x, and the same in NumPy.
IDIOMS = {
    "x.sum(0)": X.sum(0),
    "x.max(1)": X.max(1),
    "x.sum(1, None, None, True)": X.sum(1, keepdims=True),
    "gt.concat([x, x], 0)": np.concatenate([X, X]),
    "gt.cat([x, x], 1)": np.concatenate([X, X], 1),
    "gt.roll(x, 1, 0)": np.roll(X, 1, 0),
    "x.std(0, ddof=1)": X.std(0, ddof=1),
    "x.var(0, correction=1)": X.var(0, ddof=1),
    "x.mean(dtype='float64')": X.mean(dtype=np.float64),
    "x.exp().log().round()": X,
    "x.clip(1, 3)": X.clip(1, 3),
    "x.clamp(min=2)": X.clip(2),
    "x.transpose()": X.T,
    "x.transpose(1, 0)": X.T,
    "x.permute(1, 0)": X.T,
    "x.swapaxes(0, 1)": X.T,
    "x.flatten()": X.ravel(),
    "x.reshape(-1).chunk(2)[1]": X.ravel()[3:],
    "x.view(3, 2)": X.reshape(3, 2),
    "x.view('int32')": X.view("int32"),
    "x.unsqueeze(0).expand(4, -1, -1)": np.broadcast_to(X, (4, 2, 3)),
    "x.to('float64')": X.astype("float64"),
    "x.to(gt.float64, 'host')": X.astype("float64"),
    "x.to(gt.ones(1, dtype='int8', device='host'))": X.astype("int8"),
    "x.double().cpu().float()": X,
    "x.to('cpu', 'float64').to(x)": X,
    "x.long()": X.astype("int64"),
    "x.masked_fill(x > 3, -1)": np.where(X > 3, np.float32(-1), X),
    "x.gather(1, gt.asarray([[2], [0]], device='host'))": np.float32([[2], [3]]),
    "x.scatter(1, gt.asarray([[2], [0]], device='host'), 9)": np.float32([[0, 1, 9], [9, 4, 5]]),
    "gt.where(x > 4)[1]": np.int64([2]),
    "gt.one_hot(gt.asarray([1, 0], device='host'))": np.int64([[0, 1], [1, 0]]),
    "gt.zeros((2,), 'int8')": np.zeros(2, "int8"),
    "gt.array(X, 'float64')": X.astype("float64"),
    "gt.tensor([1, 2])": np.int64([1, 2]),
    "abs(-x).add(1).mul(2)": (X + 1) * 2,
    "round(x / 3, 1)": np.float32(X / 3).round(1),
    "divmod(x, 2)[1]": X % 2,
    "x.add_(1).sub_(1)": X,
    "x.copy_(1)": np.ones_like(X),
    "x.diagonal()": X.diagonal(),
    "x.trace().reshape(())": X.trace(),
    "x.repeat(2, 0)": X.repeat(2, 0),
    "x.argmax(1)": X.argmax(1),
    "x.nonzero()[0]": X.nonzero()[0],
    "x.conj().real": X,
    "x.sum(dim=(0, 1), keepdim=True)": X.sum((0, 1), keepdims=True),
    "x.mean(0, keepdim=True)": X.mean(0, keepdims=True),
    "x.max(dim=1).values + x.min(1, keepdim=True)[0][0]": X.max(1) + X[0].min(),
    "x.max(dim=0)[1]": X.argmax(0),
    "x.max(axis=0)[1]": X.max(0)[1],
    "x.amax(dim=(0, 1))": X.max(),
    "(-x).sort(dim=1).indices": (-X).argsort(1),
    "gt.sort(-x, dim=0)[0]": np.sort(-X, 0),
    "x.median(dim=1)[0]": np.float32([1, 4]),
    "gt.median(x, dim=0).values": X[0],
    "gt.nanmedian(gt.where(x > 1, x, gt.nan), dim=0)[0]": np.float32([3, 4, 2]),
    "gt.median(gt.where(x > 1, x, gt.nan), dim=0).indices": np.int64([0, 0, 0]),
    "gt.median(x, keepdim=True)": np.float32([[2]]),
    "x.std(dim=1)": X.std(1, ddof=1),
    "x.var(unbiased=False)": X.var(),
    "x.var(0, correction=0, keepdim=True)": X.var(0, keepdims=True),
    "x.split(2, dim=1)[1]": X[:, 2:],
    "x.split([1, 2], dim=1)[1]": X[:, 1:],
    "x.squeeze(dim=0).unsqueeze(dim=0)": X[None],
    "x.transpose(dim0=0, dim1=1)": X.T,
    "x.permute(dims=(1, 0)).flatten(start_dim=0)": X.T.ravel(),
    "x.flip(dims=(1,)).roll(shifts=1, dims=0)": np.roll(X[:, ::-1], 1, 0),
    "x.gather(dim=1, index=gt.asarray([[2], [0]], device='host'))": np.float32([[2], [3]]),
    "x.topk(k=1, dim=0).values": X[1:],
    "gt.softmax(x, dim=1).sum(dim=1)": np.ones(2, "float32"),
    "gt.linalg.norm(x, dim=1, keepdim=True)": np.linalg.norm(X, axis=1, keepdims=True),
    "gt.fft.fft(x, dim=0).real": np.fft.fft(X, axis=0).real.astype("float32"),
    "gt.norm(x, p=1, dim=0)": X.sum(0),
    "x.t() + x.mT.triu(diagonal=0).new_zeros(3, 2)": X.T,
    "x.unfold(1, 2, 1).narrow(0, 1, 1)": np.float32([[[3, 4], [4, 5]]]),
    "gt.zeros(2, 3) + gt.ones(2, 3, dtype='float32')": np.ones((2, 3), "float32"),
    "gt.empty(2, 3, 0)": np.zeros((2, 3, 0), "float32"),
    "gt.ones(size=(2,), dtype='int8')": np.int8([1, 1]),
    "gt.linspace(0, 1, steps=3)": np.float32([0, 0.5, 1]),
    "x.softmax(dim=1).logsumexp(dim=1).zero_()": np.zeros(2, "float32"),
    "x.scatter_add_(1, gt.zeros((2, 1), 'int64'), x).cumsum_(dim=1).log1p_().expm1_()": np.cumsum(
        np.float32([[0, 1, 2], [6, 4, 5]]), 1
    ),
    "x.unbind(dim=0)[1].detach().clamp_min(4).type_as(x)": np.float32([4, 4, 5]),
    "x.tensor_split(3, dim=1)[2].reshape(2).expand_as(gt.ones((3, 2)))": np.float32([[2, 5]] * 3),
    "gt.cross(x, x)": np.cross(X, X),
    "gt.vdot(x, x)": np.vdot(X, X),
    "gt.linspace(0, 1, dtype='float64')": np.linspace(0, 1),
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_idiom_gives_numpys_result(idiom, x):
    with gt.Device("host"):
        result = eval(idiom, {"gt": gt, "x": x, "X": X})
    check_same(result, IDIOMS[idiom], 1e-6)


def spelled_functions():
    for place in (gt, gt.linalg, gt.fft, gt.Tensor):
        for name in dir(place):
            if hasattr(getattr(place, name), "spellings"):
                yield getattr(place, name)


def test_each_spelling_stands_for_an_argument():
    found = set(spelled_functions())
    assert len(found) > 90
    for function in found:
        shown = inspect.signature(function).parameters
        assert function.spellings.keys() <= shown.keys()
        assert function.__doc__ and pickle.loads(pickle.dumps(function)) is function
        for theirs, ours in function.spellings.items():
            # A call with their keyword reaches the function with ours, so the error is another one.
            with pytest.raises((TypeError, AttributeError)) as caught:
                function(None, **{theirs: 0})
            assert "unexpected keyword" not in str(caught.value), (function, ours)


def test_a_spelling_from_a_dictionary_counts_too(x):
    options = json.loads('{"dim": 0, "keepdim": true}')
    check_same(x.sum(**options), X.sum(0, keepdims=True))


def test_numbers_text_and_membership(x):
    one = x[0, 1]
    assert (float(one), int(one), complex(one), f"{one:.3f}", f"{one + 0.5:6.2f}") == (
        1.0, 1, 1 + 0j, "1.000", "  1.50",
    )  # fmt: skip
    assert f"{x}" == str(x)
    assert 5 in x and 9 not in x
    assert x.numel() == 6 and x.dim() == 2 and x.stride() == (3, 1) and len(x) == 2
    assert x.tobytes() == X.tobytes() and not x.is_cuda
    assert gt.device("host") == gt.Device("host") == x.device
    assert gt.broadcast_shapes((2, 1), (3,)) == (2, 3)


def test_parts_of_complex_tensors_are_views():
    z = gt.asarray(np.array([1 + 2j, 3 - 4j]), device="host")
    z.real = z.imag
    z.imag += 1
    np.testing.assert_array_equal(z.numpy(), [2 + 3j, -4 - 3j])
    with pytest.raises(TypeError, match="imag: x: got float32; expected a complex dtype"):
        gt.ones(1, device="host").imag = 1


def test_methods_are_bound_in_their_own_place_at_first_use(x):
    assert x.ptp().item() == 5
    assert "ptp" in vars(gt.Tensor)
    assert gt.Tensor.ptp is gt.ptp
    with pytest.raises(AttributeError):
        x.swapaxes = 3


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("low", [None, -(2**70), -1000, 3])
@pytest.mark.parametrize("high", [None, 2**70, 1000, 5])
def test_bounds_that_never_bind_are_no_bounds(dtype, low, high):
    values = np.arange(9).astype(dtype)
    expected = [min(max(int(v), low if low is not None else 0), high or 9) for v in values]
    assert gt.clip(gt.asarray(values, device="host"), low, high).tolist() == expected


MISTAKES = {
    "bool(x)": (
        "bool: got a tensor of shape (2, 3); expected one element; any() and all() tell whether "
        "some or every element is nonzero"
    ),
    "float(x)": "float: got a tensor of shape (2, 3); expected one element",
    "x.item()": "item: got a tensor of shape (2, 3); expected one element",
    "f'{x:.2f}'": "format: got a tensor of shape (2, 3); expected one element to format as '.2f'",
    "x.sum(0, dim=1)": "sum: axis: got the argument under two names; expected one of axis and dim",
    "x.max(axis=0, dim=0)": (
        "max: axis: got the argument under two names; expected one of axis and dim"
    ),
    "x.std(dim=0, unbiased=True, correction=1)": (
        "std: unbiased: got unbiased and correction; expected only one of them"
    ),
    "x.split(0, dim=0)": "split: split_size: got 0; expected 1 or more",
    "x.split([1], dim=0)": "split: sizes: got [1]; expected sizes whose sum is 2",
    "gt.zeros((2, 0), device='host').median(dim=1)": (
        "median: x: got no elements; expected at least one"
    ),
    "gt.stack([])": "stack: arrays: got []; expected at least one tensor",
    "gt.concat(None)": "concat: arrays: got NoneType; expected a sequence of tensors",
    "gt.stack([x, x[0]])": "stack: arrays: got shapes (2, 3), (3,); expected one shape",
    "gt.tile(x, -1)": "tile: repetitions: got [-1]; expected 0 or more",
    "gt.array_split(x, 2**70)": (
        f"array_split: indices_or_sections: got {2**70}; expected at most 16777216 parts"
    ),
    "gt.split(x, 5, 1)": (
        "split: indices_or_sections: got 5; expected a divisor of the extent 3; array_split makes "
        "unequal parts"
    ),
    "x.reshape(1, 2, 3).transpose(0, 1)": (
        "transpose: axes: got (0, 1); expected 3 axes; swapaxes exchanges two, as PyTorch's "
        "transpose does"
    ),
    "gt.asarray([[1, 2], [3]])": (
        "asarray: obj: got sequences of unequal lengths; expected nested sequences of one length "
        "at each level"
    ),
    "gt.asarray('abc')": (
        "asarray: obj: got text; expected numbers, arrays, or nested sequences of them"
    ),
    "gt.asarray([1, 'a'])": (
        "asarray: obj: got text; expected numbers, arrays, or nested sequences of them"
    ),
    "gt.logaddexp(x, x[:, :2])": (
        "logaddexp: got shapes (2, 3) and (2, 2); expected extents that are equal or 1"
    ),
    "gt.arange(0, 1e30)": "arange: stop: got 1e+30; expected at most 2**58 values",
    "gt.pad(x, -1)": "pad: pad_width: got -1; expected 0 or more",
    "gt.pad(x, 1, 'mirror')": (
        "pad: mode: got 'mirror'; expected one of constant, empty, edge, reflect, symmetric, wrap, "
        "linear_ramp, maximum, mean, median, minimum"
    ),
    "gt.take_along_axis(x, x, 0)": (
        "take_along_axis: indices: got float32; expected an integer dtype"
    ),
    "x.to('float64', 'host', 'host')": "to: targets: got str; expected one dtype and one device",
    "gt.broadcast_shapes((2,), (3,))": (
        "broadcast_shapes: got (2,), (3,); expected extents that are equal or 1"
    ),
    "x.masked_fill(x, 0)": "masked_fill: mask: got float32; expected dtype bool",
    "gt.cross(x, x, 0)": "cross: x1: got shape (2, 3); expected extent 3 in axis 0",
}


@pytest.mark.parametrize("call", MISTAKES)
def test_mistake_is_explained(call, x):
    with pytest.raises((ValueError, TypeError)) as raised:
        eval(call, {"gt": gt, "x": x})
    assert str(raised.value) == MISTAKES[call]


def test_out_of_concat_may_be_one_of_the_parts(x):
    flat = x.ravel()
    expected = np.concatenate([X.ravel()[3:], X.ravel()[:3]])
    gt.concat([flat[3:], flat[:3]], 0, flat)
    np.testing.assert_array_equal(flat.numpy(), expected)
    with pytest.raises(ValueError, match=r"concat: out"):
        gt.concat([x, x], 0, x)


def test_nan_is_ignored_on_request(x):
    x[0, 0] = math.nan
    values = x.numpy()
    for name in ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"):
        check_same(getattr(gt, name)(x, 0), getattr(np, name)(values, 0), 1e-6, name)
    assert gt.nanargmax(x, 1).tolist() == np.nanargmax(values, 1).tolist()
    check_same(gt.nan_to_num(x, nan=7.0), np.nan_to_num(values, nan=7.0))
    assert gt.allclose(x, x, equal_nan=True) and not gt.allclose(x, x)
    assert gt.array_equal(x, x, equal_nan=True) and not gt.array_equal(x, x)


def test_masks_of_functions_and_plain_views():
    x = gt.asarray([4.0, -1.0], device="host")
    assert gt.sqrt(x, where=x > 0).tolist() == [2, 0] == np.sqrt(x, where=x > 0).tolist()
    out = gt.add(x, 1, where=x < 0, out=x)
    assert out is x and x.tolist() == [4, 0] and (x == "a") is False
    view = x.view()
    view[0] = 1
    assert x.tolist() == [1, 0]
    with pytest.raises(TypeError, match="matmul: dtype: got bool"):
        gt.matmul(x > 0, x > 0, scale=2)
