"""The allocator on a real GPU: long random programs with values, views, limits, threads.

`tests/conformance/alloc/test_allocator.py` tests the same behavior on the host device and CUDA; the
programs here are long, concurrent, or specific to CUDA.
"""

import random
import threading

import pytest

from gputensor import memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from gputensor._alloc.config import settings as allocator_settings
from gputensor.errors import OutOfMemoryError
from gputensor.streams import Device
from tests.support.alloc_probe import Probe
from tests.support.models.allocator_shadow import MIB, Shadow, c_symbols, fragment, random_step
from tests.unit.alloc.test_captured_frees import Capture, words

LIMIT = 768 * MIB


@pytest.fixture
def limited(cuda, conf):
    """CUDA device 0 with an empty cache and LIMIT bytes to reserve beyond what is in use."""
    memory.caching_allocator_delete(memory.caching_allocator_alloc(512, cuda))
    memory.empty_cache(cuda)
    # Below its peak of requested memory a pool grows instead of making views.
    memory.reset_peak_memory_stats(cuda)
    held = memory.memory_reserved(cuda)
    total = memory.mem_get_info(cuda)[1]
    memory.set_per_process_memory_fraction((LIMIT + held) / total, cuda)
    yield cuda
    memory.set_per_process_memory_fraction(1.0, cuda)
    memory.empty_cache(cuda)
    assert memory.memory_reserved(cuda) <= held


@pytest.fixture
def shadow(limited):
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    # Its streams are never destroyed: the allocator may query those that it keeps.
    shadow = Shadow(limited, streams=3, rng=random.Random(seed))
    yield shadow
    for block in list(shadow.held):
        shadow.free(block)
    shadow.compare()
    assert shadow.calls.pinned_free(shadow.slots) == 0


CONFIGURATIONS = ["", "page_size_mb:2", "page_reuse:False", "expandable_segments:False",
                  "thread_cache:False"]  # fmt: skip


@pytest.mark.parametrize("settings", CONFIGURATIONS)
def test_random_programs_never_see_a_block_that_is_in_use(shadow, conf, settings):
    conf(settings)
    for step in range(600):
        if shadow.rng.random() < 0.03:
            fragment(shadow, shadow.rng)
        random_step(shadow, shadow.rng, 400 * MIB)
        if step % 50 == 0:
            assert checker.check(shadow.device) == []
    shadow.compare()


@pytest.mark.alone
def test_views_hold_their_values_on_the_device(shadow):
    """Forces views: values are written through a view, then through the home addresses."""
    blocks = [shadow.malloc(22 * MIB, 1) for _ in range(12)]
    known = shadow.views()
    most = 0
    for turn in range(20):
        for block in blocks[::2]:
            shadow.free(block)
        large = [shadow.malloc(61 * MIB, 1), shadow.malloc(62 * MIB, 1)]
        most = max(most, shadow.views() - known)
        for block in large:
            shadow.use(block, 2, early=turn % 2)
            shadow.free(block)
        blocks[::2] = [shadow.malloc(22 * MIB, 1) for _ in blocks[::2]]
        shadow.use(blocks[turn % 12], 3)
        assert checker.check(shadow.device) == []
    shadow.compare()
    assert most > 0, "no request was served by a view: the test shows nothing"


def test_a_view_is_not_unmapped_under_its_kernels(shadow):
    """At the memory limit idle views are unmapped; views with pending work must wait."""
    for _ in range(10):
        fragment(shadow, shadow.rng)
        view = shadow.malloc(60 * MIB, 1)
        if view is not None:
            shadow.free(view)
        block = shadow.malloc(200 * MIB, 2)
        if block is not None:
            shadow.free(block)
        for held in shadow.held[::2]:
            shadow.free(held)
    shadow.compare()


def test_out_of_memory_is_a_limit_and_the_next_request_is_served(limited):
    kept = raw_memory.raw_alloc(limited, 500 * MIB, 0)
    with pytest.raises(OutOfMemoryError) as caught:
        raw_memory.raw_alloc(limited, 400 * MIB, 0)
    assert caught.value.reason == "limit"
    assert caught.value.facts["total"] == memory.mem_get_info(limited)[1]
    raw_memory.raw_delete(raw_memory.raw_alloc(limited, 200 * MIB, 0))
    raw_memory.raw_delete(kept)


@pytest.mark.alone
def test_a_device_gives_nearly_all_of_its_memory(cuda):
    memory.empty_cache(cuda)
    free, total = memory.mem_get_info(cuda)
    nbytes = int(free * 0.9)
    ptr = raw_memory.raw_alloc(cuda, nbytes, 0)
    assert memory.mem_get_info(cuda)[0] <= free - nbytes
    with pytest.raises(OutOfMemoryError):
        raw_memory.raw_alloc(cuda, total, 0)
    raw_memory.raw_delete(ptr)
    memory.empty_cache(cuda)
    assert memory.mem_get_info(cuda)[0] >= free - 64 * MIB


def test_threads_allocate_on_the_device_through_the_c_symbols(limited):
    library = c_symbols()
    before = memory.memory_stats(limited)
    errors = []

    def body(seed):
        rng = random.Random(seed)
        held = []
        for _ in range(400):
            if held and rng.random() < 0.5:
                ptr, nbytes = held.pop(rng.randrange(len(held)))
                library.gputensor_free(ptr, nbytes, limited, None)
            else:
                nbytes = rng.choice([700, 4096, 300_000, 3 * MIB])
                ptr = library.gputensor_malloc(nbytes, limited, None)
                if not ptr:
                    errors.append(nbytes)
                    break
                held.append((ptr, nbytes))
        for ptr, nbytes in held:
            library.gputensor_free(ptr, nbytes, limited, None)

    threads = [threading.Thread(target=body, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    stats = memory.memory_stats(limited)
    name = "allocation.all"
    made = stats[f"{name}.allocated"] - before[f"{name}.allocated"]
    assert made == stats[f"{name}.freed"] - before[f"{name}.freed"] > 1000
    assert checker.check(limited) == []
    assert report.allocated_nbytes(limited) == before["allocated_bytes.all.current"]


@pytest.mark.parametrize("reuse", [True, False])
def test_a_captured_graph_reuses_blocks_that_its_order_allows(cuda, reuse):
    """Blocks read on a second stream are reused once the graph has joined it; replays are right."""
    before = allocator_settings.current()
    memory.set_allocator_settings(f"graph_capture_record_stream_reuse:{reuse}")
    turns, probe = 6, Probe(cuda)
    results = probe.calls.make("pinned_alloc", 64 * turns)
    try:
        with Device(cuda), Capture(probe) as capture:
            places, kept = [], []
            for turn in range(turns):
                ptr = capture.malloc(24 * MIB)
                places.append(ptr)
                capture.fill(ptr, 100 + turn)
                capture.use_and_free(ptr, results + 64 * turn)
                kept.append(capture.malloc(24 * MIB))
                capture.follow(capture.main, capture.side)
        assert (len(set(places) | set(kept)) < 2 * turns) is reuse
        assert all(ptr != other for ptr, other in zip(places, kept, strict=True))
        for _ in range(20):
            words(results, 16 * turns)[:] = 0
            capture.graph.replay()
            assert probe.calls.synchronize() == 0
            for turn in range(turns):
                assert (words(results + 64 * turn) == 100 + turn).all()
        assert checker.check(cuda) == []
    finally:
        probe.free_all()
        capture.graph.reset()
        assert probe.calls.pinned_free(results) == 0
        allocator_settings._in_force = before
        allocator_settings.tell()


def test_a_destroyed_stream_is_never_named_again(limited):
    probe = Probe(limited)
    for _ in range(20):
        stream = probe.foreign_stream()
        blocks = [probe.malloc(nbytes, stream) for nbytes in (1000, 3 * MIB, 30 * MIB)]
        for ptr in blocks:
            probe.work(ptr, stream, 3)
        probe.free_all(blocks)
        assert probe.calls.stream_destroy(stream) == 0
        probe.free_all([probe.malloc(nbytes) for nbytes in (2000, 4 * MIB, 100 * MIB)])
    probe.free(probe.malloc(LIMIT - 64 * MIB))
    assert checker.check(limited) == []
