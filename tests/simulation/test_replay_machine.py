"""Graphs that share memory, replayed on random streams between other work, as a state machine.

Replays leave marks in place of waits on the streams of captures (gputensor/streams/DESIGN.md).
Graphs are released in between, replayed in captures of other graphs, and driver calls fail. The
deferred host device runs queued work in any order that waits allow, so a missing wait shows as a
wrong number.
"""

import threading

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import gputensor as gt
from gputensor._driver import registry
from gputensor.errors import DriverError
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Stream, current_stream, ordering
from gputensor.streams.order import release_events
from tests.simulation.test_ordering import NBYTES, WORDS, fresh_seeds
from tests.simulation.test_ordering_graphs import GraphWorld

STREAMS = st.integers(0, 3)
PICKS = st.integers(0, 1 << 16)
ENTRIES = ("stream_wait_event", "event_record", "event_create", "capture_info", "graph_launch")


class ReplayWorld(GraphWorld):
    """A GraphWorld whose graphs replay each other and may fail."""

    def __init__(self, seed):
        super().__init__(seed)
        self.capture_streams = []

    def __exit__(self, *error):
        self.capture_streams.clear()
        super().__exit__(*error)

    def captured(self, copies, inner=(), pool=None, side=None, meanwhile=None):
        """Capture replays of other graphs, then copies of whole buffers.

        With `side`, every other copy is on that stream. `meanwhile` is called in the capture.
        """
        made, effects = CUDAGraph(), []
        with Device(self.device), graph(made, pool=pool):
            origin = current_stream()
            self.capture_streams.append(origin)
            if side is not None:
                side.wait_stream(origin)
            for one, one_effects in inner:
                one.replay()
                effects += one_effects
            for i, (dst, src) in enumerate(copies):
                stream = origin if side is None or i % 2 else side
                effects.append(self.captured_copy(stream, dst, src, 0, WORDS))
            if meanwhile is not None:
                meanwhile()
            if side is not None:
                origin.wait_stream(side)
        for one, _ in inner:
            made.retain_object(one)
        self.graphs.append((made, effects))

    def failing_replay(self, at, stream, k, entry):
        """Replay while the `k`-th call of an entry fails; the model follows what was launched."""
        captured, effects = self.graphs[at]
        registry.fail_call(self.device, k, status=999, name=entry)
        registry.start_trace(self.device)
        try:
            with stream:
                captured.replay()
        except DriverError as error:
            assert error.status == 999
        finally:
            registry.fail_call(self.device, 0)
        if any(call[:2] == ("graph_launch", 0) for call in registry.take_trace(self.device)):
            for dst, src, part in effects:
                self.model[dst, part] = self.model[src, part].copy()


class Replays(RuleBasedStateMachine):
    """Steps on a ReplayWorld; each choice is a number modulo what there is."""

    world_type = ReplayWorld

    @initialize(seed=st.integers(0, (1 << 32) - 1))
    def start(self, seed):
        self.world = self.world_type(seed)
        for dst in (1, 2):
            self.world.captured([(dst, 0)])

    def teardown(self):
        if hasattr(self, "world"):
            with self.world:
                self.world.check()

    def pick(self, number):
        return number % len(self.world.graphs)

    @rule(copies=st.lists(st.permutations(range(5)), min_size=1, max_size=3), shares=st.booleans())
    def capture(self, copies, shares):
        pool = self.world.graphs[0][0] if shares and self.world.graphs else None
        self.world.captured([copy[:2] for copy in copies], pool=pool)

    @precondition(lambda self: self.world.graphs)
    @rule(numbers=st.lists(PICKS, min_size=1, max_size=2), copy=st.permutations(range(5)))
    def capture_replays(self, numbers, copy):
        inner = [self.world.graphs[self.pick(number)] for number in numbers]
        self.world.captured([copy[:2]], inner)

    @precondition(lambda self: self.world.graphs)
    @rule(
        copies=st.lists(st.permutations(range(5)), min_size=1, max_size=3),
        side=STREAMS,
        number=PICKS,
        stream=STREAMS,
    )
    def capture_beside_a_replay(self, copies, side, number, stream):
        streams, at = self.world.streams, self.pick(number)
        other = streams[stream if stream != side else stream - 1]
        self.world.captured(
            [copy[:2] for copy in copies],
            side=streams[side],
            meanwhile=lambda: self.world.replay(at, other),
        )

    @precondition(lambda self: self.world.graphs)
    @rule(number=PICKS, stream=STREAMS)
    def replay(self, number, stream):
        self.world.replay(self.pick(number), self.world.streams[stream])

    @precondition(lambda self: self.world.graphs)
    @rule(number=PICKS, stream=STREAMS, k=st.integers(1, 3), entry=st.sampled_from(ENTRIES))
    def replay_that_may_fail(self, number, stream, k, entry):
        self.world.failing_replay(self.pick(number), self.world.streams[stream], k, entry)

    @rule(stream=STREAMS, places=st.permutations(range(5)))
    def copy(self, stream, places):
        self.world.copy(self.world.streams[stream], *places[:2])

    @rule(stream=STREAMS, at=st.integers(0, 4))
    def fill(self, stream, at):
        self.world.fill(self.world.streams[stream], at)

    @rule(number=PICKS, at=st.integers(0, 4))
    def fill_on_the_stream_of_a_capture(self, number, at):
        """A program may keep that stream, and use it like others afterwards."""
        streams = self.world.capture_streams
        if number % 4 == 0:
            self.world.fill(streams[number // 4 % len(streams)], at)

    @precondition(lambda self: self.world.graphs)
    @rule(number=PICKS, resets=st.booleans())
    def release(self, number, resets):
        captured, _ = self.world.graphs.pop(self.pick(number))
        users = [one for one, _ in self.world.graphs]
        if resets and not any(
            captured.member_streams()[0] in one.member_streams() for one in users
        ):
            captured.reset()

    @rule()
    def check(self):
        self.world.check()


TestReplays = Replays.TestCase
TestReplays.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


@pytest.mark.parametrize("entry", [None, *ENTRIES])
def test_replays_on_two_streams_are_right_after_each_driver_call_has_failed(entry):
    """The numbers hold whether the failed replay was launched or not."""
    for k in range(1, 25):
        with ReplayWorld(fresh_seeds(1)[0]) as world:
            for dst in (1, 2, 3):
                world.captured([(dst, 0), (0, 4)])
            world.fill(world.streams[2], 0)
            for step in range(6):
                at, stream = step % 3, world.streams[step % 2]
                if step == 2:
                    world.failing_replay(at, stream, k, entry)
                else:
                    world.replay(at, stream)
                world.fill(world.streams[3 - step % 2], step % 5)
            world.check()


def test_work_on_another_stream_waits_for_replays_that_only_left_marks():
    """Reads of what the graphs wrote, and writes to what they read, with no replay in between."""
    for seed in fresh_seeds(60):
        with ReplayWorld(seed) as world:
            world.captured([(1, 0)])
            world.captured([(2, 1)])
            world.fill(world.streams[0], 0)
            world.replay(0, world.streams[1])
            world.replay(1, world.streams[2])
            world.copy(world.streams[3], 3, 2)
            world.fill(world.streams[0], 1)
            world.fill(world.streams[0], 0)
            world.check()


@pytest.mark.parametrize("copies", [[], [(2, 3)]])
def test_replays_in_a_capture_are_ordered_like_those_outside(copies):
    """The graph around them uses the memory of the graphs that it replays."""
    for seed in fresh_seeds(60):
        with ReplayWorld(seed) as world:
            first, second = world.streams[:2]
            world.captured([(1, 0)])
            world.captured(copies, inner=world.graphs[:1])
            world.fill(first, 0)
            world.replay(1, second)
            world.fill(first, 0)
            world.replay(0, first)
            world.fill(first, 1)
            world.replay(1, second)
            world.check()


@pytest.mark.parametrize("writer", ["origin", "side"])
def test_streams_of_a_capture_come_after_replays_that_ran_beside_it(writer):
    """Only the other one of them is ordered with the replay when this one writes the memory."""
    for seed in fresh_seeds(60):
        with ReplayWorld(seed) as world:
            first, side, other, reader = world.streams
            world.captured([(1, 0)])
            for at in (2, 3, 4):  # so that no stream of the replay was the latest to write them
                world.fill(reader, at)
            world.fill(side if writer == "origin" else first, 1)
            world.fill(first, 0)
            with Device(world.device), graph(CUDAGraph()):
                origin = current_stream()
                side.wait_stream(origin)
                if writer == "side":
                    world.captured_copy(origin, 1, 3, 0, WORDS)
                world.replay(0, other)
                world.captured_copy(origin if writer == "origin" else side, 1, 4, 0, WORDS)
                origin.wait_stream(side)
            world.copy(reader, 2, 1)
            world.check()


def test_a_stream_whose_first_use_failed_is_ordered_with_replays():
    """The stream that wrote the memory becomes a stream of a graph between the two attempts."""
    for seed in fresh_seeds(60):
        with ReplayWorld(seed) as world:
            writer, user, other = world.streams[:3]
            world.captured([(4, 0)])
            registry.fail_call(world.device, 1, status=999, name="stream_wait_event")
            with pytest.raises(DriverError):
                world.uses[1].read(user)
            made = CUDAGraph()
            with writer:
                made.capture_begin()
                effects = [world.captured_copy(writer, 3, 1, 0, WORDS)]
                made.capture_end()
            world.graphs.append((made, effects))
            for start in range(0, WORDS, 8):
                world.uses[1].write(user)
                world.fill_raw(world.buffers[1] + 4 * start, start, 8, user)
                world.model[1, start : start + 8] = start
            world.replay(1, other)
            world.check()


def test_marks_of_released_graphs_still_order_other_graphs():
    """The stream of a released graph stands between graphs that used the same memory."""
    for seed in fresh_seeds(60):
        with ReplayWorld(seed) as world:
            for dst, src in ((1, 0), (0, 1), (2, 0)):
                world.captured([(dst, src)])
            middle = world.graphs.pop(1)
            world.replay(0, world.streams[0])
            del middle
            for _ in range(5):
                world.captured([(4, 3)])
                world.replay(len(world.graphs) - 1, world.streams[3])
                world.graphs.pop()
            world.fill(world.streams[2], 0)
            world.replay(1, world.streams[1])
            world.check()


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_one_wait_covers_replays_of_several_graphs_on_one_stream(order):
    """The first graph shares memory with each of the others, and they share none."""
    for seed in fresh_seeds(60):
        with ReplayWorld(seed) as world:
            first, second = world.streams[:2]
            world.captured([(2, 1), (0, 3)])
            world.captured([(1, 4)])
            world.captured([(3, 4)])
            world.fill(first, 4)
            for at in order:
                world.replay(at, first)
            before = registry.counts(world.device)["stream_wait_event"]
            world.replay(0, second)
            assert registry.counts(world.device)["stream_wait_event"] == before + 1
            world.check()


def test_a_mark_that_is_shared_keeps_its_place_when_its_graph_is_replayed_again():
    """A replay in manual ordering leaves no mark with others, so theirs stay where they were."""
    with ReplayWorld(1) as world:
        first, second, third = world.streams[:3]
        for dst in (1, 2):
            world.captured([(dst, 0)])
        world.replay(0, first)
        registry.start_trace(world.device)
        with ordering("manual"):
            world.replay(0, second)
        world.replay(1, third)
        records = {}
        waited = []
        for name, _, arguments in registry.take_trace(world.device):
            if name == "event_record":
                records[arguments[0]] = arguments[1]
            elif name == "stream_wait_event":
                waited.append(records.get(arguments[1], "an earlier record"))
        assert waited == ["an earlier record"]


@pytest.mark.parametrize("where", ["its block", "a block in it", "another thread"])
def test_work_after_a_capture_that_the_program_ends_in_its_block_is_ordered(where):
    """The stream of the capture is current there, and the work on it is not captured."""
    for seed in fresh_seeds(40):
        with ReplayWorld(seed) as world, Device(world.device):
            x, y = gt.full(5000, 3), gt.zeros(5000, dtype="int64")
            captured = CUDAGraph()
            block = graph(captured, capture_error_mode="relaxed")
            with pytest.raises(RuntimeError, match="not capturing"), block:
                y[...] = x
                if where == "another thread":
                    thread = threading.Thread(target=captured.capture_end)
                    thread.start()
                    thread.join()
                else:
                    with world.streams[2] if where == "a block in it" else current_stream():
                        captured.capture_end()
                with world.streams[0]:
                    captured.replay()
                z = y + 0
                x[...] = 7
                with world.streams[1]:
                    captured.replay()
            assert (z.numpy() == 3).all() and (y.numpy() == 7).all(), seed
            del x, y, z, captured


def test_memory_freed_after_a_replay_is_not_reused_before_it_has_run():
    for seed in fresh_seeds(40):
        with ReplayWorld(seed) as world, Device(world.device):
            x, y = gt.full(5000, 3), gt.zeros(5000, dtype="int64")
            captured = CUDAGraph()
            with graph(captured):
                y[...] = x
            with world.streams[0]:
                captured.replay()
            del x
            z = gt.full(5000, 7)
            assert (y.numpy() == 3).all() and (z.numpy() == 7).all(), seed
            del y, z, captured


def test_a_capture_refuses_the_results_of_replays_that_only_left_marks():
    with ReplayWorld(1) as world:
        world.captured([(1, 0)])
        open_capture = CUDAGraph()
        with world.streams[0]:
            open_capture.capture_begin(capture_error_mode="relaxed")
        world.replay(0, world.streams[1])
        with world.streams[0]:
            with pytest.raises(DriverError) as caught:
                world.uses[1].read(world.streams[0])
            assert caught.value.status == 905
            world.streams[1].synchronize()
            world.uses[1].read(world.streams[0])
            world.calls.copy_async(
                world.buffers[2], world.buffers[1], NBYTES, world.streams[0].cuda_stream
            )
            open_capture.capture_end()
        world.check()


def test_a_released_graph_leaves_no_event():
    with ReplayWorld(1) as world:
        for _ in range(3):
            for dst in (1, 2, 3):
                world.captured([(dst, 0)])
            for at in range(3):
                world.replay(at, world.streams[at])
            while world.graphs:
                world.graphs.pop()[0].reset()
        release_events(world.device)
        assert registry.leaks(world.device)["events"] == 0


def test_events_come_back_when_graphs_are_released():
    with ReplayWorld(1) as world:
        for _ in range(30):
            for dst in (1, 2, 3):
                world.captured([(dst, 0)])
            for at in range(3):
                for stream in world.streams:
                    world.replay(at, stream)
            world.check()
            world.graphs.clear()
            world.capture_streams.clear()
        assert registry.leaks(world.device)["events"] < 12


def test_captures_without_replays_keep_one_event_for_each_busy_stream():
    """No capture waits for the device, as another one is open, so the stream that joins is busy."""
    with ReplayWorld(1) as world:
        world.captured([(1, 0)])
        open_capture, side = CUDAGraph(), world.streams[0]
        with world.streams[3]:
            open_capture.capture_begin(capture_error_mode="relaxed")
        for _ in range(50):
            world.fill(side, 4)
            world.captured([(2, 3)], pool=world.graphs[0][0], side=side)
            world.graphs.pop()
        assert registry.leaks(world.device)["events"] < 12
        with world.streams[3], pytest.warns(UserWarning, match="empty"):
            open_capture.capture_end()
        world.replay(0, world.streams[1])
        world.check()


def test_threads_capture_replay_and_release_graphs_that_read_one_tensor():
    device = registry.open_host(capacity=64 << 20, seed=fresh_seeds(1)[0])
    with Device(device):
        shared = gt.full(1000, 5)
    errors, turn = [], threading.Lock()  # a capture waits for all work if it is the only one

    def body(at, shared):
        try:
            with Device(device), Stream(device):
                own = gt.zeros(1000, dtype="int64")
                kept = []  # a capture on a stream of another thread's replays could not begin
                for step in range(8):
                    captured = CUDAGraph()
                    kept.append(captured)
                    with turn, graph(captured, capture_error_mode="thread_local"):
                        own += shared
                    for _ in range(3):
                        captured.replay()
                        with Stream(device):
                            captured.replay()
                    assert (own.numpy() == 30 * (step + 1)).all(), at
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(at, shared), daemon=True) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not errors and not any(thread.is_alive() for thread in threads)
    del shared, threads
    registry.close_host(device)
