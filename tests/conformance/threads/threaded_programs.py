"""Random programs of several threads on one device, with known results under every schedule.

Threads share counters (which all of them add to, by operations and by replays of graphs), registers
(which all of them overwrite with values that name the writer and count its writes) and streams, and
have tensors and streams of their own. Every tensor is uniform after each operation, so that a torn
read shows. Counters must come out exact, a register never goes back to an earlier value of one
writer, and the tensors of one thread equal a NumPy model.

A campaign, on some kinds of device or on all available ones::

    python -m tests.conformance.threads.threaded_programs --programs 10000 --kinds host deferred

A failure prints the program's seed and kind. The seed repeats the program, not the schedule of its
threads: ``--seed SEED --programs 1000 --same`` runs it again and again. SIGINT ends a campaign
after the program that is running; the last line tells how many ran.
"""

import argparse
import faulthandler
import gc
import random
import signal
import sys
import threading
import time

import numpy as np

import gputensor as gt
from gputensor._driver import registry
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Event, Stream, default_stream

KINDS = ("host", "opened", "deferred", "cuda")
SIZES = (1, 7, 1000, 20_000, 100_000)
SHARES = (4, 4, 4, 3, 1)  # of the sizes in all programs: large tensors take most of the time
LARGE = 3 << 20  # int64 elements: more than one round of pinned buffers holds
WRITERS = 16
BURSTS = (1, 1, 2, 10)  # repetitions of a step
TIMEOUT_S = 60


class Counter:
    """A shared tensor that grows; each thread keeps a lower bound of the value that it must see."""

    def __init__(self, size, threads):
        self.tensor = gt.zeros(size, dtype="int64")
        self.added = [0] * threads
        self.seen = [0] * threads

    def add(self, thread, amount):
        self.added[thread] += amount

    def check(self, thread, values):
        value = uniform(values)
        at_least = max(self.seen[thread], self.added[thread])
        assert value >= at_least, f"a counter went back to {value}; {at_least} was known"
        self.seen[thread] = value

    def check_end(self):
        value, total = uniform(self.tensor.numpy()), sum(self.added)
        assert value == total, f"a counter ends at {value} of {total}"


class Register:
    """A shared tensor that is overwritten; a value is 16 * count + writer."""

    def __init__(self, size, threads):
        self.tensor = gt.zeros(size, dtype="int64")
        self.written = [0] * threads
        self.seen = [[0] * threads for _ in range(threads)]

    def next(self, thread):
        self.written[thread] += 1
        self.seen[thread][thread] = self.written[thread]
        return WRITERS * self.written[thread] + thread

    def check(self, thread, values):
        count, writer = divmod(uniform(values), WRITERS)
        if count == 0:
            assert not any(self.seen[thread]), "a register went back to its first value"
            return
        assert self.seen[thread][writer] <= count <= self.written[writer], (
            f"a register showed write {count} of thread {writer} after "
            f"{self.seen[thread][writer]} of {self.written[writer]}"
        )
        self.seen[thread][writer] = count

    def check_end(self):
        count, writer = divmod(uniform(self.tensor.numpy()), WRITERS)
        assert count == self.written[writer] if count else not any(self.written), (
            f"a register ends at write {count} of thread {writer}, which made {self.written}"
        )


def uniform(values):
    first = int(values.flat[0])
    assert (values == first).all(), f"a torn read: {np.unique(values)[:8]}"
    return first


class Worker:
    """The steps of one thread, and its own tensors with their models."""

    def __init__(self, program, number):
        self.program, self.number = program, number
        self.random = random.Random(f"{program.seed} {number}")
        self.streams = [*program.streams, None]
        if self.random.random() < 0.7:
            self.streams += [Stream() for _ in range(self.random.randrange(1, 3))]
        size = self.random.choice(SIZES[:4])
        self.own = [gt.full(size, value, dtype="int64") for value in range(3)]
        self.model = [np.full(size, value, np.int64) for value in range(3)]
        self.steps = [getattr(self, name) for name in STEPS]

    def run(self):
        with Device(self.program.device):
            for _ in range(self.program.length):
                step = self.random.choices(self.steps, STEPS.values())[0]
                stream = self.random.choice(self.streams)
                with stream or default_stream():
                    for _ in range(self.random.choice(BURSTS)):
                        step()
            for tensor, model in zip(self.own, self.model, strict=True):
                np.testing.assert_array_equal(tensor.numpy(), model)

    def counter(self):
        return self.random.choice(self.program.counters)

    def register(self):
        return self.random.choice(self.program.registers)

    def add(self):
        counter, amount = self.counter(), self.random.randrange(1, 5)
        counter.add(self.number, amount)
        x = counter.tensor
        x += amount

    def add_tensor(self):
        counter = self.counter()
        ones = gt.ones(counter.tensor.shape, dtype="int64")
        counter.add(self.number, 1)
        gt.add(counter.tensor, ones, out=counter.tensor)

    def add_to_parts(self):
        # Two operations, and a read could come between them; only for counters without readers.
        counter = self.random.choice(self.program.unread)
        counter.add(self.number, 2)
        middle = counter.tensor.shape[0] // 2
        for part in (counter.tensor[:middle], counter.tensor[middle:]):
            part += 2

    def replay(self):
        if self.program.graphs:
            captured, counters = self.random.choice(self.program.graphs)
            for counter in counters:
                counter.add(self.number, 1)
            captured.replay()

    def write(self):
        register = self.register()
        value = register.next(self.number)
        if self.random.random() < 0.5:
            register.tensor[:] = value
        else:
            register.tensor[:] = gt.full(register.tensor.shape, value, dtype="int64")

    def read(self):
        shared = self.random.choice([*self.program.counters, *self.program.registers])
        how = self.random.randrange(4)
        x = shared.tensor
        if how == 0:
            values = x.numpy()
        elif how == 1:
            values = (x + 0).numpy()
        elif how == 2:
            values = x[::2].numpy()
        else:
            total, size = int(gt.sum(x).item()), x.shape[0]
            assert total % size == 0, f"a torn sum: {total} of {size} elements"
            values = np.array([total // size])
        shared.check(self.number, values)

    def compute(self):
        a, b, c = (self.random.randrange(3) for _ in range(3))
        how = self.random.randrange(4)
        if how == 0:
            self.own[a], self.model[a] = self.own[b] - self.own[c], self.model[b] - self.model[c]
        elif how == 1:
            self.own[a] += self.own[b]
            self.model[a] += self.model[b]
        elif how == 2:
            self.own[a][:] = self.own[b]
            self.model[a][:] = self.model[b]
        else:
            self.own[a] = gt.asarray(self.model[b])
            self.model[a] = self.model[b].copy()

    def check_own(self):
        at = self.random.randrange(3)
        np.testing.assert_array_equal(self.own[at].numpy(), self.model[at])

    def wait(self):
        how = self.random.randrange(4)
        one, other = (self.random.choice(self.streams) or self.program.streams[0] for _ in "ab")
        if how == 0:
            one.wait_stream(other)
        elif how == 1:
            event = Event()
            event.record(one)
            other.wait_event(event)
        elif how == 2:
            one.synchronize()
        else:
            gt.synchronize()


STEPS = {
    "add": 6,
    "add_tensor": 2,
    "add_to_parts": 2,
    "replay": 5,
    "write": 3,
    "read": 5,
    "compute": 4,
    "check_own": 1,
    "wait": 1,
}


class Program:
    def __init__(self, seed, device):
        self.seed, self.device = seed, device
        rng = random.Random(seed)
        self.threads = rng.randrange(2, 9)
        self.length = rng.randrange(5, 30)
        self.interval = rng.choice((1e-6, 1e-5, 1e-5, 5e-3))
        size = LARGE if rng.random() < 0.005 else rng.choices(SIZES, SHARES)[0]
        self.streams = [Stream() for _ in range(rng.randrange(1, 4))]
        self.counters = [Counter(size, self.threads) for _ in range(rng.randrange(1, 3))]
        self.unread = [Counter(rng.choices(SIZES[1:], SHARES[1:])[0], self.threads)]
        self.registers = [Register(rng.choices(SIZES, SHARES)[0], self.threads)]
        self.graphs = [self.captured(rng) for _ in range(rng.randrange(0, 4))]

    def captured(self, rng):
        made = CUDAGraph()
        counters = rng.sample(self.counters, rng.randrange(1, len(self.counters) + 1))
        with graph(made):
            for counter in counters:
                x = counter.tensor
                x += 1
        return made, counters

    def run(self):
        workers = [Worker(self, number) for number in range(self.threads)]
        run_threads([worker.run for worker in workers], self.interval)
        gt.synchronize()
        for shared in (*self.counters, *self.unread, *self.registers):
            shared.check_end()


def run_threads(bodies, interval=None):
    """Run functions at once, each in a thread; raises the first error."""
    errors = []
    gate = threading.Barrier(len(bodies))

    def guarded(body):
        try:
            gate.wait()
            body()
        except BaseException as error:
            errors.append(error)

    former = sys.getswitchinterval()
    threads = [threading.Thread(target=guarded, args=(body,), daemon=True) for body in bodies]
    try:
        sys.setswitchinterval(interval or former)
        for thread in threads:
            thread.start()
        end = time.monotonic() + TIMEOUT_S
        for thread in threads:
            thread.join(max(0, end - time.monotonic()))
    finally:
        sys.setswitchinterval(former)
    if any(thread.is_alive() for thread in threads):
        faulthandler.dump_traceback()
        raise AssertionError("a thread hangs")
    if errors:
        raise errors[0]


def run_program(seed, device):
    with Device(device):
        try:
            Program(seed, device).run()
        except BaseException as error:
            error.args = (f"program {seed}: {error}",)
            raise
        finally:
            gt.synchronize()


def devices(kind, seed):
    """The number of a device of a kind, and the function that closes it."""
    if kind in ("host", "cuda"):
        return (-1 if kind == "host" else 0), lambda: None
    number = registry.open_host(capacity=4 << 30, seed=seed if kind == "deferred" else None)

    def close():
        gc.collect()
        registry.host_run_all(number)
        registry.close_host(number)

    return number, close


def campaign(kind, seeds, stopped=None, per_device=50):
    """Run programs until `stopped` is set; returns their number, or raises the first failure."""
    done = 0
    while done < len(seeds) and not (stopped and stopped.is_set()):
        device, close = devices(kind, seeds[done])
        for seed in seeds[done : done + per_device]:
            if stopped and stopped.is_set():
                break
            run_program(seed, device)
            done += 1
        close()
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000, help="of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=None)
    parser.add_argument("--seed", type=int, default=None, help="of the first program")
    parser.add_argument("--same", action="store_true", help="the same program each time")
    given = parser.parse_args()
    kinds = given.kinds or (KINDS if registry.cuda_device_count() else KINDS[:3])
    first = random.SystemRandom().getrandbits(40) if given.seed is None else given.seed
    stopped = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stopped.set())
    for kind in kinds:
        began, done, ended = time.monotonic(), 0, False
        seeds = [first + (0 if given.same else at) for at in range(given.programs)]
        while not ended:
            done += campaign(kind, seeds[done : done + 50], stopped)
            ended = done == len(seeds) or stopped.is_set()
            seconds = time.monotonic() - began
            print(
                f"{kind}: {done} programs from seed {first}, {seconds:.0f} s"
                + (", 0 failures" if ended else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
