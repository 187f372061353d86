"""Arguments of gt.memory: what is accepted; errors name the value and the rule."""

import os
import pickle
import stat
import threading

import numpy as np
import pytest

from gputensor import memory
from gputensor._alloc.history import history_settings
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError


@pytest.fixture
def device():
    number = registry.open_host(capacity=64 << 20)
    yield number
    registry.close_host(number)


def test_an_address_is_an_integer_and_belongs_to_an_allocation(device):
    ptr = memory.caching_allocator_alloc(4096, device)
    takers = {
        memory.caching_allocator_delete: "mem_ptr",
        memory.where_allocated: "ptr",
        lambda wrong: memory.record_stream(wrong, 0, device): "mem_ptr",
    }
    for take, name in takers.items():
        for wrong in (ptr + 512, 1 << 62, 1 << 80, -1, -ptr, True):
            with pytest.raises(ValueError, match=f"^{name}: got -?0x"):
                take(wrong)
        for wrong in (float(ptr), 0.0, str(ptr), None):
            match = f"^{name}: got {type(wrong).__name__}; expected an integer"
            with pytest.raises(TypeError, match=match):
                take(wrong)
    memory.caching_allocator_delete(ptr)


def test_a_size_is_an_integer_and_one_beyond_the_address_space_is_out_of_memory(device):
    for wrong in (-1, 1.5, "4", True, None):
        with pytest.raises(ValueError, match="^size: got .*; expected an integer, 0 or more$"):
            memory.caching_allocator_alloc(wrong, device)
    seen = []
    observer = lambda device, nbytes, total, free: seen.append(nbytes)  # noqa: E731
    memory.attach_out_of_memory_observer(observer)
    memory.record_memory_history()  # so that the failures are replayed
    try:
        sizes = (2**62, 2**62 + 1, np.int64(2**63 - 1), 2**63, 2**64 - 1, 2**64, 2**66, 1 << 80)
        for size in sizes:
            for call in (memory.caching_allocator_alloc, memory.pinned_buffer):
                with pytest.raises(OutOfMemoryError) as caught:
                    call(size, device)
                assert f" {size / 2**60:.2f} EiB requested" in str(caught.value)
                requested = caught.value.facts["requested"]
                assert (type(requested), requested) == (int, size)
            assert seen.pop() == size and not seen
    finally:
        memory.record_memory_history(None)
        memory.detach_out_of_memory_observer(observer)


def test_sizes_and_addresses_may_be_integers_of_numpy(device):
    ptr = memory.caching_allocator_alloc(np.int64(4096), device)
    assert memory.memory_allocated(device) == 4096
    memory.caching_allocator_delete(np.uint64(ptr))
    assert memory.memory_allocated(device) == 0
    assert memory.pinned_buffer(np.prod([4, 8]), device).nbytes == 32


def test_an_observer_is_a_function_and_only_one_that_is_attached_can_be_detached():
    with pytest.raises(TypeError, match="^observer: got int; expected a function"):
        memory.attach_out_of_memory_observer(5)
    with pytest.raises(ValueError, match="^observer: got .*print.*; expected one that is attached"):
        memory.detach_out_of_memory_observer(print)


def test_a_dump_that_cannot_be_written_names_the_given_file(device, tmp_path):
    for path in (tmp_path / "none" / "dump.pickle", tmp_path):
        with pytest.raises(OSError, match=r"(No such file|directory)") as caught:
            memory.dump_snapshot(path, device)
        assert caught.value.filename == str(path) and caught.value.filename2 is None
    assert list(tmp_path.iterdir()) == []


def test_a_dump_through_a_link_writes_its_target_and_keeps_the_link(device, tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("there.pickle", "new.pickle"):
        os.symlink(tmp_path / "folder" / name, tmp_path / name)
    (tmp_path / "folder" / "there.pickle").write_bytes(b"before")
    for name in ("there.pickle", "new.pickle"):
        memory.dump_snapshot(tmp_path / name, device)
        assert (tmp_path / name).is_symlink()
        with open(tmp_path / "folder" / name, "rb") as file:
            assert pickle.load(file)["devices"] == [f"host:{-1 - device}"]
    assert len(os.listdir(tmp_path / "folder")) == 2


def test_a_dump_to_a_pipe_or_a_device_is_written_into_it_and_replaces_nothing(device, tmp_path):
    path, read = os.fsencode(tmp_path / "pipe"), []
    os.mkfifo(path)

    def reader():
        with open(path, "rb") as file:
            read.append(pickle.load(file))

    thread = threading.Thread(target=reader)
    thread.start()
    memory.dump_snapshot(path, device)
    thread.join(60)
    assert read[0]["devices"] == [f"host:{-1 - device}"]
    assert stat.S_ISFIFO(os.stat(path).st_mode)


def test_a_pool_is_named_by_a_pair(device):
    for wrong in (5, "ab", (1,), (0, 1, 2)):
        with pytest.raises(TypeError, match="^mempool_id: got .*; expected None or a pair"):
            memory.memory_snapshot(wrong, device=device)
    assert memory.memory_snapshot([0, 1 << 40], device=device) == []


def test_the_handle_of_a_stream_has_64_bits(device):
    for wrong in (-5, 1 << 64, 1 << 80):
        with pytest.raises(ValueError, match=f"^stream: got {wrong}; expected a handle"):
            memory.caching_allocator_alloc(1, device, wrong)


def test_the_history_takes_pytorchs_arguments(device):
    for enabled, meant in ((True, "all"), (False, None)):
        memory.record_memory_history(enabled, "all", "python", 100, device, skip_actions=None)
        assert history_settings()["enabled"] == meant
    assert history_settings()["skip_actions"] == ()


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [("alloc", TypeError), (3, TypeError), (["x"], ValueError), ([3], ValueError)],
)
def test_actions_to_skip_are_a_sequence_of_known_ones(wrong, kind):
    with pytest.raises(kind, match="^skip_actions: got "):
        memory.record_memory_history(skip_actions=wrong)
    assert history_settings()["enabled"] is None


def test_actions_to_skip_may_come_from_an_iterator(device):
    memory.record_memory_history(skip_actions=iter(["snapshot", "alloc"]))
    try:
        memory.caching_allocator_delete(memory.caching_allocator_alloc(512, device))
        actions = [entry["action"] for entry in memory.snapshot(device)["device_traces"][0]]
        assert "free_completed" in actions and not {"snapshot", "alloc"} & set(actions)
        assert history_settings()["skip_actions"] == ("snapshot", "alloc")
    finally:
        memory.record_memory_history(None)
