"""A European call by Monte Carlo, beside the formula of Black and Scholes.

python examples/numpy_programs/option_pricing.py
"""

import numpy as np

import gputensor as gt


def compute(xp, paths=200_000):
    """Return the price by simulation, and by formula."""
    spot, strike, rate, sigma, years = 100.0, 105.0, 0.03, 0.2, 1.0
    normal = xp.random.default_rng(6).standard_normal(paths)
    end = spot * xp.exp((rate - sigma**2 / 2) * years + sigma * years**0.5 * normal)
    price = xp.mean(xp.maximum(end - strike, 0.0)) * float(np.exp(-rate * years))
    return price, xp.asarray(formula(spot, strike, rate, sigma, years))


def formula(spot, strike, rate, sigma, years):
    """Return the price by the formula."""
    from math import erf, exp, log, sqrt

    first = (log(spot / strike) + (rate + sigma**2 / 2) * years) / (sigma * sqrt(years))
    first, second = (0.5 * (1 + erf(d / sqrt(2))) for d in (first, first - sigma * sqrt(years)))
    return spot * first - strike * exp(-rate * years) * second


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
