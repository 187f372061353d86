"""Pinned host memory: split and merge, stream order, captures, refusals of the system."""

import random
import threading

import numpy as np
import pytest

from gputensor._alloc import pinned as pinned_memory
from gputensor._alloc.observe.accounts import pinned_statistics
from gputensor._alloc.pinned import PinnedMemory
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from tests.support.driver_calls import Calls

MIB = 1 << 20
RELAXED = 2


def make_stream(device):
    return Calls(device).make("stream_create", 0)


def copy(device, stream, dst, src, nbytes):
    assert Calls(device).copy_async(dst, src, nbytes, stream) == 0


def keep_busy(device, stream, dst, src):
    """Queue more copies than the deferring device runs during other calls."""
    for _ in range(1000):
        copy(device, stream, dst, src, 512)


def synchronize(device, stream):
    assert Calls(device).stream_synchronize(stream) == 0


def begin_capture(device, stream):
    """Begin a capture and return its id."""
    assert Calls(device).capture_begin(stream, RELAXED) == 0
    return Calls(device).capture_info(stream)[2]


def end_capture(device, stream):
    assert Calls(device).graph_destroy(Calls(device).make("capture_end", stream)) == 0


@pytest.fixture
def device():
    number = registry.open_host(capacity=1 << 30)
    registry.observe(number)
    yield number
    registry.close_host(number)


@pytest.fixture
def deferred():
    number = registry.open_host(capacity=1 << 30, seed=random.randrange(1 << 30))
    registry.observe(number)
    yield number
    registry.close_host(number)


def stats_of(device):
    return pinned_statistics(device)


def driver_calls(device):
    return {name: count for name, count in registry.counts(device).items() if count}


@pytest.mark.parametrize("nbytes", [1, 511, 512, 513, 10 * 1024, MIB + 1, 5 * MIB])
def test_a_request_costs_its_size_rounded_up_to_512(device, nbytes):
    memory = PinnedMemory(device, nbytes)
    rounded = -(-nbytes // 512) * 512
    assert memory.capacity == rounded
    assert memory.ptr % 512 == 0
    assert stats_of(device)["active_bytes.current"] == rounded


def test_the_buffer_is_the_memory(device):
    memory = PinnedMemory(device, 4096)
    view = np.frombuffer(memory, "f8")
    view[:] = np.arange(512)
    assert view.ctypes.data == memory.ptr
    assert memoryview(memory).tobytes() == view.tobytes()
    assert len(memory) == memory.nbytes == 4096
    del memory  # the view keeps it
    other = PinnedMemory(device, 4096)
    assert other.ptr != view.ctypes.data
    assert view[511] == 511


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None, "1"])
def test_a_wrong_size_is_refused(device, wrong):
    with pytest.raises(ValueError, match="^nbytes: got "):
        PinnedMemory(device, wrong)


@pytest.mark.parametrize("nbytes", [1 << 50, 1 << 62, 1 << 63, 1 << 70])
def test_a_size_beyond_all_addresses_is_out_of_memory(device, nbytes):
    with pytest.raises(OutOfMemoryError, match="^out of pinned host memory: "):
        PinnedMemory(device, nbytes)


def test_two_hundred_small_requests_share_one_segment(device):
    held = [PinnedMemory(device, 10 * 1024) for _ in range(200)]
    stats = stats_of(device)
    assert stats["allocations.current"] == 1
    assert stats["allocated_bytes.current"] == 2 * MIB
    assert stats["active_bytes.current"] == 200 * 10 * 1024
    spans = sorted((memory.ptr, memory.ptr + memory.capacity) for memory in held)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


def test_freed_neighbours_merge_until_the_segment_is_whole_again(device):
    held = [PinnedMemory(device, random.randint(1, 20_000)) for _ in range(150)]
    random.shuffle(held)
    while held:
        held.pop()
    made = stats_of(device)["num_host_alloc"]
    assert PinnedMemory(device, 2 * MIB).capacity == 2 * MIB
    assert stats_of(device)["num_host_alloc"] == made
    pinned_memory.empty_cache(device)
    stats = stats_of(device)
    assert stats["allocated_bytes.current"] == stats["active_bytes.current"] == 0
    assert stats["allocations.freed"] == stats["allocations.allocated"]


def test_the_smallest_block_that_fits_is_taken(device):
    sizes = [64 * 512, 16 * 512, 32 * 512]
    holes, walls = [], []
    for size in sizes:
        holes.append(PinnedMemory(device, size))
        walls.append(PinnedMemory(device, 512))
    addresses = [hole.ptr for hole in holes]
    holes.clear()
    assert PinnedMemory(device, 15 * 512).ptr == addresses[1]
    del walls


def test_a_hit_makes_no_driver_call(device):
    PinnedMemory(device, 4096)
    registry.reset_counts(device)
    for _ in range(100):
        PinnedMemory(device, 4096)
    assert driver_calls(device) == {}


def test_memory_used_on_a_stream_comes_back_only_after_its_work(deferred):
    other = PinnedMemory(deferred, 2 * MIB)  # fills the first segment
    memory = PinnedMemory(deferred, 2 * MIB)
    address = memory.ptr
    handle = make_stream(deferred)
    keep_busy(deferred, handle, address, other.ptr)
    memory.used_on(handle)
    del memory
    assert PinnedMemory(deferred, 2 * MIB).ptr != address, driver_calls(deferred)
    assert stats_of(deferred)["active_requests.current"] == 2  # `other`, and the block that waits
    registry.host_run_all(deferred)
    found = [PinnedMemory(deferred, 2 * MIB) for _ in range(2)]
    assert address in [memory.ptr for memory in found]


def test_a_hit_polls_no_event_and_a_miss_only_the_oldest(deferred):
    handle = make_stream(deferred)
    held = [PinnedMemory(deferred, 4096) for _ in range(8)]
    keep_busy(deferred, handle, held[0].ptr, held[1].ptr)
    for memory in held:
        memory.used_on(handle)
    del memory
    held.clear()
    registry.reset_counts(deferred)
    hits = [PinnedMemory(deferred, 4096) for _ in range(50)]
    assert driver_calls(deferred) == {}
    # A miss queries only the oldest event of the one queue.
    PinnedMemory(deferred, 4 * MIB)
    assert driver_calls(deferred).get("event_query") == 1
    registry.host_run_all(deferred)
    del hits


def test_a_free_waits_for_every_stream_that_used_the_block(deferred):
    streams = [make_stream(deferred) for _ in range(3)]
    source = PinnedMemory(deferred, 2 * MIB)
    memory = PinnedMemory(deferred, 2 * MIB)
    address = memory.ptr
    for handle in streams:
        for _ in range(100):
            copy(deferred, handle, address, source.ptr, 512)
        memory.used_on(handle)
        memory.used_on(handle)
    del memory
    assert driver_calls(deferred)["event_record"] == 3
    held = []
    while address not in [memory.ptr for memory in held]:
        held.append(PinnedMemory(deferred, 2 * MIB))
        assert len(held) < 1000
        if address != held[-1].ptr and len(held) % 20 == 0:
            synchronize(deferred, streams[len(held) // 20 % 3])
    assert [Calls(deferred).stream_query(handle) for handle in streams] == [0, 0, 0]


def test_when_the_system_has_no_more_the_oldest_work_is_waited_for(deferred):
    handle = make_stream(deferred)
    first, second = PinnedMemory(deferred, 2 * MIB), PinnedMemory(deferred, 2 * MIB)
    address = first.ptr
    keep_busy(deferred, handle, address, second.ptr)
    first.used_on(handle)
    del first
    registry.fail_call(deferred, 1, name="pinned_alloc")
    assert PinnedMemory(deferred, 2 * MIB).ptr == address


def test_after_the_last_step_the_error_names_the_amounts_and_the_next_request_is_served(device):
    held = PinnedMemory(device, 4096)
    with pytest.raises(OutOfMemoryError, match="1.00 EiB requested; in use 4.0 KiB, reserved 2.0"):
        PinnedMemory(device, 1 << 60)
    assert PinnedMemory(device, 8192).capacity == 8192
    del held


def test_free_segments_go_back_to_the_system_before_a_request_fails(device):
    PinnedMemory(device, 2 * MIB)
    registry.fail_call(device, 1, name="pinned_alloc")
    memory = PinnedMemory(device, 64 * MIB)
    stats = stats_of(device)
    assert memory.capacity == 64 * MIB
    assert stats["num_host_free"] == 1
    assert stats["allocated_bytes.current"] == 64 * MIB


def test_failing_any_one_driver_call_loses_nothing():
    names = ["pinned_alloc", "event_create", "event_record", "event_query", "stream_synchronize",
             "pinned_free"]  # fmt: skip
    for name in names:
        device = registry.open_host(capacity=1 << 30, seed=3)
        registry.observe(device)
        handle = make_stream(device)
        registry.fail_call(device, 1, name=name)
        for _ in range(3):
            try:
                memories = [PinnedMemory(device, 2 * MIB) for _ in range(2)]
            except OutOfMemoryError:
                continue
            copy(device, handle, memories[0].ptr, memories[1].ptr, 512)
            memories[0].used_on(handle)
            memories.clear()
        registry.host_run_all(device)
        pinned_memory.empty_cache(device)
        pinned_memory.empty_cache(device)
        stats = stats_of(device)
        assert stats["active_bytes.current"] == 0, name
        assert stats["allocated_bytes.current"] == 0, name
        registry.close_host(device)


def test_the_registered_form_splits_merges_and_unregisters(device, conf):
    conf("pinned_use_cuda_host_register:True,pinned_num_register_threads:4")
    memory = PinnedMemory(device, 3 * MIB)
    np.frombuffer(memory, "u1")[:] = 7
    assert driver_calls(device).get("pinned_register") == 1
    assert "pinned_alloc" not in driver_calls(device)
    conf("pinned_use_cuda_host_register:False")  # what was registered is still unregistered
    del memory
    pinned_memory.empty_cache(device)
    assert driver_calls(device).get("pinned_unregister") == 1
    assert registry.leaks(device).get("registered", 0) == 0


def test_a_segment_can_be_reserved_up_front(device, conf):
    conf("pinned_reserve_segment_size_mb:32")
    held = [PinnedMemory(device, MIB) for _ in range(32)]
    stats = stats_of(device)
    assert stats["num_host_alloc"] == 1
    assert stats["allocated_bytes.current"] == 32 * MIB
    held.append(PinnedMemory(device, MIB))
    assert stats_of(device)["num_host_alloc"] == 2


def test_cached_memory_is_limited_by_its_option(device, conf):
    conf("pinned_max_cached_size_mb:4")
    held = [PinnedMemory(device, 2 * MIB) for _ in range(5)]
    held.clear()
    assert stats_of(device)["allocated_bytes.current"] == 4 * MIB
    conf("pinned_max_cached_size_mb:0")
    PinnedMemory(device, 512)
    assert stats_of(device)["allocated_bytes.current"] == 0


def test_statistics_have_pytorchs_keys_and_add_up(device):
    held = [PinnedMemory(device, 1000 * (i + 1)) for i in range(20)]
    stats = stats_of(device)
    stats_keys = {
        f"{name}.{field}"
        for name in ("allocations", "allocated_bytes", "active_requests", "active_bytes")
        for field in ("current", "peak", "allocated", "freed")
    } | {"num_host_alloc", "num_host_free"} | {
        f"{name}.{field}"
        for name in ("host_alloc_time", "host_free_time")
        for field in ("total", "max", "min", "count", "avg")
    }  # fmt: skip
    assert set(stats) == stats_keys
    assert stats["active_bytes.current"] == sum(memory.capacity for memory in held)
    assert stats["active_requests.current"] == 20
    del held[5:]
    stats = stats_of(device)
    assert stats["active_requests.peak"] == stats["active_requests.allocated"] == 20
    assert stats["active_requests.freed"] == 15
    assert stats["host_alloc_time.count"] == stats["num_host_alloc"]


def test_a_block_used_in_a_capture_waits_for_the_end_of_the_graph(device):
    handle = make_stream(device)
    source, memory = PinnedMemory(device, 2 * MIB), PinnedMemory(device, 2 * MIB)
    address = memory.ptr
    capture_id = begin_capture(device, handle)
    memory.used_on(handle)
    end_capture(device, handle)
    del memory
    assert PinnedMemory(device, 2 * MIB).ptr != address
    pinned_memory.capture_done(device, capture_id)
    assert address in [memory.ptr for memory in [PinnedMemory(device, 2 * MIB) for _ in range(3)]]
    # The other way round: the graph goes first.
    memory = PinnedMemory(device, 2 * MIB)
    capture_id = begin_capture(device, handle)
    memory.used_on(handle)
    end_capture(device, handle)
    pinned_memory.capture_done(device, capture_id)
    del memory
    pinned_memory.empty_cache(device)
    assert stats_of(device)["active_requests.current"] == 1
    del source


def test_a_block_freed_while_its_stream_captures_comes_back_later(device):
    handle = make_stream(device)
    memory = PinnedMemory(device, 2 * MIB)
    address = memory.ptr
    memory.used_on(handle)
    begin_capture(device, handle)
    del memory
    assert "event_record" not in driver_calls(device)
    held = PinnedMemory(device, 2 * MIB)
    assert held.ptr != address
    end_capture(device, handle)
    assert address in [memory.ptr for memory in [PinnedMemory(device, 2 * MIB) for _ in range(2)]]


def test_threads_never_share_a_block(device):
    failures = []

    def work(seed):
        rng = random.Random(seed)
        held = []
        for _ in range(400):
            if held and rng.random() < 0.5:
                memory, mark = held.pop(rng.randrange(len(held)))
                if not (np.frombuffer(memory, "u1") == mark).all():
                    failures.append(seed)
            else:
                memory, mark = PinnedMemory(device, rng.randint(1, 30_000)), rng.randrange(256)
                np.frombuffer(memory, "u1")[:] = mark
                held.append((memory, mark))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert stats_of(device)["active_bytes.current"] == 0
    pinned_memory.empty_cache(device)
    assert stats_of(device)["allocated_bytes.current"] == 0


def test_memory_that_outlives_its_device_is_only_forgotten():
    device = registry.open_host(capacity=1 << 30)
    memory = PinnedMemory(device, 4096)
    registry.close_host(device)
    again = registry.open_host(capacity=1 << 30)
    assert again == device
    del memory
    assert stats_of(again)["active_bytes.freed"] == 0
    assert PinnedMemory(again, 4096).capacity == 4096
    registry.close_host(again)
