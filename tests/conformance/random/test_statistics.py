"""Distributions of long draws from fixed seeds, by the tests of SciPy."""

import ast
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


FAMILIES = {
    "gamma(0.3, 2.0)": ("gamma", (0.3,), {"scale": 2}),
    "gamma(1.5)": ("gamma", (1.5,), {}),
    "standard_gamma(150.0)": ("gamma", (150,), {}),
    "beta(0.4, 3.0)": ("beta", (0.4, 3), {}),
    "chisquare(3)": ("chi2", (3,), {}),
    "standard_t(2.5)": ("t", (2.5,), {}),
    "lognormal(0.5, 0.7)": ("lognorm", (0.7,), {"scale": np.exp(0.5)}),
    "laplace(1, 2)": ("laplace", (1, 2), {}),
    "logistic(1, 2)": ("logistic", (1, 2), {}),
    "weibull(1.7)": ("weibull_min", (1.7,), {}),
    "rayleigh(2.0)": ("rayleigh", (0, 2), {}),
    "pareto(2.5)": ("lomax", (2.5,), {}),
    "power(2.5)": ("powerlaw", (2.5,), {}),
    "standard_cauchy()": ("cauchy", (), {}),
    "triangular(1, 2, 5)": ("triang", (0.25, 1, 4), {}),
    "wald(1.5, 2.5)": ("invgauss", (0.6,), {"scale": 2.5}),
    "f(3, 7)": ("f", (3, 7), {}),
    "noncentral_chisquare(3.0, 2.5)": ("ncx2", (3, 2.5), {}),
    "negative_binomial(4.0, 0.4)": ("nbinom", (4, 0.4), {}),
    "standard_exponential()": ("expon", (), {}),
    "binomial(20, 0.3)": ("binom", (20, 0.3), {}),
    "binomial(1000, 0.07)": ("binom", (1000, 0.07), {}),
    "geometric(0.3)": ("geom", (0.3,), {}),
    "poisson(4.0)": ("poisson", (4,), {}),
    "zipf(1.3)": ("zipf", (1.3,), {}),
    "zipf(4.0)": ("zipf", (4,), {}),
    "logseries(0.2)": ("logser", (0.2,), {}),
    "logseries(0.97)": ("logser", (0.97,), {}),
    "hypergeometric(20, 30, 15)": ("hypergeom", (50, 20, 15), {}),
    "hypergeometric(300_000, 200_000, 90_000)": ("hypergeom", (500_000, 300_000, 90_000), {}),
    "noncentral_f(3.0, 7.0, 2.0)": ("ncf", (3, 7, 2), {}),
    "vonmises(0.0, 0.5)": ("vonmises", (0.5,), {}),
    "vonmises(0.0, 30.0)": ("vonmises", (30,), {}),
    "vonmises(0.0, 3e9)": ("norm", (0, 3e9**-0.5), {}),
    "vonmises(0.0, 0)": ("uniform", (-np.pi, 2 * np.pi), {}),
}


@pytest.mark.parametrize("call", FAMILIES)
def test_distributions_made_of_others(place, call):
    name, rest = call[:-1].split("(")
    arguments = ast.literal_eval(f"({rest},)") if rest else ()
    made = getattr(generator(place), name)(*arguments, size=20_000).numpy()
    family, shapes, options = FAMILIES[call]
    expected = getattr(stats, family)(*shapes, **options)
    if hasattr(expected, "pdf"):
        assert made.dtype == np.float32
        assert stats.kstest(made.astype(float), expected.cdf).pvalue > LEAST
        return
    edges = np.unique(expected.ppf(np.linspace(0, 1, 12)[1:-1]))
    counts = np.diff([0, *[(made <= edge).sum() for edge in edges], made.size])
    shares = np.diff([0, *expected.cdf(edges), 1])
    assert stats.chisquare(counts, shares * made.size).pvalue > LEAST


def test_parameters_of_counts_and_angles(place):
    rng = generator(place)
    a = gt.asarray([1.5, 3.0], dtype="float64", device=place)
    made = rng.zipf(a, (20_000, 2)).numpy()
    assert made.dtype == np.int64
    for column, a in zip(made.T, (1.5, 3), strict=True):
        share = (column == 1).mean()
        assert stats.binomtest(int(share * 20_000), 20_000, stats.zipf(a).pmf(1)).pvalue > LEAST
    kappa = gt.asarray([0.0, 2.0, 1e8], dtype="float64", device=place)
    made = rng.vonmises(0.5, kappa, (20_000, 3), dtype="float64").numpy()
    assert (np.abs(made) <= np.pi).all()
    assert stats.kstest(made[:, 1], stats.vonmises(2, 0.5).cdf).pvalue > LEAST
    assert stats.kstest(made[:, 2], stats.norm(0.5, 1e-4).cdf).pvalue > LEAST
    p = gt.asarray([0.0, 0.9], dtype="float64", device=place)
    made = rng.logseries(p, (20_000, 2)).numpy()
    assert (made[:, 0] == 1).all() and abs(made[:, 1].mean() - stats.logser(0.9).mean()) < 0.2
    assert rng.hypergeometric(3, 4, 7, 5).tolist() == [3] * 5
    assert rng.hypergeometric(0, 9, 4).item() == 0
    assert len(rng.bytes(5)) == 5
    for name, wrong in (
        ("zipf: a: got 1.0", lambda: rng.zipf(1.0)),
        ("vonmises: kappa: got -1", lambda: rng.vonmises(0, -1)),
        ("logseries: p: got 1", lambda: rng.logseries(1)),
        ("hypergeometric: nsample: got 8", lambda: rng.hypergeometric(3, 4, 8)),
        ("hypergeometric: nbad: got -1", lambda: rng.hypergeometric(3, -1, 1)),
    ):
        with pytest.raises(ValueError, match=name):
            wrong()


@pytest.mark.parametrize("colors", [[6, 3, 0, 5], [200_000, 90_000, 410_000]])
def test_counts_of_colors(place, colors):
    nsample = sum(colors) // 3
    made = generator(place).multivariate_hypergeometric(colors, nsample, (5_000, 2)).numpy()
    assert made.shape == (5_000, 2, len(colors)) and made.dtype == np.int64
    flat = made.reshape(-1, len(colors))
    assert (flat.sum(1) == nsample).all() and (flat >= 0).all() and (flat <= colors).all()
    total, shares = float(sum(colors)), np.asarray(colors) / sum(colors)
    spread = (
        nsample * (total - nsample) / (total - 1) * (np.diag(shares) - np.outer(shares, shares))
    )
    errors = np.sqrt(np.diag(spread) / len(flat))
    assert (abs(flat.mean(0) - nsample * shares) <= 5 * errors).all()
    np.testing.assert_allclose(np.cov(flat.T), spread, atol=0.1 * spread.max())
    for at, count in enumerate(colors):
        one = stats.hypergeom(sum(colors), count, nsample)
        edges = np.unique(one.ppf(np.linspace(0, 1, 9)[1:-1]))
        counts = np.diff([0, *[(flat[:, at] <= edge).sum() for edge in edges], len(flat)])
        shares = np.diff([0, *one.cdf(edges), 1])
        if count:
            assert (
                stats.chisquare(counts[shares > 0], shares[shares > 0] * len(flat)).pvalue > LEAST
            )


def test_colors_are_checked(place):
    rng = generator(place)
    assert rng.multivariate_hypergeometric(gt.asarray([2, 3], device=place), 5).tolist() == [2, 3]
    assert rng.multivariate_hypergeometric([4], 3, 2, dtype="float32").tolist() == [[3.0], [3.0]]
    assert rng.multivariate_hypergeometric([], 0, 2).shape == (2, 0)
    for colors, nsample, text in (
        ([1, -1], 1, "colors: got -1"),
        ([1, 1], 3, "nsample: got 3"),
        ([10**9 - 1, 5], 3, "a sum below"),
        (3, 1, "colors: got int"),
        ([1.5], 1, "colors: got"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            rng.multivariate_hypergeometric(colors, nsample)


def test_normal_vectors_have_the_covariance(place):
    cov = np.asarray([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    rng = generator(place)
    for mean, spread in (
        ([1.0, 2.0, 5.0], cov.tolist()),
        (gt.asarray([1.0, 2.0, 5.0], device=place), gt.asarray(cov, device=place)),
    ):
        made = rng.multivariate_normal(mean, spread, (200, 100), dtype="float64").numpy()
        assert made.shape == (200, 100, 3)
        flat = made.reshape(-1, 3)
        np.testing.assert_allclose(flat[:, 2], 5)
        assert stats.kstest(flat[:, 0] + flat[:, 1], stats.norm(3, np.sqrt(7)).cdf).pvalue > LEAST
        # Seven standard deviations of the estimate of the largest variance, 3 * sqrt(2 / 20_000).
        np.testing.assert_allclose(np.cov(flat.T), cov, rtol=0, atol=0.21)
    values, vectors = np.linalg.eigh(cov)
    root = (
        vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
    )  # it depends on no sign that a solver chooses
    drawn = generator(place).normal(size=(50, 3), dtype="float64").numpy()
    made = generator(place).multivariate_normal(np.zeros(3), cov, 50, dtype="float64").numpy()
    np.testing.assert_allclose(made, drawn @ root, rtol=0, atol=1e-6)
    assert rng.multivariate_normal([0.0], [[1.0]]).shape == (1,)
    with pytest.raises(ValueError, match="multivariate_normal: mean, cov: got shapes"):
        rng.multivariate_normal([0.0, 1.0], [[1.0]])
    with pytest.raises(ValueError, match="triangular: left, mode, right: got"):
        rng.triangular(2, 1, 3)


def test_older_names_of_numpy_are_there(place):
    with gt.Device(place):
        one, two = gt.random.RandomState(3), gt.random.default_rng(3)
        assert one.rand(2).tolist() == two.random_sample(2).tolist()
        assert gt.random.ranf(3).shape == gt.random.sample(3).shape == (3,)


def test_parameters_of_distributions_may_be_tensors(place):
    shape = gt.asarray([0.2, 1.0, 50.0], dtype="float64", device=place)
    made = generator(place).gamma(shape, 2.0, (20_000, 3), dtype="float64").numpy()
    for column, a in zip(made.T, (0.2, 1.0, 50.0), strict=True):
        assert stats.kstest(column, stats.gamma(a, scale=2).cdf).pvalue > LEAST
    shares = generator(place).dirichlet(shape, 20_000, dtype="float64").numpy()
    np.testing.assert_allclose(shares.sum(1), 1, 1e-12)
    assert stats.kstest(shares[:, 0], stats.beta(0.2, 51).cdf).pvalue > LEAST
    p = gt.asarray([0.0, 0.5, 1.0], dtype="float64", device=place)
    counts = generator(place).binomial(70, p, (100, 3)).numpy()
    assert (counts[:, 0] == 0).all() and (counts[:, 2] == 70).all()
    assert abs(counts[:, 1].mean() - 35) < 3
    there = generator("host").gamma(0.7, size=500).numpy()
    np.testing.assert_allclose(generator(place).gamma(0.7, size=500).numpy(), there, 1e-6)


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
