"""Replays in captures on several streams, between other work of the same captures.

The deferred host device runs the branches of a graph in any order that its edges allow, so a
missing edge shows as a wrong number. A model says which edges there may be (branch_order.py).
"""

import contextlib
import tempfile
import weakref

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import gputensor as gt
from gputensor._driver import registry
from gputensor.errors import DriverError
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Stream, current_stream, ordering
from tests.simulation.test_ordering import WORDS, fresh_seeds
from tests.simulation.test_replay_machine import PICKS, Replays, ReplayWorld
from tests.support.models.branch_order import BranchOrder

PARTS = st.integers(0, 2)
PLACES = st.permutations(range(5)).map(lambda places: places[:2])
STEPS = st.one_of(
    st.tuples(st.just("copy"), PARTS, PLACES),
    st.tuples(st.just("replay"), PARTS, PICKS),
    st.tuples(st.just("wait"), PARTS, PARTS),
)


class BranchWorld(ReplayWorld):
    """A ReplayWorld whose captures have branches with replays."""

    def __init__(self, seed):
        super().__init__(seed)
        self.inner = weakref.WeakKeyDictionary()  # graph -> those replayed in its capture

    def captured(self, copies, inner=(), **options):
        super().captured(copies, inner, **options)
        self.note_inner(self.graphs[-1][0], [one for one, _ in inner])

    def note_inner(self, made, replayed):
        self.inner[made] = [*replayed, *(deep for one in replayed for deep in self.inner[one])]

    def uses_of(self, captured, effects):
        """What a replay uses: buffers, and the pools of the graph and of those replayed in it."""
        uses = {}
        for dst, src, _ in effects:
            uses[dst] = True
            uses.setdefault(src, False)
        pools = {captured.pool()} | {one.pool() for one in self.inner[captured]}
        return uses | dict.fromkeys(pools, True)

    def branches(self, steps, pool=None, own=None):
        """Capture steps on the stream of the capture and on the first two of the world.

        With three streams `own`, which did no work so far, the capture is on these.

        A step is ("copy", part, (dst, src)), ("replay", part, graph) or ("wait", part, part).
        """
        made, effects, order, replayed = CUDAGraph(), [], BranchOrder(), []
        with Device(self.device), graph(made, pool=pool, stream=own and own[0]):
            parts = own or [current_stream(), *self.streams[:2]]
            for side in parts[1:]:
                side.wait_stream(parts[0])
            for kind, part, what in steps:
                if kind == "copy":
                    effects.append(self.captured_copy(parts[part], *what, 0, WORDS))
                    order.work(part, {what[0]: True, what[1]: False, made.pool(): False})
                elif kind == "replay":
                    one, its_effects = self.graphs[what % len(self.graphs)]
                    with parts[part]:
                        one.replay()
                    effects += its_effects
                    replayed.append(one)
                    order.work(part, self.uses_of(one, its_effects), len(its_effects))
                elif part != what:
                    parts[part].wait_stream(parts[what])
                    order.wait(part, what)
            for side in parts[1:]:
                parts[0].wait_stream(side)
        for one in replayed:
            made.retain_object(one)
        self.note_inner(made, replayed)
        self.graphs.append((made, effects))
        with tempfile.NamedTemporaryFile("r") as dump:
            made.debug_dump(dump.name)
            order.check(dump.read(), is_exact=own is not None)


class CapturedReplays(Replays):
    """The steps of Replays, and captures with branches."""

    world_type = BranchWorld

    @precondition(lambda self: self.world.graphs)
    @rule(steps=st.lists(STEPS, min_size=2, max_size=9), shares=st.booleans())
    def capture_branches(self, steps, shares):
        pool = self.world.graphs[0][0] if shares else None
        self.world.branches(steps, pool=pool)


TestCapturedReplays = CapturedReplays.TestCase
TestCapturedReplays.settings = settings(
    max_examples=120,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


def random_steps(random, count):
    steps = []
    for _ in range(count):
        draw, part = random.random(), random.randrange(3)
        if draw < 0.45:
            steps.append(("copy", part, tuple(random.sample(range(5), 2))))
        elif draw < 0.9:
            steps.append(("replay", part, random.randrange(1 << 16)))
        else:
            steps.append(("wait", part, random.randrange(3)))
    return steps


def test_branches_that_do_not_share_memory_with_replays_stay_parallel():
    for seed in fresh_seeds(60):
        with BranchWorld(seed) as world:
            random, kept = world.random, []
            for _ in range(random.randrange(1, 4)):
                pool = random.choice(world.graphs)[0] if world.graphs and seed % 3 else None
                world.captured([random.sample(range(5), 2)], pool=pool)
            for _ in range(3):
                kept += [Stream(world.device) for _ in range(3)]
                pool = random.choice(world.graphs)[0] if seed % 5 == 0 else None
                world.branches(random_steps(random, 8), pool=pool, own=kept[-3:])
            for _ in range(4):
                world.replay()
                world.fill(random.choice(world.streams), random.randrange(5))
            world.check()
            del kept


def test_same_captures_without_waits_go_wrong():
    wrong = 0
    for seed in fresh_seeds(40):
        with BranchWorld(seed) as world:
            for dst in (1, 2):
                world.captured([(dst, 0)])
            steps = [("replay", 1, 0), ("copy", 0, (3, 1)), ("replay", 2, 1), ("copy", 1, (4, 2))]
            with ordering("manual"), pytest.raises(AssertionError, match="has to come after"):
                world.branches(steps)
            world.fill(world.streams[3], 0)
            world.replay(2)
            wrong += not world.is_right()
    assert wrong >= 10


# ---- tensors ----


class Branches:
    """A deferred host device, and a graph `inner` that writes y = 2 * (x + 1)."""

    def __init__(self, seed, stream=None):
        self.number = registry.open_host(capacity=64 << 20, seed=seed)
        self.device = Device(self.number)
        with self.device:
            self.x, self.y = gt.full(5000, 1), gt.zeros(5000, dtype="int64")
            self.streams = [Stream() for _ in range(5)]
            self.inner, self.outer = CUDAGraph(), CUDAGraph()
            with graph(self.inner, stream=None if stream is None else self.streams[stream]):
                self.y[...] = (self.x + 1) * 2

    def __enter__(self):
        self.device.__enter__()
        return self

    def __exit__(self, *error):
        self.device.__exit__(*error)
        number = self.number
        self.__dict__.clear()
        registry.close_host(number)

    @contextlib.contextmanager
    def capture(self, pool=None, stream=None):
        """Capture with two more streams, which need not join again."""
        with graph(self.outer, pool=pool, stream=stream):
            origin = current_stream()
            for side in self.streams[:2]:
                side.wait_stream(origin)
            yield origin, *self.streams[:2]
            for side in self.streams[:2]:
                origin.wait_stream(side)

    def replayed(self, value):
        """Replay the outer graph with other values in x."""
        self.x[...] = value
        with self.streams[2]:
            self.outer.replay()


def test_results_of_a_captured_replay_are_read_on_other_streams():
    for seed in fresh_seeds(30):
        with Branches(seed) as given:
            z, w = gt.zeros(5000, dtype="int64"), gt.zeros(5000, dtype="int64")
            with given.capture() as (_, one, other):
                with one:
                    given.inner.replay()
                z[...] = given.y
                with other:
                    w[...] = given.y
            for value in (3, 4):
                given.replayed(value)
                assert (z.numpy() == 2 * value + 2).all() and (w.numpy() == 2 * value + 2).all()
            del z, w


def test_a_captured_replay_follows_uses_of_its_memory_on_other_streams():
    for seed in fresh_seeds(30):
        with Branches(seed) as given:
            z = gt.zeros(5000, dtype="int64")
            with given.capture() as (origin, one, other):
                with one:
                    given.x += 1
                with other:
                    z[...] = given.y
                with origin:
                    given.inner.replay()
                with one:
                    given.x[...] = 0
            for value in (3, 4):
                former = given.y.numpy()
                given.replayed(value)
                assert (z.numpy() == former).all() and (given.y.numpy() == 2 * value + 4).all()
            del z


@pytest.mark.parametrize("work", ["write", "read"])
def test_a_stream_that_wrote_the_memory_last_before_the_capture_is_ordered(work):
    """Its uses take the shortest way through the log."""
    for seed in fresh_seeds(30):
        with Branches(seed) as given:
            z = gt.zeros(5000, dtype="int64")
            with given.streams[0]:
                given.y[...] = 5
            with given.capture() as (_, one, other):
                with one:
                    if work == "write":
                        given.y[...] = 7
                    else:
                        z[...] = given.y
                with other:
                    given.inner.replay()
                with one:
                    given.y += 1
            given.replayed(3)
            assert (given.y.numpy() == 9).all()
            given.replayed(4)
            assert (given.y.numpy() == 11).all() and (
                z.numpy() == (9 if work == "read" else 0)
            ).all()
            del z


@pytest.mark.parametrize("is_same", [True, False])
def test_captured_replays_with_common_memory_follow_each_other(is_same):
    """One graph twice, or two that only share the scratch memory of their pool."""
    for seed in fresh_seeds(30):
        with Branches(seed) as given:
            second, x, y = given.inner, given.x, given.y
            if not is_same:
                second, x, y = CUDAGraph(), gt.full(5000, 5), gt.zeros(5000, dtype="int64")
                with graph(second, pool=given.inner):
                    y[...] = (x + 1) * 2
            with given.capture() as (_, one, other):
                with one:
                    given.inner.replay()
                    given.x += 10
                with other:
                    second.replay()
            given.replayed(3)
            assert (given.y.numpy() == (28 if is_same else 8)).all()
            assert (y.numpy() == (28 if is_same else 12)).all()
            del second, x, y


def test_scratch_memory_of_a_capture_in_the_pool_of_a_replayed_graph_is_ordered():
    for seed in fresh_seeds(30):
        with Branches(seed) as given:
            z, w = gt.full(5000, 9), gt.zeros(5000, dtype="int64")
            with given.capture(pool=given.inner) as (origin, one, _):
                with origin:
                    w[...] = (z + 1) * 3
                with one:
                    given.inner.replay()
                with origin:
                    z[...] = (w + 1) * 4
            given.replayed(3)
            assert (w.numpy() == 30).all() and (given.y.numpy() == 8).all()
            assert (z.numpy() == 124).all()
            del z, w


def test_a_replay_in_a_replayed_graph_is_ordered():
    for seed in fresh_seeds(30):
        with Branches(seed) as given:
            middle, z = CUDAGraph(), gt.zeros(5000, dtype="int64")
            with graph(middle):
                given.inner.replay()
            with given.capture() as (_, one, other):
                with one:
                    given.x += 1
                with other:
                    middle.replay()
                with one:
                    z[...] = given.y
                    given.inner.replay()
            given.replayed(3)
            assert (z.numpy() == 10).all() and (given.y.numpy() == 10).all()
            del middle, z


def edges_of(captured):
    with tempfile.NamedTemporaryFile("r") as dump:
        captured.debug_dump(dump.name)
        return dump.read().count("->")


def test_an_abandoned_capture_leaves_no_order_behind():
    with Branches(1) as given:
        events = []
        for _round in range(20):
            with pytest.raises(ZeroDivisionError), given.capture() as (_, one, other):
                with one:
                    given.inner.replay()
                with other:
                    given.y += 1
                raise ZeroDivisionError
            with given.capture() as (_, one, other):
                with other:
                    given.y += 1
                with one:
                    given.x += 1
            assert edges_of(given.outer) == 0
            given.outer.reset()
            with given.streams[2]:
                given.inner.replay()
            events.append(registry.leaks(given.number)["events"])
        assert events[-1] == events[4]
        assert (given.y.numpy() == 4).all()


def test_work_before_a_capture_puts_no_branches_in_an_order():
    for seed in fresh_seeds(20):
        with Branches(seed) as given:
            z = gt.zeros(5000, dtype="int64")
            with given.streams[0]:
                given.x[...] = 8
            with given.capture() as (_, one, other):
                with one:
                    given.y += 1
                with other:
                    z[...] = given.x
            assert edges_of(given.outer) == 0
            with given.streams[0]:
                given.x[...] = 9
            given.outer.replay()
            with given.streams[1]:
                given.x[...] = 7
            assert (z.numpy() == 9).all() and (given.x.numpy() == 7).all(), seed
            del z


@pytest.mark.parametrize("entry", ["stream_wait_event", "event_record"])
@pytest.mark.parametrize("k", range(1, 6))
def test_a_use_or_replay_that_fails_in_a_capture_is_made_again(entry, k):
    with Branches(fresh_seeds(1)[0]) as given:
        failures, given.z = 0, gt.zeros(5000, dtype="int64")
        with given.capture() as (_, one, other):
            steps = [
                (other, lambda: gt.add(given.x, 1, out=given.x)),
                (one, given.inner.replay),
                (other, lambda: gt.add(given.y, 0, out=given.z)),
                (other, lambda: gt.add(given.x, 1, out=given.x)),
                (one, given.inner.replay),
            ]
            registry.fail_call(given.number, k, status=999, name=entry)
            for stream, step in steps:
                with stream:
                    try:
                        step()
                    except DriverError:
                        failures += 1
                        registry.fail_call(given.number, 0)
                        step()
            registry.fail_call(given.number, 0)
        given.replayed(3)
        assert (given.z.numpy() == 10).all() and (given.y.numpy() == 12).all()
        assert failures == (k <= 3)
        del steps, step


# ---- graphs of one pool that were captured on different streams ----


@pytest.mark.parametrize("is_nested", [False, True])
def test_graphs_of_one_pool_on_different_streams_are_ordered(is_nested):
    """The second graph gets the scratch memory of the first one, and other work uses its result."""
    for seed in fresh_seeds(40):
        with Branches(seed, stream=0) as given:
            replayed, second = given.inner, CUDAGraph()
            if is_nested:
                with given.capture():
                    given.inner.replay()
                replayed = given.outer
            with graph(second, pool=given.inner, stream=given.streams[4]):
                z = gt.full(5000, 7, dtype="int64") * 2
            w = gt.zeros(5000, dtype="int64")
            for value in (3, 4):
                given.x[...] = value
                with given.streams[2]:
                    second.replay()
                with given.streams[3]:
                    w[...] = z
                with given.streams[2]:
                    replayed.replay()
                with given.streams[3]:
                    second.replay()
                assert (w.numpy() == 14).all() and (z.numpy() == 14).all(), seed
                assert (given.y.numpy() == 2 * value + 2).all(), seed
            del w, z, second, replayed
