"""Replays and other work while a stream captures, against a model in program order.

A capturing stream can neither wait nor be waited for. Work queued on it before its capture, and
work after it, must be ordered with replays and writes that other streams make meanwhile.
"""

import numpy as np

from gputensor._driver import registry
from gputensor.errors import DriverError
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Event, current_stream
from tests.simulation.test_ordering import WORDS, fresh_seeds
from tests.simulation.test_ordering_graphs import GraphWorld


class CaptureWorld(GraphWorld):
    """A GraphWorld in which captures stay open while other streams work."""

    def __init__(self, seed):
        super().__init__(seed)
        self.open = {}  # stream -> its graph and the effects captured so far

    def __exit__(self, *error):
        for stream in list(self.open):
            self.end(stream)
        super().__exit__(*error)

    def begin(self, stream):
        captured = CUDAGraph()
        with stream:
            captured.capture_begin()
        self.open[stream] = captured, []

    def end(self, stream):
        captured, effects = self.open.pop(stream)
        with stream:
            captured.capture_end()
        self.graphs.append((captured, effects))

    def busy_write(self, stream, at):
        """Fill all of one buffer in many small pieces, so that the fill takes a while."""
        for start in range(0, WORDS, 8):
            value = self.random.getrandbits(32)
            self.uses[at].write(stream)
            self.fill_raw(self.buffers[at] + 4 * start, value, 8, stream)
            self.model[at, start : start + 8] = value

    def whole_copy(self, stream, dst, src):
        self.captured_copy(stream, dst, src, 0, WORDS)
        self.model[dst] = self.model[src]

    def step_or_capture(self):
        """Make one step on any stream; a step that the open captures forbid must change nothing."""
        stream = self.random.choice(self.streams)
        former = self.model.copy()
        try:
            if stream in self.open:
                effect = self.capture_step(stream)
                self.open[stream][1].append(effect)
            else:
                self.step(stream)
        except DriverError as error:
            assert error.status == 905
            assert np.array_equal(former, self.model)

    def replay_beside(self):
        free = [stream for stream in self.streams if stream not in self.open]
        self.replay(stream=self.random.choice(free))


def test_stream_that_captured_waits_for_replays_that_ran_meanwhile():
    for seed in fresh_seeds(60):
        with CaptureWorld(seed) as world:
            first, second, other = world.streams[:3]
            world.busy_write(first, 0)
            world.capture_copy(1, 0)
            world.whole_copy(other, 2, 1)
            world.whole_copy(other, 1, 3)
            world.begin(other)
            world.busy_write(first, 0)
            world.replay(0, second)
            world.end(other)
            world.whole_copy(other, 2, 1)
            world.check()


def test_replay_waits_for_what_a_stream_held_before_its_capture():
    for seed in fresh_seeds(60):
        with CaptureWorld(seed) as world:
            first, second, other = world.streams[:3]
            world.capture_copy(1, 0)
            world.busy_write(first, 0)
            world.whole_copy(other, 2, 1)
            world.busy_write(other, 0)
            world.begin(other)
            world.replay(0, second)
            world.end(other)
            world.check()


def test_replay_waits_for_what_a_stream_held_before_it_joined_a_capture():
    for join in ("stream", "event"):
        for seed in fresh_seeds(30):
            with CaptureWorld(seed) as world:
                origin, second, other = world.streams[:3]
                world.capture_copy(1, 0)
                world.whole_copy(other, 2, 1)
                world.busy_write(other, 0)
                world.begin(origin)
                if join == "stream":
                    other.wait_stream(origin)
                else:
                    event = Event()
                    event.record(origin)
                    event.wait(other)
                world.replay(0, second)
                origin.wait_stream(other)
                world.end(origin)
                world.busy_write(other, 0)
                world.check()


def test_write_waits_for_a_read_that_was_queued_before_its_stream_began_to_capture():
    for seed in fresh_seeds(60):
        with CaptureWorld(seed) as world:
            writer, reader = world.streams[:2]
            world.busy_write(writer, 0)
            world.whole_copy(reader, 1, 0)
            world.begin(reader)
            world.busy_write(writer, 0)
            world.end(reader)
            world.check()


def test_streams_of_a_capture_come_after_what_the_others_held_before_it():
    """An edge of a capture does not wait for earlier work, although the logs count it as a wait."""
    for is_kept in (True, False):
        for seed in fresh_seeds(30):
            with CaptureWorld(seed) as world:
                origin, side, third = world.streams[:3]
                world.busy_write(side, 2)
                world.busy_write(third, 3)
                world.busy_write(origin, 0)
                captured = CUDAGraph()
                with origin:
                    captured.capture_begin()
                side.wait_stream(origin)
                world.captured_copy(side, 1, 0, 0, WORDS)
                world.captured_copy(side, 0, 1, 0, WORDS)
                if is_kept:
                    origin.wait_stream(side)
                    with origin:
                        captured.capture_end()
                else:
                    del captured
                world.whole_copy(side, 2, 0)
                world.whole_copy(third, 3, 0)
                world.check()


def test_replays_follow_each_other_while_the_stream_of_their_pool_captures():
    """The stream of two graphs captures a third one, so neither replay can use it to wait."""
    for seed in fresh_seeds(60):
        with CaptureWorld(seed) as world:
            third = CUDAGraph()
            first = world.capture(stream=world.streams[3])
            world.graphs.clear()
            for dst, src in ((1, 0), (2, 1)):
                captured, effects = CUDAGraph(), []
                with Device(world.device), graph(captured, pool=first, stream=world.streams[3]):
                    effects.append(world.captured_copy(current_stream(), dst, src, 0, WORDS))
                world.graphs.append((captured, effects))
            world.busy_write(world.streams[0], 0)
            with world.streams[3]:
                third.capture_begin(pool=first)
            world.replay(0, world.streams[1])
            world.replay(1, world.streams[2])
            with world.streams[3]:
                third.capture_end()
            world.busy_write(world.streams[3], 1)
            world.check()


def test_random_work_beside_open_captures_gives_the_numbers_of_program_order():
    for seed in fresh_seeds(80):
        with CaptureWorld(seed) as world:
            for _ in range(2):
                world.capture()
            for _ in range(80):
                draw, stream = world.random.random(), world.random.choice(world.streams)
                if draw < 0.1 and stream not in world.open and len(world.open) < 2:
                    world.begin(stream)
                elif draw < 0.25 and stream in world.open:
                    world.end(stream)
                elif draw < 0.5:
                    world.replay_beside()
                else:
                    world.step_or_capture()
            for stream in list(world.open):
                world.end(stream)
            world.check()


def test_events_kept_for_a_capture_come_back_when_it_ends():
    with CaptureWorld(1) as world:
        world.capture_copy(1, 0)
        for _ in range(20):
            world.whole_copy(world.streams[2], 2, 1)
            world.begin(world.streams[2])
            for stream in world.streams[:2] * 3:
                world.replay(0, stream)
            world.end(world.streams[2])
            world.graphs.pop()
        assert registry.leaks(world.device)["events"] < 12
        world.check()
