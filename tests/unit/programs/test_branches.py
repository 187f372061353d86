"""Branches of a program: every order that waits and streams allow computes the same."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gputensor as gt
from gputensor.programs.passes.branches import waits_of
from gputensor.programs.passes.plan import plan
from tests.support.programs.interpreter import run
from tests.support.programs.random_functions import random_function, random_inputs, random_sizes


def some_order(rng, function, waits):
    """A random order of calls that keeps the order of each stream and all waits."""
    queues = {}
    for index, call in enumerate(function.calls):
        queues.setdefault(call.stream, []).append(index)
    made = []
    while len(made) < len(function.calls):
        ready = [one for one in queues.values() if one and set(waits[one[0]]) <= set(made)]
        made.append(rng.choice(ready).pop(0))
    return made


def results(found):
    outputs, states = found
    return [one.tobytes() for one in outputs], {name: a.tobytes() for name, a in states.items()}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_any_order_that_the_waits_allow_gives_the_same(rng):
    function, arrays, states = random_function(rng)
    sizes = random_sizes(rng, function)
    given = (random_inputs(rng, function, sizes), arrays, states, sizes)
    wanted = results(run(function, *given))
    found, waits = plan(function, sizes), waits_of(function)
    for _ in range(3):
        order = some_order(rng, function, waits)
        assert results(run(function, *given, (found, None), order)) == wanted, order


def test_a_lost_wait_is_found():
    """The check above can fail: without waits, some order gives another result."""
    for seed in range(200):
        rng = random.Random(seed)
        function, arrays, states = random_function(rng)
        waits = waits_of(function)
        if not any(waits):
            continue
        sizes = random_sizes(rng, function)
        given = (random_inputs(rng, function, sizes), arrays, states, sizes)
        wanted = results(run(function, *given))
        order = some_order(rng, function, [()] * len(function.calls))
        if results(run(function, *given, (plan(function, sizes), None), order)) != wanted:
            return
    pytest.fail("no order without waits gave another result")


def test_a_call_waits_for_the_last_that_others_imply():
    def model(x):
        side, far = gt.Stream("host"), gt.Stream("host")
        a = x + 1
        with gt.stream(side):
            b = a * 2
            c = b * 3
        with gt.stream(far):
            d = a + c
        return d + c

    function = gt.trace(model, gt.spec((4,)), target="host")
    waits = waits_of(function)
    by_line = dict(enumerate(waits))
    assert [by_line[index] for index in range(5)] == [(), (0,), (), (2,), (3,)]


def test_calls_of_one_stream_need_no_waits():
    function = gt.trace(lambda x: x + 1 + x, gt.spec((4,)), target="host")
    assert waits_of(function) == [()] * len(function.calls)
