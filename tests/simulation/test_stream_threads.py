"""Sixteen threads on shared streams, events, graphs and tensors of one device; for the sanitizers.

Some of the work is done in turns, so that a model in program order can follow it. The rest runs
concurrently: streams and events are created and destroyed, and threads wait for each other's
events, capture and replay graphs of their own memory, and compute with tensors that other threads
drop.
"""

import queue
import random
import threading

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry
from gputensor.graphs import CUDAGraph
from gputensor.streams import Device, Event, Stream, Uses, ordering
from tests.simulation.test_ordering import NBYTES, WORDS, World, fresh_seeds

THREADS = 16
STEPS = 60


class SharedWorld(World):
    """A World with the other objects that the threads share."""

    def __init__(self, seed):
        super().__init__(seed, streams=6)
        self.turn = threading.Lock()
        self.events = [Event() for _ in range(4)]
        for event in self.events:
            event.record(self.streams[0])
        self.tensors = queue.Queue()

    def run(self, body):
        errors = []

        def guarded(at):
            try:
                body(random.Random(f"{self.seed} {at}"))
            except BaseException as error:
                errors.append(error)

        threads = [
            threading.Thread(target=guarded, args=(at,), daemon=True) for at in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=300)
        assert not any(thread.is_alive() for thread in threads), "a thread hangs"
        if errors:
            raise errors[0]


@pytest.fixture(params=range(4))
def world():
    with SharedWorld(fresh_seeds(1)[0]) as world:
        yield world
        world.events.clear()


def events_and_streams(world, rng):
    """Make unneeded waits between new streams and streams that other threads use."""
    event, stream = rng.choice(world.events), rng.choice(world.streams)
    fresh = Stream(world.device)
    rng.choice((fresh, stream)).wait_event(event)
    fresh.wait_stream(stream)
    with fresh, ordering(rng.choice(("auto", "manual"))):
        own = Event()
        own.record()
        own.wait(stream)
    event.record(stream)
    rng.choice((own.query, own.synchronize, fresh.query, fresh.synchronize))()


class Own:
    """Memory of one thread, which it fills and copies by replays of its own graph."""

    def __init__(self, world):
        self.world = world
        self.source, self.target = (world.calls.make("mem_alloc", NBYTES) for _ in range(2))
        self.stream = Stream(world.device)
        self.uses = Uses(world.device, self.stream), Uses(world.device, self.stream)
        self.graph = CUDAGraph()
        with self.stream:
            self.graph.capture_begin(capture_error_mode="thread_local")
            self.uses[0].read()
            self.uses[1].write()
            copied = world.calls.copy_async(
                self.target, self.source, NBYTES, self.stream.cuda_stream
            )
            self.graph.capture_end()
        assert copied == 0

    def replay(self, rng):
        """Fill, replay and read on three streams; only the library orders them."""
        fill, launch, read = (rng.choice(self.world.streams) for _ in range(3))
        value = rng.getrandbits(32)
        self.uses[0].write(fill)
        self.world.fill_raw(self.source, value, WORDS, fill)
        with launch:
            self.graph.replay()
        self.uses[1].read(read)
        got = self.world.calls.download(self.target, np.zeros(WORDS, np.uint32), read.cuda_stream)
        assert (got == value).all()


def test_threads_with_turns_and_without_give_the_numbers_of_program_order(world):
    def body(rng):
        own = Own(world)
        for _ in range(STEPS):
            with world.turn:
                world.step()
            events_and_streams(world, rng)
            own.replay(rng)

    world.run(body)
    world.check()


def test_tensors_that_other_threads_drop_are_right_until_then(world):
    with Device(world.device):
        shared = gt.arange(1000, dtype="float32")

    def body(rng):
        with Device(world.device):
            for _ in range(STEPS):
                factor = rng.randrange(100)
                with rng.choice(world.streams):
                    made = shared * factor
                    part = made[rng.randrange(400) : rng.randrange(500, 1000)]
                with rng.choice(world.streams):
                    total = (part + made[: part.shape[0]]).sum()
                world.tensors.put((made, part, total))
                if rng.random() < 0.7:
                    whole, view, kept = world.tensors.get()
                    first = int(view[0]) if whole.shape[0] else 0
                    scale = int(whole[1])
                    assert first == scale * (first // scale if scale else 0)
                    numbers, start = np.asarray(whole), first // scale if scale else 0
                    assert (numbers == np.arange(1000, dtype=np.float32) * scale).all()
                    if scale:
                        count = view.shape[0]
                        expected = scale * (start * count + count * (count - 1))
                        assert float(kept) == pytest.approx(expected, rel=1e-5)

    world.run(body)
    while not world.tensors.empty():
        world.tensors.get()
    assert registry.counts(world.device)["host_launch"] > 0
