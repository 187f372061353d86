"""Threads make, call, fork, reset and close sessions of programs on a host device.

Every result is compared with a NumPy model. Devices run work at once or defer it in a seeded order,
and are small, so arenas come and go. If two threads use one session, each use succeeds or is
refused. To run a campaign, best in a build with a sanitizer (.ci/run-sanitized)::

    python -m tests.unit.programs.session_stress --rounds 100
"""

import argparse
import faulthandler
import gc
import random
import sys
import threading

import numpy as np

import gputensor as gt
from gputensor import memory
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from gputensor.programs.program import Program
from tests.support.programs import loops, models

CAPACITY = 64 << 20
THREADS = 4
STEPS = 40


class Shared:
    """Programs on one device that all threads call, and one session that they compete for."""

    def __init__(self, number, rng):
        self.device = gt.Device(number)
        data, self.mlp_reference = models.mlp(rng)
        self.mlp = Program(data, self.device)
        self.counter = Program(models.counter(), self.device)
        self.loop = Program(loops.while_program(), self.device)
        data, self.weight = loops.cond_program(rng)
        self.branch = Program(data, self.device)
        self.contended = self.counter.session()

    def close(self):
        for program in (self.mlp, self.counter, self.loop, self.branch):
            program.close()


class Worker:
    """One thread with sessions of its own, and the expected state of each."""

    def __init__(self, shared, seed):
        self.shared, self.device = shared, shared.device
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.sessions = [(shared.counter.session(), np.zeros(8, np.float64))]
        self.kept = []  # (tensor, its expected values), compared later

    def given(self, array):
        return gt.asarray(array, device=self.device)

    def expect(self, tensor, array):
        self.kept.append((tensor, array))
        while len(self.kept) > 5:
            tensor, array = self.kept.pop(self.random.randrange(5))
            np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-3, atol=1e-3)

    def mlp(self):
        x = self.rng.standard_normal((self.random.randint(1, 64), 12)).astype(np.float32)
        self.expect(self.shared.mlp(self.given(x)), self.shared.mlp_reference(x))

    def branch(self):
        x = self.rng.standard_normal(6).astype(np.float32)
        wanted = x + 1 if x[0] < 0 else x * self.shared.weight
        self.expect(self.shared.branch(self.given(x)), wanted)

    def loop(self):
        x, y = (self.rng.random(6).astype(np.float32) + 0.5 for _ in range(2))
        result, again = self.shared.loop(*map(self.given, (x, y, np.float32(5))))
        while x.max() < 5:
            x = x + y
        self.expect(result, x)
        self.expect(again, x)

    def count(self):
        session, total = self.random.choice(self.sessions)
        x = self.rng.standard_normal(8).astype(np.float32)
        result, twice = session(self.given(x))
        total += x
        self.expect(result, total.copy())
        self.expect(twice, 2 * total)

    def fork(self):
        session, total = self.random.choice(self.sessions)
        self.sessions.append((session.fork(), total.copy()))
        if len(self.sessions) > 3:
            self.sessions.pop(0)[0].close()

    def reset(self):
        session, total = self.random.choice(self.sessions)
        session.reset()
        total[:] = 0
        self.expect(gt.copy(session.state["total"]), total.copy())

    def renew(self):
        self.sessions = [(self.shared.counter.session(), np.zeros(8, np.float64))]

    def contend(self):
        """Call the session that all threads share: the call succeeds, or the session is busy."""
        try:
            self.shared.contended(self.given(np.ones(8, np.float32)))
        except RuntimeError as error:
            assert "second call during a call" in str(error)

    def tidy(self):
        self.random.choice((gc.collect, self.empty, self.wait))()

    def empty(self):
        memory.empty_cache(self.device)

    def wait(self):
        gt.synchronize(self.device)

    def run(self):
        streams = [gt.Stream(self.device), gt.default_stream(self.device)]
        steps = (self.mlp, self.branch, self.loop, self.count, self.count, self.fork, self.reset,
                 self.renew, self.contend, self.tidy)  # fmt: skip
        for _ in range(STEPS):
            with gt.stream(self.random.choice(streams)):
                try:
                    self.random.choice(steps)()
                except OutOfMemoryError:
                    self.kept.clear()
        for tensor, array in self.kept:
            np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-3, atol=1e-3)


def run_round(seed):
    """Run the threads on one device, then close it."""
    rng = np.random.default_rng(seed)
    number = registry.open_host(capacity=CAPACITY, seed=None if seed % 3 == 0 else seed)
    shared = Shared(number, rng)
    failures = []

    def work(index):
        try:
            Worker(shared, seed * THREADS + index).run()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, f"seed {seed}: {failures[0]!r}"
    shared.close()
    if seed % 2:  # otherwise the device closes under open sessions, with work queued
        shared.contended.close()
        gt.synchronize(shared.device)
    registry.close_host(number)


def main():
    """Run rounds of fresh seeds, or of a given one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    faulthandler.enable()
    sys.setswitchinterval(1e-5)
    seed = random.SystemRandom().getrandbits(30) if given.seed is None else given.seed
    for number in range(given.rounds):
        try:
            run_round(seed + number)
        except BaseException:
            print(f"seed {seed + number}")
            raise
    print(f"seed {seed}, {given.rounds} rounds of {THREADS} threads: nothing found")


if __name__ == "__main__":
    main()
