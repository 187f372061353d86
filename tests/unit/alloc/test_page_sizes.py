"""Smaller pages cost more driver calls and never need more memory; the default size costs few."""

import importlib.util
import random
from pathlib import Path

import pytest

from gputensor import memory
from gputensor._alloc.observe import empty_cache
from gputensor._alloc.replay import replay_trace
from gputensor._alloc.replay.trace_file import Trace, read_trace
from gputensor._driver.registry import close_host, open_host, start_trace, take_trace
from tests.support.alloc_probe import MIB, opened

TRACES = Path(__file__).parents[3] / "benchmarks" / "traces"
NAMES = sorted(path.stem for path in TRACES.glob("*.npz"))
QUICK = ("bert_serve", "multistream")  # their variants depend most on the page size


def reserved(trace, page_size):
    memory.set_allocator_settings(f"page_size_mb:{page_size}")
    device = open_host(capacity=2**38, phantom=True)
    try:
        arrays = trace.op, trace.id, trace.size, trace.stream
        return replay_trace(*arrays, device)["peak_reserved_bytes"]
    finally:
        close_host(device)
        memory.set_allocator_settings("page_size_mb:40")


def check_page_sizes(name, trace):
    found = {size: reserved(trace, size) for size in (2, 4, 8, 16, 20, 40)}
    for size, nbytes in found.items():
        assert all(nbytes <= 1.01 * found[other] for other in found if other > size), (name, found)


@pytest.mark.parametrize("name", NAMES)
def test_smaller_pages_reserve_no_more_than_larger_ones(name):
    check_page_sizes(name, read_trace(TRACES / f"{name}.npz"))


def variants_of(names):
    """Yield ``(name, trace)`` for the variants of recorded traces."""
    spec = importlib.util.spec_from_file_location("variants", TRACES / "variants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, *columns in module.variants({n: read_trace(TRACES / f"{n}.npz") for n in names}):
        yield name, Trace(*columns)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.sweep) for n in NAMES]
)
def test_smaller_pages_reserve_no_more_for_variants(name):
    for variant, trace in variants_of([name]):
        check_page_sizes(variant, trace)


@pytest.mark.sweep
def test_smaller_pages_reserve_no_more_for_two_programs():
    pairs = [(name, trace) for name, trace in variants_of(NAMES) if "," not in name]
    assert len(pairs) == 4
    for name, trace in pairs:
        check_page_sizes(name, trace)


@pytest.mark.parametrize("size", [8, 20, 38])
def test_small_pages_depend_on_the_reserved_bytes(size):
    # 256 MiB are below 128 pages of 4 MiB: larger settings make no difference yet.
    def pages(page_size):
        with opened(f"page_size_mb:{page_size}", capacity=2**37, phantom=True) as probe:
            start_trace(probe.device)
            for nbytes in [3 * MIB] * 80 + [9 * MIB]:
                probe.malloc(nbytes)
            calls = take_trace(probe.device)
            return [arguments[1] for name, _, arguments in calls if name == "page_create"]

    assert pages(size) == pages(4)
    assert max(pages(size)) <= 4 * MIB
    assert max(pages(40)) == 40 * MIB


def test_a_large_growth_is_one_page():
    with opened("page_size_mb:40", capacity=2**40, phantom=True) as probe:
        probe.malloc(96 * MIB)
        assert probe.made()["page_create"] == 1
    with opened("page_size_mb:40", capacity=2**40, phantom=True) as probe:
        probe.malloc(98 * MIB)
        assert probe.made()["page_create"] > 1
    with opened("page_size_mb:40", capacity=2**30, phantom=True) as probe:
        probe.malloc(96 * MIB)
        assert probe.made()["page_create"] > 4, "pages are smaller on a small device"


def pages_of(nbytes, capacity):
    """Return the sizes of the pages made for one request on an empty device."""
    with opened("page_size_mb:40", capacity=capacity, phantom=True) as probe:
        start_trace(probe.device)
        probe.malloc(nbytes)
        return [arguments[1] for name, _, arguments in take_trace(probe.device)
                if name == "page_create"]  # fmt: skip


@pytest.mark.parametrize("capacity", [2**30, 2**35, 2**37, 2**40])
@pytest.mark.parametrize("mib", [100, 130, 400, 962, 1000])
def test_pages_for_a_large_need_are_thirds_of_it(mib, capacity):
    # At most five usual pages, and 1/512 of the device: DESIGN.md, Growing.
    usual = min(40 * MIB, capacity // 64)
    most = max(usual, min(5 * 40 * MIB, capacity // 512))
    left = mib * MIB
    for page in pages_of(left, capacity):
        assert min(left, max(usual, min(left // 3, most))) <= page
        assert page <= max(96 * MIB, most * 6 // 5 + 2 * MIB)
        left -= page
    assert -48 * MIB < left <= 0


def test_a_gigabyte_takes_few_pages_of_a_large_device():
    assert len(pages_of(960 * MIB, 2**37)) < 10 < len(pages_of(960 * MIB, 2**34))


@pytest.mark.parametrize("seed", range(5))
def test_growth_leaves_little_free_once_memory_is_used_again(seed):
    rng = random.Random(seed)
    with opened("page_size_mb:40,page_reuse:False", capacity=2**40, phantom=True) as probe:
        last = probe.malloc(rng.randrange(100, 1000) * MIB + 512)
        for _ in range(6):
            probe.free(last)
            last = probe.malloc(rng.randrange(50, 100) * MIB)
            probe.free(last)
            last = probe.malloc(probe.reserved())
        for _ in range(30):
            before = probe.reserved()
            probe.malloc(rng.randrange(2 * MIB, 20 * MIB))
            free = probe.reserved() - probe.stats()["allocated_bytes.all.current"]
            assert probe.reserved() == before or free < before // 96 + 4 * MIB
        assert probe.reserved() > 200 * MIB


@pytest.mark.parametrize("times, nbytes", [(2, 40 * MIB), (3, 10 * MIB)])
def test_pages_are_small_after_two_uses_of_the_reserved_bytes(times, nbytes):
    with opened("page_size_mb:40,page_reuse:False", capacity=2**40, phantom=True) as probe:
        last = probe.malloc(200 * MIB)
        for use in range(1, times):
            probe.free(last)
            last = probe.malloc((200 - use) * MIB)
        before = probe.reserved()
        probe.malloc((9 + times) * MIB)  # 10 more than are free
        assert probe.reserved() - before == nbytes


def driver_calls_of_program(probe, seed):
    """Run a program that uses its memory many times and frees all; return its driver calls."""
    rng = random.Random(seed)
    start_trace(probe.device)
    for _ in range(300):
        if len(probe.held) < 12 or rng.random() < 0.5:
            probe.malloc(rng.randrange(2 * MIB, 60 * MIB))
        else:
            probe.free(rng.choice(probe.held))
    probe.free_all()
    return [
        (name, arguments[1]) for name, _, arguments in take_trace(probe.device)
        if name in ("page_create", "page_map")
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_a_program_after_empty_cache_makes_the_pages_of_a_fresh_process(seed):
    with opened("page_size_mb:40", capacity=2**40, phantom=True) as probe:
        fresh = driver_calls_of_program(probe, seed)
    with opened("page_size_mb:40", capacity=2**40, phantom=True) as probe:
        for earlier in (100 + seed, seed):
            driver_calls_of_program(probe, earlier)
            empty_cache(probe.device)
        assert driver_calls_of_program(probe, seed) == fresh


def test_memory_that_stays_keeps_its_use_when_other_memory_is_returned():
    with opened("page_size_mb:40", capacity=2**40, phantom=True) as probe:
        stays = probe.malloc(400 * MIB)
        for _ in range(8):
            probe.free(probe.malloc(400 * MIB))
        empty_cache(probe.device)
        before = probe.reserved()
        probe.malloc(4 * MIB)  # the reserved bytes were used often: a page of what is needed
        assert before < 450 * MIB
        assert probe.reserved() <= before + 8 * MIB
        probe.free(stays)
