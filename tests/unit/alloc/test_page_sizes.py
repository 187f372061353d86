"""Smaller pages cost more driver calls and never need more memory."""

from pathlib import Path

import pytest

from gputensor import memory
from gputensor._alloc.replay import replay_trace
from gputensor._alloc.replay.trace_file import read_trace
from gputensor._driver.registry import close_host, open_host

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


@pytest.mark.parametrize("name", ["bert_serve", "multistream", "pair_threads"])
def test_smaller_pages_reserve_no_more_than_the_default(name):
    trace = read_trace(TRACES / f"{name}.npz")
    default = reserved(trace, 40)
    for page_size in (2, 4, 8, 16, 20):
        assert reserved(trace, page_size) <= 1.02 * default, page_size
