"""The fault sweep: every driver call of a scenario fails once, and no memory is lost.

A scenario runs repeatedly; in run k the k-th driver call fails, until a run makes fewer than k
calls. After each run the invariants hold and requests are served as if no call had failed, and once
all memory is freed the driver holds no object of the allocator. Devices are deferred phantoms: the
accounting is real, there is no memory behind it, and events stay incomplete for a while.
"""

import contextlib
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gputensor._alloc import (
    allocator as device_allocator,
)
from gputensor._alloc import (
    check as checker,
)
from gputensor._alloc import (
    core,
)
from gputensor._alloc import (
    foreign as raw_memory,
)
from gputensor._alloc import (
    observe as report,
)
from gputensor._driver import registry
from gputensor.errors import DriverError, OutOfMemoryError
from tests.support import internals
from tests.support.allocator_settings import put_in_force, restored
from tests.support.driver_calls import Calls
from tests.support.internals import hold_records, limit_views, return_records

MIB = 1 << 20
CAPACITY = 256 * MIB
OUT_OF_MEMORY, INVALID_VALUE, UNKNOWN = 2, 1, 999


class Run:
    """One run of a scenario: requests that may fail, and the blocks they returned."""

    def __init__(self, number):
        self.device = number
        self.calls = Calls(number)
        self.streams = [0, *(self.calls.make("stream_create", 0) for _ in range(2))]
        self.held = []

    def malloc(self, nbytes, stream=0):
        with contextlib.suppress(OutOfMemoryError, DriverError):
            ptr = raw_memory.raw_alloc(self.device, nbytes, self.streams[stream])
            self.held.append(ptr)
            self.calls.fill_async(ptr, 1, 4, 16, self.streams[stream])
            return ptr
        return None

    def free(self, ptr):
        if ptr is not None:
            self.held.remove(ptr)
            raw_memory.raw_delete(ptr)

    def use(self, ptr, stream):
        if ptr is not None:
            self.calls.fill_async(ptr, 1, 4, 16, self.streams[stream])
            raw_memory.raw_record_stream(ptr, self.streams[stream])

    def free_all(self):
        for ptr in list(self.held):
            self.free(ptr)

    def empty_cache(self):
        report.empty_cache(self.device)


def mixed_sizes(run):
    small = [run.malloc(nbytes) for nbytes in (1, 700, 100_000, MIB)]
    large = [run.malloc(nbytes, 1) for nbytes in (MIB + 1, 5 * MIB, 30 * MIB)]
    for ptr in (*small[::2], *large[::2]):
        run.free(ptr)
    run.malloc(40 * MIB, 2)
    run.empty_cache()
    run.malloc(3 * MIB)


def other_streams(run):
    for _ in range(3):
        first, second = run.malloc(6 * MIB), run.malloc(2000, 1)
        run.use(first, 1)
        run.use(first, 2)
        run.use(second, 0)
        run.free(first)
        run.free(second)
        run.malloc(6 * MIB)
    run.empty_cache()


def stitching(run):
    blocks = [run.malloc(6 * MIB) for _ in range(14)]
    for ptr in blocks[::2]:
        run.free(ptr)
    view = run.malloc(20 * MIB)
    other = run.malloc(14 * MIB)
    run.use(view, 1)
    run.free(view)
    again = run.malloc(20 * MIB)
    run.free(other)
    run.free(again)
    run.free_all()
    run.empty_cache()


def a_full_device(run):
    blocks = [run.malloc(22 * MIB, i % 3) for i in range(14)]
    for i, ptr in enumerate(blocks[:8]):
        run.use(ptr, (i + 1) % 3)
        run.free(ptr)
    run.malloc(60 * MIB, 1)
    run.malloc(300 * MIB)
    run.free_all()
    run.malloc(200 * MIB, 2)


def a_private_pool(run):
    run.free(run.malloc(512))  # opens the allocator
    pool = raw_memory.new_pool_id()
    internals.retain_pool(run.device, pool)
    internals.begin_pool(run.device, pool)
    blocks = [run.malloc(nbytes) for nbytes in (3000, 9 * MIB, 25 * MIB)]
    internals.end_pool(run.device, pool)
    run.use(blocks[1], 1)
    for ptr in blocks:
        run.free(ptr)
    run.malloc(230 * MIB)
    internals.release_pool(run.device, pool)
    run.malloc(230 * MIB)
    run.empty_cache()


def evicted_views(run):
    with contextlib.suppress(Exception):
        limit_views(run.device, 1)
    for nbytes in (24 * MIB, 16 * MIB, 12 * MIB):
        blocks = [run.malloc(nbytes) for _ in range(CAPACITY // nbytes)]
        for ptr in blocks[::2]:
            run.free(ptr)
        view = run.malloc(2 * nbytes)
        run.use(view, 1)
        run.free_all()
    run.empty_cache()


def pools_of_two_kinds(run):
    run.free(run.malloc(512))
    pools = [raw_memory.new_pool_id() for _ in range(2)]
    for pool, kind in zip(pools, ((True, False), (False, True)), strict=True):
        with contextlib.suppress(DriverError):
            internals.set_pool_kind(run.device, pool, *kind)
        internals.retain_pool(run.device, pool)
        internals.begin_pool(run.device, pool)
        blocks = [run.malloc(nbytes, 1) for nbytes in (3000, 9 * MIB, 65 * MIB)]
        internals.end_pool(run.device, pool)
        run.use(blocks[1], 2)
        for ptr in blocks:
            run.free(ptr)
    run.malloc(100 * MIB)
    run.malloc(60 * MIB, 1)  # lent
    run.free_all()
    for pool in pools:
        internals.release_pool(run.device, pool)
    run.malloc(230 * MIB)
    run.empty_cache()


def streams_that_last(run):
    core.stream_own(run.device, run.streams[1])
    other_streams(run)
    a_full_device(run)


def without_caching(run):
    cached = run.malloc(4 * MIB)
    device_allocator.set_caching(run.device, False)
    direct = [run.malloc(nbytes) for nbytes in (5000, 30 * MIB)]
    run.use(direct[1], 2)
    run.free(cached)
    run.free(direct[0])
    device_allocator.set_caching(run.device, True)
    run.free(direct[1])
    run.malloc(4 * MIB)


SCENARIOS = {
    "mixed sizes": (mixed_sizes, ""),
    "uses on other streams": (other_streams, ""),
    "views": (stitching, ""),
    "a full device": (a_full_device, ""),
    "a private pool": (a_private_pool, ""),
    "evicted views": (evicted_views, ""),
    "pools that lend and pools unsplit": (pools_of_two_kinds, ""),
    "plain pools that lend and pools unsplit": (pools_of_two_kinds, "expandable_segments:False"),
    "streams that last": (streams_that_last, ""),
    "without caching": (without_caching, ""),
    "plain segments": (mixed_sizes, "expandable_segments:False"),
    "plain segments on a full device": (a_full_device, "expandable_segments:False"),
    "plain segments with streams": (other_streams, "expandable_segments:False"),
    "no page reuse": (a_full_device, "page_reuse:False"),
    "a limit and garbage": (
        a_full_device, "memory_limit_mb:150,garbage_collection_threshold:0.5"
    ),
    "the driver's pool": (other_streams, "backend:cudaMallocAsync"),
    "the driver's pool, full": (a_full_device, "backend:cudaMallocAsync"),
}  # fmt: skip


@pytest.fixture
def configure():
    with restored():
        yield put_in_force


def verify(run):
    """Check what must hold after a run, whichever call failed in it."""
    assert checker.check(run.device) == []
    run.free_all()
    for nbytes in (5000, 40 * MIB):
        ptr = run.malloc(nbytes, 1)
        assert ptr is not None, f"a request of {nbytes} bytes failed after the failure"
        run.free(ptr)
    run.empty_cache()
    assert checker.check(run.device) == []
    reserved = report.reserved_nbytes(run.device)
    assert reserved == 0, f"{reserved} bytes are still reserved"
    device_allocator.close_allocator(run.device)
    for stream in run.streams[1:]:
        assert run.calls.stream_destroy(stream) == 0
    run.calls.synchronize()
    left = registry.leaks(run.device)
    assert not any(left.values()), f"left behind: {left}"


@pytest.mark.parametrize("status", [OUT_OF_MEMORY, INVALID_VALUE, UNKNOWN])
@pytest.mark.parametrize("name", SCENARIOS)
def test_any_driver_call_may_fail(configure, name, status):
    scenario, conf = SCENARIOS[name]
    configure(conf)
    k, is_hit = 0, True
    while is_hit:
        k += 1
        number = registry.open_host(capacity=CAPACITY, seed=k, phantom=True)
        try:
            run = Run(number)
            registry.start_trace(number)
            registry.fail_call(number, k, status)
            scenario(run)
            registry.fail_call(number, 0)
            trace = registry.take_trace(number)
            is_hit = len(trace) >= k
            try:
                verify(run)
            except AssertionError as error:
                call = trace[k - 1][0] if is_hit else "nothing"
                raise AssertionError(f"after call {k} ({call}) failed: {error}") from error
        finally:
            registry.close_host(number)
    assert k > 15, "the scenario made hardly any call"


@pytest.mark.skipif(
    "san.so" in os.environ.get("LD_PRELOAD", ""), reason="takes a sanitizer's place as allocator"
)
def test_growth_without_host_memory_for_records(tmp_path):
    source = Path(__file__).parents[1] / "support" / "fakes" / "scarce_memory.c"
    library = tmp_path / "scarce_memory.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    subprocess.run(
        [sys.executable, "-m", "tests.simulation.test_allocator_faults"],
        env={**os.environ, "LD_PRELOAD": str(library)},
        check=True,
        timeout=60,
    )


def growth_with_few_records():
    """Fail each driver call of a growth by several pages, with 0 to 3 block records left."""
    deny = ctypes.CDLL(os.environ["LD_PRELOAD"]).deny_memory
    put_in_force("thread_cache:False")
    for call in range(1, 16):
        for left in range(4):
            number = registry.open_host(capacity=CAPACITY, seed=call, phantom=True)
            run = Run(number)
            run.malloc(2 * MIB)
            deny(1)
            hold_records(left)
            registry.fail_call(number, call, UNKNOWN)
            run.malloc(20 * MIB)
            registry.fail_call(number, 0)
            faults = checker.check(number)
            deny(0)
            return_records()
            assert faults == [], f"after call {call} failed with {left} records left: {faults}"
            verify(run)
            registry.close_host(number)


if __name__ == "__main__":
    growth_with_few_records()
