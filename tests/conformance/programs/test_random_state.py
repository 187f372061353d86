"""Generators in programs: their state is a state of the session, like any other."""

import numpy as np
import pytest

import gputensor as gt
from gputensor.errors import TraceError
from tests.support.tensor_devices import NAMES, device_of


@pytest.fixture(params=NAMES)
def where(request):
    number = device_of(request.param)
    if number is None:
        pytest.skip("no CUDA device: run on a machine with one")
    return gt.Device(number)


def draw(x, *, state):
    return x + gt.random.uniform(size=x.shape, generator=state["random"])


def pick(x, *, state):
    return gt.random.categorical(state["random"], x, shape=(4,))


def compiled(where, seed=3):
    spec = gt.spec((5,))
    return gt.compile(
        {"draw": (draw, spec), "pick": (pick, spec)},
        state={"random": gt.random.spec(seed=seed)},
        target=where,
    )


def drawn(session, x, turns=3):
    """The results of alternating calls of both functions, as bytes."""
    found = []
    for _ in range(turns):
        found += [session.draw(x).numpy().tobytes(), session.pick(x).numpy().tobytes()]
    return found


def eager(where, x, seed=3, turns=3):
    state, found = {"random": gt.random.generator(seed=seed, device=where).state}, []
    for _ in range(turns):
        found += [one(x, state=state).numpy().tobytes() for one in (draw, pick)]
    return found


def test_functions_draw_from_one_state(where, tmp_path):
    x = gt.asarray(np.linspace(0, 1, 5, dtype=np.float32), device=where)
    program = compiled(where)
    wanted = eager(where, x)
    assert len(set(wanted)) == len(wanted)
    program.save(tmp_path / "p.gtp")
    with gt.load_program(tmp_path / "p.gtp", where) as loaded:
        for one in (program, loaded):
            with one.session() as session:
                assert drawn(session, x) == wanted
                session.reset()
                assert drawn(session, x, 1) == wanted[:2]
                with session.fork() as fork:
                    assert drawn(fork, x, 2) == drawn(session, x, 2) == wanted[2:]
                session.state["random"][...] = gt.random.generator(seed=8, device=where)
                assert drawn(session, x) == eager(where, x, seed=8)


def test_a_loop_carries_the_state_that_its_turns_draw_from(where):
    def walk(x, *, state):
        def turn(i, carry):
            x, words = carry[0], gt.copy(carry[1])
            return x + gt.random.normal(size=x.shape, generator=words), words

        x, words = gt.fori_loop(0, 4, turn, (x, state["random"]))
        state["random"][...] = words
        return x

    x = gt.zeros(6, device=where)
    program = gt.compile(walk, gt.spec((6,)), state={"random": gt.random.spec(2)}, target=where)
    rng = gt.random.generator(seed=2, device=where)
    with program.session() as session:
        for _ in range(2):
            wanted = gt.copy(x)
            for _turn in range(4):
                wanted = wanted + rng.normal(size=6)
            np.testing.assert_array_equal(session(x).numpy(), wanted.numpy())
        np.testing.assert_array_equal(session.state["random"].numpy(), rng.get_state())


def test_draws_that_would_not_be_kept_are_refused(where):
    generator = gt.random.generator(seed=1, device=where)
    cases = [
        (lambda x: x + gt.random.uniform(size=2), "draw without a generator"),
        (
            lambda x: x + generator.uniform(size=2),
            "memory that is no tensor of the trace; .* pass it in state",
        ),
        (
            lambda x, *, state: gt.fori_loop(
                0, 2, lambda i, x: x + gt.random.uniform(size=2, generator=state["random"]), x
            ),
            "a write in a loop or branch",
        ),
    ]
    for function, message in cases:
        state = {"random": gt.random.spec()}
        with pytest.raises(TraceError, match=message):
            gt.compile(function, gt.spec((2,)), state=state, target=where)
