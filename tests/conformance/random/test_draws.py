"""Draws on each device equal those of the model, and stay in their ranges."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from tests.support.models import philox as model

BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
FLOATS = {name: np.dtype(getattr(gt, name)) for name in BITS}
INTEGERS = [row for row in DTYPES if row.kind in ("bool", "int", "uint")]
MOST = 2**64 - 1


def state(rng):
    """A random state; about one in four has a counter that is about to carry."""
    near = rng.integers(0, 4) == 0
    low = MOST - int(rng.integers(5)) if near else int(rng.integers(MOST, dtype=np.uint64))
    words = [int(rng.integers(MOST, dtype=np.uint64)), low, int(rng.integers(9)), 0]
    return np.array(words, np.uint64)


def generator(words, place):
    made = gt.random.generator(0, device=place)
    made.set_state(words)
    return made


def moved(words, blocks):
    counter = (int(words[1]) + (int(words[2]) << 64) + blocks) % 2**128
    return [int(words[0]), counter % 2**64, counter >> 64, 0]


# Random123's known answers for philox4x32, 10 rounds: seed, counter, words.
KNOWN = [
    (0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (MOST, 2**128 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (0x299F31D0A4093822, 0x0370734413198A2E85A308D3243F6A88, "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize(("seed", "counter", "answer"), KNOWN)
def test_words_are_the_known_answers_of_philox(place, seed, counter, answer):
    words = np.array([seed, counter % 2**64, counter >> 64, 0], np.uint64)
    rng = generator(words, place)
    got = rng.integers(0, 2**32, size=4, dtype="uint32").tolist()
    assert [f"{word:08x}" for word in got] == answer.split()
    assert rng.get_state().tolist() == moved(words, 1)
    assert [f"{int(w):08x}" for w in model.blocks(words, 1)[0]] == answer.split()


@pytest.mark.parametrize("name", BITS)
def test_uniform_numbers_are_those_of_the_model(place, rng, name):
    for count in (1, 2, 5, 64, 2999):
        words = state(rng)
        made = generator(words, place)
        got = made.uniform(size=count, dtype=FLOATS[name])
        want = model.uniform(words, count, BITS[name])
        assert got.dtype == FLOATS[name] and np.array_equal(got.numpy().astype(float), want)
        lanes = 2 if name == "float64" else 4
        assert made.get_state().tolist() == moved(words, -(-count // lanes))


@pytest.mark.parametrize("name", BITS)
def test_ends_of_a_range_are_kept(place, rng, name):
    # float16(5.001) is below 5.001, bfloat16(1.9999) is 2.
    for low, high in [(-3.0, 5.001), (1.0, 1.9999), (0.0, 1e-3), (2.5, 2.5), (-1e4, 1e4)]:
        got = generator(state(rng), place).uniform(low, high, 4000, dtype=FLOATS[name])
        got = got.numpy().astype(float)
        if low < high:
            assert low <= got.min() and got.max() < high
        else:
            assert (got == low).all()
        unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(name, 1e-6)
        assert abs(got.mean() - (low + high) / 2) < (high - low) * 0.03 + unit * abs(high)


@pytest.mark.parametrize("is_double", [False, True])
@pytest.mark.parametrize("name", ["normal", "exponential", "gumbel"])
def test_numbers_are_within_roundings_of_the_model(place, rng, name, is_double):
    dtype, unit = ("float64", 2.0**-53) if is_double else ("float32", 2.0**-24)
    words = state(rng)
    got = getattr(generator(words, place), name)(size=4001, dtype=dtype).numpy().astype(float)
    if name == "gumbel":
        least = 2.0**-54 if is_double else 2.0**-25
        wait = np.maximum(model.exponential(words, 4001, is_double), least)
        want = -np.log(wait)
        # The outer logarithm divides the error of the inner one by its value.
        bound = 4 * unit * np.abs(want) + 4 * unit + 4 * unit * np.maximum(1, 1 / wait)
    else:
        want = getattr(model, name)(words, 4001, is_double)
        # Angles have an absolute error, and so does the logarithm of a number near 1.
        bound = 3 * unit * (np.abs(want) + np.abs(want).max())
    assert (np.abs(got - want) <= bound).all(), np.abs(got - want).max() / unit


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_narrow_numbers_are_rounded_once(place, rng, name):
    words = state(rng)
    for function in ("normal", "exponential", "gumbel"):
        wide = getattr(generator(words, place), function)(size=500).numpy()
        narrow = getattr(generator(words, place), function)(size=500, dtype=FLOATS[name])
        assert np.array_equal(narrow.numpy(), wide.astype(FLOATS[name]))


@pytest.mark.parametrize("row", INTEGERS, ids=lambda row: row.name)
def test_integers_are_those_of_the_model(place, rng, row):
    low, high = (0, 1) if row.kind == "bool" else (
        int(np.iinfo(row.numpy).min), int(np.iinfo(row.numpy).max))  # fmt: skip
    for _ in range(6):
        a, b = sorted(int(rng.integers(low, high, endpoint=True, dtype=row.numpy if row.kind != (
            "bool") else np.int64)) for _ in range(2))  # fmt: skip
        a, b = [(a, b), (low, high), (a, min(high, a + 2))][int(rng.integers(3))]
        count, words = int(rng.integers(1, 200)), state(rng)
        got = generator(words, place).integers(a, b, count, endpoint=True, dtype=row.numpy)
        assert got.dtype == row.numpy
        assert [int(x) for x in got.tolist()] == model.integers(words, count, a, b)


def test_rejected_words_are_drawn_again(place, rng):
    # For 3 * 2**30 integers a quarter of the words is rejected, for 2**63 + 1 nearly half.
    for reach in (3 << 30, (1 << 63) + 1):
        words = state(rng)
        got = generator(words, place).integers(reach, size=300, dtype="uint64").tolist()
        assert got == model.integers(words, 300, 0, reach - 1)


@pytest.mark.parametrize("count", [1, 2, 3, 255, 1024, 1025, 4096, 5000])
def test_permutations_have_every_number_once(place, rng, count):
    made = generator(state(rng), place)
    one, two = made.permutation(count).numpy(), made.permutation(count).numpy()
    assert np.array_equal(np.sort(one), np.arange(count))
    assert count < 255 or (one != two).mean() > 0.9
    assert count < 255 or (one != np.arange(count)).mean() > 0.9


def test_ranks_of_a_permutation_are_those_of_the_model(place, rng):
    words = state(rng)
    keys = model.wide_words(words, 700)
    want = np.argsort(np.argsort(keys, kind="stable"), kind="stable")
    assert np.array_equal(generator(words, place).permutation(700).numpy(), want)


def test_devices_give_equal_bits(place, rng):
    words = state(rng)
    here, there = generator(words, place), generator(words, "host")
    for name, options in [
        ("normal", {}), ("normal", {"dtype": "float64"}), ("exponential", {}), ("gumbel", {}),
        ("normal", {"dtype": gt.bfloat16, "loc": 3.0, "scale": 0.1}), ("randint", {"low": 1000}),
        ("uniform", {"low": -0.7, "high": 0.3}), ("exponential", {"dtype": "float64"}),
        ("bernoulli", {"p": 0.3}), ("gumbel", {"dtype": "float64"}),
    ]:  # fmt: skip
        one, two = (getattr(rng_, name)(size=10_001, **options) for rng_ in (here, there))
        assert np.array_equal(one.numpy().view(np.uint8), two.numpy().view(np.uint8)), name
    for count in (900, 20_000):
        one, two = here.permutation(count), there.permutation(count)
        assert np.array_equal(one.numpy(), two.numpy())
    assert here.get_state().tolist() == there.get_state().tolist()


def test_bernoulli_draws(place, rng):
    made = generator(state(rng), place)
    assert not made.bernoulli(0.0, 1000).numpy().any() and made.bernoulli(1.0, 1000).numpy().all()
    words = made.get_state()
    want = model.words(words, 5000) < round(0.3 * 2**32)
    assert np.array_equal(made.bernoulli(0.3, 5000).numpy(), want)
    p = gt.asarray([0.0, 0.5, 1.0], device=place)
    got = made.bernoulli(p, (4000, 3), dtype="float32").numpy()
    assert got.dtype == np.float32
    assert got[:, 0].sum() == 0 and got[:, 2].sum() == 4000 and 1800 < got[:, 1].sum() < 2200
