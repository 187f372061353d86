"""Listeners for driver calls and trackers for the allocator's events."""

import os
import subprocess
import sys
import threading

import pytest

import gputensor as gt

CALLS = """
import gputensor as gt
from gputensor import device, memory
{before}
heard, entries = [], []
listener = lambda number, name, status, arguments: heard.append((number, name, status, arguments))
device.attach_listener(listener)
number = gt.Device({name!r}).number
with gt.Device({name!r}):
    stream, event = gt.Stream(), gt.Event(enable_timing=True)
    x = gt.asarray([1.0] * 10_000_000)
    event.record(stream)
    other = gt.Stream()
    other.wait_event(event)
    stream.synchronize(); event.synchronize(); gt.synchronize()
    handle, one, two = event.cuda_event, stream.cuda_stream, other.cuda_stream
    del event
device.deliver()
def place(name, *arguments):
    found = [i for i, call in enumerate(heard)
             if call[:3] == (number, name, 0) and call[3][:len(arguments)] == arguments]
    assert found, (name, arguments, heard)
    return found[0]
order = [place("stream_create", one), place("event_create", handle),
         place("event_record", handle, one), place("stream_create", two),
         place("stream_wait_event", two, handle), place("stream_synchronize", one),
         place("event_synchronize", handle), place("synchronize"), place("event_destroy", handle)]
assert order == sorted(order), order
assert any(name in ("copy_async", "fill_async") for _, name, _, _ in heard)
assert any(name in ("page_create", "mem_alloc") for _, name, _, _ in heard)
device.detach_listener(listener)
count = len(heard)
gt.Stream({name!r}).synchronize()
device.deliver()
assert len(heard) == count
"""


# The listener comes before the device's first use, or when it has streams, events and memory.
@pytest.mark.parametrize("before", ["", "kept = gt.Stream({name!r}); kept.record_event()"])
def test_every_kind_of_call_is_heard_in_order(device, before):
    name = "host" if device < 0 else f"cuda:{device}"
    done = subprocess.run(
        [sys.executable, "-c", CALLS.format(name=name, before=before.format(name=name))],
        env={**os.environ, "GPUTENSOR_DEVICE": name},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr


@pytest.fixture
def history():
    gt.memory.record_memory_history()
    yield
    gt.memory.record_memory_history(None)


def test_trackers_receive_the_entries_of_the_history(device, history):
    heard = []

    def tracker(number, entry):
        heard.append((number, entry))

    gt.memory.attach_allocator_tracker(tracker)
    try:
        with gt.Device(device):
            x = gt.empty(12345)
            address = x.data_ptr()

            def run():
                gt.memory.set_memory_metadata("of the thread")
                y = gt.empty(777)
                del y

            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
            del x
            gt.device.deliver()
    finally:
        gt.memory.detach_allocator_tracker(tracker)
    mine = [entry for number, entry in heard if number == device and entry.get("addr") == address]
    # Blocks that were freed before may complete in between.
    mine = mine[[entry["action"] for entry in mine].index("alloc") :]
    actions = [entry["action"] for entry in mine]
    assert actions[0] == "alloc" and actions[-1] == "free_completed"
    assert mine[0]["size"] >= 4 * 12345 and mine[0]["frames"][0]["filename"] == __file__
    assert any(entry["user_metadata"] == "of the thread" for _, entry in heard)
    count = len(heard)
    gt.empty(3, device=device)
    gt.device.deliver()
    assert len(heard) == count
    with pytest.raises(ValueError):
        gt.memory.detach_allocator_tracker(tracker)


def test_an_error_of_a_tracker_is_reported_and_the_others_run(device, history):
    heard, reported = [], []

    def bad(number, entry):
        raise KeyError("mine")

    def good(number, entry):
        heard.append(entry)

    former, sys.unraisablehook = sys.unraisablehook, reported.append
    gt.memory.attach_allocator_tracker(bad)
    gt.memory.attach_allocator_tracker(good)
    try:
        x = gt.empty(100, device=device)
        del x
        gt.device.deliver()
    finally:
        gt.memory.detach_allocator_tracker(good)
        gt.memory.detach_allocator_tracker(bad)
        sys.unraisablehook = former
    assert heard and reported and reported[0].exc_type is KeyError and reported[0].object is bad


def test_metadata_and_stacks_of_segment_frees_are_in_snapshots(device, history):
    with gt.Device(device):
        gt.memory.empty_cache(device)
        gt.memory.set_memory_metadata("the first")
        x = gt.empty(40 << 20, dtype="uint8")
        gt.memory.set_memory_metadata("the second")
        assert gt.memory.get_memory_metadata() == "the second"
        address = x.data_ptr()
        del x
        gt.memory.set_memory_metadata("")
        gt.memory.empty_cache(device)
        traces = gt.memory.snapshot(device)["device_traces"]
    entries = [entry for trace in traces for entry in trace]
    by_action = {entry["action"]: entry for entry in entries if entry.get("addr") == address}
    assert by_action["alloc"]["user_metadata"] == "the first"
    assert by_action["free_requested"]["user_metadata"] == "the second"
    assert by_action["free_requested"]["frames"][0]["filename"] == __file__
    gone = [e for e in entries if e["action"] in ("segment_free", "segment_unmap")]
    assert gone and gone[-1]["user_metadata"] == ""
    assert gone[-1]["frames"] and gone[-1]["frames"][-1]["filename"]
    with pytest.raises(TypeError, match="^metadata: got int; expected a str"):
        gt.memory.set_memory_metadata(7)


@pytest.mark.parametrize("context", ["all", "alloc", "state", None])
def test_stacks_of_segment_events_are_of_the_call_that_causes_them(device, context):
    def allocate():
        with gt.memory.caching_allocator_disabled(device):
            return gt.empty(1000)

    def free():
        nonlocal x
        del x

    def empty():
        gt.memory.empty_cache(device)

    with gt.Device(device):
        gt.memory.empty_cache(device)
        gt.memory.record_memory_history(context=context)
        try:
            x = allocate()
            free()
            y = gt.empty(40 << 20, dtype="uint8")
            del y
            gt.synchronize()
            empty()
            traces = gt.memory.snapshot(device)["device_traces"]
        finally:
            gt.memory.record_memory_history(None)
    seen = {entry["action"]: [] for trace in traces for entry in trace}
    for entry in (entry for trace in traces for entry in trace):
        seen[entry["action"]].append({frame["name"] for frame in entry["frames"]})
    assert ("allocate" in seen["segment_alloc"][0]) == (context in ("all", "alloc"))
    if context == "all":
        assert "free" in seen["segment_free"][0] and "allocate" not in seen["segment_free"][0]
        assert "empty" in seen["segment_unmap"][-1]
    else:
        assert not seen["segment_free"][0] and not seen["segment_unmap"][-1]


DEFAULT_HOOK = """
import sys
import gputensor as gt
from gputensor import device

heard = []


def bad(*call):
    raise KeyError("mine")


def good(*call):
    heard.append(call)


device.attach_listener(bad)
device.attach_listener(good)
gt.synchronize("host")
device.deliver()
assert [name for _, name, _, _ in heard] == ["synchronize"], heard


def broken_hook(facts):
    raise ValueError("hook")


sys.unraisablehook = broken_hook
gt.synchronize("host")
device.deliver()
assert len(heard) == 2
"""


def test_the_default_hook_reports_an_error_of_a_listener():
    done = subprocess.run(
        [sys.executable, "-c", DEFAULT_HOOK], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "Exception ignored in: <function bad" in done.stderr
    assert done.stderr.count("KeyError: 'mine'") == 1 and "UnraisableHookArgs" not in done.stderr
    assert "Exception ignored in sys.unraisablehook: <function broken_hook" in done.stderr


INTERRUPTS = """
import gputensor as gt
from gputensor import device

heard = []


def interrupted(*call):
    raise KeyboardInterrupt


def good(*call):
    heard.append(call[1])


def raises(function, *arguments):
    try:
        gt.synchronize("host")
        function(*arguments)
    except KeyboardInterrupt:
        return True
    return False


device.attach_listener(interrupted)
device.attach_listener(good)
# The main thread delivers soon after the call, at the latest here.
assert raises(device.deliver)
device.deliver()
assert heard == ["synchronize"], heard
try:
    device.detach_listener(interrupted)
except KeyboardInterrupt:
    pass
assert not raises(device.deliver)
assert heard == ["synchronize"] * 2, heard
"""


def test_an_interrupt_of_a_listener_is_raised_after_the_delivery():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTS], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
