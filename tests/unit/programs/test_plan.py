"""Plans: live values do not overlap, the checker finds planted faults, and arenas are small."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputensor.errors import ProgramError
from gputensor.programs import dims as forms
from gputensor.programs.function import Argument, Call, Function, Value
from gputensor.programs.passes.clean import clean
from gputensor.programs.passes.plan import ALIGNMENT, plan
from gputensor.programs.passes.plan_check import check_plan
from gputensor.programs.verify import verify
from tests.support.programs.example_function import dense, example_program
from tests.support.programs.interpreter import run
from tests.support.programs.model_lifetimes import decoder
from tests.support.programs.random_functions import random_function, random_inputs, random_sizes
from tests.support.programs.traced_models import traced_models


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_function_computes_the_same_in_a_poisoned_arena(rng):
    function, arrays, states = random_function(rng)
    sizes = random_sizes(rng, function)
    found = plan(function, sizes)
    check_plan(function, sizes, found)
    assert found.lower_bound <= found.nbytes <= found.total
    inputs = random_inputs(rng, function, sizes)
    outputs, after = run(function, inputs, arrays, states, sizes)
    again, later = run(function, inputs, arrays, states, sizes, (found, None))
    for one, other in zip(outputs, again, strict=True):
        assert one.tobytes() == other.tobytes()
    assert {name: a.tobytes() for name, a in after.items()} == {
        name: a.tobytes() for name, a in later.items()
    }


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_on_one_stream_small_arenas_meet_the_lower_bound(rng):
    function, _arrays, _states = random_function(rng)
    for call in function.calls:
        call.stream = 0
    found = plan(function, random_sizes(rng, function))
    assert found.nbytes <= 1.1 * found.lower_bound


def test_arenas_of_traced_models_are_near_their_lower_bound():
    ratios = {}
    for name, function, sizes in traced_models():
        verify(function)
        cleaned = clean(function, {})
        for at in [sizes, *forms.ends(function.dims.values())]:
            found = plan(cleaned, at)
            check_plan(cleaned, at, found)
            ratios[(name, *at.values())] = found.nbytes / max(found.lower_bound, 1)
            assert found.total >= found.nbytes
    assert len({name for name, *_sizes in ratios}) >= 10
    assert sum(ratios.values()) / len(ratios) <= 1.01, ratios
    assert max(ratios.values()) <= 1.05, ratios


@pytest.mark.parametrize(("rows", "length"), [(1, 1024), (300, 300), (77, 77), (128, 640)])
def test_a_search_closes_the_gaps_of_greedy_orders(rows, length):
    function = decoder(rows, length)
    found = plan(function, {})
    check_plan(function, {}, found)
    assert found.nbytes <= 1.01 * found.lower_bound


def test_results_are_not_in_the_arena():
    function = example_program().functions["decode"]
    found = plan(function, {"n": 5})
    assert found.results == (5,) and set(found.offsets) == {3}
    ((offset, inner),) = found.regions[2]
    assert offset % ALIGNMENT == 0 and not inner.offsets and inner.results == (2,)
    assert len(found.scratch[2]) == 2  # a copy of the carried value, and the index
    assert found.nbytes == 3 * 256


def chain(streams):
    """a = f(x); b = f(a); c = f(x); d = f(c), each on the given stream; b and d are added."""
    function = Function("f")
    function.values = [Value("input", 1024, "x"), *(Value("temporary", 1024) for _i in range(5))]
    function.inputs = [Argument("x", dense(0, (256,)))]
    reads = [(0,), (1,), (0,), (3,), (2, 4)]
    for index, (stream, read) in enumerate(zip(streams, reads, strict=True)):
        parts = tuple(dense(number, (256,)) for number in read)
        attributes = {"op": "add" if len(read) > 1 else "copy", "compute": "float32"}
        call = Call("elementwise", attributes, (dense(index + 1, (256,)),), parts, (None,), stream)
        function.calls.append(call)
    function.outputs = [Argument("", dense(5, (256,)))]
    return function


def test_streams_share_memory_only_where_data_orders_them():
    one, two = chain([0] * 5), chain([0, 0, 1, 1, 0])
    assert plan(one, {}).nbytes == 3 * 1024  # c reuses the memory of a
    assert plan(two, {}).nbytes == 4 * 1024  # c may be written while a is read
    check_plan(two, {}, plan(two, {}))
    with pytest.raises(ProgramError, match="value 3 and value 1|value 1 and value 3"):
        check_plan(two, {}, plan(one, {}))
    ordered = chain([0, 0, 1, 1, 0])
    ordered.calls[2].reads = (dense(2, (256,)),)  # c is computed from b
    assert plan(ordered, {}).nbytes < 4 * 1024
    check_plan(ordered, {}, plan(ordered, {}))


def test_empty_functions_have_empty_plans():
    found = plan(Function("f"), {})
    assert (found.nbytes, found.lower_bound, found.total) == (0, 0, 0)
    check_plan(Function("f"), {}, found)


def overlapping(rng, function, found):
    """Two values share one offset."""
    names = list(found.offsets)
    one, other = rng.sample(names, 2)
    found.offsets[one] = found.offsets[other]


def short_lifetime(rng, function, found):
    """Planned as if one elementwise call read no values."""
    for index in rng.sample(range(len(function.calls)), len(function.calls)):
        call = function.calls[index]
        if call.name == "elementwise":
            reads, call.reads = call.reads, ()
            other = plan(function, {})
            call.reads = reads
            found.offsets, found.nbytes = other.offsets, other.nbytes
            return


def lost_place(rng, function, found):
    del found.offsets[rng.choice(list(found.offsets))]


def outside(rng, function, found):
    found.nbytes -= ALIGNMENT


def unaligned(rng, function, found):
    found.offsets[rng.choice(list(found.offsets))] += 64


FAULTS = (
    overlapping,
    pytest.param(short_lifetime, marks=pytest.mark.slow),
    lost_place,
    outside,
    unaligned,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    """Some faults leave a valid plan, which must compute the same results."""
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    found = tried = 0
    # One in six shortened lifetimes makes the plan wrong.
    for _turn in range(1200 if fault is short_lifetime else 400):
        function, arrays, states = random_function(rng, 10)
        if function.dims or any(call.regions for call in function.calls):
            continue
        planned = plan(function, {})
        if len(planned.offsets) < 2 or not planned.nbytes:
            continue
        fault(rng, function, planned)
        tried += 1
        try:
            check_plan(function, {}, planned)
        except ProgramError as error:
            assert str(error).startswith("plan of f: got ") and "; expected " in str(error)
            found += 1
            continue
        assert fault in (overlapping, short_lifetime)
        inputs = random_inputs(rng, function, {})
        outputs, _after = run(function, inputs, arrays, states, {})
        again, _later = run(function, inputs, arrays, states, {}, (planned, None))
        for one, other in zip(outputs, again, strict=True):
            assert one.tobytes() == other.tobytes()
    assert tried > 50
    assert found == tried or (fault in (overlapping, short_lifetime) and found > 10)


def test_scratch_that_overlaps_an_operand_is_found():
    function = example_program().functions["decode"]
    found = plan(function, {"n": 5})
    found.scratch[2] = (found.offsets[3], found.scratch[2][1])
    with pytest.raises(ProgramError, match="scratch of call 2 and value 3|value 3 and scratch of"):
        check_plan(function, {"n": 5}, found)
