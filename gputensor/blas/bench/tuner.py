"""Measures the algorithms for one product and chooses the fastest.

Each algorithm (padding, library or own kernel, settings) becomes a plan. A first pass measures our
own kernels and the libraries' proposals and drops the clearly slower ones. It then walks from the
best to its neighbours, changing one attribute at a time, while that gains and time is left. The
best few are measured again in interleaved rounds, and the median decides. The default is always
among them and wins ties.
"""

import itertools
import statistics
import time

import numpy as np

from gputensor.blas.bench import ProductBench

__all__ = ["tune"]

FINALISTS = 8
MAX_REPEATS = 64
#: A product below this time is not dropped by one uncaptured run: launch gaps hide its speed.
SHORT_SECONDS = 50e-6
#: The first pass's share of the budget.
FIRST_PASS = 0.6
#: An algorithm must beat the default by this much to replace it.
GAIN = 0.99


class Contender:
    """An algorithm under measurement: its plan, its graph and the seconds of its replays."""

    def __init__(self, algorithm, plan):
        self.algorithm = algorithm
        self.plan = plan
        self.graph = 0
        self.times = []

    @property
    def seconds(self):
        return statistics.median(self.times)


class Tuning:
    """The measurements of one product."""

    def __init__(self, bench, deadline, first_pass_end):
        self.bench = bench
        self.deadline = deadline
        self.first_pass_end = first_pass_end
        self.contenders = []
        self.seen = set()
        self.repeats = 0
        self.best = None

    def add(self, algorithm):
        """Plan an algorithm and measure it once; a known or refused one adds nothing."""
        if algorithm in self.seen:
            return
        self.seen.add(algorithm)
        start = time.monotonic()
        plan = self.bench.plan(algorithm)
        # One of our kernels may be compiled here; that is done once and not counted for a product.
        self.deadline += time.monotonic() - start
        self.first_pass_end += time.monotonic() - start
        if not plan:
            return
        one = Contender(algorithm, plan)
        self.contenders.append(one)
        if algorithm is None:
            # The first run also loads the kernel, which takes longer than most products.
            self.bench.once(plan)
            seconds = max(2e-6, self.bench.once(plan))
            least = self.bench.set_count if seconds < 1e-4 else 1
            self.repeats = min(MAX_REPEATS, max(least, 1 + int(5e-4 / seconds)))
        elif not self.is_worth(plan):
            return
        one.graph = self.bench.graph(plan, self.repeats)
        self.bench.replay(one.graph, self.repeats)
        one.times = [self.bench.replay(one.graph, self.repeats)]
        if self.best is None or one.seconds < self.best.seconds:
            self.best = one

    def is_worth(self, plan):
        """Whether a plan runs and is not much slower than the best."""
        limit = max(SHORT_SECONDS, 2 * self.best.seconds)
        return self.bench.once(plan) < limit or self.bench.once(plan) < limit

    def add_while_time(self, algorithms):
        for algorithm in algorithms:
            if time.monotonic() > self.first_pass_end:
                return
            self.add(algorithm)

    def first_pass(self, is_exhaustive):
        forms = self.bench.forms()
        self.add_while_time(self.bench.own_algorithms())
        # One of each form in turn, the likely ones first: the budget may end anywhere.
        self.add_while_time(in_turn(self.bench.proposals(form) for form in forms))
        if is_exhaustive:
            half = (time.monotonic() + self.first_pass_end) / 2
            self.add_while_time(in_turn(self.bench.everything(form, half) for form in forms))
        while time.monotonic() < self.first_pass_end:
            before = self.best
            algorithm = self.bench.algorithm_of(before.plan)
            self.add_while_time(self.bench.neighbours(algorithm, self.first_pass_end))
            if self.best is before:
                return

    def second_pass(self, rounds):
        """Measure the best in interleaved rounds and return them, with the default among them."""
        measured = sorted((one for one in self.contenders if one.times), key=lambda x: x.seconds)
        finalists = measured[:FINALISTS]
        if self.contenders[0] not in finalists:
            finalists.append(self.contenders[0])
        for one in finalists:
            one.times = []
        for turn in range(rounds):
            for one in finalists:
                one.times.append(self.bench.replay(one.graph, self.repeats))
            if time.monotonic() > self.deadline and turn:
                break
        return sorted(finalists, key=lambda one: one.seconds)

    def agrees(self, default, winner):
        """Whether two algorithms give the same numbers, up to rounding of sums in another order."""
        expected, got = self.bench.result(default.plan), self.bench.result(winner.plan)
        if expected is None or got is None:
            return False
        return bool(
            np.all(np.isfinite(got))
            and np.all(np.abs(got - expected) <= self.bench.tolerance(expected))
        )

    def release(self):
        self.bench.wait()
        for one in self.contenders:
            self.bench.release(one.plan, one.graph)


def in_turn(rows):
    """The first of each row, then the second of each, and so on."""
    turns = itertools.chain.from_iterable(itertools.zip_longest(*rows))
    return [one for one in turns if one is not None]


def tune(
    signature,
    device,
    *,
    seconds=0.6,
    rounds=5,
    rotating_nbytes=128 << 20,
    is_exhaustive=False,
    is_checked=True,
):
    """Measure the algorithms to compute a product and return the quickest.

    Parameters
    ----------
    signature : tuple of int
        The product; see :data:`gputensor.blas.plan.FIELDS`.
    device : int
        An open CUDA device.
    seconds : float
        Budget in seconds; the default algorithm is measured in any case.
    rounds : int
        Interleaved rounds of the second pass.
    rotating_nbytes : int
        Bytes of memory that the operands rotate through, for cold caches.
    is_exhaustive : bool
        Also measure algorithms that the library's heuristic does not propose.
    is_checked : bool
        Compare the winner's result with the default's.

    Returns
    -------
    dict
        ``choice`` (pad, backend, configuration); ``us`` and ``default_us``, the microseconds of the
        choice and the default; ``measured``, the number of measured algorithms; ``algorithms``, the
        finalists as pairs (us, choice), the quickest first.
    """
    bench = ProductBench(signature, device, rotating_nbytes)
    start = time.monotonic()
    tuning = Tuning(bench, start + seconds, start + FIRST_PASS * seconds)
    try:
        tuning.add(None)
        if not tuning.contenders:
            raise ValueError(
                "signature: got a product that no library has; expected one that a library computes"
            )
        tuning.first_pass(is_exhaustive)
        finalists = tuning.second_pass(rounds)
        default = tuning.contenders[0]
        winner = default
        for one in finalists:
            if one is default or one.seconds > GAIN * default.seconds:
                break
            if not is_checked or tuning.agrees(default, one):
                winner = one
                break
        return {
            "choice": bench.algorithm_of(winner.plan),
            "us": round(1e6 * winner.seconds, 3),
            "default_us": round(1e6 * default.seconds, 3),
            "measured": sum(1 for one in tuning.contenders if one.times),
            "algorithms": [
                (round(1e6 * one.seconds, 3), bench.algorithm_of(one.plan)) for one in finalists
            ],
        }
    finally:
        tuning.release()
