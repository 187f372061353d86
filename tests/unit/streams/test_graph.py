"""Capture and replay on host devices, with work queued through the driver table."""

import ctypes
import random

import numpy as np
import pytest

from gputensor._driver import registry
from gputensor.errors import DeviceError, DriverError
from gputensor.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
)
from gputensor.memory import MemPool
from gputensor.streams import (
    Device,
    Stream,
    Uses,
    current_stream,
    default_stream,
    ordering,
    synchronize,
)
from tests.support.driver_calls import HOST_FUNCTION, Calls
from tests.support.internals import watched

WORDS = 16


@pytest.fixture
def device(device):
    """The device, current during the test."""
    with Device(device):
        yield device


class Memory:
    """Words on a device, filled and copied on the current stream."""

    def __init__(self, device, count=4):
        self.calls = Calls(device)
        self.ptrs = [self.calls.make("mem_alloc", 4 * WORDS) for _ in range(count)]
        for at in range(count):
            self.fill(at, 0xDEADBEEF, default_stream(device))
        synchronize(device)

    def fill(self, at, value, stream=None):
        handle = (stream or current_stream()).cuda_stream
        assert self.calls.fill_async(self.ptrs[at], value, 4, WORDS, handle) == 0

    def copy(self, dst, src, stream=None):
        handle = (stream or current_stream()).cuda_stream
        assert self.calls.copy_async(self.ptrs[dst], self.ptrs[src], 4 * WORDS, handle) == 0

    def __getitem__(self, at):
        values = set(np.frombuffer(ctypes.string_at(self.ptrs[at], 4 * WORDS), np.uint32))
        assert len(values) == 1
        return values.pop()


def test_captured_work_runs_at_each_replay_and_not_before(device):
    memory, g = Memory(device), CUDAGraph()
    with graph(g):
        memory.copy(1, 0)
    synchronize(device)
    assert memory[1] == 0xDEADBEEF
    for value in random.sample(range(2**31), 5):
        memory.fill(0, value)
        g.replay()
        synchronize(device)
        assert memory[1] == value


def test_replays_follow_the_order_of_their_stream(device):
    for _ in range(20):
        memory, g = Memory(device, 3), CUDAGraph()
        with graph(g):
            memory.copy(1, 0)
        with Stream(device) as stream:
            memory.fill(0, 11)
            g.replay()
            memory.copy(2, 1)
            memory.fill(0, 22)
            g.replay()
        stream.synchronize()
        assert (memory[2], memory[1]) == (11, 22)


def test_forked_streams_become_part_of_the_graph(device):
    for _ in range(20):
        memory, g, fork = Memory(device), CUDAGraph(), Stream(device)
        with graph(g):
            origin = current_stream()
            fork.wait_stream(origin)
            with fork:
                assert is_current_stream_capturing()
                memory.copy(1, 0)
            memory.copy(2, 0)
            origin.wait_stream(fork)
            memory.copy(3, 1)
        memory.fill(0, 5)
        g.replay()
        synchronize(device)
        assert memory[1] == memory[2] == memory[3] == 5


def test_context_restores_stream_and_device(device):
    before = current_stream(), Device()
    assert not is_current_stream_capturing()
    with graph(CUDAGraph()):
        assert is_current_stream_capturing() and current_stream() != before[0]
    assert (current_stream(), Device()) == before and not is_current_stream_capturing()


def test_body_that_raises_drops_the_capture_and_keeps_its_exception(device):
    memory, g, before = Memory(device), CUDAGraph(), current_stream()
    live = registry.leaks(device)
    with pytest.raises(ZeroDivisionError), graph(g):
        memory.fill(0, 1)
        raise ZeroDivisionError
    assert current_stream() == before and not is_current_stream_capturing()
    assert registry.leaks(device)["graphs"] == live["graphs"]
    with pytest.raises(RuntimeError, match="holds no graph to replay"):
        g.replay()
    with graph(g):  # the object can be used again
        memory.fill(0, 7)
    g.replay()
    synchronize(device)
    assert memory[0] == 7


def test_stream_that_does_not_join_again_breaks_the_capture(device):
    memory, g, fork = Memory(device), CUDAGraph(), Stream(device)
    with pytest.raises(DriverError, match="capture_end failed"), graph(g):
        fork.wait_stream(current_stream())
        with fork:
            memory.fill(0, 1)
    with graph(g):
        memory.fill(0, 2)
    g.replay()
    synchronize(device)
    assert memory[0] == 2


def test_memory_written_in_a_graph_is_ordered_on_other_streams(device):
    """Replays on one stream, automatic reads on others: forked work included."""
    for _ in range(20):
        memory, g, fork = Memory(device, 5), CUDAGraph(), Stream(device)
        uses = [Uses(device) for _ in range(5)]
        with graph(g):
            origin = current_stream()
            fork.wait_stream(origin)
            uses[1].write(fork)
            memory.copy(1, 0, fork)
            uses[2].write(origin)
            memory.copy(2, 0)
            origin.wait_stream(fork)
        replayer, reader = Stream(device), Stream(device)
        for value in (3, 4):
            memory.fill(0, value, replayer)
            with replayer:
                g.replay()
            for source, target in ((1, 3), (2, 4)):
                uses[source].read(reader)
                uses[target].write(reader)
                memory.copy(target, source, reader)
            reader.synchronize()
            assert memory[3] == memory[4] == value
            replayer.wait_stream(reader)


def read_elsewhere(memory, uses, source, target):
    """Copy a word on a stream that never used the memory before, and return it."""
    reader = Stream()
    uses[source].read(reader)
    uses[target].write(reader)
    memory.copy(target, source, reader)
    reader.synchronize()
    return memory[target]


def test_first_reader_on_another_stream_waits_for_the_replay(device):
    for value in range(30):
        memory, g, uses = Memory(device), CUDAGraph(), [Uses() for _ in range(4)]
        with graph(g):
            uses[0].read()
            uses[1].write()
            memory.copy(1, 0)
        with Stream() as replayer:
            uses[0].write()
            memory.fill(0, value)
            g.replay()
        assert current_stream() != replayer  # still referenced, so the reader gets another stream
        assert read_elsewhere(memory, uses, 1, 2) == value


def test_replays_of_one_pool_on_different_streams_follow_each_other(device):
    for value in range(30):
        memory, uses = Memory(device), [Uses() for _ in range(4)]
        first, second = CUDAGraph(), CUDAGraph()
        with graph(first):
            uses[1].write()
            memory.copy(1, 0)
        with graph(second, pool=first):
            uses[1].read()
            uses[2].write()
            memory.copy(2, 1)
        memory.fill(0, value)
        synchronize(device)
        streams = [Stream(), Stream()]
        for stream, g in zip(streams, (first, second), strict=True):
            with stream:
                g.replay()
        assert read_elsewhere(memory, uses, 2, 3) == value


def test_replay_follows_other_work_of_the_stream_it_was_captured_on(device):
    for value in range(30):
        memory, g, uses, own = Memory(device), CUDAGraph(), [Uses() for _ in range(4)], Stream()
        with graph(g, stream=own):
            uses[0].read()
            uses[1].write()
            memory.copy(1, 0)
        uses[0].write(own)
        memory.fill(0, value, own)
        with Stream() as replayer:
            g.replay()
        assert replayer != own
        assert read_elsewhere(memory, uses, 1, 2) == value


def test_capture_may_read_what_was_written_before_it(device):
    memory, g, uses = Memory(device), CUDAGraph(), Uses(device)
    with Stream(device) as writer:
        uses.write(writer)
        memory.fill(0, 9)
    with graph(g):
        uses.read()
        memory.copy(1, 0)
    g.replay()
    synchronize(device)
    assert memory[1] == 9


@pytest.mark.parametrize("turn", range(10))
def test_capture_begin_waits_for_work_that_the_capture_reads(device, turn):
    memory, stream, g, uses = Memory(device), Stream(device), CUDAGraph(), Uses(device)
    uses.write()
    memory.fill(0, turn)
    stream.wait_stream(current_stream())
    with stream:
        g.capture_begin()
        uses.read()
        memory.copy(1, 0)
        g.capture_end()
    g.replay()
    synchronize(device)
    assert memory[1] == turn


def test_capture_refuses_to_read_what_is_still_being_written():
    device = registry.open_host(capacity=16 << 20, seed=random.getrandbits(32))
    try:
        with Device(device):
            memory, stream, writer = Memory(device), Stream(device), Stream(device)
            for _ in range(100):
                uses, g = Uses(device, writer), CUDAGraph()
                with stream:
                    g.capture_begin()
                    uses.write(writer)
                    for _ in range(50):
                        memory.fill(0, 1, writer)
                    try:
                        uses.read()
                        refused = False
                    except DriverError as error:
                        refused = True
                        assert "inside and outside a graph capture" in str(error)
                    g.capture_end()  # the refusal did not break the capture
                if refused:
                    break
            assert refused
    finally:
        registry.close_host(device)


def test_memory_of_a_capture_cannot_be_read_outside_of_it(device):
    uses, g, outside = Uses(device), CUDAGraph(), Stream(device)
    with graph(g):
        uses.write()
        with pytest.raises(DriverError, match="inside and outside a graph capture"):
            uses.read(outside)
        uses.read()
        with ordering("manual"):
            uses.read(outside)
    g.replay()


def test_memory_read_by_a_capture_can_be_written_outside_of_it(device):
    """No work runs during a capture, so no wait is needed."""
    memory, uses, g, outside = Memory(device), Uses(device), CUDAGraph(), Stream(device)
    with graph(g):
        uses.read()
        memory.copy(1, 0)
        uses.write(outside)
        memory.fill(0, 6, outside)
    outside.synchronize()
    g.replay()
    synchronize(device)
    assert memory[1] == 6


def test_captures_do_not_mix(device):
    uses, first, second = Uses(device), CUDAGraph(), CUDAGraph()
    a, b = Stream(device), Stream(device)
    with a:
        first.capture_begin(capture_error_mode="relaxed")
        uses.write()
    with b:
        second.capture_begin(capture_error_mode="relaxed")
        with pytest.raises(DriverError, match="graph capture"):
            uses.read()
        second.capture_end()
    with a:
        first.capture_end()


def test_graphs_that_share_a_pool_capture_on_one_stream(device):
    first, second = CUDAGraph(), CUDAGraph()
    seen = []
    for g, pool in ((first, None), (second, first), (CUDAGraph(), first.pool)):
        with graph(g, pool=pool() if callable(pool) else pool):
            seen.append(current_stream())
    assert len(set(seen)) == 1 and first.pool() == second.pool()
    with graph(CUDAGraph()):
        assert current_stream() not in seen


def test_pool_handles_are_new_each_time(device):
    handles = [graph_pool_handle() for _ in range(10)]
    assert len(set(handles)) == 10
    g = CUDAGraph()
    with graph(g, pool=handles[3]):
        pass
    assert g.pool() == handles[3] and handles[3][0] == 0


def test_a_graph_in_a_users_pool_has_its_id(device):
    memory, pool, g, own = Memory(device), MemPool(device), CUDAGraph(), CUDAGraph()
    for captured, into in ((g, pool), (own, None)):
        with graph(captured, pool=into):
            memory.fill(0, 3)
    assert g.pool() == g.pools()[0] == pool.id
    assert own.pool()[0] > 0 == own.pool()[1]


def test_keep_graph_waits_for_instantiate(device):
    memory, g = Memory(device), CUDAGraph(keep_graph=True)
    with graph(g):
        memory.fill(0, 3)
    live = registry.leaks(device)
    assert (live["graphs"], live["executables"]) == (1, 0)
    g.instantiate()
    g.replay()
    synchronize(device)
    assert memory[0] == 3 and registry.leaks(device)["executables"] == 1
    g.instantiate()
    assert registry.leaks(device)["executables"] == 1


def test_reset_and_drop_leave_nothing_behind(device):
    memory, live = Memory(device), registry.leaks(device)
    kept, dropped = CUDAGraph(), CUDAGraph(keep_graph=True)
    for g in (kept, dropped):
        with graph(g):
            memory.fill(0, 3)
        g.replay()
    kept.reset()
    del dropped, g
    after = registry.leaks(device)
    assert (after["graphs"], after["executables"]) == (live["graphs"], live["executables"])
    with pytest.raises(RuntimeError, match="holds no graph"):
        kept.replay()
    with pytest.raises(RuntimeError, match="no pool"):
        kept.pool()


def test_drop_waits_for_replays_before_it_reports_the_release(device):
    reported, ran = [], []
    function = HOST_FUNCTION(lambda _: ran.append(1))
    calls, g = Calls(device), CUDAGraph()
    with graph(g):
        assert calls.host_launch(function, None, current_stream().cuda_stream) == 0
    for _ in range(3):
        g.replay()
    with watched(lambda event, number, capture: reported.append((event, number, len(ran)))):
        del g
    assert reported == [("release", device, 3)]


def test_graph_dropped_while_capturing_ends_the_capture(device):
    stream = Stream(device)
    with stream:
        CUDAGraph().capture_begin()
        assert not is_current_stream_capturing()
        stream.synchronize()


def test_replay_inside_of_a_capture_becomes_part_of_it(device):
    memory, inner, outer = Memory(device), CUDAGraph(), CUDAGraph()
    with graph(inner):
        memory.copy(1, 0)
    with graph(outer):
        memory.fill(0, 8)
        inner.replay()
        memory.copy(2, 1)
    outer.replay()
    synchronize(device)
    assert memory[2] == 8


# ---- mistakes ----


def test_default_stream_cannot_be_captured(device):
    with pytest.raises(RuntimeError, match="the default stream cannot be captured"):
        CUDAGraph().capture_begin()


def test_mistakes_in_the_order_of_calls_are_named(device):
    g = CUDAGraph()
    with pytest.raises(RuntimeError, match="is not capturing"):
        g.capture_end()
    with graph(g):
        with pytest.raises(RuntimeError, match="holds a capture"):
            g.capture_begin()
        with pytest.raises(RuntimeError, match="is already capturing"):
            CUDAGraph().capture_begin()
        with pytest.raises(RuntimeError, match="is already capturing"), graph(CUDAGraph()):
            pass
        with pytest.raises(RuntimeError, match="end the capture before reset"):
            g.reset()
    with pytest.raises(RuntimeError, match="holds a capture"), graph(g):
        pass
    assert current_stream() == default_stream()


def test_bad_arguments_are_named(device):
    with pytest.raises(TypeError, match="cuda_graph: got int; expected a CUDAGraph"):
        graph(3)
    with pytest.raises(ValueError, match="^capture_error_mode: got 'loose'; expected 'global'"):
        with Stream(device):
            CUDAGraph().capture_begin(capture_error_mode="loose")
    for pool in ("pool", (0, 0), -1, True):
        with (
            pytest.raises(TypeError, match="^pool: got .*; expected graph_pool_handle"),
            graph(CUDAGraph(), pool=pool),
        ):
            pass
    assert current_stream() == default_stream()


@pytest.mark.parametrize("entry", ["capture_begin", "capture_end", "graph_instantiate"])
def test_failing_driver_call_leaves_no_capture_behind(device, entry):
    memory, live = Memory(device), registry.leaks(device)
    g = CUDAGraph()
    with pytest.raises(DriverError, match=f"{entry} failed"):
        with Stream(device):
            registry.fail_call(device, 1, status=999, name=entry)
            g.capture_begin()
            memory.fill(0, 1)
            g.capture_end()
    if entry == "capture_end":
        # The failure was injected before the driver's call, so the driver still captures.
        return
    g.reset()
    after = registry.leaks(device)
    assert (after["graphs"], after["executables"]) == (live["graphs"], live["executables"])
    with graph(g):
        memory.fill(0, 2)
    g.replay()
    synchronize(device)
    assert memory[0] == 2


def test_graph_of_a_closed_device_says_so():
    device, g = registry.open_host(capacity=16 << 20), CUDAGraph()
    with Device(device), graph(g):
        pass
    registry.close_host(device)
    with pytest.raises(DeviceError, match="of this graph is closed"):
        g.replay()
    g.reset()
