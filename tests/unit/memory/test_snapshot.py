"""Snapshots: PyTorch's schema from raw records, sharing, atomic files."""

import json
import os
import pickle
import random
import stat

import numpy as np
import pytest

from gputensor._alloc import history
from gputensor._alloc import observe as snapshot
from gputensor._alloc.config import settings
from gputensor._alloc.history.pool_names import note_user_pool
from gputensor._driver import registry

STATES = ("inactive", "active_allocated", "active_pending_free")
BLOCK_KEYS = {"address", "size", "requested_size", "state", "frames"}
SIZES = ("allocated_size", "active_size", "requested_size", "total_size")
SEGMENT_KEYS = {
    "device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
    "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks",
}  # fmt: skip
SETTING_KEYS = {
    "PYTORCH_CUDA_ALLOC_CONF", "max_split_size", "garbage_collection_threshold",
    "expandable_segments", "pinned_num_register_threads", "release_lock_on_cudamalloc",
    "pinned_use_cuda_host_register", "graph_capture_record_stream_reuse",
    "roundup_power2_divisions", "max_round_threshold", "max_cached_size",
}  # fmt: skip


@pytest.fixture
def device():
    number = registry.open_host(capacity=1 << 30, phantom=True)
    yield number
    history.record_memory_history(None)
    registry.close_host(number)


def random_records(rng, segments, device=-1):
    """Random segments tiled by random blocks, as the core would collect them."""
    segment_array = np.zeros(segments, snapshot.SEGMENT_DTYPE)
    blocks, address = [], 1 << 40
    for segment in segment_array:
        sizes = [512 * rng.randint(1, 4000) for _ in range(rng.randint(1, 6))]
        segment["address"], segment["nbytes"] = address, sum(sizes)
        segment["stream"], segment["pool_id"] = rng.choice([0, 77]), rng.choice([0, 0, 1 << 40])
        segment["n_blocks"], segment["device"] = len(sizes), device
        segment["is_large"], segment["is_expandable"] = rng.randint(0, 1), rng.randint(0, 1)
        for size in sizes:
            state = rng.randint(0, 2)
            requested = 0 if state == 0 else rng.randint(1, size)
            blocks.append((address, size, requested, 0, state))
            address += size
        address += 1 << 30
    return segment_array, np.array(blocks, snapshot.BLOCK_DTYPE)


def test_segments_have_pytorchs_fields_and_their_sums():
    rng = random.Random()
    segments, blocks = random_records(rng, 40)
    formatted = snapshot.format_segments(segments, blocks)
    assert len(formatted) == 40
    tiles = iter(blocks)
    for raw, part in zip(segments, formatted, strict=True):
        assert set(part) == SEGMENT_KEYS
        assert part["address"] == raw["address"]
        assert part["total_size"] == raw["nbytes"] == sum(b["size"] for b in part["blocks"])
        assert part["segment_type"] == ("large" if raw["is_large"] else "small")
        assert part["segment_pool_id"] == (int(raw["pool_id"]), 0)
        assert part["is_expandable"] is bool(raw["is_expandable"])
        active = [b for b in part["blocks"] if b["state"] != "inactive"]
        held = [b for b in active if b["state"] == "active_allocated"]
        assert part["active_size"] == sum(b["size"] for b in active)
        assert part["allocated_size"] == sum(b["size"] for b in held)
        assert part["requested_size"] == sum(b["requested_size"] for b in active)
        assert {type(part[name]) for name in SIZES} == {int}
        for block in part["blocks"]:
            tile = next(tiles)
            assert set(block) == BLOCK_KEYS
            assert block["address"] == tile["address"]
            assert block["size"] == tile["nbytes"]
            assert block["state"] == STATES[tile["state"]]
    assert next(tiles, None) is None


def test_block_counts_that_do_not_add_up_are_refused():
    segments, blocks = random_records(random.Random(), 3)
    with pytest.raises(ValueError, match="segments: got .* blocks; expected"):
        snapshot.format_segments(segments, blocks[:-1])


def test_a_pool_made_by_a_user_has_its_number_second():
    segments, blocks = random_records(random.Random(), 2)
    segments["pool_id"] = (1 << 50) + os.getpid()
    note_user_pool((1 << 50) + os.getpid())
    assert snapshot.format_segments(segments, blocks)[0]["segment_pool_id"] == (
        0, (1 << 50) + os.getpid(),
    )  # fmt: skip


def test_the_whole_has_pytorchs_parts_and_numbers_that_index_the_traces(device):
    history.record_memory_history()
    history.add_entry(device, "alloc", 1 << 40, 512)
    records = {
        device: random_records(random.Random(), 5, device),
        3: random_records(random.Random(), 4, 3),
    }
    whole = snapshot.format_snapshot([device, 3], records.__getitem__)
    assert {"segments", "device_traces", "allocator_settings", "external_annotations"} <= set(whole)
    assert whole["devices"] == ["cuda:0", "cuda:1", "cuda:2", "cuda:3", f"host:{-1 - device}"]
    assert len(whole["device_traces"]) == 5
    assert [part["device"] for part in whole["segments"]].count(3) == 4
    assert [part["device"] for part in whole["segments"]].count(4) == 5
    addresses = [part["address"] for part in whole["segments"]]
    assert addresses == sorted(addresses)
    assert [entry["action"] for entry in whole["device_traces"][4]] == ["alloc"]
    assert set(whole["allocator_settings"]) >= SETTING_KEYS
    later = snapshot.format_snapshot([device], records.__getitem__)["device_traces"][-1]
    assert [entry["action"] for entry in later] == ["alloc", "snapshot"]


def test_the_settings_are_shown_in_pytorchs_units(monkeypatch):
    text = "max_split_size_mb:64,roundup_power2_divisions:[256:1,>:4],pinned_max_cached_size_mb:3"
    monkeypatch.setattr(settings, "_in_force", settings.parse(text))
    shown = snapshot.allocator_settings()
    assert shown["max_split_size"] == 64 << 20
    assert shown["max_cached_size"] == 3 << 20
    assert shown["max_round_threshold"] == -1
    assert shown["roundup_power2_divisions"]["256"] == 1
    assert shown["roundup_power2_divisions"]["1024"] == 4
    assert shown["PYTORCH_CUDA_ALLOC_CONF"] == text


def test_entries_with_one_stack_share_its_frames(device):
    history.record_memory_history()
    for number in range(10):
        history.add_entry(device, "alloc", number, 512)
    first, *others = history.entries(device)
    assert first["frames"]
    assert all(entry["frames"] is first["frames"] for entry in others)
    assert all(entry is not first for entry in others)


def test_the_file_is_a_pickle_of_plain_values(device, tmp_path):
    history.record_memory_history()
    history.add_entry(device, "alloc", 1 << 40, 512)
    records = random_records(random.Random(), 5, device)
    whole = snapshot.format_snapshot([device], lambda _: records)
    path = tmp_path / "snapshot.pickle"
    snapshot.write_pickle(whole, path)
    with open(path, "rb") as file:
        loaded = pickle.load(file)
    assert loaded == whole
    json.dumps(loaded)  # no NumPy types and no types of the library
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(b"before")
    with pytest.raises(Exception, match="pickle|local"):
        snapshot.write_pickle({"bad": lambda: None}, path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["snapshot.pickle"]


def test_pytorchs_reading_of_a_trace_gives_the_live_blocks_back(device):
    """Like the viewers, walk the events backwards from the blocks of the segments."""
    rng = random.Random()
    history.record_memory_history()
    live, address = {}, 1 << 40
    for _ in range(500):
        if live and rng.random() < 0.45:
            gone = rng.choice(list(live))
            history.add_entry(device, "free_requested", gone, live[gone])
            history.add_entry(device, "free_completed", gone, live.pop(gone))
        else:
            size = 512 * rng.randint(1, 100)
            history.add_entry(device, "alloc", address, size)
            live[address] = size
            address += size
    segments = np.zeros(1, snapshot.SEGMENT_DTYPE)
    tiles = sorted(live.items())
    segments["address"], segments["n_blocks"] = 1 << 40, len(tiles)
    blocks = np.zeros(len(tiles), snapshot.BLOCK_DTYPE)
    blocks["address"], blocks["nbytes"] = np.array(tiles, "u8").reshape(-1, 2).T
    blocks["state"] = 1
    whole = snapshot.format_snapshot([device], lambda _: (segments, blocks))
    state = {
        block["address"]: block["size"]
        for segment in whole["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }
    assert state == live
    for entry in reversed(whole["device_traces"][0]):
        if entry["action"] == "alloc":
            assert state.pop(entry["addr"]) == entry["size"]
        elif entry["action"] == "free_completed":
            assert entry["addr"] not in state
            state[entry["addr"]] = entry["size"]
    assert state == {}
