"""Smaller pages cost more driver calls and never need more memory; the default size costs few."""

from pathlib import Path

import pytest

from gputensor import memory
from gputensor._alloc.replay import replay_trace
from gputensor._alloc.replay.trace_file import read_trace
from gputensor._driver.registry import close_host, open_host
from tests.support.alloc_probe import MIB, opened

TRACES = Path(__file__).parents[3] / "benchmarks" / "traces"


def reserved(trace, page_size):
    memory.set_allocator_settings(f"page_size_mb:{page_size}")
    device = open_host(capacity=2**40, phantom=True)
    try:
        arrays = trace.op, trace.id, trace.size, trace.stream
        return replay_trace(*arrays, device)["peak_reserved_bytes"]
    finally:
        close_host(device)
        memory.set_allocator_settings("page_size_mb:40")


@pytest.mark.parametrize("name", sorted(path.stem for path in TRACES.glob("*.npz")))
def test_smaller_pages_reserve_no_more_than_larger_ones(name):
    trace = read_trace(TRACES / f"{name}.npz")
    found = {size: reserved(trace, size) for size in (2, 4, 8, 16, 20, 40)}
    for size, nbytes in found.items():
        assert all(nbytes <= 1.015 * found[other] for other in found if other > size), found


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
