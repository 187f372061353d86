"""Draws, launch by launch: words of each block, tails, the counter, several blocks of threads."""

import numpy as np
import pytest

import gputensor as gt
from gputensor.tensor.engine import queue_call
from tests.conformance.random import test_draws as draws
from tests.conformance.random import test_generators as generators


def test_devices_give_equal_bits(rng):
    draws.test_devices_give_equal_bits(0, rng)


@pytest.mark.parametrize("name", draws.BITS)
def test_uniform_numbers(rng, name):
    draws.test_uniform_numbers_are_those_of_the_model(0, rng, name)
    draws.test_ends_of_a_range_are_kept(0, rng, name)


def test_integers(rng):
    for row in draws.INTEGERS:
        draws.test_integers_are_those_of_the_model(0, rng, row)
    draws.test_rejected_words_are_drawn_again(0, rng)
    draws.test_bernoulli_draws(0, rng)


def test_known_answers():
    for known in draws.KNOWN:
        draws.test_words_are_the_known_answers_of_philox(0, *known)


def test_permutations(rng):
    for count in (1, 3, 1024, 1025, 5000):
        draws.test_permutations_have_every_number_once(0, rng, count)


def test_memory_of_any_alignment(rng):
    """A draw into a part of a tensor writes only that part."""
    for first, count in [(1, 40), (3, 5), (4, 12)]:
        whole = gt.full(64, -1, dtype="int32", device=0)
        made, again = (gt.random.generator(4, device=0) for _ in range(2))
        queue_call("random", ("integers", 0, 99), (whole[first : first + count], made.state))
        want = np.full(64, -1, np.int32)
        want[first : first + count] = again.integers(100, size=count, dtype="int32").numpy()
        assert np.array_equal(whole.numpy(), want)


def test_replays_and_streams():
    generators.test_each_replay_of_a_graph_draws_new_numbers(0)
    generators.test_draws_on_other_streams_follow_each_other(0, gt.random.generator(11, device=0))


def test_first_use_in_a_capture(monkeypatch):
    generators.test_default_generator_may_be_new_in_a_capture(0, monkeypatch)
    generators.test_seeds_in_a_capture_are_work_of_the_graph(0, monkeypatch)
