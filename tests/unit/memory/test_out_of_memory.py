"""A failed request states its reason: each class from a real scenario, with exact amounts."""

import contextlib
import random

import numpy as np
import pytest

from gputensor import memory
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc.explain import out_of_memory
from gputensor._alloc.observe import failure_facts
from gputensor.errors import status_text
from gputensor.graphs import CUDAGraph
from gputensor.streams import Device, Stream
from tests.support.driver_calls import Calls
from tests.support.failing_requests import MIB, REASONS, comb, fail, refusing, serves

pytest_plugins = ("tests.support.failing_fixtures",)


def test_a_full_device_is_exhausted(open_device, either):
    device = open_device()
    held = raw_memory.raw_alloc(device, 200 * MIB, 0)
    error = fail(device, 100 * MIB)
    assert error.reason == "exhausted"
    assert "the device is full: 44.0 MiB more would have to be free" in str(error)
    assert error.option is None
    assert serves(device, 50 * MIB)
    raw_memory.raw_delete(held)
    assert serves(device, 256 * MIB)


def test_a_request_beyond_the_device_is_exhausted_in_any_state(open_device, either):
    device = open_device()
    for nbytes in (257 * MIB, 1 << 40, 1 << 60):
        error = fail(device, nbytes)
        assert error.reason == "exhausted"
        assert "the device is smaller than the request" in str(error)
    assert serves(device, 256 * MIB)


def test_free_memory_in_pieces_is_fragmented(open_device, conf):
    conf("expandable_segments:False")
    device = open_device(capacity=200 * MIB)
    big = raw_memory.raw_alloc(device, 200 * MIB, 0)
    raw_memory.raw_delete(big)  # one segment, which the next requests split into blocks
    held = comb(device, 10, 20 * MIB)
    error = fail(device, 60 * MIB)
    assert error.reason == "fragmented"
    assert error.facts["cached"] == 100 * MIB
    assert error.facts["largest_free_block"] == 20 * MIB
    assert "100.0 MiB are free in the cache, but not in one piece" in str(error)
    assert error.option is None
    assert serves(device, 20 * MIB)
    raw_memory.raw_delete(held[0])
    assert serves(device, 60 * MIB)


def test_free_parts_of_pages_are_fragmented_with_expandable_segments_too(open_device):
    device = open_device(capacity=64 * MIB)
    held = comb(device, 60, MIB + 512)  # holes of half a page: no whole page is free
    facts = failure_facts(device, 40 * MIB, 0)
    assert facts["cached"] + facts["free"] >= 20 * MIB
    error = fail(device, 20 * MIB)
    assert error.reason == "fragmented"
    assert held


@contextlib.contextmanager
def capturing(device):
    """Run a capture on a stream of the device; yield the handle of the stream."""
    with Device(device):
        stream = Stream()
        held = CUDAGraph()
        with stream:
            held.capture_begin()
            try:
                yield stream.cuda_stream
            finally:
                held.capture_end()
        held.reset()


@pytest.mark.parametrize("where", ["beside the capture", "in the capture"])
def test_freed_memory_that_a_capture_may_not_wait_for_is_waiting(open_device, either, where):
    device = open_device(seed=random.randrange(1 << 30))
    calls = Calls(device)
    other = calls.make("stream_create", 0)
    ptr = raw_memory.raw_alloc(device, 200 * MIB, 0)
    raw_memory.raw_record_stream(ptr, other)
    with capturing(device) as stream:
        raw_memory.raw_delete(ptr)
        error = fail(device, 100 * MIB, 0 if where == "beside the capture" else stream)
    assert error.reason == "waiting on streams"
    assert error.facts["waiting"] == 200 * MIB
    assert "200.0 MiB are freed but wait for work on streams, and during a capture" in str(error)
    assert serves(device, 100 * MIB)
    assert calls.stream_destroy(other) == 0


def test_memory_that_the_cache_holds_is_not_given_to_a_capture_of_plain_segments(open_device, conf):
    conf("expandable_segments:False")
    device = open_device()
    with capturing(device) as stream:
        assert serves(device, 200 * MIB)
        error = fail(device, 100 * MIB, stream)
    assert error.reason == "waiting on streams"
    with capturing(device) as stream:
        raw_memory.raw_delete(raw_memory.raw_alloc(device, 100 * MIB, stream))


def test_freed_memory_whose_wait_fails_is_waiting(open_device, either):
    device = open_device(seed=random.randrange(1 << 30))
    calls = Calls(device)
    other = calls.make("stream_create", 0)
    ptr = raw_memory.raw_alloc(device, 200 * MIB, 0)
    raw_memory.raw_record_stream(ptr, other)
    waits = ("event_query", "event_synchronize", "stream_query", "stream_synchronize",
             "synchronize")  # fmt: skip
    with refusing(device, 700, *waits):
        raw_memory.raw_delete(ptr)
        error = fail(device, 100 * MIB)
    assert error.reason == "waiting on streams"
    assert error.facts["waiting"] == 200 * MIB
    assert "waiting for it failed" in str(error)
    assert serves(device, 100 * MIB)


def test_free_memory_of_a_pool_that_is_held_is_an_idle_private_pool(open_device, either):
    device = open_device()
    pool = memory.MemPool(device)
    with memory.use_mem_pool(pool, device):
        raw_memory.raw_delete(raw_memory.raw_alloc(device, 200 * MIB, 0))
    error = fail(device, 100 * MIB)
    assert error.reason == "idle private pool"
    assert error.facts["private_idle"] >= 200 * MIB
    assert "are free in private pools" in str(error)
    del pool
    assert serves(device, 100 * MIB)


def test_a_request_of_a_pool_is_explained_by_what_that_pool_may_use(open_device):
    device = open_device()
    pool, other = memory.MemPool(device), memory.MemPool(device)
    with memory.use_mem_pool(other, device):
        raw_memory.raw_delete(raw_memory.raw_alloc(device, 150 * MIB, 0))
    with memory.use_mem_pool(pool, device):
        error = fail(device, 120 * MIB)
        assert error.reason == "idle private pool"
    with memory.use_mem_pool(other, device):
        assert serves(device, 120 * MIB)


@pytest.mark.parametrize("option", ["memory_limit_mb:128", "per_process_memory_fraction:0.5"])
def test_a_limit_is_named_and_the_option_that_suffices(open_device, conf, either, option):
    device = open_device()
    conf(option)
    held = raw_memory.raw_alloc(device, 100 * MIB, 0)
    error = fail(device, 60 * MIB)
    assert error.reason == "limit"
    assert "limit 128.0 MiB" in str(error)
    assert "at most 128.0 MiB may be reserved on this device" in str(error)
    assert error.option.split(":")[0] == option.split(":")[0]
    assert f"it would have fitted with {error.option}" in str(error)
    conf(error.option)
    assert serves(device, 60 * MIB)
    raw_memory.raw_delete(held)


def test_a_share_of_one_device_is_a_limit(open_device):
    device = open_device()
    memory.set_per_process_memory_fraction(0.25, device)
    error = fail(device, 100 * MIB)
    assert (error.reason, error.facts["limit"]) == ("limit", 64 * MIB)
    memory.set_per_process_memory_fraction(1.0, device)
    assert serves(device, 100 * MIB)


def test_two_limits_that_both_bind_are_not_blamed_on_one_option(open_device, conf):
    device = open_device()
    conf("memory_limit_mb:64,per_process_memory_fraction:0.25")
    error = fail(device, 100 * MIB)
    assert (error.reason, error.option) == ("limit", None)


def test_a_refusal_by_throw_on_cudamalloc_oom_has_its_own_words(open_device, conf, either):
    device = open_device()
    conf("throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.5")
    held = comb(device, 4, 25 * MIB)
    error = fail(device, 90 * MIB)
    assert error.reason == "limit"
    assert "throw_on_cudamalloc_oom refuses at once" in str(error)
    assert memory.memory_stats(device)["num_oom_rejections"] == 1
    assert memory.memory_stats(device)["num_ooms"] == 0
    assert held and serves(device, 25 * MIB)


def test_memory_that_others_hold_is_other_processes(open_device, either):
    device = open_device()
    calls = Calls(device)
    foreign = calls.make("mem_alloc", 200 * MIB)
    held = raw_memory.raw_alloc(device, 20 * MIB, 0)
    error = fail(device, 100 * MIB)
    assert error.reason == "other processes"
    assert "200.0 MiB are held by other processes" in str(error)
    assert calls.mem_free(foreign) == 0
    assert serves(device, 100 * MIB)
    raw_memory.raw_delete(held)


def test_a_request_beyond_the_memory_of_other_processes_is_exhausted(open_device):
    device = open_device()
    calls = Calls(device)
    foreign = calls.make("mem_alloc", 50 * MIB)
    held = raw_memory.raw_alloc(device, 100 * MIB, 0)
    assert fail(device, 200 * MIB).reason == "exhausted"
    assert calls.mem_free(foreign) == 0
    assert held


def test_a_refusal_of_the_driver_without_a_reason_is_reported_as_such(open_device, either):
    device = open_device()
    with refusing(device, 2, "mem_alloc", "page_create"):
        error = fail(device, 30 * MIB)
    assert error.reason == "exhausted"
    assert "the driver refused, although its amounts suffice" in str(error)
    assert serves(device, 30 * MIB)


def facts_of(rng):
    """Random consistent amounts of a device, in arbitrary units."""
    total = int(rng.integers(1, 1000))
    reserved = int(rng.integers(0, total + 1))
    free = int(rng.integers(0, total - reserved + 1))
    parts = np.sort(rng.integers(0, reserved + 1, 3))
    cached, waiting, private_idle = (int(part) for part in np.diff([0, *parts]))
    need = int(rng.integers(1, 1200))
    return {
        "rounded": need, "growth": need + int(rng.integers(0, 20)), "reserved": reserved,
        "limit": None if rng.random() < 0.5 else int(rng.integers(0, total + 1)),
        "cached": cached, "waiting": waiting, "private_idle": private_idle, "free": free,
        "total": total, "is_rejected": False, "has_source": False, "own_context": 0,
    }  # fmt: skip


def test_the_class_is_the_first_change_that_would_make_room(rng):
    """Independent of the code: grant one resource after another until the request fits."""
    seen = set()
    for _ in range(20_000):
        facts = facts_of(rng)
        room = out_of_memory.room_to_grow(facts)
        reason = out_of_memory.reason_of(facts)
        seen.add(reason)
        need = facts["rounded"] if facts["rounded"] > room else facts["growth"]
        granted = facts["cached"] + room
        if facts["cached"] >= facts["rounded"] or (
            room < facts["rounded"] and granted >= facts["rounded"]
        ):
            expected = "fragmented"
        elif granted < need <= granted + facts["waiting"]:
            expected = "waiting on streams"
        elif (granted + facts["waiting"] < need
              <= granted + facts["waiting"] + facts["private_idle"]):  # fmt: skip
            expected = "idle private pool"
        else:
            granted = facts["cached"] + facts["waiting"] + facts["private_idle"]
            everything = granted + facts["total"] - facts["reserved"]
            limited = facts["limit"] is not None and (
                facts["reserved"] + facts["growth"] > facts["limit"]
            )
            if limited and need <= everything:
                expected = "limit"
            elif granted + facts["free"] < need <= everything:
                expected = "other processes"
            else:
                expected = "exhausted"
        assert reason == expected, facts
    assert seen == REASONS


def test_every_status_of_the_driver_has_a_text():
    known = (34, 36, 46, 205, 206, 207, 208, 304, 401, 702, 704, 708, 712, 713, 715, 717, 718, 720,
             803, 804, 902, 903, 904, 907, 908)  # fmt: skip
    texts = [status_text(status) for status in known]
    assert len(set(texts)) == len(known)
    assert all(text.startswith("CUDA_ERROR_") for text in texts)
