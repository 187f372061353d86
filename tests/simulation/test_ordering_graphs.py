"""Replays of graphs among other work, ordered automatically, against a model in program order.

Graphs are captured on one or several streams and replayed on random streams, between copies and
fills of the same buffers on other random streams. Only the library inserts waits.
"""

import numpy as np

from gputensor._driver import registry
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Stream, current_stream, ordering
from tests.simulation.test_ordering import WORDS, World, fresh_seeds
from tests.support.driver_calls import HOST_FUNCTION
from tests.support.internals import watched


class GraphWorld(World):
    """A World whose steps can also be captured, and replayed."""

    def __init__(self, seed):
        super().__init__(seed, buffers=5)
        self.graphs = []

    def __exit__(self, *error):
        self.graphs.clear()
        super().__exit__(*error)

    def capture(self, pool=None, stream=None):
        """Capture some steps, sometimes a few on a forked stream, and record their effects."""
        captured, effects = CUDAGraph(), []
        side = Stream(self.device)
        with Device(self.device), graph(captured, pool=pool, stream=stream):
            origin = current_stream()
            streams = [origin]
            if self.random.random() < 0.4:
                side.wait_stream(origin)
                streams = [origin, origin, side]
            for _ in range(self.random.randrange(1, 6)):
                effects.append(self.capture_step(self.random.choice(streams)))
            if side in streams:
                origin.wait_stream(side)
        self.graphs.append((captured, effects))
        return captured

    def capture_step(self, stream):
        start, count = self.random.randrange(32), self.random.randrange(1, 32)
        dst, src = self.random.sample(range(len(self.buffers)), 2)
        return self.captured_copy(stream, dst, src, start, count)

    def captured_copy(self, stream, dst, src, start, count):
        offset, part = 4 * start, slice(start, start + count)
        self.uses[src].read(stream)
        self.uses[dst].write(stream)
        status = self.calls.copy_async(
            self.buffers[dst] + offset, self.buffers[src] + offset, 4 * count, stream.cuda_stream
        )
        assert status == 0
        return dst, src, part

    def capture_copy(self, dst, src):
        """Capture a copy of one whole buffer to another."""
        captured = CUDAGraph()
        with Device(self.device), graph(captured):
            effects = [self.captured_copy(current_stream(), dst, src, 0, WORDS)]
        self.graphs.append((captured, effects))

    def replay(self, at=None, stream=None):
        """Replay a graph on a stream; both are random by default."""
        captured, effects = self.random.choice(self.graphs) if at is None else self.graphs[at]
        with stream or self.random.choice(self.streams):
            captured.replay()
        for dst, src, part in effects:
            self.model[dst, part] = self.model[src, part].copy()


def run(world, steps=50):
    for _ in range(steps):
        if world.random.random() < 0.35:
            world.replay()
        else:
            world.step()


def test_replays_and_other_work_give_the_numbers_of_program_order():
    for seed in fresh_seeds(60):
        with GraphWorld(seed) as world:
            for _ in range(world.random.randrange(10)):
                world.step()
            for _ in range(3):
                world.capture()
            run(world)
            world.check()


def test_graphs_of_one_pool_give_the_numbers_of_program_order():
    for seed in fresh_seeds(20):
        with GraphWorld(seed) as world:
            first = world.capture()
            world.capture(pool=first)
            run(world)
            world.check()


def test_graphs_captured_on_streams_with_other_work_give_the_numbers_of_program_order():
    for seed in fresh_seeds(20):
        with GraphWorld(seed) as world:
            world.capture(stream=world.streams[0])
            world.capture(stream=world.streams[1])
            run(world)
            world.check()


def test_captures_between_replays_give_the_numbers_of_program_order():
    for seed in fresh_seeds(20):
        with GraphWorld(seed) as world:
            for _ in range(4):
                world.capture()
                run(world, 12)
                if world.random.random() < 0.5:
                    world.graphs.pop(world.random.randrange(len(world.graphs)))
                if not world.graphs:
                    world.capture()
            world.check()


def test_graphs_that_share_memory_follow_each_other_on_different_streams():
    """Each graph has its own stream; there is no other use of the memory between the replays."""
    for order in ((0, 1), (1, 0, 1), (0, 1, 0), (1, 2, 0, 1, 0)):
        for seed in fresh_seeds(20):
            with GraphWorld(seed) as world:
                for at in (1, 2, 3):
                    world.fill(world.streams[3], at)
                for at in (1, 2, 3):
                    world.capture_copy(0, at)
                for at in order:
                    world.replay(at, world.streams[at])
                world.check()


def test_same_programs_without_waits_go_wrong():
    wrong = 0
    for seed in fresh_seeds(20):
        with GraphWorld(seed) as world:
            world.capture()
            with ordering("manual"):
                run(world)
            wrong += not np.array_equal(world.memory(), world.model)
    assert wrong >= 12


def test_graph_that_is_dropped_inside_a_host_function_still_finishes_its_replays():
    """Garbage collection may drop a graph there, and a host function cannot wait for the device."""
    ran, released = [], []
    count = HOST_FUNCTION(lambda _: ran.append(1))
    for seed in fresh_seeds(30):
        with GraphWorld(seed) as world, watched(lambda *_: released.append(len(ran))):
            first, other = world.streams[:2]
            del ran[:], released[:]
            captured = CUDAGraph()
            with Device(world.device), graph(captured):
                launched = world.calls.host_launch(count, None, current_stream().cuda_stream)
                assert launched == 0
                world.captured_copy(current_stream(), 1, 0, 0, WORDS)
            world.fill(first, 0)
            with first:
                captured.replay()
            world.model[1] = world.model[0]
            holder = [captured]
            del captured
            drop = HOST_FUNCTION(lambda _, holder=holder: holder.clear())
            assert world.calls.host_launch(drop, None, other.cuda_stream) == 0
            other.synchronize()
            assert not holder
            first.synchronize()
            world.check()
            assert ran == released == [1]
            assert registry.leaks(world.device)["executables"] == 0
