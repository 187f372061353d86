"""The current device and stream of a thread, device names, and the ordering mode."""

import copy
import os
import pickle
import random
import subprocess
import sys
import threading

import pytest

from gputensor._driver import registry
from gputensor.errors import DeviceError
from gputensor.streams import (
    Device,
    Stream,
    Uses,
    current_stream,
    default_stream,
    ordering,
    ordering_mode,
    set_stream,
    stream,
    synchronize,
)


@pytest.fixture
def device():
    number = registry.open_host(capacity=16 << 20)
    yield number
    registry.close_host(number)


def in_thread(function):
    """Run a function in a new thread; return its result or raise its exception."""
    result = []

    def run():
        try:
            result.append((function(), None))
        except BaseException as error:
            result.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=20)
    value, error = result[0]
    if error is not None:
        raise error
    return value


def test_stream_is_current_inside_of_the_block_only(device):
    a, b = Stream(device), Stream(device)
    before = Device(), current_stream(device)
    with stream(a) as entered:
        assert entered is a and current_stream() is a and Device().number == device
        with b:
            assert current_stream() is b
            with stream(None):
                assert current_stream() is b
        assert current_stream() is a
    assert (Device(), current_stream(device)) == before


def test_block_of_another_device_restores_device_and_both_streams(device):
    here, there = Stream("host"), Stream(device)
    with here:
        with there:
            assert Device().number == device and current_stream() is there
            assert current_stream("host") is here
        assert Device() == "host" and current_stream() is here
        assert current_stream(device) == default_stream(device)


def test_former_stream_comes_back_after_an_exception(device):
    before = Device(), current_stream(device)
    with pytest.raises(ZeroDivisionError), stream(Stream(device)), Device("host"):
        raise ZeroDivisionError
    assert (Device(), current_stream(device)) == before


def test_set_stream_inside_of_a_block_ends_with_it(device):
    a, b = Stream(device), Stream("host")
    before = Device(), current_stream(device)
    with a:
        set_stream(b)
        assert Device() == "host" and current_stream() is b
    assert (Device(), current_stream(device)) == before
    with before[0]:
        set_stream(default_stream("host"))


def test_current_stream_belongs_to_the_thread(device):
    def other_thread():
        assert current_stream(device) == default_stream(device)
        assert Device() == before
        with Stream(device) as own:
            ready.set()
            assert go.wait(20)
            return current_stream(device) is own

    before, ready, go = Device(), threading.Event(), threading.Event()
    mine = Stream(device)
    with mine:
        results = []
        thread = threading.Thread(target=lambda: results.append(in_thread(other_thread)))
        thread.start()
        assert ready.wait(20)
        assert current_stream(device) is mine
        go.set()
        thread.join(timeout=20)
        assert results == [True]


def test_current_stream_is_kept_alive_and_let_go(device):
    """A current stream cannot be handed out again, even without another reference to it."""

    def choose():
        set_stream(Stream(device))
        handle = current_stream(device).cuda_stream
        assert Stream(device).cuda_stream != handle
        return handle

    handle = in_thread(choose)
    # The thread ended: its stream is free again.
    assert handle in {Stream(device).cuda_stream for _ in range(1)} | {
        s.cuda_stream for s in [Stream(device) for _ in range(3)]
    }


def test_stream_that_was_current_when_it_was_dropped_stays_ours(device):
    def enter(depth):
        if depth == 0:
            return current_stream(device).cuda_stream
        with stream(Stream(device)):
            handle = current_stream(device).cuda_stream
            enter(depth - 1)
            assert current_stream(device).cuda_stream == handle
        return handle

    enter(100)
    assert current_stream(device) == default_stream(device)


def test_leaving_a_block_that_was_not_entered_is_an_error(device):
    with pytest.raises(RuntimeError, match="leaving a device or stream block that it"):
        in_thread(lambda: Stream(device).__exit__(None, None, None))


def test_reading_the_current_stream_makes_no_driver_call(device):
    own = Stream(device)
    registry.reset_counts(device)
    for _ in range(10):
        with own:
            current_stream()
    assert sum(registry.counts(device).values()) == 0


def test_stream_of_another_device_is_refused_where_a_device_is_given(device):
    uses = Uses(device)
    with pytest.raises(ValueError, match="stream: got a stream on host; expected one on host:"):
        uses.read(Stream("host"))
    with pytest.raises(TypeError, match="stream: got object; expected a Stream"):
        stream(object())
    with pytest.raises(TypeError, match="^stream: got int; expected a Stream"):
        set_stream(0)


# ---- device names ----


@pytest.mark.parametrize(
    ("given", "text", "number"),
    [
        ("host", "host", -1),
        ("host:0", "host", -1),
        ("host:3", "host:3", -4),
        ("cuda:0", "cuda:0", 0),
        ("cuda:12", "cuda:12", 12),
        (5, "cuda:5", 5),
        (-1, "host", -1),
        ("cuda", "cuda:0", 0),
    ],
)
def test_device_accepts_every_form_of_a_name(given, text, number):
    device = Device(given)
    assert (str(device), device.number) == (text, number)
    assert device == Device(text) == text and hash(device) == hash(Device(text)) == hash(text)
    assert repr(device) == f"device('{text}')"
    assert pickle.loads(pickle.dumps(device)) == copy.copy(device) == device


def test_device_has_type_and_index():
    assert (Device("cuda:2").type, Device("cuda:2").index) == ("cuda", 2)
    assert (Device("host").type, Device("host").index) == ("host", 0)
    assert Device("cuda", 2) == Device("cuda:2") != Device("host", 2)
    assert Device(Device("cuda:4")) == Device("cuda:4")
    with Device("host"):
        assert Device() == Device(None) == "host" and Device() != None  # noqa: E711


def test_objects_with_type_and_index_name_a_device():
    class Foreign:
        type, index = "cuda", 3

    assert Device(Foreign()) == "cuda:3"


@pytest.mark.parametrize("bad", ["gpu", "cuda:", "cuda:-1", "cuda:x", "", "tpu:1", "gpu:40", "١"])
def test_names_of_no_device_are_refused(bad):
    with pytest.raises(ValueError, match="; expected 'cuda', 'cuda:N', 'host' or 'host:N'"):
        Device(bad)


@pytest.mark.parametrize("bad", ["cuda:32", "cuda:40", "cuda:1000", "host:99"])
def test_device_beyond_the_last_is_refused_with_the_number_allowed(bad):
    message = f"device: got '{bad}'; expected N of '{bad[:4]}:N' below 32"
    with pytest.raises(ValueError, match=message):
        Device(bad)


@pytest.mark.parametrize("bad", [1.5, b"cuda", True, object(), ["cuda"]])
def test_types_of_no_device_are_refused(bad):
    with pytest.raises(TypeError, match=f"device: got {type(bad).__name__}; expected"):
        Device(bad)


def test_number_of_no_device_is_refused():
    with pytest.raises(ValueError, match="^device: got 99; expected 0 to 31"):
        Device(99)


def test_device_that_is_not_open_is_refused_at_use():
    with pytest.raises(DeviceError):
        Stream("host:30")
    with pytest.raises(DeviceError), Device("host:30"):
        pass


# ---- the default device ----


def run_python(code, **environment):
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GPUTENSOR_DEVICE")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


SHOW = "from gputensor.streams import Device; print(Device())"


def test_environment_chooses_the_default_device():
    assert run_python(SHOW, GPUTENSOR_DEVICE="host").stdout == "host\n"


def test_without_a_choice_the_default_is_the_gpu_if_there_is_one():
    expected = "cuda:0\n" if registry.cuda_device_count() else "host\n"
    assert run_python(SHOW).stdout == expected


def test_environment_that_names_no_device_is_named_in_the_error():
    done = run_python(SHOW, GPUTENSOR_DEVICE="gpu0")
    assert done.returncode != 0
    assert "ValueError: GPUTENSOR_DEVICE: got 'gpu0'; expected" in done.stderr
    done = run_python(SHOW, GPUTENSOR_DEVICE="cuda:40")
    assert "GPUTENSOR_DEVICE: got 'cuda:40'; expected N of 'cuda:N' below 32" in done.stderr


def test_import_opens_no_device():
    code = (
        "import gputensor.streams, os\n"
        "print(any('memfd' in os.readlink(f'/proc/self/fd/{n}') "
        "for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')))"
    )
    done = run_python(code, GPUTENSOR_DEVICE="gpu0")  # malformed, but not read
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_bad_default_does_not_affect_a_named_device():
    code = "from gputensor.streams import Device\nwith Device('host'): print(Device())"
    assert run_python(code, GPUTENSOR_DEVICE="gpu0").stdout == "host\n"


# ---- the ordering mode ----


def test_ordering_mode_is_auto_and_belongs_to_the_thread():
    with ordering("manual"):
        assert ordering_mode() == "manual"
        assert in_thread(ordering_mode) == "auto"
        with ordering("auto"):
            assert ordering_mode() == "auto"
        assert ordering_mode() == "manual"
    assert ordering_mode() == "auto"


def test_ordering_as_a_call_stays():
    def choose():
        ordering("manual")
        return ordering_mode()

    assert in_thread(choose) == "manual"
    assert ordering_mode() == "auto"


def test_ordering_comes_back_after_an_exception():
    with pytest.raises(ZeroDivisionError), ordering("manual"):
        raise ZeroDivisionError
    assert ordering_mode() == "auto"


@pytest.mark.parametrize("bad", ["none", "", None, 1])
def test_unknown_mode_changes_nothing(bad):
    with pytest.raises(ValueError, match="; expected 'auto', 'manual' or 'check'"):
        ordering(bad)
    assert ordering_mode() == "auto"


def test_synchronize_takes_every_kind_of_device_name(device):
    for name in (device, Device(device), str(Device(device)), "host", None):
        synchronize(name)


def test_random_nesting_always_comes_back(device):
    numbers = [device, -1]
    rng = random.Random(random.SystemRandom().getrandbits(32))

    def nest(depth):
        state = Device(), [current_stream(n) for n in numbers]
        if depth:
            number = rng.choice(numbers)
            context = rng.choice([Device(number), Stream(number), stream(None)])
            try:
                with context:
                    nest(depth - 1)
                    if rng.random() < 0.2:
                        raise KeyError
            except KeyError:
                pass
            nest(depth - 1)
        assert (Device(), [current_stream(n) for n in numbers]) == state

    nest(9)
