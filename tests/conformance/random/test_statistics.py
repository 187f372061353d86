"""Distributions of long draws from fixed seeds, by the tests of SciPy."""

import itertools

import numpy as np
import pytest

import gputensor as gt

stats = pytest.importorskip("scipy.stats", reason="needs SciPy")
COUNT = 200_000
# The seeds are fixed, so a test that passes once always passes. Of correct distributions, one seed
# in ten thousand fails.
LEAST = 1e-4


def generator(place, seed=20):
    return gt.random.generator(seed, device=place)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "distribution"),
    [("uniform", "uniform"), ("normal", "norm"), ("exponential", "expon"), ("gumbel", "gumbel_r")],
)
def test_distribution(place, name, distribution, dtype):
    made = getattr(generator(place), name)(size=COUNT, dtype=dtype).numpy().astype(float)
    assert stats.kstest(made, distribution).pvalue > LEAST
    # Neighbours are independent: pairs fall into the cells of a grid with equal probability.
    u = getattr(stats, distribution).cdf(made).reshape(-1, 2)
    pairs = np.histogram2d(u[:, 0], u[:, 1], bins=20, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(pairs.reshape(-1)).pvalue > LEAST


@pytest.mark.parametrize("reach", [2, 3, 10, 1000, 3 << 30, (1 << 63) + 1])
def test_integers_are_equally_likely(place, reach):
    made = generator(place).integers(reach, size=COUNT, dtype="uint64").numpy()
    bins = min(reach, 100)
    counts = np.bincount((made.astype(object) * bins // reach).astype(int), minlength=bins)
    expected = np.full(bins, COUNT / bins)
    assert stats.chisquare(counts, expected).pvalue > LEAST


def test_each_order_of_four_is_equally_likely(place):
    rng = generator(place)
    orders = {order: 0 for order in itertools.permutations(range(4))}
    for _ in range(3000):
        orders[tuple(rng.permutation(4).tolist())] += 1
    assert stats.chisquare(list(orders.values())).pvalue > LEAST


@pytest.mark.parametrize("count", [2000, 2048])
def test_places_of_long_permutations_are_equally_likely(place, count):
    rng = generator(place)
    made = np.stack([rng.permutation(count).numpy() for _ in range(400)])
    table = np.histogram2d(
        np.tile(np.arange(count), 400), made.reshape(-1), bins=16, range=[[0, count]] * 2
    )[0]
    # Row and column sums are fixed, which leaves 15 * 15 degrees of freedom.
    expected = table.sum() / 256
    assert stats.chi2.sf(((table - expected) ** 2).sum() / expected, 225) > LEAST
    # Steps between neighbours go up as often as down.
    steps = np.sign(np.diff(made, axis=1))
    assert abs(steps.mean()) < 5 / np.sqrt(steps.size)


def test_spawned_generators_do_not_depend_on_each_other(place):
    parent = generator(place)
    children = [child.uniform(size=20_000).numpy() for child in parent.spawn(4)]
    made = [*children, parent.uniform(size=20_000).numpy()]
    table = np.corrcoef(np.stack(made).astype(float)) - np.eye(5)
    assert np.abs(table).max() < 4.5 / np.sqrt(20_000)


def test_categories_have_their_probabilities(place):
    p = np.array([0.1, 0.0, 0.4, 0.5])
    logits = gt.asarray(np.log(np.maximum(p, 1e-300)), device=place)
    made = gt.random.categorical(generator(place), logits, shape=(50_000,)).numpy()
    counts = np.bincount(made, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[p > 0], 50_000 * p[p > 0]).pvalue > LEAST
