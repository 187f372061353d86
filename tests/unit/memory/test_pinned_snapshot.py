"""Snapshots of pinned host memory: its segments, their blocks, and its history."""

import pickle
import random

from gputensor import memory
from gputensor._alloc import pinned as pinned_memory
from gputensor._alloc.check import check
from gputensor._alloc.observe.accounts import pinned_statistics
from gputensor._driver import registry
from tests.support.driver_calls import Calls

MIB = 1 << 20


def blocks_of(device, *states):
    return [
        block
        for segment in memory.snapshot(device)["host_segments"]
        for block in segment["blocks"]
        if block["state"] in (states or (block["state"],))
    ]


def test_segments_and_blocks_have_the_schema_of_device_memory(device):
    held = memory.pinned_buffer(10_000, device)
    ptr = memory.caching_allocator_alloc(4096, device)
    snapshot = memory.snapshot(device)
    (segment,), (of_device,) = snapshot["host_segments"], snapshot["segments"]
    assert set(segment) == set(of_device)
    assert set(segment["blocks"][0]) == set(of_device["blocks"][0])
    assert segment["total_size"] == 2 * MIB and segment["segment_type"] == "large"
    assert segment["is_expandable"] is False and segment["segment_pool_id"] == (0, 0)
    assert segment["device"] == of_device["device"]
    (block,) = blocks_of(device, "active_allocated")
    assert (block["address"], block["size"], block["requested_size"]) == (held.ptr, 10_240, 10_000)
    memory.caching_allocator_delete(ptr)
    del held


def test_the_sums_equal_the_statistics_at_every_moment(device):
    rng = random.Random()
    stream = Calls(device).make("stream_create", 0)
    held = []
    for _ in range(150):
        if held and rng.random() < 0.5:
            buffer = held.pop(rng.randrange(len(held)))
            if rng.random() < 0.3:
                buffer.used_on(stream)
            del buffer
        else:
            held.append(memory.pinned_buffer(rng.choice([1, 700, 10_000, 3 * MIB, MIB]), device))
        if rng.random() < 0.05:
            pinned_memory.empty_cache(device)
        assert check(device) == []
        stats = pinned_statistics(device)
        segments = memory.snapshot(device)["host_segments"]
        assert len(segments) == stats["allocations.current"]
        assert sum(part["total_size"] for part in segments) == stats["allocated_bytes.current"]
        assert sum(part["active_size"] for part in segments) == stats["active_bytes.current"]
        active = blocks_of(device, "active_allocated", "active_pending_free")
        assert len(active) == stats["active_requests.current"]
        allocated = blocks_of(device, "active_allocated")
        assert {block["address"] for block in allocated} == {buffer.ptr for buffer in held}
        assert sorted(block["requested_size"] for block in allocated) == sorted(map(len, held))
        for part in segments:
            address = part["address"]
            for block in part["blocks"]:
                assert block["address"] == address, "blocks tile their segment"
                address += block["size"]
            assert address == part["address"] + part["total_size"]
    held.clear()


def test_a_block_that_waits_for_a_copy_is_shown_as_waiting():
    number = registry.open_host(capacity=256 * MIB, seed=4)
    calls = Calls(number)
    stream = calls.make("stream_create", 0)
    target = calls.make("mem_alloc", MIB)
    held = memory.pinned_buffer(MIB, number)
    address = held.ptr
    for _ in range(200):
        assert calls.copy_async(target, held.ptr, 4096, stream) == 0
    held.used_on(stream)
    del held
    (block,) = blocks_of(number, "active_pending_free")
    assert block["address"] == address
    calls.synchronize()
    memory.pinned_buffer(5 * MIB, number)
    assert blocks_of(number, "active_pending_free") == []
    registry.close_host(number)


def trace(device):
    return memory.snapshot(device)["host_traces"][-1]


def test_the_history_has_the_events_of_pinned_memory_apart_from_the_device(device):
    memory.record_memory_history()
    held = memory.pinned_buffer(3 * MIB, device)
    address = held.ptr
    del held
    pinned_memory.empty_cache(device)
    events = trace(device)
    assert [event["action"] for event in events] == [
        "segment_alloc", "alloc", "free_requested", "free_completed", "segment_free",
    ]  # fmt: skip
    assert {event["addr"] for event in events} == {address}
    assert [event["size"] for event in events] == [4 * MIB, *[3 * MIB] * 3, 4 * MIB]
    frames = events[1]["frames"]
    assert any(frame["filename"] == __file__ for frame in frames)
    device_events = memory.snapshot(device)["device_traces"][-1]
    assert {event["action"] for event in device_events} == {"snapshot"}
    assert memory.snapshot(device, include_traces=False)["host_traces"][-1] == []


def test_blocks_say_which_line_asked_for_them(device):
    memory.record_memory_history("state")
    held = memory.pinned_buffer(MIB, device)
    (block,) = blocks_of(device, "active_allocated")
    assert any(frame["filename"] == __file__ for frame in block["frames"])
    assert trace(device) == [], "state keeps stacks, not events"
    del held


def test_events_undone_lead_back_to_nothing(device):
    """The viewers' method for device memory works for pinned memory as well."""
    rng = random.Random()
    memory.record_memory_history()
    held = []
    for _ in range(200):
        if held and rng.random() < 0.5:
            held.pop(rng.randrange(len(held)))
        else:
            held.append(memory.pinned_buffer(rng.choice([512, 9000, MIB, 5 * MIB]), device))
        if rng.random() < 0.05:
            pinned_memory.empty_cache(device)
    taken = memory.snapshot(device)
    live = {b["address"]: b["size"] for b in blocks_of(device, "active_allocated")}
    segments = {part["address"]: part["total_size"] for part in taken["host_segments"]}
    for event in reversed(taken["host_traces"][-1]):
        match event["action"]:
            case "alloc":
                assert live.pop(event["addr"]) == event["size"]
            case "free_completed":
                live[event["addr"]] = event["size"]
            case "segment_alloc":
                assert segments.pop(event["addr"]) == event["size"]
            case "segment_free":
                segments[event["addr"]] = event["size"]
    assert not live and not segments
    held.clear()


def test_a_dump_has_pinned_memory_in_it(device, tmp_path):
    held = memory.pinned_buffer(MIB, device)
    path = tmp_path / "dump.pickle"
    memory.dump_snapshot(path)  # of all devices, also of one that has pinned memory only
    with open(path, "rb") as file:
        loaded = pickle.load(file)
    assert len(loaded["host_traces"]) == len(loaded["devices"])
    addresses = {b["address"] for part in loaded["host_segments"] for b in part["blocks"]}
    assert held.ptr in addresses
    place = loaded["devices"].index(f"host:{-1 - device}")
    mine = [part for part in loaded["host_segments"] if part["device"] == place]
    assert held.ptr in {block["address"] for part in mine for block in part["blocks"]}
    del held


def test_a_reserved_segment_is_one_segment(device, conf):
    conf("pinned_reserve_segment_size_mb:8")
    held = [memory.pinned_buffer(MIB, device) for _ in range(4)]
    (segment,) = memory.snapshot(device)["host_segments"]
    assert segment["total_size"] == 8 * MIB and segment["active_size"] == 4 * MIB
    held.clear()
