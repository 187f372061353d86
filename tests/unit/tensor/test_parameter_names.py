"""Functions accept the names that NumPy and PyTorch give to their parameters."""

import inspect
import pickle

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same

V = np.asarray([3.0, 1.0, 2.0, 5.0])
M = np.asarray([[4.0, 1.0], [1.0, 3.0]])
#: Calls with NumPy's names, of NumPy and of gputensor.
CALLS = [
    ("sum", {"a": M, "axis": 0}),
    ("digitize", {"x": V, "bins": np.asarray([1.5, 2.5])}),
    ("percentile", {"a": V, "q": 25}),
    ("quantile", {"a": V, "q": 0.5}),
    ("tile", {"A": V, "reps": (2, 2)}),
    ("take", {"a": V, "indices": np.asarray([2, 0]), "axis": 0}),
    ("take_along_axis", {"arr": M, "indices": np.asarray([[1], [0]]), "axis": 1}),
    ("interp", {"x": V, "xp": np.asarray([0.0, 9.0]), "fp": np.asarray([1.0, 2.0])}),
    ("polyfit", {"x": V, "y": V * 2 + 1, "deg": 1}),
    ("polyval", {"p": np.asarray([1.0, 2.0]), "x": V}),
    ("searchsorted", {"a": np.sort(V), "v": np.asarray([2.5]), "side": "right"}),
    ("moveaxis", {"a": M, "source": 0, "destination": 1}),
    ("append", {"arr": V, "values": V}),
    ("insert", {"arr": V, "obj": 1, "values": 7.0}),
    ("delete", {"arr": V, "obj": 1}),
    ("split", {"ary": V, "indices_or_sections": 2}),
    ("vstack", {"tup": (V, V)}),
    ("stack", {"arrays": (V, V), "axis": 1}),
    ("pad", {"array": V, "pad_width": 1}),
    ("isin", {"element": V, "test_elements": np.asarray([1.0, 5.0])}),
    ("allclose", {"a": V, "b": V}),
    ("isclose", {"a": V, "b": V}),
    ("dot", {"a": M, "b": M}),
    ("outer", {"a": V, "b": V}),
    ("kron", {"a": V, "b": V}),
    ("tensordot", {"a": M, "b": M, "axes": 1}),
    ("convolve", {"a": V, "v": V, "mode": "same"}),
    ("compress", {"condition": np.asarray([True, False]), "a": M, "axis": 0}),
    ("extract", {"condition": V > 2, "arr": V}),
    ("triu", {"m": M, "k": 1}),
    ("diag", {"v": V, "k": 1}),
    ("unique", {"ar": V}),
    ("union1d", {"ar1": V, "ar2": V}),
    ("trapezoid", {"y": V, "dx": 2.0}),
    ("gradient", {"f": V}),
    ("unwrap", {"p": V}),
    ("linspace", {"start": 0.0, "stop": 1.0, "num": 5}),
    ("resize", {"a": V, "new_shape": (2, 3)}),
    ("linalg.solve", {"a": M, "b": np.ones((2, 1))}),
    ("linalg.det", {"a": M}),
    ("linalg.matrix_power", {"a": M, "n": 3}),
    ("linalg.norm", {"x": M, "ord": "fro"}),
    ("fft.rfft", {"a": V, "n": 4}),
    ("fft.fftshift", {"x": V}),
    ("fft.fftfreq", {"n": 4, "d": 0.5}),
]  # fmt: skip
#: Parameters with another meaning at that position here, and of an element-wise function.
ELSEWHERE = {("cross", "axisa"), ("fix", "x")}


def found(library, name):
    for part in name.split("."):
        library = getattr(library, part)
    return library


def on_host(value):
    if isinstance(value, tuple):
        return tuple(map(on_host, value))
    return gt.asarray(value, device="host") if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(("name", "keywords"), CALLS, ids=[name for name, _ in CALLS])
def test_calls_with_numpy_names_give_numpy_results(name, keywords):
    place = {} if any(isinstance(v, (np.ndarray, tuple)) for v in keywords.values()) else {
        "device": "host"}  # fmt: skip
    expected = found(np, name)(**keywords)
    result = found(gt, name)(**{key: on_host(v) for key, v in keywords.items()}, **place)
    if not isinstance(expected, list):
        expected, result = [expected], [result]
    for one, other in zip(result, expected, strict=True):
        wide = np.result_type(other, np.float64)
        check_same(gt.asarray(one, device="host").astype(wide), np.asarray(other, wide), 1e-6)


def shared_functions():
    """Yield name, NumPy's parameters and ours of the functions that both libraries have."""
    for part in ("", "linalg.", "fft."):
        library = found(np, part[:-1]) if part else np
        ours = found(gt, part[:-1]) if part else gt
        for name in sorted(dir(ours)):
            pair = getattr(library, name, None), getattr(ours, name)
            if name[0] == "_" or not all(map(callable, pair)) or isinstance(pair[0], np.ufunc):
                continue
            if not any(isinstance(one, type) for one in pair):
                yield f"{part}{name}", pair


def test_every_positional_parameter_has_the_name_that_numpy_gives_it():
    checked = 0
    for name, (theirs, ours) in shared_functions():
        try:
            names = list(inspect.signature(theirs).parameters.values())
        except ValueError:
            continue  # no signature in NumPy
        shown = list(inspect.signature(ours).parameters.values())
        known = {one.name for one in shown if one.kind in (one.POSITIONAL_OR_KEYWORD,
                                                           one.KEYWORD_ONLY)}  # fmt: skip
        positions = getattr(ours, "positions", {})
        places = [one for one in shown if one.kind in (one.POSITIONAL_ONLY,
                                                       one.POSITIONAL_OR_KEYWORD)]  # fmt: skip
        for i, (one, _) in enumerate(zip(names, places, strict=False)):
            if one.kind is not one.POSITIONAL_OR_KEYWORD:
                break
            if one.name not in known and (name, one.name) not in ELSEWHERE:
                assert positions.get(one.name) == i, f"{name}: {one.name} at position {i}"
                checked += 1
    assert checked > 150


def test_names_of_pytorch_work_too():
    x = gt.asarray([[3.0, 1.0], [2.0, 5.0]], device="host")
    assert gt.sum(input=x, dim=0).tolist() == [5, 6]
    assert gt.cat(tensors=(x, x), dim=1).shape == (2, 4)
    index = gt.asarray([[0], [1]], device="host")
    assert gt.gather(input=x, dim=1, index=index).tolist() == [[3], [5]]
    values, places = gt.sort(input=x, dim=1)
    assert values.tolist() == [[1, 3], [2, 5]] and places.tolist() == [[1, 0], [0, 1]]
    assert gt.linalg.inv(A=gt.eye(2, device="host")).tolist() == [[1, 0], [0, 1]]


def test_methods_take_the_names_of_numpy():
    x = gt.asarray([3.0, 1.0], device="host")
    assert x.take(indices=[1]).tolist() == [1] and x.repeat(repeats=2).shape == (4,)
    x.put(indices=[0], values=9.0)
    assert x.tolist() == [9, 1] and x.searchsorted(v=gt.zeros(1, device="host")).tolist() == [0]


def test_an_argument_under_two_names_is_an_error():
    x = gt.ones(2, device="host")
    with pytest.raises(TypeError, match="sum: x: got the argument under two names"):
        gt.sum(x, a=x)
    with pytest.raises(TypeError, match="under two names"):
        gt.sum(a=x, input=x)
    with pytest.raises(TypeError, match="indices"):
        gt.take(x, [0], indices=[1])
    with pytest.raises(TypeError):
        gt.take(indices=[0])


@pytest.mark.parametrize("name", ["digitize", "sum", "take", "asarray", "norm", "linalg.inv"])
def test_functions_with_names_of_parameters_can_be_pickled(name):
    function = found(gt, name)
    assert pickle.loads(pickle.dumps(function)) is function
