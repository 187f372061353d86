"""The option that an OutOfMemoryError names would have helped: found by replay, tried here."""

import time

import numpy as np
import pytest

from gputensor import memory
from gputensor._alloc import allocator as device_allocator
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc.config import settings
from gputensor._alloc.explain import advice as oom_advice
from gputensor._alloc.explain.case import build_case, case_of
from gputensor._alloc.observe import failure_facts
from gputensor._alloc.replay import replay_settings
from gputensor._alloc.replay.trace_file import Trace
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from tests.support.failing_requests import MIB, comb, fail, refusing, serves
from tests.support.internals import view_blocks

pytest_plugins = ("tests.support.failing_fixtures",)


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


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("expandable_segments:False", "expandable_segments:True"),
        ("page_reuse:False", "page_reuse:True"),
    ],
)
def test_the_advice_of_many_programs_holds(open_device, conf, rng, given, found):
    """Run random programs until memory runs out; with the named option each must get further."""
    memory.record_memory_history()
    before = settings.current()
    options = set()
    for _ in range(60):
        conf(given)
        steps = random_steps(rng)
        device = open_device(capacity=64 * MIB)
        error, at = run(device, steps)
        registry.close_host(device)
        if error is not None and error.option is not None:
            options.add(error.option)
            conf(error.option)
            device = open_device(capacity=64 * MIB)
            again, reached = run(device, steps)
            registry.close_host(device)
            assert again is None or reached > at, (error, again)
        settings._in_force = before
        settings.tell()
    assert found in options


def random_steps(rng):
    """Steps: (size, name) allocates a block, (-1, name) frees it."""
    steps, live = [], []
    for name in range(300):
        while live and sum(size for _, size in live) > 48 * MIB:
            at = int(rng.integers(len(live)))
            steps.append((-1, live.pop(at)[0]))
        size = int(rng.integers(MIB + 1, 14 * MIB))
        live.append((name, size))
        steps.append((size, name))
    return steps


def run(device, steps):
    """Run steps on a device; return the error and the step of the first failure, if any."""
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


def test_without_history_only_advice_proven_by_the_amounts_is_given(open_device, conf):
    conf("expandable_segments:False")
    device = open_device(capacity=15 * MIB)
    error = fail(device, 3 * MIB)  # a plain segment for it has 20 MiB
    assert error.reason == "exhausted"
    assert error.option == "expandable_segments:True"
    conf(error.option)
    assert serves(device, 3 * MIB)


def test_a_replay_that_does_not_fail_gives_no_advice(open_device):
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
    monkeypatch.setenv(oom_advice.VARIABLE, "1e-09")  # over before the first event
    assert "no option was found in 1e-09 s that helps" in str(fail(device, 300 * MIB))
    monkeypatch.setenv(oom_advice.VARIABLE, "0")
    assert "replayed" not in str(fail(device, 300 * MIB))
    monkeypatch.delenv(oom_advice.VARIABLE)
    start = time.process_time()  # a busy machine does not lengthen it
    error = fail(device, 300 * MIB)
    assert time.process_time() - start < 5
    assert "replayed" in str(error)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_bad_time_does_not_replace_the_error(open_device, monkeypatch, text):
    monkeypatch.setenv(oom_advice.VARIABLE, text)
    assert oom_advice.replay_seconds() == oom_advice.DEFAULT_SECONDS
    fail(open_device(), 300 * MIB)


def test_a_case_is_a_valid_trace_of_the_live_blocks(open_device, rng):
    """Seeds replace events older than the ring; the blocks live at the end are the same."""
    device = open_device()
    live = {}
    for step in range(400):
        if step == 150:
            memory.record_memory_history(max_entries=200)
            memory.set_memory_metadata("from here on")
        if live and rng.random() < 0.45:
            ptr = list(live)[int(rng.integers(len(live)))]
            del live[ptr]
            raw_memory.raw_delete(ptr)
        else:
            nbytes = int(rng.integers(1, MIB))
            live[raw_memory.raw_alloc(device, nbytes, 0)] = nbytes
    memory.set_memory_metadata("")
    case = case_of(device, 12345, 0)
    assert case.recorded["events"] <= 200
    held = {}
    for op, name, size in zip(case.op, case.id, case.size, strict=True):
        if op > 0:
            assert name not in held
            held[name] = int(size)
        else:
            assert held.pop(name) == size
    assert held.pop(case.id[-1]) == 12345
    assert sorted(held.values()) == sorted(live.values())
    assert case.recorded["events"] > 50


def test_a_case_keeps_a_block_that_waits_for_a_stream_until_its_free_is_complete():
    events = [(0, 512, 1024, 0), (0, 8192, 2048, 5), (2, 512, 1024, 0), (0, 512, 512, 0)]
    case = build_case(events, [(512, 512, 10, 0), (8192, 2048, 0, 5), (99840, 512, 1, 7)], 64, 5)
    assert case.op.tolist() == [1, 1, 1, -1, 1, 1]
    assert case.size.tolist() == [1, 1024, 2048, 1024, 10, 64]
    assert case.stream.tolist() == [1, 0, 2, 0, 0, 2]


def test_a_case_survives_events_that_were_lost():
    events = [(0, 512, 1024, 0), (0, 512, 512, 0), (2, 4096, 512, 0), (0, 8192, 512, 0)]
    case = build_case(events, [(512, 512, 512, 0)], 64, 0)
    op = case.op.tolist()
    assert op.count(1) - op.count(-1) == 2  # the block held, and the request


def test_a_block_in_a_view_is_one_request_in_a_case(open_device):
    memory.record_memory_history()
    device = open_device(capacity=2 << 30)  # so that a page may have 20 MiB
    blocks = [raw_memory.raw_alloc(device, 20 * MIB, 0) for _ in range(8)]
    for ptr in blocks[::2]:
        raw_memory.raw_delete(ptr)
    stitched = raw_memory.raw_alloc(device, 40 * MIB - 100, 0)
    assert view_blocks(device) == [stitched]
    case = case_of(device, 64, 0)
    assert case.op.tolist() == [1] * 8 + [-1] * 4 + [1, 1]
    assert case.size.tolist()[-2:] == [40 * MIB - 100, 64]


def test_settings_of_a_replay_touch_no_other_device(open_device, conf):
    conf("page_size_mb:4")
    device, before = open_device(capacity=64 * MIB), settings.current()
    assert serves(device, 3 * MIB)
    phantom = registry.open_host(capacity=1 << 40, phantom=True)
    try:
        own = settings.parse("expandable_segments:False", before)
        sizes = np.array([30 * MIB, 50 * MIB], np.int64)
        trace = Trace(np.int8([1, 1]), np.int32([0, 1]), sizes, np.int16([0, 3]))
        assert replay_settings(trace, phantom, own, None, 9) == (2, 80 * MIB)
        assert replay_settings(trace, phantom, own, 79 * MIB, 9) == (1, 30 * MIB)
        with pytest.raises(TimeoutError):
            replay_settings(trace, phantom, own, None, -1)
        device_allocator.open_allocator(phantom, own, 10 * MIB)
        conf("memory_limit_mb:32")
        assert failure_facts(phantom, 1, 0)["limit"] == 10 * MIB
        device_allocator.close_allocator(phantom)
        device_allocator.open_allocator(phantom)
        assert failure_facts(phantom, 1, 0)["limit"] == 32 * MIB
    finally:
        registry.close_host(phantom)
    assert failure_facts(device, 1, 0)["limit"] == 32 * MIB
