"""gt.memory: PyTorch's names and meanings, statistics that equal the snapshot, pools, failures."""

import ctypes
import inspect
import pickle
import random
import subprocess
import sys
import threading
import types

import pytest

from gputensor import memory
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from gputensor.memory import gpu_processes
from gputensor.streams import Stream
from tests.support.internals import view_blocks

MIB = 1 << 20


@pytest.fixture
def allocate(device):
    """Allocate on the device; blocks that the test leaves are freed after it."""
    held = set()

    def take(nbytes):
        ptr = memory.caching_allocator_alloc(nbytes, device)
        held.add(ptr)
        return ptr

    def free(ptr):
        held.remove(ptr)
        memory.caching_allocator_delete(ptr)

    take.free = free
    take.held = held
    yield take
    for ptr in list(held):
        free(ptr)


def snapshot_sums(device):
    names = ("allocated", "active", "requested", "reserved", "blocks", "active_blocks")
    sums = dict.fromkeys(names, 0)
    for segment in memory.snapshot(device)["segments"]:
        sums["allocated"] += segment["allocated_size"]
        sums["active"] += segment["active_size"]
        sums["requested"] += segment["requested_size"]
        sums["reserved"] += segment["total_size"]
        states = [block["state"] for block in segment["blocks"]]
        sums["blocks"] += states.count("active_allocated")
        sums["active_blocks"] += len(states) - states.count("inactive")
    return sums


def test_statistics_have_pytorchs_keys_sorted(device):
    stats = memory.memory_stats(device)
    assert list(stats) == sorted(stats)
    assert set(stats) == {
        f"{stat}.{pool}.{field}"
        for stat in ("allocation", "segment", "active", "inactive_split", "allocated_bytes",
                     "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")
        for pool in ("all", "large_pool", "small_pool")
        for field in ("current", "peak", "allocated", "freed")
    } | {
        f"oversize_{stat}.{field}"
        for stat in ("allocations", "segments")
        for field in ("current", "peak", "allocated", "freed")
    } | {
        "num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
        "num_device_free", "num_oom_rejections", "max_split_size",
    }  # fmt: skip
    nested = memory.memory_stats_as_nested_dict(device)
    assert nested["allocated_bytes"]["all"]["current"] == stats["allocated_bytes.all.current"]
    assert nested["num_ooms"] == stats["num_ooms"]


def test_amounts_follow_allocations(device, allocate):
    small, large = allocate(1000), allocate(3 * MIB + 1)
    assert memory.memory_allocated(device) == 1024 + 3 * MIB + 512
    stats = memory.memory_stats(device)
    assert stats["allocated_bytes.small_pool.current"] == 1024
    assert stats["requested_bytes.all.current"] == 1000 + 3 * MIB + 1
    assert stats["allocation.all.current"] == 2
    assert memory.memory_reserved(device) >= memory.memory_allocated(device)
    allocate.free(large)
    assert memory.memory_allocated(device) == 1024
    assert memory.max_memory_allocated(device) == 1024 + 3 * MIB + 512
    memory.reset_peak_memory_stats(device)
    assert memory.max_memory_allocated(device) == 1024
    assert memory.max_memory_reserved(device) == memory.memory_reserved(device)
    allocate.free(small)


@pytest.mark.parametrize("page_reuse", [True, False])
def test_the_sums_over_a_snapshot_equal_the_statistics_at_every_moment(
    device, allocate, page_reuse, request
):
    memory.set_allocator_settings(f"page_reuse:{page_reuse}")
    request.addfinalizer(lambda: memory.set_allocator_settings("page_reuse:True"))
    rng = random.Random()
    in_views = 0
    for turn in range(300):
        if turn % 60 == 0:  # a comb, and a request that needs all its gaps together
            teeth = [allocate(4 * MIB) for _ in range(8)]
            for ptr in teeth[::2]:
                allocate.free(ptr)
            allocate(8 * MIB)
            in_views += len(view_blocks(device))
        if allocate.held and (rng.random() < 0.5 or len(allocate.held) > 40):
            allocate.free(rng.choice(list(allocate.held)))
        else:
            allocate(rng.choice([1, 700, 5000, 600_000, MIB + 1, 2 * MIB, 5 * MIB]))
        if rng.random() < 0.1:
            memory.empty_cache(device)
        if rng.random() < 0.3 or turn % 60 == 0:
            sums, stats = snapshot_sums(device), memory.memory_stats(device)
            assert sums["allocated"] == stats["allocated_bytes.all.current"]
            assert sums["allocated"] == memory.memory_allocated(device)
            assert sums["active"] == stats["active_bytes.all.current"]
            assert sums["requested"] == stats["requested_bytes.all.current"]
            assert sums["blocks"] == stats["allocation.all.current"]
            assert sums["active_blocks"] == stats["active.all.current"]
            assert sums["reserved"] == stats["reserved_bytes.all.current"]
    assert (in_views > 0) is page_reuse


def test_accumulated_statistics_count_from_their_reset(device, allocate):
    for _ in range(5):
        allocate.free(allocate(4096))
    held = allocate(4096)
    memory.reset_accumulated_memory_stats(device)
    stats = memory.memory_stats(device)
    assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] == 0
    assert stats["num_device_alloc"] == 0
    assert stats["allocation.all.current"] == 1
    allocate.free(held)
    allocate.free(allocate(4096))
    stats = memory.memory_stats(device)
    assert stats["allocation.all.allocated"] == 1
    assert stats["allocation.all.freed"] == 2


def test_empty_cache_gives_free_memory_back_and_keeps_used_blocks(device, allocate):
    kept = allocate(5 * MIB)
    allocate.free(allocate(40 * MIB))
    memory.empty_cache(device)
    assert memory.memory_allocated(device) == 5 * MIB
    assert memory.memory_reserved(device) <= 20 * MIB
    allocate.free(kept)
    memory.empty_cache(device)
    assert memory.memory_reserved(device) == 0


def test_mem_get_info_is_the_drivers(device, allocate):
    free, total = memory.mem_get_info(device)
    assert total == 256 * MIB
    allocate(10 * MIB)
    assert memory.mem_get_info(device)[0] == free - memory.memory_reserved(device)


def test_deprecated_names_warn_and_work(device):
    for name in ("memory_cached", "max_memory_cached", "reset_max_memory_allocated",
                 "reset_max_memory_cached"):  # fmt: skip
        with pytest.warns(FutureWarning, match=name):
            getattr(memory, name)(device)


def test_the_summary_is_a_table_with_the_amounts(device, allocate):
    allocate(3 * MIB)
    text = memory.memory_summary(device)
    lines = text.splitlines()
    assert len({len(line) for line in lines}) == 1
    allocated = next(line for line in lines if line.startswith("| allocated"))
    assert allocated.split("|")[2].strip() == "3.0 MiB"
    assert "large" in text
    assert "large" not in memory.memory_summary(device, abbreviated=True)


def test_an_address_is_freed_once_and_only_if_it_is_allocated(device):
    ptr = memory.caching_allocator_alloc(4096, device)
    for wrong in (ptr + 512, ptr + 1, 512, 1 << 62):
        with pytest.raises(ValueError, match="^mem_ptr: got 0x"):
            memory.caching_allocator_delete(wrong)
    memory.caching_allocator_delete(ptr)
    with pytest.raises(ValueError, match="^mem_ptr: got 0x"):
        memory.caching_allocator_delete(ptr)
    assert memory.caching_allocator_alloc(0, device) == 0
    with pytest.raises(ValueError, match="^stream: got a stream on host; expected one on host:"):
        memory.caching_allocator_alloc(512, device, Stream("host"))
    memory.caching_allocator_delete(0)
    for wrong in (-1, 1.5, "4", True):
        with pytest.raises(ValueError, match="^size: got "):
            memory.caching_allocator_alloc(wrong, device)


def test_without_caching_each_request_is_a_call_of_the_driver(device):
    before = memory.caching_allocator_alloc(3 * MIB, device)
    with memory.caching_allocator_disabled(device):
        ptr = memory.caching_allocator_alloc(3 * MIB, device)
        memory.caching_allocator_delete(ptr)
        memory.caching_allocator_delete(before)
        assert memory.memory_allocated(device) == 0
    memory.caching_allocator_enable(False, device)
    reserved = memory.memory_reserved(device)
    ptr = memory.caching_allocator_alloc(3 * MIB, device)
    assert memory.memory_reserved(device) == reserved + 3 * MIB
    memory.caching_allocator_delete(ptr)
    assert memory.memory_reserved(device) == reserved
    memory.caching_allocator_enable(True, device)


def caches(number):
    """Whether freed memory stays reserved."""
    memory.empty_cache(number)
    held = memory.memory_reserved(number)
    memory.caching_allocator_delete(memory.caching_allocator_alloc(3 * MIB, number))
    return memory.memory_reserved(number) > held


def test_caching_is_switched_on_all_devices_if_none_is_named(device):
    other = registry.open_host(capacity=64 * MIB)
    opened = [other]
    try:
        assert caches(device) and caches(other)
        memory.caching_allocator_enable(False, other)
        assert caches(device) and not caches(other)
        with memory.caching_allocator_disabled():
            opened.append(registry.open_host(capacity=64 * MIB))  # in use from its first allocation
            assert not any(caches(number) for number in (device, *opened))
        assert [caches(number) for number in (device, *opened)] == [True, False, True]
        memory.caching_allocator_enable(False)
        opened.append(registry.open_host(capacity=64 * MIB))
        assert not any(caches(number) for number in (device, *opened))
        memory.caching_allocator_enable()
        assert all(caches(number) for number in (device, *opened))
    finally:
        memory.caching_allocator_enable(True)
        for number in opened:
            registry.close_host(number)


def test_an_out_of_memory_observer_runs_before_the_error(device, allocate):
    calls = []
    memory.attach_out_of_memory_observer(lambda *amounts: calls.append(amounts))
    observer = calls.append
    try:
        with pytest.raises(OutOfMemoryError):
            memory.caching_allocator_alloc(300 * MIB, device)
        assert calls == [(device, 300 * MIB, 256 * MIB, 256 * MIB)]
        with pytest.raises(ValueError):
            memory.detach_out_of_memory_observer(observer)
    finally:
        from gputensor._alloc.explain import out_of_memory

        out_of_memory._observers.clear()
    assert memory.memory_stats(device)["num_ooms"] == 1
    allocate(MIB)


def test_the_history_says_which_line_allocated_and_the_error_names_those_that_hold_most(
    device, allocate
):
    memory.record_memory_history()
    line = inspect.currentframe().f_lineno + 1
    held = [allocate(30 * MIB) for _ in range(3)]
    frames = memory.where_allocated(held[0])
    assert frames[0]["filename"].endswith("control.py")
    assert (__file__, line) in [(frame["filename"], frame["line"]) for frame in frames]
    trace = memory.snapshot(device)["device_traces"][-1]
    events = [entry for entry in trace if entry["action"] == "alloc"]
    assert [entry["addr"] for entry in events] == held
    blocks = [
        block
        for segment in memory.snapshot(device)["segments"]
        for block in segment["blocks"]
        if block["address"] == held[1]
    ]
    assert blocks[0]["frames"] == memory.where_allocated(held[1])
    with pytest.raises(OutOfMemoryError, match=f"{__file__}:.* in .* 90.0 MiB"):
        memory.caching_allocator_alloc(250 * MIB, device)


def test_a_dump_is_read_back_as_the_snapshot(device, allocate, tmp_path):
    allocate(MIB)
    path = tmp_path / "dump.pickle"
    memory.dump_snapshot(path, device)
    with open(path, "rb") as file:
        loaded = pickle.load(file)
    assert loaded["segments"] == memory.snapshot(device)["segments"]
    assert loaded["devices"] == [f"host:{-1 - device}"]


def test_a_pool_keeps_its_memory_for_itself(device, allocate):
    pool = memory.MemPool(device)
    assert pool.use_count() == 1
    with memory.use_mem_pool(pool, device):
        assert pool.use_count() == 2
        inside = allocate(3 * MIB)
    assert pool.use_count() == 1
    outside = allocate(3 * MIB)
    mine = {part["address"] for part in pool.snapshot()}
    assert mine
    assert all(part["segment_pool_id"] == pool.id for part in pool.snapshot())
    assert pool.id[0] == 0
    for part in memory.memory_snapshot(device=device):
        addresses = {block["address"] for block in part["blocks"]}
        assert (inside in addresses) == (part["address"] in mine) or outside in addresses
        assert not (outside in addresses and part["address"] in mine)
    stats = memory.memory_stats(device)
    name = f"reserved_bytes_by_private_pools.0_{pool.id[1]}"
    assert stats[f"{name}.all.current"] == sum(part["total_size"] for part in pool.snapshot())
    allocate.free(inside)
    assert allocate(3 * MIB) != inside
    with memory.use_mem_pool(pool, device):
        assert allocate(3 * MIB) == inside


def test_a_pool_serves_only_the_thread_that_asked_for_it(device, allocate):
    pool = memory.MemPool(device)
    found = []
    with memory.use_mem_pool(pool, device):
        thread = threading.Thread(target=lambda: found.append(allocate(3 * MIB)))
        thread.start()
        thread.join()
        inside = allocate(3 * MIB)
    addresses = {block["address"] for part in pool.snapshot() for block in part["blocks"]}
    assert inside in addresses
    assert found[0] not in addresses


def test_an_error_inside_a_pool_ends_its_use(device, allocate):
    pool = memory.MemPool(device)
    with pytest.raises(KeyError), memory.use_mem_pool(pool, device):
        raise KeyError
    assert pool.use_count() == 1
    ptr = allocate(3 * MIB)
    assert ptr not in {block["address"] for part in pool.snapshot() for block in part["blocks"]}
    with pytest.raises(TypeError, match="^pool: got str"), memory.use_mem_pool("pool", device):
        pass


def test_a_pool_that_is_gone_gives_its_memory_back(device, allocate):
    pool = memory.MemPool(device)
    with memory.use_mem_pool(pool, device):
        allocate.free(allocate(30 * MIB))
    memory.empty_cache(device)
    held = memory.memory_reserved(device)
    del pool
    memory.empty_cache(device)
    assert memory.memory_reserved(device) == 0 <= held


def test_host_memory_statistics_are_sorted_and_nested():
    stats = memory.host_memory_stats()
    assert list(stats) == sorted(stats)
    nested = memory.host_memory_stats_as_nested_dict()
    assert set(nested["active_bytes"]) == {"current", "peak", "allocated", "freed"}
    buffer = memory.pinned_buffer(4096, "host")
    assert (
        memory.host_memory_stats()["active_bytes.current"] == stats["active_bytes.current"] + 4096
    )
    del buffer
    memory.reset_peak_host_memory_stats()
    memory.reset_accumulated_host_memory_stats()
    stats = memory.host_memory_stats()
    assert stats["active_bytes.peak"] == stats["active_bytes.current"]
    assert stats["active_requests.allocated"] == stats["num_host_alloc"] == 0
    memory.empty_host_cache()


def test_the_processes_of_a_host_device_cannot_be_listed():
    with pytest.raises(ValueError, match="^device: got 'host'; expected a CUDA device"):
        memory.list_gpu_processes("host")


def test_processes_are_found_by_the_bus_of_the_device(monkeypatch):
    asked = []
    nvml = types.ModuleType("pynvml")
    nvml.NVMLError = type("NVMLError", (Exception,), {})
    nvml.nvmlInit = nvml.nvmlShutdown = lambda: None
    nvml.nvmlDeviceGetHandleByPciBusId = lambda bus: asked.append(bus) or "handle"
    nvml.nvmlDeviceGetComputeRunningProcesses = lambda handle: [
        types.SimpleNamespace(pid=17, usedGpuMemory=5 << 30)
    ]
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(gpu_processes, "device_info", lambda ordinal: {"pci": "0000:1b:00.0"})
    text = gpu_processes.list_processes(2)
    assert text.splitlines()[0] == "GPU:2"
    assert "17" in text and "5.00 GiB" in text
    assert asked == ["0000:1b:00.0"]

    def fail():
        raise nvml.NVMLError("no driver")

    nvml.nvmlInit = fail
    assert "no driver" in gpu_processes.list_processes(2)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "nvidia-ml-py" in gpu_processes.list_processes(2)


def test_the_c_library_has_the_symbols_that_foreign_callers_use(device):
    library = ctypes.CDLL(memory.c_library())
    library.gputensor_malloc.restype = ctypes.c_void_p
    library.gputensor_malloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    library.gputensor_free.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p,
    ]  # fmt: skip
    ptr = library.gputensor_malloc(5000, device, None)
    assert memory.memory_allocated(device) == 5120
    library.gputensor_free(ptr, 5000, device, None)
    assert memory.memory_allocated(device) == 0


def test_a_bad_variable_is_a_clear_error_at_the_first_allocation():
    code = "from gputensor import memory; memory.caching_allocator_alloc(1, 'host')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"GPUTENSOR_ALLOC_CONF": "page_size:2", "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "ValueError: GPUTENSOR_ALLOC_CONF: got unknown key 'page_size'" in done.stderr
