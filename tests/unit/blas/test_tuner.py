"""How the tuner chooses, on a fake bench whose algorithms have fixed times."""

import math
import types

import numpy as np
import pytest

from gputensor.blas.bench import tuner

CUBLAS, LT, OWN = 1, 0, 6


class FakeBench:
    """A product whose algorithms take the microseconds of a table; others are refused."""

    set_count = 2

    def __init__(self, table, *, proposed, load_seconds=0.0, wrong=()):
        self.table = table
        self.proposed = proposed
        self.load_seconds = load_seconds
        self.wrong = set(wrong)
        self.algorithms = {}  # plan -> algorithm
        self.loaded = set()
        self.released = []
        self.measured = []

    def plan(self, algorithm):
        if algorithm is not None and algorithm not in self.table:
            return 0
        number = len(self.algorithms) + 1
        self.algorithms[number] = (0, CUBLAS, None) if algorithm is None else algorithm
        return number

    def algorithm_of(self, plan):
        return self.algorithms[plan]

    def seconds(self, plan):
        return self.table[self.algorithms[plan]] * 1e-6

    def once(self, plan):
        seconds = self.seconds(plan)
        if self.algorithms[plan] not in self.loaded:
            self.loaded.add(self.algorithms[plan])
            seconds += self.load_seconds
        return seconds

    def graph(self, plan, repeats):
        self.measured.append(self.algorithms[plan])
        return plan

    def replay(self, executable, repeats):
        return self.seconds(executable)

    def result(self, plan):
        return np.full(4, 2.0 if self.algorithms[plan] in self.wrong else 1.0)

    def tolerance(self, expected):
        return 0.01 * np.abs(expected)

    def forms(self):
        return [0]

    def own_algorithms(self):
        return [algorithm for algorithm in self.table if algorithm[1] == OWN]

    def proposals(self, form):
        return [(form, CUBLAS, None), *self.proposed]

    def everything(self, form, deadline):
        return sorted(algorithm for algorithm in self.table if algorithm[2] is not None)

    def neighbours(self, algorithm, deadline):
        if algorithm[2] is None:
            return []
        return [(algorithm[0], algorithm[1], (algorithm[2][0] + step,)) for step in (-1, 1)]

    def release(self, plan, executable):
        self.released.append(plan)

    def wait(self):
        pass


def algorithm(number):
    return (0, LT, (number,))


def tuned(monkeypatch, bench, **options):
    monkeypatch.setattr(tuner, "ProductBench", lambda *arguments: bench)
    result = tuner.tune((), 0, **{"seconds": 5.0, **options})
    assert sorted(bench.released) == sorted(bench.algorithms), "every plan is released once"
    return result


def test_the_search_goes_from_the_best_proposal_to_better_neighbours(monkeypatch):
    table = {(0, CUBLAS, None): 100.0} | {algorithm(n): 60.0 + 5 * abs(n - 9) for n in range(20)}
    result = tuned(monkeypatch, FakeBench(table, proposed=[algorithm(3)]))
    assert result["choice"] == algorithm(9)
    assert result["us"] == pytest.approx(60.0)
    assert result["default_us"] == pytest.approx(100.0)
    times = [pair[0] for pair in result["algorithms"]]
    assert times == sorted(times)


def test_a_slow_first_run_does_not_drop_an_algorithm(monkeypatch):
    # A kernel is loaded at its first launch, which takes milliseconds.
    table = {(0, CUBLAS, None): 400.0, algorithm(1): 300.0}
    bench = FakeBench(table, proposed=[algorithm(1)], load_seconds=5e-3)
    assert tuned(monkeypatch, bench)["choice"] == algorithm(1)


def test_an_algorithm_that_is_far_too_slow_is_not_measured(monkeypatch):
    table = {(0, CUBLAS, None): 400.0, algorithm(1): 900.0, algorithm(5): 390.0}
    bench = FakeBench(table, proposed=[algorithm(1), algorithm(5)])
    assert tuned(monkeypatch, bench)["choice"] == algorithm(5)
    assert algorithm(1) not in bench.measured


def test_the_default_wins_a_near_tie(monkeypatch):
    table = {(0, CUBLAS, None): 100.0, algorithm(1): 99.5}
    result = tuned(monkeypatch, FakeBench(table, proposed=[algorithm(1)]))
    assert result["choice"] == (0, CUBLAS, None)


def test_a_fast_algorithm_with_wrong_results_is_rejected(monkeypatch):
    table = {(0, CUBLAS, None): 100.0, algorithm(1): 10.0, algorithm(2): 50.0}
    bench = FakeBench(table, proposed=[algorithm(1), algorithm(2)], wrong=[algorithm(1)])
    assert tuned(monkeypatch, bench)["choice"] == algorithm(2)
    bench = FakeBench(table, proposed=[algorithm(1), algorithm(2)], wrong=[algorithm(1)])
    assert tuned(monkeypatch, bench, is_checked=False)["choice"] == algorithm(1)


def test_an_exhaustive_search_finds_an_algorithm_that_no_proposal_leads_to(monkeypatch):
    table = {(0, CUBLAS, None): 100.0, algorithm(1): 90.0, algorithm(50): 20.0}
    assert tuned(monkeypatch, FakeBench(table, proposed=[algorithm(1)]))["choice"] == algorithm(1)
    bench = FakeBench(table, proposed=[algorithm(1)])
    assert tuned(monkeypatch, bench, is_exhaustive=True)["choice"] == algorithm(50)


def test_our_own_kernels_are_among_the_algorithms(monkeypatch):
    own = (0, OWN, None)
    table = {(0, CUBLAS, None): 100.0, algorithm(1): 60.0, own: 30.0}
    assert tuned(monkeypatch, FakeBench(table, proposed=[algorithm(1)]))["choice"] == own


def test_the_budget_ends_the_search(monkeypatch):
    clock = types.SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(tuner, "time", clock)

    class Slow(FakeBench):
        def once(self, plan):
            clock.now += 0.02
            return super().once(plan)

    table = {(0, CUBLAS, None): 100.0} | {algorithm(n): 100.0 - n for n in range(90)}
    bench = Slow(table, proposed=[algorithm(n) for n in range(90)])
    result = tuned(monkeypatch, bench, seconds=0.2)
    assert clock.now < 0.25  # a measurement that has begun ends
    assert 1 <= result["measured"] <= 10
    assert math.isfinite(result["us"])


def test_a_product_that_no_library_has_is_an_error(monkeypatch):
    class Without(FakeBench):
        def plan(self, algorithm):
            return 0

    with pytest.raises(ValueError, match="signature: got a product that no library has"):
        tuned(monkeypatch, Without({}, proposed=[]))
