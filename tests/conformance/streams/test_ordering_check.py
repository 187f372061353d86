"""ordering("check"): a use without an order raises and names both places of the program."""

import threading

import numpy as np
import pytest

import gputensor as gt


@pytest.fixture
def checked(device):
    """Two streams of the device; this thread checks the order of uses."""
    with gt.Device(device), gt.ordering("check"):
        yield gt.Stream(), gt.Stream()
        gt.synchronize()


def line_of(marker):
    """The line of this file that ends with the comment `marker`."""
    with open(__file__) as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith(f"# {marker}"):
                return f"{__file__}:{number} in "
    raise AssertionError(marker)


def test_read_without_an_order_names_both_places(checked):
    one, other = checked
    with gt.stream(one):
        x = gt.ones(100)  # the write
    with gt.stream(other), pytest.raises(gt.UnorderedAccessError) as caught:
        x * 2  # the read
    assert caught.value.access.startswith(line_of("the read"))
    assert caught.value.former.startswith(line_of("the write"))
    assert caught.value.access in str(caught.value) and caught.value.former in str(caught.value)


def test_write_is_checked_against_every_read(checked):
    one, other = checked
    third = gt.Stream()
    with gt.stream(one):
        x = gt.ones(100)
    for reader in (other, third):
        reader.wait_stream(one)
        with gt.stream(reader):
            x * 2
    one.wait_stream(other)
    with gt.stream(one), pytest.raises(gt.UnorderedAccessError, match="after the read"):
        x += 1
    one.wait_stream(third)
    with gt.stream(one):
        x += 1
        np.testing.assert_array_equal(x.numpy(), 2)


ORDERS = {
    "wait_stream": lambda one, other: other.wait_stream(one),
    "event": lambda one, other: one.record_event().wait(other),
    "wait_event": lambda one, other: other.wait_event(one.record_event()),
    "stream.synchronize": lambda one, other: one.synchronize(),
    "event.synchronize": lambda one, other: one.record_event().synchronize(),
    "device": lambda one, other: gt.synchronize(),
    "through a third": lambda one, other: through_a_third(one, other),
}


def through_a_third(one, other):
    third = gt.Stream()
    third.wait_stream(one)
    other.wait_stream(third)


@pytest.mark.parametrize("order", ORDERS)
def test_every_way_of_ordering_streams_is_recognized(checked, order):
    one, other = checked
    with gt.stream(one):
        x = gt.ones(1000)
    ORDERS[order](one, other)
    with gt.stream(other):
        y = x * 3
        np.testing.assert_array_equal(y.numpy(), 3)


def test_an_event_orders_only_what_came_before_it(checked):
    one, other = checked
    with gt.stream(one):
        x = gt.ones(10)
        event = one.record_event()
        x += 1
    event.wait(other)
    with gt.stream(other), pytest.raises(gt.UnorderedAccessError):
        x * 2


def test_refused_use_changes_nothing(checked):
    one, other = checked
    with gt.stream(one):
        x = gt.full(10, 5.0)
    with gt.stream(other), pytest.raises(gt.UnorderedAccessError):
        x += 1
    with gt.stream(one):
        y = x + 1
        np.testing.assert_array_equal(y.numpy(), 6)


def test_concurrent_reads_and_fresh_memory_are_allowed(checked):
    one, other = checked
    with gt.stream(one):
        x = gt.ones(10)
    gt.synchronize()
    for stream in (one, other, one):
        with gt.stream(stream):
            y = x + 1
            del y


def test_other_threads_order_themselves(checked):
    one, other = checked
    with gt.stream(one):
        x = gt.ones(10)
    found = []

    def run():
        with gt.stream(other):
            found.append((gt.streams.ordering_mode(), (x * 2).numpy()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found[0][0] == "auto"
    np.testing.assert_array_equal(found[0][1], 2)


# ---- graphs ----


@pytest.fixture
def doubled(checked):
    """A graph that writes y = 2 * x, with both tensors."""
    x, y, captured = gt.ones(100), gt.zeros(100), gt.graphs.CUDAGraph()
    with gt.graphs.graph(captured):
        y[...] = x * 2
    return captured, x, y


def test_a_capture_comes_after_the_work_that_it_waits_for(checked):
    one, other = checked
    captured = gt.graphs.CUDAGraph()
    with gt.stream(one):
        x, y = gt.ones(100), gt.zeros(100)
    with gt.stream(other):
        captured.capture_begin()
        y[...] = x * 2
        captured.capture_end()
        captured.replay()
        np.testing.assert_array_equal(y.numpy(), 2)


def test_work_that_is_ordered_after_a_replay_is_ordered_after_its_graph(checked, doubled):
    one, other = checked
    captured, x, y = doubled
    with gt.stream(one):
        captured.replay()
    with gt.stream(other), pytest.raises(gt.UnorderedAccessError):
        y + 1
    other.wait_stream(one)
    with gt.stream(other):
        np.testing.assert_array_equal((y + 1).numpy(), 3)


def test_a_use_after_a_captured_replay_is_checked(checked, doubled):
    one, other = checked
    captured, x, y = doubled
    outer = gt.graphs.CUDAGraph()
    with gt.graphs.graph(outer):
        origin = gt.current_stream()
        one.wait_stream(origin)
        with gt.stream(one):
            captured.replay()  # the captured replay
        z = gt.zeros(100)
        z += 1
        with pytest.raises(gt.UnorderedAccessError, match="the replay of a graph") as caught:
            y += 1  # the use after it
        assert caught.value.access.startswith(line_of("the use after it"))
        assert caught.value.former.startswith(line_of("the captured replay"))
        origin.wait_stream(one)
        y += 1
    outer.replay()
    gt.synchronize()
    np.testing.assert_array_equal(y.numpy(), 3)


def test_a_captured_replay_is_checked_against_each_use(checked, doubled):
    one, other = checked
    captured, x, y = doubled
    outer = gt.graphs.CUDAGraph()
    with gt.graphs.graph(outer):
        origin = gt.current_stream()
        for stream in (one, other):
            stream.wait_stream(origin)
        with gt.stream(one):
            y + 1  # the use before it
        with gt.stream(other):
            x += 1
        origin.wait_stream(other)
        with pytest.raises(gt.UnorderedAccessError, match=r"^replay on .* the read of") as caught:
            captured.replay()  # a captured replay without an order
        assert caught.value.access.startswith(line_of("a captured replay without an order"))
        assert caught.value.former.startswith(line_of("the use before it"))
        origin.wait_stream(one)
        captured.replay()
    outer.replay()
    gt.synchronize()
    np.testing.assert_array_equal(y.numpy(), 4)
