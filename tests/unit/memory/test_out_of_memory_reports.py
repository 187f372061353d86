"""Reports of a failure: the lines that hold most, the observers, and no leftovers."""

import gc
import threading
import weakref

import pytest

from gputensor import memory
from gputensor._alloc import allocator as device_allocator
from gputensor._alloc import foreign as raw_memory
from gputensor.errors import OutOfMemoryError
from tests.support.failing_requests import MIB, fail, serves

pytest_plugins = ("tests.support.failing_fixtures",)


def test_the_lines_that_hold_most_are_named_with_bytes_and_blocks(open_device):
    device = open_device()
    memory.record_memory_history()

    def much():
        return [raw_memory.raw_alloc(device, 30 * MIB, 0) for _ in range(3)]

    def little():
        return [raw_memory.raw_alloc(device, 2 * MIB, 0) for _ in range(7)]

    held = much() + little()
    first, second = memory.top_call_sites(device, 2)
    assert (first.nbytes, first.n_blocks) == (90 * MIB, 3)
    assert (second.nbytes, second.n_blocks) == (14 * MIB, 7)
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


def test_an_observer_gets_the_limit_if_there_is_one(open_device, conf, observed):
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
    assert all(requested == shown and reason == "exhausted" for requested, shown, reason in errors)
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
