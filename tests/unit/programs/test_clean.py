"""`clean` keeps the results of a function bit for bit, and removes unnecessary calls."""

import copy
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputensor.programs.function import (
    Argument,
    Call,
    Function,
    Number,
    Value,
    Weight,
)
from gputensor.programs.passes.clean import clean
from gputensor.programs.verify import verify
from tests.support.programs.example_function import dense
from tests.support.programs.interpreter import NUMPY, PLAIN, run
from tests.support.programs.random_functions import random_function, random_inputs, random_sizes


def compute(call, arrays):
    arrays = [
        np.asarray(part.value).astype(NUMPY[part.dtype]) if isinstance(part, Number) else part
        for part in arrays
    ]
    (out,) = call.writes
    with np.errstate(all="ignore"):
        result = np.asarray(PLAIN[call.name](call.attributes, out.shape, *arrays))
        return [np.broadcast_to(result.astype(NUMPY[out.dtype]), out.shape)]


def weights_of(arrays):
    return {name: Weight(name, str(a.dtype), a.shape, a) for name, a in arrays.items()}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_random_functions_compute_the_same(rng):
    function, arrays, states = random_function(rng)
    before = copy.deepcopy(function)
    weights = weights_of(arrays)
    found = clean(function, weights, compute)
    assert function == before
    verify(found)
    assert len(found.calls) <= len(function.calls)
    assert clean(found, weights, compute) == found
    sizes = random_sizes(rng, function)
    inputs = random_inputs(rng, function, sizes)
    outputs, after = run(function, inputs, arrays, states, sizes)
    arrays = {name: weight.source for name, weight in weights.items()}
    again, later = run(found, inputs, arrays, states, sizes)
    for one, other in zip(outputs, again, strict=True):
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()
    assert {name: a.tobytes() for name, a in after.items()} == {
        name: a.tobytes() for name, a in later.items()
    }


def small():
    """x + x twice, the second one an output; a doubled constant; an unread result."""
    function = Function("f")
    function.values = [
        Value("input", 16, "x"), Value("constant", 16, "constant.0"),
        *(Value("temporary", 16) for _i in range(6)),
    ]  # fmt: skip
    function.inputs = [Argument("x", dense(0, (4,)))]
    add = {"op": "add", "compute": "float32"}

    def call(out, *reads):
        reads = tuple(dense(read, (4,)) for read in reads)
        function.calls.append(Call("elementwise", dict(add), (dense(out, (4,)),), reads, (None,)))

    call(2, 0, 0)
    call(3, 0, 0)
    call(4, 1, 1)
    call(5, 2, 4)
    call(6, 5, 3)
    call(7, 5, 5)
    function.outputs = [Argument("0", dense(6, (4,))), Argument("1", dense(3, (4,)))]
    return function


def test_constants_equal_calls_and_unread_ones():
    weights = {"constant.0": Weight("constant.0", "float32", (4,), np.arange(4, dtype=np.float32))}
    found = clean(small(), weights, compute)
    assert len(found.calls) == 3  # x + x once, plus the constant, plus x + x
    names = [value.name for value in found.values if value.kind == "constant"]
    (name,) = names
    assert name != "constant.0"
    np.testing.assert_array_equal(weights[name].source, [0, 2, 4, 6])


def test_constants_are_not_folded_without_an_executor():
    assert len(clean(small(), {}).calls) == 4


def test_equal_calls_between_versions_stay():
    """A read, a write to the same memory and the same read again give two results."""
    function = Function("f")
    function.values = [
        Value("input", 16, "x"), Value("temporary", 16), Value("temporary", 16),
        Value("temporary", 16, base=1), Value("temporary", 16),
    ]  # fmt: skip
    function.inputs = [Argument("x", dense(0, (4,)))]
    copied, x = {"op": "copy", "compute": "float32"}, dense(0, (4,))
    half = dense(3, (2,))
    function.calls = [
        Call("elementwise", copied, (dense(1, (4,)),), (x,), (None,)),
        Call("elementwise", copied, (dense(2, (4,)),), (dense(1, (4,)),), (None,)),
        Call("elementwise", copied, (half,), (Number(7, "float32"),), (1,)),
        Call("elementwise", copied, (dense(4, (4,)),), (dense(3, (4,)),), (None,)),
    ]
    function.outputs = [Argument("0", dense(2, (4,))), Argument("1", dense(4, (4,)))]
    verify(function)
    found = clean(function, {})
    assert len(found.calls) == 4
    results, _states = run(found, [np.arange(4, dtype=np.float32)])
    np.testing.assert_array_equal(results, [[0, 1, 2, 3], [7, 7, 2, 3]])


def test_equal_outputs_stay_apart():
    function = small()
    function.outputs.append(Argument("2", dense(2, (4,))))
    found = clean(function, {})
    verify(found)
    assert len({item.operand.value for item in found.outputs}) == 3


def test_writes_to_states_and_checks_stay():
    function = Function("f")
    function.values = [Value("state", 16, "k"), Value("state", 16, base=0)]
    function.values.append(Value("constant", 8, "constant.0"))
    function.states = {"k": (0, 1)}
    index = dense(2, (1,), "int64")
    function.calls = [
        Call("elementwise", {"op": "copy", "compute": "float32"}, (dense(1, (4,)),),
             (Number(1, "float32"),), (0,)),
        Call("check_indices", {"extents": (4,)}, (), (index,), ()),
    ]  # fmt: skip
    verify(function)
    assert clean(function, {}, compute) == function


@pytest.mark.parametrize("elements", [4, 1 << 15])
def test_large_results_are_not_kept_as_constants(elements):
    """A file should not hold a constant that one call can fill."""
    function = Function("f")
    function.values = [Value("temporary", elements * 4), Value("temporary", elements * 4)]
    copied = {"op": "copy", "compute": "float32"}
    whole, out = dense(0, (elements,)), dense(1, (elements,))
    function.calls = [
        Call("elementwise", copied, (whole,), (Number(3, "float32"),), (None,)),
        Call("elementwise", copied, (out,), (whole,), (None,)),
    ]
    function.outputs = [Argument("", out)]
    weights = {}
    assert len(clean(function, weights, compute).calls) == (1 if elements == 4 else 2)
    assert len(weights) == (elements == 4)


def test_calls_are_removed_from_random_functions():
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    before = after = folded = 0
    for _turn in range(40):
        function, arrays, _states = random_function(rng)
        weights = weights_of(arrays)
        before += len(function.calls)
        after += len(clean(function, weights, compute).calls)
        folded += len(weights) - len(arrays)
    assert after < before and folded > 0
