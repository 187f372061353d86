"""A signal handler that raises anywhere around a `with` statement leaves no setting switched on.

Each program runs thousands of blocks while a timer raises in the middle of them. Afterwards every
setting of the thread and the process must be as before.
"""

import contextlib
import functools
import gc
import itertools
import random
import signal
import sys
import threading
import time

import pytest

import gputensor as gt
from gputensor import blas, memory
from gputensor._alloc import check as checker
from gputensor._driver import registry
from gputensor.graphs import CUDAGraph, graph
from tests.support import internals
from tests.support.alloc_probe import MIB

INTERRUPTS = 500
SECONDS = 8  # at most
DEVICE = "host"


class Interrupted(BaseException):
    """What the handler raises, like KeyboardInterrupt."""


@contextlib.contextmanager
def interruptions(rng):
    """Yield a function that arms a timer, which raises once after a random time."""

    def handler(number, frame):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield lambda: signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 60e-6))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ordering():
    with gt.ordering("manual"):
        pass


def precision():
    with blas.precision(allow_tf32=True):
        pass


def allow_tf32():
    with blas.allow_tf32(True):
        pass


def deterministic():
    with blas.deterministic(True):
        pass


def matmul_precision():
    with blas.float32_matmul_precision("medium"):
        pass


def caching_disabled():
    with memory.caching_allocator_disabled(DEVICE):
        pass


def caching_disabled_everywhere():
    with memory.caching_allocator_disabled():
        pass


def device():
    with gt.Device("host"):
        pass


def stream(side=gt.Stream(DEVICE)):  # noqa: B008
    with side:
        pass


def stream_by_function(side=gt.Stream(DEVICE)):  # noqa: B008
    with gt.stream(side):
        pass


def nested(side=gt.Stream(DEVICE)):  # noqa: B008
    with gt.Device("host"), side, gt.ordering("manual"), blas.allow_tf32(True):
        with memory.caching_allocator_disabled(DEVICE), blas.precision(deterministic=True):
            pass


POOL = []


def pool():
    with memory.use_mem_pool(POOL[0], DEVICE):
        pass


def new_pool():
    with memory.use_mem_pool(memory.MemPool(DEVICE), DEVICE):
        pass


def capture():
    with graph(CUDAGraph()):
        pass


def state():
    """All settings that the programs change."""
    stats = memory.memory_stats(DEVICE)
    return {
        "ordering": gt.streams.ordering_mode(),
        "tf32": blas.allow_tf32(),
        "float32": blas.float32_matmul_precision(),
        "deterministic": blas.deterministic(),
        "caching": gt._alloc.allocator.is_caching(-1),
        "everywhere": gt._alloc.allocator.caching_everywhere(),
        "device": str(gt.current_device()),
        "stream": gt.current_stream(DEVICE).cuda_stream,
        "pool": POOL[0].use_count(),
        "pools": [key for key in stats if key.endswith("all.current") and "private_pools" in key],
        "captures": gt.graphs.is_current_stream_capturing(),
    }


# A handler may raise inside a finalizer; the interpreter then reports the error and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "program",
    [ordering, precision, allow_tf32, deterministic, matmul_precision, caching_disabled,
     caching_disabled_everywhere, device, stream, stream_by_function, nested, pool, new_pool,
     capture],
)  # fmt: skip
def test_interrupted_blocks_leave_the_settings_as_they_were(program):
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    raised = trials = 0
    with gt.Device(DEVICE):
        POOL[:] = [memory.MemPool(DEVICE)]
        program()
        gc.collect()
        before = state()
        end = time.monotonic() + SECONDS
        with interruptions(rng) as arm:
            while raised < INTERRUPTS and time.monotonic() < end:
                trials += 1
                try:
                    arm()
                    for _ in range(5000):  # the interruption may have been lost in a finalizer
                        program()
                except Interrupted:
                    raised += 1
                if trials % 16 == 0:
                    assert state() == before, f"after {trials} trials"
        gc.collect()
        assert state() == before
        gt.synchronize(DEVICE)
        assert checker.check(-1) == []
        POOL.clear()
    assert raised > 50, f"{raised} of {trials} trials were interrupted"


def block(make, argument):
    with make(argument):
        pass


def places_that_leave_it_on(make, argument, is_on, leave):
    """Return (the instructions of `block` where an exception leaves it on, their total number)."""
    code, places = block.__code__, []
    for place in itertools.count():
        at = itertools.count()

        def trace(frame, event, _, at=at, place=place):
            if frame.f_code is not code:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and next(at) == place:
                raise Interrupted
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            block(make, argument)
            return places, place
        except Interrupted:
            pass
        finally:
            sys.settrace(before)
        if is_on():
            places.append(place)
            leave()


def leaver(context):
    return lambda: context.__exit__(None, None, None)


def traced_cases():
    side, pool = gt.Stream(DEVICE), memory.MemPool(DEVICE)

    def leave_pool():
        internals.end_pool(-1, pool._number)
        internals.release_pool(-1, pool._number)

    def is_cached():
        return gt._alloc.allocator.is_caching(-1)

    scope = leaver(blas.Precision())
    return {
        "ordering": (gt.ordering, "manual", lambda: gt.streams.ordering_mode() == "manual",
                     lambda: gt.ordering("auto")),
        "precision": (lambda value: blas.precision(allow_tf32=value), True, blas.allow_tf32, scope),
        "allow_tf32": (blas.allow_tf32, True, blas.allow_tf32, scope),
        "deterministic": (blas.deterministic, True, blas.deterministic, scope),
        "use_mem_pool": (functools.partial(memory.use_mem_pool, device=DEVICE), pool,
                         lambda: pool.use_count() > 1, leave_pool),
        "caching_allocator_disabled": (memory.caching_allocator_disabled, DEVICE,
                                       lambda: not is_cached(),
                                       lambda: memory.caching_allocator_enable(True, DEVICE)),
        "everywhere": (memory.caching_allocator_disabled, None, lambda: not is_cached(),
                       lambda: memory.caching_allocator_enable(True)),
        "stream": (gt.stream, side, lambda: gt.current_stream(DEVICE) == side, leaver(side)),
    }  # fmt: skip


@pytest.fixture
def other():
    number = registry.open_host(capacity=MIB)
    yield number
    registry.close_host(number)


def lock_places():
    lock = threading.Lock()
    return places_that_leave_it_on([lock].__getitem__, 0, lock.locked, lock.release)


def test_a_device_block_is_left_on_only_where_a_lock_is(other):
    with gt.Device(DEVICE):
        before = gt.current_device()
        found = places_that_leave_it_on(
            gt.Device, other, lambda: gt.current_device() != before, leaver(gt.Device(DEVICE))
        )
        assert found == lock_places()


@pytest.mark.parametrize("name", list(traced_cases()))
def test_a_setting_is_left_on_only_where_a_lock_is(name):
    case = traced_cases()[name]
    with gt.Device(DEVICE):
        assert places_that_leave_it_on(*case) == lock_places()
        assert not case[2]()


def test_settings_made_by_plain_calls_stay():
    """They stay after the object that the call returned is dropped."""
    kept = gt.ordering("manual")
    assert gt.streams.ordering_mode() == "manual"
    del kept
    assert gt.streams.ordering_mode() == "manual"
    gt.ordering("auto")
    kept = blas.allow_tf32(True)
    del kept
    assert blas.allow_tf32()
    blas.allow_tf32(False)
    assert not blas.allow_tf32()


def test_blocks_are_decorators_too():
    pool = memory.MemPool(DEVICE)

    @memory.use_mem_pool(pool, DEVICE)
    def count():
        return pool.use_count() if pool.use_count() > 2 else 10 * pool.use_count()

    @memory.caching_allocator_disabled(DEVICE)
    def caching():
        return gt._alloc.allocator.is_caching(-1)

    assert [count(), count()] == [20, 20]
    assert not caching() and gt._alloc.allocator.is_caching(-1)
