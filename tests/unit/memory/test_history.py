"""The memory history: interned stacks, the ring, and the options of record_memory_history."""

import ctypes
import os
import sys
import threading
from pathlib import Path

import pytest

from gputensor._alloc import history, pinned
from gputensor._alloc import history as stacks
from gputensor._alloc.config import settings
from gputensor._driver import registry
from tests.support import internals


@pytest.fixture
def device():
    number = registry.open_host(capacity=1 << 30, phantom=True)
    yield number
    history.record_memory_history(None)
    registry.close_host(number)


@pytest.fixture(params=["direct", "public"])
def walk(request):
    """Both ways of walking frames; restored afterwards."""
    if request.param == "direct" and not internals.walks_directly():
        pytest.skip("this interpreter's frames are only read through its public functions")
    internals.use_public_frames(request.param == "public")
    yield
    internals.use_public_frames(False)


def address_space():
    """The bytes of address space that the process has mapped."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def expected_frames():
    """The caller's frames from the interpreter's own introspection, innermost first."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        found.append((frame.f_code.co_filename, frame.f_code.co_name))
        frame = frame.f_back
    return found


def frames_of(stack):
    return stacks.StackFormatter().frames(stack)


def test_frames_are_those_of_the_interpreter_with_the_line_of_the_call(walk):
    def inner():
        return stacks.capture(), sys._getframe().f_lineno, expected_frames()

    stack, line, expected = inner()
    frames = frames_of(stack)
    assert [(frame["filename"], frame["name"]) for frame in frames] == expected[: len(frames)]
    assert frames[0] == {"filename": __file__, "line": line, "name": "inner"}
    assert frames[1]["line"] == inner.__code__.co_firstlineno + 3


def test_equal_stacks_have_one_number_and_different_lines_have_different_ones(walk):
    def capture():
        return stacks.capture()

    repeated = {capture() for _ in range(100)}
    assert len(repeated) == 1
    first, second = capture(), capture()
    assert first != second
    third = [
        capture(),
        capture(),
    ]
    assert len(set(third)) == 2


def test_generators_and_nested_comprehensions_are_seen(walk):
    def generate():
        yield stacks.capture(), expected_frames()

    stack, expected = next(generate())
    frames = frames_of(stack)
    assert frames[0]["name"] == "generate"
    assert [frame["name"] for frame in frames] == [name for _, name in expected[: len(frames)]]
    stack, expected = [(stacks.capture(), expected_frames()) for _ in range(1)][0]
    assert [frame["name"] for frame in frames_of(stack)][:2] == [n for _, n in expected[:2]]


def test_a_deep_stack_keeps_its_innermost_frames(walk):
    def recurse(depth):
        return recurse(depth - 1) if depth else stacks.capture()

    frames = frames_of(recurse(400))
    assert 100 < len(frames) < 400
    assert {frame["name"] for frame in frames} == {"recurse"}
    assert frames[0]["line"] == recurse.__code__.co_firstlineno + 1


def test_code_that_is_gone_is_still_named(walk):
    scope = {"capture": stacks.capture}
    exec(compile("def passing():\n    return capture()\n", "gone.py", "exec"), scope)
    stack = scope.pop("passing")()
    for _ in range(50):  # new code objects at whatever addresses became free
        exec(compile("def other():\n    return capture()\n", "other.py", "exec"), scope)
        scope.pop("other")()
    assert frames_of(stack)[0] == {"filename": "gone.py", "line": 2, "name": "passing"}


def test_c_frames_come_first_when_asked_for():
    native, plain = stacks.capture(native=True), stacks.capture()
    names = [frame["name"] for frame in frames_of(native)]
    assert len(names) > len(frames_of(plain))
    assert names[-len(frames_of(plain)) :][0] == sys._getframe().f_code.co_name
    assert frames_of(native)[0]["line"] == 0
    for frame in frames_of(native):
        if frame["name"].startswith("0x") and frame["filename"] != "??":
            # Without the name of an exported function: the offset in the file.
            assert 0 < int(frame["name"], 16) < os.path.getsize(frame["filename"])


@pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="operator new is another")
def test_cpp_functions_have_the_names_of_their_source():
    library = ctypes.CDLL("libstdc++.so.6")
    set_new_handler = library._ZSt15set_new_handlerPFvvE
    found = []

    @ctypes.CFUNCTYPE(None)
    def out_of_memory():  # operator new calls it, and fails once there is no handler
        found.append(stacks.capture(native=True))
        set_new_handler(None)

    set_new_handler(out_of_memory)
    nothrow = ctypes.c_char.in_dll(library, "_ZSt7nothrow")
    assert not library._ZnwmRKSt9nothrow_t(ctypes.c_size_t(1 << 62), ctypes.byref(nothrow))
    names = [frame["name"] for frame in frames_of(found[0])]
    assert "operator new(unsigned long)" in names


def test_threads_capture_their_own_stacks():
    found = {}

    def work(key):
        def named():
            return stacks.capture()

        for _ in range(1000):
            found.setdefault(key, set()).add(named())

    threads = [threading.Thread(target=work, args=(key,)) for key in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The threads ran the same lines, so they have the same stacks.
    assert all(len(ids) == 1 for ids in found.values())
    assert frames_of(found[0].pop())[0]["name"] == "named"


def test_an_unknown_stack_has_no_frames():
    assert frames_of(0) == []
    assert frames_of((1 << 32) - 1) == []


def test_events_come_in_order_with_pytorchs_fields(device):
    history.record_memory_history()
    history.add_entry(device, "segment_alloc", 1 << 30, 2 << 20)
    history.add_entry(device, "alloc", 1 << 30, 1000, stream=7, pool_id=1 << 40)
    line = sys._getframe().f_lineno - 1
    history.add_entry(device, "oom", 123, 4096)
    segment, alloc, oom = history.entries(device)
    assert (segment["action"], segment["addr"], segment["size"]) == (
        "segment_alloc",
        1 << 30,
        2 << 20,
    )
    assert sorted(alloc) == sorted(
        ["action", "addr", "size", "stream", "time_us", "frames", "compile_context",
         "user_metadata", "pool_id"]
    )  # fmt: skip
    assert (alloc["stream"], alloc["pool_id"]) == (7, (1 << 40, 0))
    assert alloc["compile_context"] == "N/A"
    assert alloc["frames"][0]["filename"] == __file__
    assert alloc["frames"][0]["line"] == line
    assert oom["device_free"] == 123
    assert "addr" not in oom
    assert segment["time_us"] <= alloc["time_us"] <= oom["time_us"]


def test_nothing_is_recorded_while_the_history_is_off(device):
    history.add_entry(device, "alloc", 512, 512)
    assert history.entries(device) == []


def test_the_newest_events_are_kept(device):
    for entries in (1, 3, 64, 100):
        history.record_memory_history(max_entries=entries, clear_history=True)
        for number in range(1000):
            history.add_entry(device, "alloc", number, 512)
        kept = [entry["addr"] for entry in history.entries(device)]
        assert kept == list(range(1000 - entries, 1000))


def test_more_room_keeps_what_was_recorded(device):
    history.record_memory_history(max_entries=10)
    for number in range(20):
        history.add_entry(device, "alloc", number, 512)
    history.record_memory_history(max_entries=10_000)
    for number in range(20, 40):
        history.add_entry(device, "alloc", number, 512)
    assert [entry["addr"] for entry in history.entries(device)] == list(range(10, 40))


def test_switching_off_drops_the_events_and_clear_history_too(device):
    history.record_memory_history()
    history.add_entry(device, "alloc", 512, 512)
    history.record_memory_history(None)
    assert history.entries(device) == []
    history.record_memory_history()
    history.add_entry(device, "alloc", 1024, 512)
    history.record_memory_history()
    assert len(history.entries(device)) == 1
    history.record_memory_history(clear_history=True)
    assert history.entries(device) == []


@pytest.mark.parametrize(
    ("context", "on_alloc", "on_free"),
    [("all", True, True), ("alloc", True, False), ("state", False, False), (None, False, False)],
)
def test_context_says_which_events_carry_a_stack(device, context, on_alloc, on_free):
    history.record_memory_history("all", context)
    history.add_entry(device, "alloc", 512, 512)
    history.add_entry(device, "free_requested", 512, 512)
    alloc, freed = history.entries(device)
    assert bool(alloc["frames"]) == on_alloc
    assert bool(freed["frames"]) == on_free


def test_enabled_state_records_no_events(device):
    history.record_memory_history("state")
    history.add_entry(device, "alloc", 512, 512)
    assert history.entries(device) == []


def test_skipped_actions_are_not_recorded(device):
    history.record_memory_history(skip_actions=["free_requested", "oom"])
    for action in history.ACTIONS:
        history.add_entry(device, action, 512, 512)
    recorded = [entry["action"] for entry in history.entries(device)]
    assert recorded == [name for name in history.ACTIONS if name not in ("free_requested", "oom")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"enabled": 1.5},
        {"enabled": "some"},
        {"context": "none"},
        {"stacks": "c++"},
        {"max_entries": 0},
        {"max_entries": True},
        {"max_entries": 1.5},
        {"skip_actions": ["alloc", "frees"]},
    ],
)
def test_a_wrong_argument_is_named_and_changes_nothing(wrong):
    before = history.history_settings()
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: got .*; expected "):
        history.record_memory_history(**wrong)
    assert history.history_settings() == before


def test_a_huge_request_for_room_costs_nothing_until_it_is_used(device):
    history.record_memory_history(max_entries=sys.maxsize)
    assert history.history_settings()["max_entries"] == history.LARGEST_RING
    history.add_entry(device, "alloc", 512, 512)
    assert len(history.entries(device)) == 1


def test_the_option_is_the_default_number_of_entries(device, monkeypatch):
    monkeypatch.setattr(settings, "_in_force", settings.parse("history_max_entries:5"))
    history.record_memory_history()
    for number in range(9):
        history.add_entry(device, "alloc", number, 512)
    assert len(history.entries(device)) == 5


def test_threads_lose_no_event_and_a_reader_sees_only_whole_ones(device):
    history.record_memory_history(max_entries=1 << 16, context=None)
    stop = threading.Event()

    def write(thread):
        for number in range(5000):
            history.add_entry(device, "alloc", thread << 32 | number, number + 1, stream=thread)

    def read():
        while not stop.is_set():
            for entry in history.entries(device):
                assert entry["stream"] == entry["addr"] >> 32
                assert entry["size"] == (entry["addr"] & 0xFFFFFFFF) + 1

    failures = []
    reader = threading.Thread(target=lambda: failures.append(read()))
    writers = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert failures == [None]
    entries = history.entries(device)
    for thread in range(4):
        mine = [entry["size"] for entry in entries if entry["stream"] == thread]
        assert mine == list(range(1, 5001))


def test_a_new_device_with_the_number_of_a_closed_one_starts_empty():
    history.record_memory_history()
    first = registry.open_host(capacity=1 << 20, phantom=True)
    history.add_entry(first, "alloc", 512, 512)
    registry.close_host(first)
    second = registry.open_host(capacity=1 << 20, phantom=True)
    assert second == first
    assert history.entries(second) == []
    history.record_memory_history(None)
    registry.close_host(second)


def test_a_device_that_closes_gives_its_rings_back():
    history.record_memory_history(max_entries=1 << 22)
    before = address_space()
    for _ in range(20):
        device = registry.open_host(capacity=16 << 20)
        history.add_entry(device, "alloc", 512, 512)
        pinned.PinnedMemory(device, 4096)
        registry.close_host(device)
    history.record_memory_history(None)
    assert address_space() - before < 10 * (64 << 22)  # 64 << 22 bytes a ring, 40 rings
