"""Random programs of pools, captures, replays, frees and addresses, compared with a model.

The model is NumPy: each tensor has the values that the program gave it, and a graph is the list of
its operations, applied at each replay. The comparison fails if a tensor's bytes change without an
operation of the program, if two blocks overlap, if a statistic disagrees with the live blocks, or
if the checker finds a fault. The programs follow the rules of CUDAGraph: the tensors that a graph
reads live as long as the graph, and graphs that share a pool are replayed in capture order.

As a script this runs many programs:

    python -m tests.support.models.pool_programs 10000 [--device cuda]
"""

import argparse
import contextlib
import gc
import random
import sys
import time
import traceback

import numpy as np

import gputensor as gt
from gputensor import memory
from gputensor._alloc import check as checker
from gputensor._alloc.config import settings as allocator_settings
from gputensor._driver import registry
from gputensor.graphs import CUDAGraph, graph, graph_pool_handle

MIB = 1 << 20
COUNTS = (1, 130, 2000, 2000, 9000, 300_000)
CONFIGURATIONS = (
    "",
    "page_size_mb:2",
    "page_size_mb:2",
    "page_size_mb:2",
    "expandable_segments:False",
    "page_reuse:False,page_size_mb:2",
    "graph_capture_record_stream_reuse:True,page_size_mb:2",
    "thread_cache:False,page_size_mb:2",
)
MOST_TENSORS = 24
BATCH = 20  # programs on one device


class Values:
    """The expected values of some memory; None if unknown."""

    def __init__(self, expected):
        self.expected = expected


class Value:
    """A tensor of the program with its expected values."""

    def __init__(self, tensor, cell):
        self.tensor = tensor
        self.cell = cell

    @property
    def expected(self):
        return self.cell.expected

    @expected.setter
    def expected(self, expected):
        self.cell.expected = expected


class Graph:
    """A captured graph, its operations in order, and the objects that it keeps."""

    def __init__(self, captured, group, pools):
        self.captured = captured
        self.group = group
        self.pools = pools  # MemPools of its memory
        self.operations = []  # (name, Values changed, number, further operand)
        self.inputs = []  # tensors


def added(expected, number):
    """Return the sum, or None if the values are unknown."""
    return None if expected is None else expected + np.int32(number)


class Abandoned(Exception):
    """Raised by a program inside a capture that it abandons."""


class World:
    """One program on one device."""

    def __init__(self, device, seed):
        self.device = device
        self.rng = random.Random(seed)
        self.streams = [gt.Stream(device) for _ in range(3)]
        self.streams.append(gt.streams.default_stream(device))
        self.values = []
        self.graphs = []
        self.pools = []
        self.addresses = {}
        self.orphans = []  # (group, Values) of deleted graphs
        warm = gt.full((4,), 1, dtype="int32", device=device)  # kernels, compiled before captures
        warm += (warm + 1)[:1]
        del warm
        gt.synchronize(device)
        self.requested_before, self.pools_before = self.requested(), self.pool_keys()
        self.log = []

    def pool_keys(self):
        """Return the statistics of private pools, which may include those of other tests."""
        return {key for key in memory.memory_stats(self.device) if "private_pools" in key}

    def requested(self):
        return memory.memory_stats(self.device).get("requested_bytes.all.current", 0)

    # ---- tensors ----

    def new(self, expected, tensor):
        self.values.append(Value(tensor, Values(expected)))
        return self.values[-1]

    def make(self):
        count, number = self.rng.choice(COUNTS), self.rng.randrange(1 << 20)
        self.new(
            np.full(count, number, np.int32),
            gt.full((count,), number, dtype="int32", device=self.device),
        )

    def somewhere(self):
        """Return the context of one eager step: a stream and perhaps a pool."""
        stack = contextlib.ExitStack()
        stack.enter_context(self.rng.choice(self.streams))
        if self.pools and self.rng.random() < 0.5:
            pool = self.rng.choice(self.pools)
            stack.enter_context(memory.use_mem_pool(pool, self.device))
        return stack

    def compute(self):
        """Make a new tensor from another, or change one in place."""
        known = [value for value in self.values if value.expected is not None]
        if not known:
            return
        value, number = self.rng.choice(known), self.rng.randrange(100)
        with self.somewhere():
            if self.rng.random() < 0.5:
                self.new(value.expected + np.int32(number), value.tensor + number)
            else:
                value.tensor += number
                value.expected = value.expected + np.int32(number)

    def make_some(self):
        with self.somewhere():
            for _ in range(self.rng.randrange(1, 5)):
                if len(self.values) < MOST_TENSORS:
                    self.make()

    def drop(self):
        for _ in range(self.rng.randrange(1, 4)):
            if self.values:
                self.values.pop(self.rng.randrange(len(self.values)))

    # ---- graphs ----

    def capture(self):
        if len(self.graphs) >= 5:
            return
        shared = [g for g in self.graphs if g.group is not None]
        choice = self.rng.random()
        owners = []
        if choice < 0.2 and self.pools:
            pool = self.rng.choice(self.pools)
            group, owners = pool.id, [pool]
        elif choice < 0.5 and shared:
            group = self.rng.choice(shared).group
            owners = [pool for pool in self.pools if pool.id == group]
        else:
            group = graph_pool_handle()
        made = Graph(CUDAGraph(), group, owners)
        inputs = [value for value in self.values if value.expected is not None]
        results = []
        try:
            with graph(made.captured, pool=(group[0] or group[1], 0)):
                for _ in range(self.rng.randrange(1, 4)):
                    with contextlib.ExitStack() as stack:
                        if self.pools and self.rng.random() < 0.6:
                            pool = self.rng.choice(self.pools)
                            stack.enter_context(memory.use_mem_pool(pool, self.device))
                        else:
                            pool = None
                        self.captured_steps(made, inputs, results, pool)
                if self.rng.random() < 0.1:
                    raise Abandoned
        except Abandoned:
            for value in results:
                value.expected = None
                self.values.append(value)
            return
        self.graphs.append(made)
        self.values += results

    def captured_steps(self, made, inputs, results, pool):
        for _ in range(self.rng.randrange(1, 5)):
            kind, number = self.rng.random(), self.rng.randrange(100)
            sources = inputs + results
            if kind < 0.25 and results:
                results.pop(self.rng.randrange(len(results)))
            elif kind < 0.4 and sources:
                value = self.rng.choice(sources)
                value.tensor += number
                made.operations.append(("change", value.cell, number, None))
                self.keep(made, value, inputs)
            elif kind < 0.5:
                with self.rng.choice(self.streams):  # eager work during the capture
                    self.make()
            else:
                source = self.rng.choice(sources) if sources and kind < 0.9 else None
                if source is None:
                    count = self.rng.choice(COUNTS)
                    tensor = gt.full((count,), number, dtype="int32", device=self.device)
                    made.operations.append(("fill", Values(None), number, count))
                else:
                    tensor = source.tensor + number
                    made.operations.append(("add", Values(None), number, source.cell))
                    self.keep(made, source, inputs)
                results.append(Value(tensor, made.operations[-1][1]))
                if pool is not None and pool.id != made.group and pool not in made.pools:
                    made.pools.append(pool)
                del tensor, source

    def keep(self, made, value, inputs):
        if any(value is other for other in inputs):
            made.inputs.append(value.tensor)

    def replay(self):
        """Replay a graph and those that share its pool, in the order of their captures."""
        if not self.graphs:
            return
        group = self.rng.choice(self.graphs).group
        # No graph writes these any more, and others may overwrite their memory.
        for of, cell in self.orphans:
            if of == group:
                cell.expected = None
        for made in [g for g in self.graphs if g.group == group]:
            with self.rng.choice(self.streams):
                made.captured.replay()
            for kind, cell, number, other in made.operations:
                if kind == "fill":
                    cell.expected = np.full(other, number, np.int32)
                elif kind == "add":
                    cell.expected = added(other.expected, number)
                else:
                    cell.expected = added(cell.expected, number)

    def drop_graph(self):
        if self.graphs:
            made = self.graphs.pop(self.rng.randrange(len(self.graphs)))
            self.orphans += [
                (made.group, cell) for kind, cell, _, _ in made.operations if kind != "change"
            ]
            if self.rng.random() < 0.5:
                made.captured.reset()

    # ---- pools and addresses ----

    def make_pool(self):
        if len(self.pools) < 4:
            kind = self.rng.random()
            self.pools.append(
                memory.MemPool(self.device, use_on_oom=kind < 0.15, no_split=kind > 0.85)
            )

    def drop_pool(self):
        if self.pools:
            self.pools.pop(self.rng.randrange(len(self.pools)))

    def allocate(self):
        nbytes = self.rng.choice((1, 700, 40_000, 3 * MIB))
        with self.somewhere():
            self.addresses[memory.caching_allocator_alloc(nbytes, self.device)] = nbytes

    def give_back(self):
        if self.addresses:
            ptr = self.rng.choice(list(self.addresses))
            memory.caching_allocator_delete(ptr)
            del self.addresses[ptr]
            self.refused(ptr)

    def give_back_what_is_not_its_own(self):
        if self.values:
            self.refused(self.rng.choice(self.values).tensor.data_ptr())
        for ptr, nbytes in self.addresses.items():
            self.refused(ptr + self.rng.randrange(1, nbytes + 1))

    def refused(self, ptr):
        if ptr in self.addresses:
            return
        try:
            memory.caching_allocator_delete(ptr)
        except ValueError:
            return
        raise AssertionError(f"{ptr:#x} was given back")

    def empty_cache(self):
        memory.empty_cache(self.device)

    def synchronize(self):
        gt.synchronize(self.device)

    # ---- comparison ----

    def alive(self):
        tensors = [value.tensor for value in self.values]
        tensors += [tensor for made in self.graphs for tensor in made.inputs]
        blocks = {tensor.data_ptr(): tensor.size * 4 for tensor in tensors}
        return blocks | self.addresses

    def check(self):
        """Check everything; values last, because reading them waits for the device."""
        blocks = sorted(self.alive().items())
        for (ptr, nbytes), (following, _) in zip(blocks, blocks[1:], strict=False):
            assert ptr + nbytes <= following, "two live blocks overlap"
        assert self.requested() - self.requested_before == sum(nbytes for _, nbytes in blocks)
        for pool in self.pools:
            holders = 1 + sum(any(pool is p for p in g.pools) for g in self.graphs)
            assert pool.use_count() == holders, f"{pool.use_count()} holders, {holders} expected"
        self.check_statistics()
        for value in self.values:
            if value.expected is not None:
                found = value.tensor.numpy()
                assert np.array_equal(found, value.expected), (found, value.expected)

    def check_statistics(self):
        stats = memory.memory_stats(self.device)
        parts = memory.memory_snapshot(device=self.device)
        by_pool = {}
        for part in parts:
            pair = part["segment_pool_id"]
            by_pool[pair] = by_pool.get(pair, 0) + part["total_size"]
        shown = {
            tuple(map(int, key.split(".")[1].split("_"))): value
            for key, value in stats.items()
            if key.startswith("reserved_bytes_by_private_pools") and key.endswith("all.current")
        }
        found = {pair: nbytes for pair, nbytes in by_pool.items() if pair != (0, 0)}
        assert found == {pair: nbytes for pair, nbytes in shown.items() if nbytes}
        faults = checker.check(self.device)
        assert not faults, faults

    # ---- the program ----

    STEPS = {
        make_some: 6, compute: 6, drop: 5, capture: 6, replay: 8, drop_graph: 2, make_pool: 3,
        drop_pool: 1, allocate: 2, give_back: 2, give_back_what_is_not_its_own: 1, empty_cache: 2,
        synchronize: 2,
    }  # fmt: skip

    def run(self, steps):
        names, weights = list(self.STEPS), list(self.STEPS.values())
        weights = [weight * self.rng.choice((0, 1, 1, 3)) + 0.1 for weight in weights]
        with gt.Device(self.device):
            for step in self.rng.choices(names, weights, k=steps):
                self.log.append(step.__name__)
                step(self)
                if self.rng.random() < 0.15:
                    self.check()
            self.check()
            self.finish()

    def finish(self):
        """Delete everything in a random order; no block and no pool may remain."""
        self.log.append("finish")
        ends = [self.values, self.graphs, self.pools]
        self.rng.shuffle(ends)
        for part in ends:
            self.rng.shuffle(part)
            while part:
                part.pop()
        for ptr in self.addresses:
            memory.caching_allocator_delete(ptr)
        self.addresses.clear()
        gt.synchronize(self.device)
        memory.empty_cache(self.device)
        assert self.requested() == self.requested_before
        left = self.pool_keys() - self.pools_before
        assert not left, left
        faults = checker.check(self.device)
        assert not faults, faults


@contextlib.contextmanager
def device_for(rng, name):
    """Yield a host device with a random configuration, deferred or not, or the CUDA device."""
    if name == "cuda":
        yield 0
        return
    before = allocator_settings.current()
    allocator_settings._in_force = allocator_settings.parse(rng.choice(CONFIGURATIONS))
    allocator_settings.tell()
    seed = rng.choice((None, rng.getrandbits(32)))
    number = registry.open_host(capacity=512 * MIB, seed=seed)
    try:
        yield number
    finally:
        registry.close_host(number)
        allocator_settings._in_force = before
        allocator_settings.tell()


def run_programs(seed, count, name="host", steps=40):
    """Run `count` programs one after another on one device; raise the first failure."""
    rng = random.Random(seed)
    with device_for(rng, name) as device:
        for number in range(count):
            world = World(device, rng.getrandbits(64))
            try:
                world.run(steps)
            except Exception as error:
                error.add_note(f"seed {seed} on {name}, program {number}, after {world.log}")
                raise
            finally:
                del world


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=int)
    parser.add_argument("--device", default="host", choices=("host", "cuda"))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=1e9)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    failed = done = 0
    end = time.monotonic() + options.seconds
    for seed in range(options.seed, options.seed + options.programs // BATCH):
        if time.monotonic() > end or failed == 5:
            break
        done += BATCH
        try:
            run_programs(seed, BATCH, options.device, options.steps)
        except Exception:
            failed += 1
            traceback.print_exc()
            gc.collect()
    print(f"{done} programs, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
