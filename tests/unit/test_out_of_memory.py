"""A failed request says why: each class from a real scenario, true amounts, advice that holds."""

import contextlib
import ctypes
import gc
import random
import threading
import time
import weakref

import numpy as np
import pytest

from gputensor import memory
from gputensor._alloc import device_allocator, oom_advice, out_of_memory, raw_memory, settings
from gputensor._alloc.failure_case import build_case, case_of
from gputensor._alloc.oom_facts import failure_facts
from gputensor._alloc.replay import replay_settings
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError, status_text
from gputensor.graphs import CUDAGraph
from gputensor.streams import Device, Stream
from tests.conformance.driver_calls import HEADER_WORDS, SIGNATURES, Calls

MIB = 1 << 20
REASONS = {"exhausted", "fragmented", "waiting on streams", "idle private pool", "limit",
           "other processes"}  # fmt: skip


@pytest.fixture
def open_device():
    """Open host devices, 256 MiB if not told otherwise; closed with all that they hold."""
    opened = []

    def open_one(capacity=256 * MIB, seed=None):
        opened.append(registry.open_host(capacity=capacity, seed=seed))
        return opened[-1]

    yield open_one
    memory.record_memory_history(None)
    for number in opened:
        registry.close_host(number)


@pytest.fixture
def conf():
    before = settings.current()
    yield memory.set_allocator_settings
    settings._in_force = before
    settings._fractions.clear()
    settings._tell()


@pytest.fixture
def observed():
    """Attach observers; detached after the test."""
    yield memory.attach_out_of_memory_observer
    out_of_memory._observers.clear()


def fail(device, nbytes, stream=0):
    """Make a request that must fail, and return its error after the checks that all must pass."""
    before = memory.memory_stats(device)
    free, total = memory.mem_get_info(device)
    with pytest.raises(OutOfMemoryError) as caught:
        raw_memory.raw_alloc(device, nbytes, stream)
    error = caught.value
    facts, message, stats = error.facts, str(error), memory.memory_stats(device)
    assert error.reason in REASONS
    assert "\n" not in message
    assert f"reason: {error.reason} (" in message
    assert facts["requested"] == nbytes
    assert facts["allocated"] == before["allocated_bytes.all.current"]
    assert facts["allocated"] == stats["allocated_bytes.all.current"]
    assert facts["reserved"] == stats["reserved_bytes.all.current"]
    assert (facts["free"], facts["total"]) == memory.mem_get_info(device)
    assert facts["total"] == total
    for name in ("requested", "allocated", "reserved", "free", "total", "largest_free_block"):
        assert out_of_memory.in_units(facts[name]) in message
    free_blocks = [
        block["size"]
        for segment in memory.memory_snapshot(device=device)
        if segment["segment_pool_id"] == (0, 0) and segment["address"] != 0
        for block in segment["blocks"]
        if block["state"] == "inactive"
    ]
    if not facts["is_private"]:
        assert facts["largest_free_block"] == max(free_blocks, default=0)
    assert stats["num_ooms"] + stats["num_oom_rejections"] == (
        before["num_ooms"] + before["num_oom_rejections"] + 1
    )
    return error


def serves(device, nbytes):
    raw_memory.raw_delete(raw_memory.raw_alloc(device, nbytes, 0))
    return True


def comb(device, count, nbytes, stream=0):
    """Fill a device with blocks and free every second one; gives what is still held."""
    held = [raw_memory.raw_alloc(device, nbytes, stream) for _ in range(count)]
    for ptr in held[::2]:
        raw_memory.raw_delete(ptr)
    return held[1::2]


@pytest.fixture(params=[True, False], ids=["expandable", "plain"])
def either(request, conf):
    conf(f"expandable_segments:{request.param}")
    return request.param


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


def test_a_request_beyond_the_device_is_exhausted_whatever_else_holds(open_device, either):
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
    raw_memory.raw_delete(big)  # one segment, cut into blocks by what follows
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
    """Have a capture under way on a stream of the device; gives the stream's handle."""
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
    assert serves(device, 200 * MIB)
    with capturing(device) as stream:
        error = fail(device, 100 * MIB, stream)
    assert error.reason == "waiting on streams"
    memory.empty_cache(device)
    with capturing(device) as stream:
        raw_memory.raw_delete(raw_memory.raw_alloc(device, 100 * MIB, stream))


@contextlib.contextmanager
def refusing(device, status, *names):
    """Have entries of a device's table return a status, every time."""
    table = (ctypes.c_void_p * (HEADER_WORDS + len(SIGNATURES))).from_address(
        registry.table_address(device)
    )
    refuse = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: status)
    before = list(table)
    for name in names:
        table[HEADER_WORDS + list(SIGNATURES).index(name)] = ctypes.cast(refuse, ctypes.c_void_p)
    try:
        yield
    finally:
        for i in range(HEADER_WORDS, len(before)):
            table[i] = before[i]


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
    assert "200.0 MiB are held by others" in str(error)
    assert calls.mem_free(foreign) == 0
    assert serves(device, 100 * MIB)
    raw_memory.raw_delete(held)


def test_a_request_that_others_could_not_make_room_for_is_exhausted(open_device):
    device = open_device()
    calls = Calls(device)
    foreign = calls.make("mem_alloc", 50 * MIB)
    held = raw_memory.raw_alloc(device, 100 * MIB, 0)
    assert fail(device, 200 * MIB).reason == "exhausted"
    assert calls.mem_free(foreign) == 0
    assert held


def test_a_driver_that_refuses_without_reason_is_said_to(open_device, either):
    device = open_device()
    with refusing(device, 2, "mem_alloc", "page_create"):
        error = fail(device, 30 * MIB)
    assert error.reason == "exhausted"
    assert "the driver refused, although its amounts suffice" in str(error)
    assert serves(device, 30 * MIB)


def facts_of(rng):
    """Amounts of a device in units of nothing in particular, all consistent."""
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
        "total": total, "is_rejected": False, "own_context": 0,
    }  # fmt: skip


def test_the_class_is_the_first_change_that_would_make_room(rng):
    """Independently of the code: grant one resource after the other and see when it is enough."""
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


@pytest.fixture
def rng():
    return np.random.default_rng(random.SystemRandom().getrandbits(64))


def test_history_finds_the_option_that_would_have_helped_and_it_does(open_device, conf):
    conf("expandable_segments:False")
    memory.record_memory_history()
    before = settings.current()

    def program(device):
        assert serves(device, 512)
        return raw_memory.raw_alloc(device, 3 * MIB, 0)  # its segment has 20 MiB, and stays

    device = open_device(capacity=50 * MIB)
    held = program(device)
    error = fail(device, 40 * MIB)
    assert error.reason == "fragmented"
    assert error.option == "expandable_segments:True"
    assert "it would have fitted with expandable_segments:True (replayed 3 events)" in str(error)
    assert settings.current() is before
    assert held
    conf(error.option)
    again = open_device(capacity=50 * MIB)
    held = program(again)
    assert serves(again, 40 * MIB)


def test_the_advice_of_many_programs_holds(open_device, conf, rng):
    """Random programs until one runs out; then the option named must carry it through."""
    memory.record_memory_history()
    confirmed = 0
    for _ in range(12):
        conf(str(rng.choice(["expandable_segments:False", "page_reuse:False"])))
        steps = random_steps(rng)
        error, at = run(open_device(capacity=64 * MIB), steps)
        if error is not None and error.option is not None:
            conf(error.option)
            again, reached = run(open_device(capacity=64 * MIB), steps)
            assert again is None or reached > at, (error, again)
            confirmed += 1
        conf("expandable_segments:True,page_reuse:True,page_size_mb:20")
        settings._in_force = settings.parse("")
    assert confirmed > 0


def random_steps(rng):
    """Sizes to allocate, and positions of live blocks to free (negative)."""
    steps, live = [], []
    for name in range(300):
        while live and sum(size for _, size in live) > 40 * MIB:
            at = int(rng.integers(len(live)))
            steps.append((-1, live.pop(at)[0]))
        size = int(rng.integers(MIB + 1, 14 * MIB))
        live.append((name, size))
        steps.append((size, name))
    return steps


def run(device, steps):
    """Run steps on a device; gives the error and the step of the first failure, if any."""
    held = {}
    for at, (size, name) in enumerate(steps):
        if size < 0:
            raw_memory.raw_delete(held.pop(name))
            continue
        try:
            held[name] = raw_memory.raw_alloc(device, size, 0)
        except OutOfMemoryError as error:
            return error, at
    return None, len(steps)


def test_page_reuse_is_found_where_it_is_what_is_missing(open_device, conf):
    conf("page_reuse:False")
    memory.record_memory_history()
    device = open_device(capacity=200 * MIB)
    assert serves(device, 200 * MIB)
    error = fail(device, 1000)  # small blocks have pages of their own, and there are none left
    assert error.reason == "fragmented"
    assert error.option == "page_reuse:True"
    conf(error.option)
    assert serves(device, 1000)


def test_a_limit_found_by_replay_suffices(open_device, conf):
    memory.record_memory_history()
    device = open_device()
    conf("memory_limit_mb:128")
    held = comb(device, 6, 20 * MIB)
    error = fail(device, 90 * MIB)
    assert error.reason == "limit"
    assert error.option.startswith("memory_limit_mb:")
    assert "(replayed 9 events)" in str(error)
    conf(error.option)
    assert serves(device, 90 * MIB)
    assert held


def test_a_full_device_is_helped_by_no_option(open_device, either):
    memory.record_memory_history()
    device = open_device()
    held = raw_memory.raw_alloc(device, 200 * MIB, 0)
    error = fail(device, 100 * MIB)
    assert error.option is None
    assert "no option would have helped (replayed 1 events)" in str(error)
    assert held


def test_without_history_only_what_the_amounts_prove_is_said(open_device, conf):
    conf("expandable_segments:False")
    device = open_device(capacity=15 * MIB)
    error = fail(device, 3 * MIB)  # a plain segment for it has 20 MiB
    assert error.reason == "exhausted"
    assert error.option == "expandable_segments:True"
    conf(error.option)
    assert serves(device, 3 * MIB)


def test_a_replay_that_does_not_fail_says_nothing(open_device):
    memory.record_memory_history()
    device = open_device()
    held = raw_memory.raw_alloc(device, 512, 0)
    with refusing(device, 2, "page_create"):
        error = fail(device, 30 * MIB)
    assert error.option is None
    assert "replayed" not in str(error)
    assert held


def test_the_time_for_replays_is_bounded_and_can_be_set(open_device, monkeypatch):
    memory.record_memory_history()
    device = open_device()
    held = [raw_memory.raw_alloc(device, 4096, 0) for _ in range(20_000)]
    for ptr in held[::2]:
        raw_memory.raw_delete(ptr)
    monkeypatch.setenv(oom_advice.VARIABLE, "0.001")
    assert "no option was found in 0.001 s that helps" in str(fail(device, 300 * MIB))
    monkeypatch.setenv(oom_advice.VARIABLE, "0")
    assert "replayed" not in str(fail(device, 300 * MIB))
    monkeypatch.delenv(oom_advice.VARIABLE)
    start = time.perf_counter()
    error = fail(device, 300 * MIB)
    assert time.perf_counter() - start < 5
    assert "replayed" in str(error)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_bad_time_does_not_replace_the_error(open_device, monkeypatch, text):
    monkeypatch.setenv(oom_advice.VARIABLE, text)
    assert oom_advice.replay_seconds() == oom_advice.DEFAULT_SECONDS
    fail(open_device(), 300 * MIB)


def test_a_case_is_a_valid_trace_of_what_is_live(open_device, rng):
    """Events older than the ring are replaced by seeds; what is live at the end stays the same."""
    device = open_device()
    live = {}
    for step in range(400):
        if step == 150:
            memory.record_memory_history(max_entries=200)
        if live and rng.random() < 0.45:
            ptr = list(live)[int(rng.integers(len(live)))]
            del live[ptr]
            raw_memory.raw_delete(ptr)
        else:
            nbytes = int(rng.integers(1, MIB))
            live[raw_memory.raw_alloc(device, nbytes, 0)] = nbytes
    case = case_of(device, 12345, 0)
    assert case.recorded <= 200
    held = {}
    for op, name, size in zip(case.op, case.id, case.size, strict=True):
        if op > 0:
            assert name not in held
            held[name] = int(size)
        else:
            assert held.pop(name) == size
    assert held.pop(case.id[-1]) == 12345
    assert sorted(held.values()) == sorted(live.values())
    assert case.recorded > 50


def test_a_case_holds_what_waits_for_a_stream_until_its_free_is_complete():
    events = [
        (0, 512, 1024, 0, 0),
        (0, 8192, 2048, 5, 0),
        (2, 512, 1024, 0, 0),
        (0, 512, 512, 0, 0),
    ]
    case = build_case(events, [(512, 512, 10, 0), (8192, 2048, 0, 5), (99840, 512, 1, 7)], 64, 5)
    assert case.op.tolist() == [1, 1, 1, -1, 1, 1]
    assert case.size.tolist() == [1, 1024, 2048, 1024, 10, 64]
    assert case.stream.tolist() == [1, 0, 2, 0, 0, 2]


def test_a_case_survives_events_that_were_lost():
    events = [(0, 512, 1024, 0, 0), (0, 512, 512, 0, 0), (2, 4096, 512, 0, 0), (0, 8192, 512, 0, 0)]
    case = build_case(events, [(512, 512, 512, 0)], 64, 0)
    op = case.op.tolist()
    assert op.count(1) - op.count(-1) == 2  # the block held, and the request


def test_the_parts_of_a_block_in_a_view_are_one_request_in_a_case():
    view = 1 << 30
    parts = [(0, 512, 1024, 0, view), (0, 8192, 2048, 0, view)]
    freed = [(2, ptr, nbytes, 0, view) for _, ptr, nbytes, _, _ in parts]
    again = [(0, 8192, 512, 0, view)]
    case = build_case(parts + freed + again, [(8192, 512, 500, 0)], 64, 0)
    assert case.op.tolist() == [1, -1, 1, 1]
    assert case.size.tolist() == [3072, 3072, 500, 64]
    older = build_case(freed + parts, [(512, 1024, 1024, 0), (8192, 2048, 900, 0)], 64, 0)
    assert older.op.tolist() == [1, -1, 1, 1]
    assert older.size.tolist() == [3072, 3072, 1924, 64]


def test_settings_of_a_replay_touch_no_other_device(open_device, conf):
    conf("page_size_mb:4")
    device, before = open_device(capacity=64 * MIB), settings.current()
    assert serves(device, 3 * MIB)
    phantom = registry.open_host(capacity=1 << 40, phantom=True)
    try:
        own = settings.parse("expandable_segments:False", before)
        arrays = [np.array([1, 1], np.int8), np.array([0, 1], np.int32),
                  np.array([30 * MIB, 50 * MIB], np.int64), np.array([0, 3], np.int16)]  # fmt: skip
        assert replay_settings(*arrays, phantom, own, None, 9) == (2, 80 * MIB)
        assert replay_settings(*arrays, phantom, own, 79 * MIB, 9) == (1, 30 * MIB)
        with pytest.raises(TimeoutError):
            replay_settings(*arrays, phantom, own, None, -1)
        device_allocator.open_allocator(phantom, own, 10 * MIB)
        conf("memory_limit_mb:32")
        assert failure_facts(phantom, 1, 0)["limit"] == 10 * MIB
        device_allocator.close_allocator(phantom)
        device_allocator.open_allocator(phantom)
        assert failure_facts(phantom, 1, 0)["limit"] == 32 * MIB
    finally:
        registry.close_host(phantom)
    assert failure_facts(device, 1, 0)["limit"] == 32 * MIB


def test_the_lines_that_hold_most_are_named_with_bytes_and_blocks(open_device):
    device = open_device()
    memory.record_memory_history()

    def much():
        return [raw_memory.raw_alloc(device, 30 * MIB, 0) for _ in range(3)]

    def little():
        return [raw_memory.raw_alloc(device, 2 * MIB, 0) for _ in range(7)]

    held = much() + little()
    first, second = memory.top_call_sites(device, 2)
    assert (first.nbytes, first.count) == (90 * MIB, 3)
    assert (second.nbytes, second.count) == (14 * MIB, 7)
    line = much.__code__.co_firstlineno + 1
    assert first.place.startswith(f"{__file__}:{line} in ")
    assert memory.top_call_sites(device, 1) == [first]
    error = fail(device, 250 * MIB)
    assert error.call_sites == [first, second]
    assert f"{first.place} 90.0 MiB in 3 blocks" in str(error)
    raw_memory.raw_delete(held[0])
    assert memory.top_call_sites(device)[0][:2] == (60 * MIB, 2)


def test_at_most_five_lines_are_named(open_device):
    device = open_device()
    memory.record_memory_history()
    held = []
    for size in range(1, 9):
        source = "\n" * size + "held.append(take(device, size * MIB, 0))"
        names = {"take": raw_memory.raw_alloc, "MIB": MIB, **locals()}
        exec(compile(source, "program.py", "exec"), names)
    error = fail(device, 250 * MIB)
    assert [site.nbytes for site in error.call_sites] == [n * MIB for n in (8, 7, 6, 5, 4)]
    assert error.call_sites[0].place == "program.py:9 in <module>"


def test_without_stacks_no_lines_are_named(open_device):
    device = open_device()
    held = raw_memory.raw_alloc(device, MIB, 0)
    assert memory.top_call_sites(device) == []
    assert "held by" not in str(fail(device, 300 * MIB))
    assert held


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "5"])
def test_the_number_of_lines_must_be_a_count(wrong):
    with pytest.raises(ValueError, match="^count: got"):
        memory.top_call_sites("host", wrong)


def test_an_observer_is_told_the_limit_where_there_is_one(open_device, conf, observed):
    device = open_device()
    calls = []
    observed(lambda *amounts: calls.append(amounts))
    fail(device, 300 * MIB)
    conf("memory_limit_mb:100")
    fail(device, 200 * MIB)
    assert calls == [
        (device, 300 * MIB, 256 * MIB, 256 * MIB),
        (device, 200 * MIB, 100 * MIB, 256 * MIB),
    ]


def test_an_observer_that_raises_breaks_nothing(open_device, observed):
    device = open_device()
    calls = []
    observed(lambda *amounts: 1 // 0)
    observed(lambda *amounts: calls.append(amounts))
    error = fail(device, 300 * MIB)
    assert "an observer raised ZeroDivisionError" in str(error)
    assert isinstance(error.__context__, ZeroDivisionError)
    assert len(calls) == 1
    assert serves(device, 256 * MIB)


def test_an_observer_may_allocate_free_and_run_out_itself(open_device, observed):
    device = open_device()
    held = [raw_memory.raw_alloc(device, 200 * MIB, 0)]
    inner = []

    def observer(number, nbytes, limit, free):
        inner.append(memory.snapshot(number))
        with pytest.raises(OutOfMemoryError) as caught:
            raw_memory.raw_alloc(number, nbytes, 0)
        inner.append(caught.value)
        raw_memory.raw_delete(held.pop())
        raw_memory.raw_delete(raw_memory.raw_alloc(number, nbytes, 0))

    observed(observer)
    with pytest.raises(OutOfMemoryError) as caught:
        raw_memory.raw_alloc(device, 100 * MIB, 0)
    assert caught.value.facts["allocated"] == 200 * MIB  # as it was at the failure
    assert len(inner) == 2 and inner[1].reason == "exhausted"
    assert serves(device, 100 * MIB)


def test_no_lock_is_held_while_observers_run(open_device, observed):
    device = open_device()
    done = []

    def observer(*amounts):
        thread = threading.Thread(target=lambda: done.append(serves(device, MIB)))
        thread.start()
        thread.join(timeout=20)

    observed(observer)
    with pytest.raises(OutOfMemoryError):
        raw_memory.raw_alloc(device, 300 * MIB, 0)
    assert done == [True]


def test_the_error_keeps_nothing_alive_once_it_is_dropped(open_device, observed):
    device = open_device()
    memory.record_memory_history()
    observed(lambda *amounts: 1 // 0)

    class Held:
        pass

    def attempt():
        thing = Held()
        alive = weakref.ref(thing)
        try:
            raw_memory.raw_alloc(device, 300 * MIB, 0)
        except OutOfMemoryError:
            pass
        return alive

    gc.disable()
    try:
        assert attempt()() is None
    finally:
        gc.enable()


def test_threads_that_run_out_together_each_get_their_error(open_device):
    device = open_device()
    memory.record_memory_history()
    errors = []

    def work(nbytes):
        for _ in range(5):
            try:
                raw_memory.raw_alloc(device, nbytes, 0)
            except OutOfMemoryError as error:
                errors.append((nbytes, error.facts["requested"], error.reason))

    threads = [threading.Thread(target=work, args=((300 + i) * MIB,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 20
    assert all(asked == told and reason == "exhausted" for asked, told, reason in errors)
    assert serves(device, 256 * MIB)


def test_nothing_leaks_and_no_device_stays_open(open_device, conf):
    conf("expandable_segments:False")
    memory.record_memory_history()
    device = open_device()
    assert serves(device, MIB)
    before = device_allocator.open_devices()
    for _ in range(3):
        fail(device, 300 * MIB)
    assert device_allocator.open_devices() == before
    memory.empty_cache(device)
    assert memory.memory_reserved(device) == 0


def test_every_status_of_the_driver_has_a_text():
    known = (34, 36, 46, 205, 206, 207, 208, 304, 401, 702, 704, 708, 712, 713, 715, 717, 718, 720,
             803, 804, 902, 903, 904, 907, 908)  # fmt: skip
    texts = [status_text(status) for status in known]
    assert len(set(texts)) == len(known)
    assert all(text.startswith("CUDA_ERROR_") for text in texts)
