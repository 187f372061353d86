"""Automatic ordering on the deferred host device, against a model that runs in program order.

A program is a list of copies and fills of small buffers on random streams. The deferred device runs
queued work in any order that streams and events allow, so a missing wait shows as a wrong number.
Every failure names the seed that reproduces it.
"""

import ctypes
import random
import threading

import numpy as np
import pytest

from gputensor._driver import registry
from gputensor.streams import Event, Stream, Uses, ordering
from tests.support.driver_calls import Calls

WORDS = 64
NBYTES = 4 * WORDS
POISON = 0xDEADBEEF


class World:
    """Buffers on one deferred device, their use records, and their expected contents."""

    def __init__(self, seed, buffers=4, streams=4):
        self.seed = seed
        self.random = random.Random(seed)
        self.device = registry.open_host(capacity=64 << 20, seed=seed)
        self.calls = Calls(self.device)
        self.streams = [Stream(self.device) for _ in range(streams)]
        self.buffers = [self.calls.make("mem_alloc", NBYTES) for _ in range(buffers)]
        self.uses = [Uses(self.device, self.streams[0]) for _ in self.buffers]
        self.model = np.full((buffers, WORDS), POISON, np.uint32)
        for buffer in self.buffers:
            self.fill_raw(buffer, POISON, WORDS, self.streams[0])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        del self.uses, self.streams
        registry.close_host(self.device)

    def fill_raw(self, ptr, value, count, stream):
        assert self.calls.fill_async(ptr, value, 4, count, stream.cuda_stream) == 0

    def fill(self, stream, at):
        start = self.random.randrange(WORDS)
        count = self.random.randrange(1, WORDS - start + 1)
        value = self.random.getrandbits(32)
        self.uses[at].write(stream)
        self.fill_raw(self.buffers[at] + 4 * start, value, count, stream)
        self.model[at, start : start + count] = value

    def copy(self, stream, dst, src):
        start = self.random.randrange(WORDS)
        count = self.random.randrange(1, WORDS - start + 1)
        self.uses[src].read(stream)
        self.uses[dst].write(stream)
        offset = 4 * start
        status = self.calls.copy_async(
            self.buffers[dst] + offset, self.buffers[src] + offset, 4 * count, stream.cuda_stream
        )
        assert status == 0
        self.model[dst, start : start + count] = self.model[src, start : start + count]

    def step(self, stream=None):
        stream = stream or self.random.choice(self.streams)
        if self.random.random() < 0.3:
            self.fill(stream, self.random.randrange(len(self.buffers)))
        else:
            self.copy(stream, *self.random.sample(range(len(self.buffers)), 2))

    def memory(self):
        assert self.calls.synchronize() == 0
        return np.array(
            [np.frombuffer(ctypes.string_at(ptr, NBYTES), np.uint32) for ptr in self.buffers]
        )

    def is_right(self):
        return np.array_equal(self.memory(), self.model)

    def check(self):
        assert self.is_right(), f"memory differs from program order; seed {self.seed}"


def fresh_seeds(count):
    return [random.SystemRandom().getrandbits(32) for _ in range(count)]


def test_random_programs_on_several_streams_give_the_numbers_of_program_order():
    for seed in fresh_seeds(60):
        with World(seed) as world:
            for _ in range(60):
                world.step()
            world.check()


def test_many_streams_on_one_buffer_give_the_numbers_of_program_order():
    for seed in fresh_seeds(10):
        with World(seed, buffers=2, streams=40) as world:
            for _ in range(150):
                world.step()
            world.check()


def test_same_programs_without_waits_go_wrong():
    """The simulation detects missing waits: manual ordering inserts none."""
    wrong = 0
    for seed in fresh_seeds(30):
        with World(seed) as world, ordering("manual"):
            for _ in range(60):
                world.step()
            wrong += not world.is_right()
    assert wrong >= 20


def test_manual_ordering_with_own_waits_gives_the_numbers_of_program_order():
    for seed in fresh_seeds(10):
        with World(seed) as world, ordering("manual"):
            former = world.streams[0]
            for _ in range(40):
                stream = world.random.choice(world.streams)
                stream.wait_stream(former)
                world.step(stream)
                former = stream
            world.check()


def test_ordering_comes_back_after_manual_work():
    """Uses under manual ordering are recorded, so automatic waits refer to the latest of them."""
    for seed in fresh_seeds(20):
        with World(seed) as world:
            first, second, third = world.streams[:3]
            for _ in range(10):
                world.fill(first, 0)
                with ordering("manual"):
                    second.wait_stream(first)
                    world.fill(second, 0)
                world.copy(third, 1, 0)
                world.copy(first, 2, 1)
            world.check()


def test_programs_of_several_threads_give_the_numbers_of_the_order_of_their_calls():
    for seed in fresh_seeds(8):
        with World(seed, streams=6) as world:
            lock = threading.Lock()  # stands for the GIL: held from the use to the launch

            def run(own, world=world, lock=lock):
                for _ in range(30):
                    with lock:
                        world.step(own)

            threads = [threading.Thread(target=run, args=(own,)) for own in world.streams]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            world.check()


def test_event_pool_reuse_does_not_move_waits_that_are_queued():
    """One event serves many waits in a row; each refers to the record made before it."""
    for seed in fresh_seeds(20):
        with World(seed, buffers=6, streams=6) as world:
            registry.reset_counts(world.device)
            for _ in range(20):
                for at in range(1, 6):
                    world.fill(world.streams[at], at)
                for at in range(1, 6):
                    world.copy(world.streams[0], 0, at)
            assert registry.counts(world.device)["event_create"] <= 1
            world.check()


def test_user_events_order_streams():
    for seed in fresh_seeds(20):
        with World(seed) as world, ordering("manual"):
            first, second = world.streams[:2]
            event = Event()
            for _ in range(10):
                world.fill(first, 0)
                event.record(first)
                event.wait(second)
                world.copy(second, 1, 0)
                first.wait_event(second.record_event())
            world.check()


# ---- cost in driver calls ----


@pytest.fixture
def world():
    with World(random.SystemRandom().getrandbits(32)) as world:
        yield world


def ordering_calls(world):
    counts = registry.counts(world.device)
    return counts["event_record"], counts["stream_wait_event"]


def test_uses_on_one_stream_make_no_driver_call(world):
    uses, stream = world.uses[0], world.streams[0]
    registry.reset_counts(world.device)
    for _ in range(5):
        uses.write(stream)
        uses.read(stream)
    assert sum(registry.counts(world.device).values()) == 0


def test_second_read_on_a_stream_does_not_wait_again(world):
    uses, (writer, reader, other) = world.uses[0], world.streams[:3]
    uses.write(writer)
    registry.reset_counts(world.device)
    for _ in range(5):
        uses.read(reader)
    assert ordering_calls(world) == (1, 1)
    uses.read(other)
    uses.read(reader)
    uses.read(writer)
    assert ordering_calls(world) == (2, 2)


def test_write_waits_once_for_each_stream_that_used_the_memory(world):
    uses, (writer, first, second, last) = world.uses[0], world.streams[:4]
    uses.write(writer)
    uses.read(first)
    uses.read(second)
    registry.reset_counts(world.device)
    uses.write(last)
    assert ordering_calls(world) == (3, 3)
    uses.read(last)
    uses.write(last)
    assert ordering_calls(world) == (3, 3)


def test_reader_that_writes_does_not_wait_again_for_an_idle_writer(world):
    uses, (writer, reader) = world.uses[0], world.streams[:2]
    uses.write(writer)
    uses.read(reader)
    registry.reset_counts(world.device)
    uses.write(reader)
    assert ordering_calls(world) == (0, 0)


def test_reader_that_writes_waits_for_reads_that_the_writer_made_meanwhile(world):
    uses, (writer, reader) = world.uses[0], world.streams[:2]
    uses.write(writer)
    uses.read(reader)
    uses.read(writer)
    registry.reset_counts(world.device)
    uses.write(reader)
    assert ordering_calls(world) == (1, 1)


def test_memory_is_not_used_elsewhere_before_the_work_at_its_allocation(world):
    """A block may be reused memory: a first use on another stream waits for the allocation's."""
    uses = Uses(world.device, world.streams[0])
    registry.reset_counts(world.device)
    uses.write(world.streams[1])
    assert ordering_calls(world) == (1, 1)


def test_failing_wait_leaves_the_record_as_it_was(world):
    uses, (writer, reader) = world.uses[0], world.streams[:2]
    uses.write(writer)
    registry.fail_call(world.device, 1, status=999, name="stream_wait_event")
    with pytest.raises(RuntimeError, match="stream_wait_event failed.*CUDA_ERROR_UNKNOWN"):
        uses.read(reader)
    registry.reset_counts(world.device)
    uses.read(reader)
    assert ordering_calls(world) == (1, 1)
