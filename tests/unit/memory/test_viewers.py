"""Snapshots in PyTorch's viewers, which walk the events back to any moment.

The viewers start from the final mapped ranges and allocated blocks, and undo one event after the
other. They fail if an unmapped range was not mapped, or if a block lies in no range. These tests do
the same, and compare each state with that of a shadow model of the calls.
"""

import bisect
import random

import pytest

from gputensor import memory
from gputensor._alloc.config import settings
from gputensor._driver import registry
from tests.support.driver_calls import Calls

MIB = 1 << 20


class Ranges:
    """Mapped ranges by stream; adjacent ranges of one stream are joined, as in the viewers."""

    def __init__(self):
        self.ranges = []

    def add(self, start, end, stream, joins):
        at = bisect.bisect(self.ranges, (start,))
        assert at == len(self.ranges) or self.ranges[at][0] >= end, "mapped twice"
        assert at == 0 or self.ranges[at - 1][1] <= start, "mapped twice"
        if joins and at < len(self.ranges) and self.ranges[at][::2] == (end, stream):
            end = self.ranges.pop(at)[1]
        if joins and at and self.ranges[at - 1][1:] == (start, stream):
            at -= 1
            start = self.ranges.pop(at)[0]
        self.ranges.insert(at, (start, end, stream))

    def remove(self, start, end):
        at = bisect.bisect(self.ranges, (start, 1 << 63)) - 1
        assert at >= 0 and end <= self.ranges[at][1], "unmapped where nothing is mapped"
        first, last, stream = self.ranges.pop(at)
        self.ranges[at:at] = [
            part for part in ((first, start, stream), (end, last, stream)) if part[0] < part[1]
        ]

    def holds(self, start, end):
        at = bisect.bisect(self.ranges, (start, 1 << 63)) - 1
        return at >= 0 and end <= self.ranges[at][1]


def states_backwards(snapshot):
    """Yield (event, allocated bytes before it), from the last event to the first."""
    ranges, blocks = Ranges(), {}
    for segment in snapshot["segments"]:
        if segment["address"]:
            ranges.add(segment["address"], segment["address"] + segment["total_size"],
                       segment["stream"], segment["is_expandable"])  # fmt: skip
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                blocks[block["address"]] = block["size"]
    for event in reversed(snapshot["device_traces"][0]):
        start, end = event.get("addr", 0), event.get("addr", 0) + event["size"]
        match event["action"]:
            case "alloc":
                assert blocks.pop(start) == event["size"]
            case "free_completed":
                assert start not in blocks
                blocks[start] = event["size"]
                assert ranges.holds(start, end), "a block lies in no segment"
            case "free_requested":
                assert blocks[start] == event["size"]
            case "segment_free" | "segment_unmap":
                ranges.add(start, end, event["stream"], event["action"] == "segment_unmap")
            case "segment_alloc" | "segment_map":
                ranges.remove(start, end)
        yield event, sum(blocks.values())
    assert not blocks
    assert not ranges.ranges


@pytest.mark.parametrize("conf", ["", "expandable_segments:False", "page_reuse:False"])
@pytest.mark.parametrize("attempt", range(3))
def test_events_undone_one_by_one_lead_back_to_an_empty_device(conf, attempt):
    rng = random.Random()
    before = settings.current()
    memory.set_allocator_settings(conf)
    device = registry.open_host(capacity=4096 * MIB, phantom=True)
    memory.record_memory_history()
    held, allocated = [], []
    streams = [0, Calls(device).make("stream_create", 0)]
    try:
        for _ in range(400):
            if held and (rng.random() < 0.5 or memory.memory_allocated(device) > 450 * MIB):
                memory.caching_allocator_delete(held.pop(rng.randrange(len(held))))
            else:
                size = rng.choice([512, 5000, MIB, 3 * MIB, 12 * MIB, 45 * MIB])
                held.append(
                    memory.caching_allocator_alloc(
                        size + rng.randrange(512), device, rng.choice(streams)
                    )
                )
            if rng.random() < 0.03:
                memory.empty_cache(device)
            allocated.append(memory.memory_allocated(device))
        taken = memory.snapshot(device)
        # The amounts after each call, last first, are among those of the visited states.
        walked = iter([allocated[-1], *(nbytes for _, nbytes in states_backwards(taken))])
        assert all(nbytes in walked for nbytes in reversed(allocated))
    finally:
        memory.record_memory_history(None)
        for ptr in held:
            memory.caching_allocator_delete(ptr)
        registry.close_host(device)
        settings._in_force = before
        settings.tell()


@pytest.mark.parametrize("caching", [True, False])
def test_a_block_that_several_streams_used_is_freed_in_the_history_too(caching):
    """Without caching the driver takes the block back at once, so none is left waiting."""
    device = registry.open_host(capacity=64 * MIB)
    memory.caching_allocator_enable(caching, device)
    memory.record_memory_history()
    try:
        ptr = memory.caching_allocator_alloc(2 * MIB, device)
        memory.record_stream(ptr, Calls(device).make("stream_create", 0), device)
        memory.caching_allocator_delete(ptr)
        memory.empty_cache(device)
        for _ in states_backwards(memory.snapshot(device)):
            pass
    finally:
        memory.record_memory_history(None)
        registry.close_host(device)
