"""Streams, events, automatic ordering and graphs on a real GPU.

A host function that sleeps in its stream makes work slow, so that a missing wait gives a wrong
number instead of one that is right by luck.
"""

import contextlib
import ctypes
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gputensor.errors import DriverError
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import (
    Event,
    ExternalStream,
    Stream,
    Uses,
    current_stream,
    default_stream,
    ordering,
    stream,
    synchronize,
)
from tests.support.driver_calls import HOST_FUNCTION, Calls

WORDS = 1 << 18
NBYTES = 4 * WORDS
SLEEP_US = 20_000
USLEEP = ctypes.cast(ctypes.CDLL(None).usleep, HOST_FUNCTION)


class Memory:
    """Buffers of equal words on the device; values are read back through pageable memory."""

    def __init__(self, device, count=4):
        self.calls = Calls(device)
        self.ptrs = [self.calls.make("mem_alloc", NBYTES) for _ in range(count)]
        for at in range(count):
            self.fill(at, 0xDEADBEEF, default_stream(device))
        synchronize(device)

    def close(self):
        synchronize(self.calls.device)
        for ptr in self.ptrs:
            assert self.calls.mem_free(ptr) == 0

    def fill(self, at, value, on=None):
        handle = (on or current_stream()).cuda_stream
        assert self.calls.fill_async(self.ptrs[at], value, 4, WORDS, handle) == 0

    def copy(self, dst, src, on=None):
        handle = (on or current_stream()).cuda_stream
        assert self.calls.copy_async(self.ptrs[dst], self.ptrs[src], NBYTES, handle) == 0

    def sleep(self, on=None, us=SLEEP_US):
        handle = (on or current_stream()).cuda_stream
        assert self.calls.host_launch(USLEEP, us, handle) == 0

    def word(self, at):
        out, side = np.zeros(WORDS, np.uint32), Stream()
        status = self.calls.copy_async(out.ctypes.data, self.ptrs[at], NBYTES, side.cuda_stream)
        assert status == 0
        side.synchronize()
        assert len(np.unique(out)) == 1
        return int(out[0])


@pytest.fixture
def memory(cuda):
    held = Memory(cuda)
    yield held
    held.close()


def slow_chain(memory, uses, value, streams):
    """A slow write on one stream, a read on the next, and a write after that read."""
    writer, reader, last = streams
    uses[0].write(writer)
    memory.sleep(writer)
    memory.fill(0, value, writer)
    uses[0].read(reader)
    uses[1].write(reader)
    memory.sleep(reader)
    memory.copy(1, 0, reader)
    uses[0].write(last)
    memory.fill(0, value + 1, last)


def test_reads_and_writes_on_other_streams_wait_for_slow_work(memory):
    streams = [Stream() for _ in range(3)]
    for value in (5, 9):
        slow_chain(memory, [Uses() for _ in range(4)], value, streams)
        synchronize()
        assert (memory.word(1), memory.word(0)) == (value, value + 1)


def test_same_work_without_waits_goes_wrong(memory):
    with ordering("manual"):
        slow_chain(memory, [Uses() for _ in range(4)], 5, [Stream() for _ in range(3)])
    synchronize()
    assert (memory.word(1), memory.word(0)) != (5, 6)


def test_default_stream_is_ordered_like_another(memory):
    for first, second in ((default_stream(), Stream()), (Stream(), default_stream())):
        slow_chain(memory, [Uses() for _ in range(4)], 7, [first, second, Stream()])
        synchronize()
        assert (memory.word(1), memory.word(0)) == (7, 8)


def test_random_programs_give_the_numbers_of_program_order(memory):
    rng = random.Random(seed := random.SystemRandom().getrandbits(32))
    for _ in range(10):
        streams, uses = [Stream() for _ in range(5)], [Uses() for _ in range(4)]
        model = [memory.word(at) for at in range(4)]
        for _ in range(80):
            on = rng.choice(streams)
            if rng.random() < 0.05:
                memory.sleep(on, 1000)
            if rng.random() < 0.4:
                at, value = rng.randrange(4), rng.getrandbits(32)
                uses[at].write(on)
                memory.fill(at, value, on)
                model[at] = value
            else:
                dst, src = rng.sample(range(4), 2)
                uses[src].read(on)
                uses[dst].write(on)
                memory.copy(dst, src, on)
                model[dst] = model[src]
        synchronize()
        assert [memory.word(at) for at in range(4)] == model, f"seed {seed}"


def test_recording_again_does_not_move_waits_that_are_queued(memory):
    a, b, event = Stream(), Stream(), Event()
    memory.sleep(a)
    memory.fill(0, 3, a)
    event.record(a)
    event.wait(b)
    event.record(b)
    memory.copy(1, 0, b)
    b.synchronize()
    assert memory.word(1) == 3


def test_many_streams_are_distinct_and_independent(memory):
    streams = [Stream() for _ in range(64)]
    assert len({s.cuda_stream for s in streams}) == 64
    memory.sleep(streams[0], 200_000)
    for other in streams[1:]:
        other.synchronize()
    assert not streams[0].query()
    streams[0].synchronize()


def test_query_and_elapsed_time_follow_the_work(memory):
    own, start, end = Stream(), Event(enable_timing=True), Event(enable_timing=True)
    start.record(own)
    memory.sleep(own)
    end.record(own)
    assert not end.query() and not own.query()
    with pytest.raises(DriverError, match="synchronize first"):
        start.elapsed_time(end)
    end.synchronize()
    assert end.query() and 0.9 * SLEEP_US / 1000 <= start.elapsed_time(end) < 1000


def test_blocking_event_uses_little_processor_time(memory):
    own, event = Stream(), Event(blocking=True)
    memory.sleep(own, 300_000)
    event.record(own)
    before = time.thread_time()
    event.synchronize()
    assert time.thread_time() - before < 0.15


def test_priorities_have_a_range(cuda):
    least, greatest = Stream.priority_range()
    assert greatest < least
    Stream(priority=greatest).synchronize()


def test_special_handles(cuda):
    assert ExternalStream(1) == default_stream() == ExternalStream(0)
    with pytest.raises(ValueError, match="per-thread default stream"):
        ExternalStream(2)


def test_streams_of_cupy_are_streams(memory):
    cupy = pytest.importorskip("cupy", reason="needs CuPy")
    theirs = cupy.cuda.Stream(non_blocking=True)
    ours = ExternalStream(theirs.ptr)
    with stream(ours):
        memory.sleep()
        memory.fill(0, 77)
    assert not theirs.done
    theirs.synchronize()
    assert memory.word(0) == 77


# ---- graphs ----


def test_replays_with_forks_give_the_numbers_of_program_order(memory):
    g, fork = CUDAGraph(), Stream()
    with graph(g):
        origin = current_stream()
        fork.wait_stream(origin)
        memory.copy(1, 0, fork)
        memory.copy(2, 0)
        origin.wait_stream(fork)
        memory.copy(3, 1)
    for value in (11, 12):
        memory.fill(0, value)
        g.replay()
        synchronize()
        assert [memory.word(at) for at in (1, 2, 3)] == [value] * 3


def test_replays_are_ordered_with_uses_on_other_streams(memory):
    uses, g = [Uses() for _ in range(4)], CUDAGraph()
    with graph(g):
        uses[0].read()
        uses[1].write()
        memory.copy(1, 0)
    writer, reader = Stream(), Stream()
    replayers = [Stream(), Stream()]
    for value in range(20, 26):
        uses[0].write(writer)
        memory.sleep(writer, 5000)
        memory.fill(0, value, writer)
        with replayers[value % 2]:
            g.replay()
        uses[1].read(reader)
        uses[2].write(reader)
        memory.sleep(reader, 5000)
        memory.copy(2, 1, reader)
        reader.synchronize()
        assert memory.word(2) == value


def test_replays_in_a_capture_are_ordered_with_its_other_streams(memory):
    uses, inner, outer = [Uses() for _ in range(4)], CUDAGraph(), CUDAGraph()
    first, second = Stream(), Stream()
    with graph(inner):
        uses[0].read()
        uses[1].write()
        memory.sleep()
        memory.copy(1, 0)
    with graph(outer):
        origin = current_stream()
        for side in (first, second):
            side.wait_stream(origin)
        uses[0].write(first)
        memory.sleep(first)
        memory.copy(0, 3, first)
        with second:
            inner.replay()
        uses[1].read()
        uses[2].write()
        memory.copy(2, 1)
        uses[0].write(first)
        memory.fill(0, 1, first)
        with origin:
            inner.replay()
        for side in (first, second):
            origin.wait_stream(side)
    for value in (7, 8):
        memory.fill(3, value)
        synchronize()
        outer.replay()
        synchronize()
        assert [memory.word(at) for at in (2, 1)] == [value, 1]


def test_pending_work_outside_a_capture_is_refused_and_the_capture_goes_on(memory):
    own, writer, g = Stream(), Stream(), CUDAGraph()
    uses = Uses(stream=writer)
    with own:
        g.capture_begin()  # it waits for earlier work
        uses.write(writer)
        memory.sleep(writer, 200_000)
        with pytest.raises(DriverError, match="inside and outside a graph capture"):
            uses.read()
        memory.copy(1, 0)
        g.capture_end()
    writer.synchronize()
    memory.fill(0, 4)
    g.replay()
    synchronize()
    assert memory.word(1) == 4


def test_results_of_finished_work_outside_a_capture_may_be_read_in_it(memory):
    own, writer, g = Stream(), Stream(), CUDAGraph()
    uses = Uses(stream=writer)
    uses.write(writer)
    memory.fill(0, 5, writer)
    with graph(g, stream=own):
        uses.read()
        memory.copy(1, 0)
    g.replay()
    synchronize()
    assert memory.word(1) == 5


def test_events_of_the_pool_serve_again_after_a_capture(memory):
    """An event that was recorded in a capture is then recorded outside one."""
    for _ in range(3):
        g, fork, uses = CUDAGraph(), Stream(), Uses()
        with graph(g):
            uses.write()
            fork.wait_stream(current_stream())
            uses.read(fork)
            memory.copy(1, 0, fork)
            current_stream().wait_stream(fork)
        g.replay()
        slow_chain(memory, [Uses() for _ in range(4)], 5, [Stream() for _ in range(3)])
        synchronize()
        assert memory.word(1) == 5


def test_graph_dropped_during_its_replay_waits_for_it(memory):
    g = CUDAGraph()
    with graph(g):
        memory.sleep()
        memory.fill(0, 8)
    g.replay()
    del g
    assert memory.word(0) == 8


def test_entering_a_stream_is_cheap(cuda):
    """Alternates with a context that does nothing, because other work slows both down."""
    own, rounds = Stream(), 20_000

    def seconds(context):
        start = time.perf_counter()
        for _ in range(rounds):
            with context():
                pass
        return (time.perf_counter() - start) / rounds

    turns = [(seconds(lambda: stream(own)), seconds(contextlib.nullcontext)) for _ in range(7)]
    ours, nothing = (min(column) for column in zip(*turns, strict=True))
    assert ours < 4 * nothing


FIRST_USE = """
import threading, time
import gputensor as gt
from gputensor._kernels.launch import disk_cache

x, started, load = gt.ones(1000, dtype="int16"), threading.Event(), disk_cache.load
one = gt.ones(1000, dtype="int16")
gt.add(x, one).numpy()

def slow_load(name):
    started.set()
    time.sleep(0.3)
    return load(name)

def shift():
    with gt.stream(gt.Stream()):
        gt.bitwise_left_shift(x, 3, out=x)

def add():
    assert started.wait(60)
    with gt.stream(gt.Stream()):
        gt.add(x, one, out=x)

disk_cache.load = slow_load
threads = [threading.Thread(target=body) for body in (shift, add)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(120)
print(sorted(set(x.numpy().tolist())))
"""


def test_no_thread_runs_between_the_ordering_and_the_launch_of_a_new_kernel(cuda):
    """Loading the kernel of the shift releases the GIL after the shift was ordered."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USE],
        env={**os.environ, "GPUTENSOR_DEVICE": "cuda"},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("[9]", "[16]"), done.stdout
