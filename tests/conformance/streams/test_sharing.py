"""Tensors that several processes use at once, and events between processes."""

import multiprocessing
import pickle
import sys
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry

PROCESSES = multiprocessing.get_context("spawn")


def name_of(device):
    return "host" if device < 0 else f"cuda:{device}"


def add_in_child(queue, answers):
    """A process that adds 1 to each tensor it gets, until None comes."""
    while (x := queue.get(timeout=120)) is not None:
        x += 1
        gt.synchronize(x.device)
        answers.put((str(x.device), x.shape, x.numpy()))
        del x
    answers.close()


def test_two_processes_use_one_memory(device, rng):
    queue, answers = PROCESSES.Queue(), PROCESSES.Queue()
    child = PROCESSES.Process(target=add_in_child, args=(queue, answers))
    child.start()
    try:
        values = rng.random((300, 70), np.float32)
        with gt.Device(device):
            whole = gt.sharing.share(gt.asarray(values))
        for x, expected in ((whole, values + 1), (whole[10:20, ::2], values[10:20, ::2] + 2)):
            queue.put(x)
            where, shape, seen = answers.get(timeout=120)
            assert (where, shape) == (name_of(device), x.shape)
            np.testing.assert_allclose(seen, expected, rtol=1e-6)
        values += 1
        values[10:20, ::2] += 1
        np.testing.assert_allclose(whole.numpy(), values, rtol=1e-6)
        # The child keeps what it received after this process drops it.
        passing = gt.sharing.share(gt.full(5, 7.0, device=device))
        queue.put(passing)
        assert (answers.get(timeout=120)[2] == 8).all()
        del passing
        queue.put(None)
        child.join(120)
        assert child.exitcode == 0
    finally:
        child.kill()


def make_in_child(pipe, name):
    made = gt.sharing.share(gt.arange(1000, device=name))
    pipe.send(made)
    del made
    pipe.recv()


def test_memory_outlives_the_process_that_made_it(device):
    here, there = PROCESSES.Pipe()
    child = PROCESSES.Process(target=make_in_child, args=(there, name_of(device)))
    child.start()
    x = here.recv()
    here.send("done")
    child.join(120)
    assert child.exitcode == 0
    np.testing.assert_array_equal(x.numpy(), np.arange(1000))
    x *= 2
    np.testing.assert_array_equal(x.numpy(), 2 * np.arange(1000))


def test_share_copies_once_and_other_pickles_hold_values(device, rng):
    values = rng.integers(0, 100, (4, 5))
    with gt.Device(device):
        plain = gt.asarray(values)
        shared = gt.sharing.share(plain)
        assert not gt.sharing.is_shared(plain) and gt.sharing.is_shared(shared)
        assert gt.sharing.share(shared) is shared
        plain += 1
        np.testing.assert_array_equal(shared.numpy(), values)
        for x in (plain, shared):
            again = pickle.loads(pickle.dumps(x))
            assert not gt.sharing.is_shared(again)
            np.testing.assert_array_equal(again.numpy(), x.numpy())
        empty = gt.sharing.empty_shared((0, 3), "int32")
        assert empty.shape == (0, 3) and str(empty.dtype) == "int32"
        for wrong in ([1, 2], values):
            with pytest.raises(TypeError, match="^x: got .*; expected a Tensor"):
                gt.sharing.share(wrong)
        assert gt.sharing.empty_shared(np.int64(5)).shape == (5,)
        with pytest.raises(TypeError, match="^shape: got float"):
            gt.sharing.empty_shared(2.5)


def test_a_handle_is_opened_once(device, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", lambda *facts: None)  # the sender's thread prints
    x = gt.sharing.share(gt.arange(5, device=device))
    sent = bytes(ForkingPickler.dumps(x))
    y = ForkingPickler.loads(sent)
    with pytest.raises(gt.DeviceError, match="its handle was opened before"):
        ForkingPickler.loads(sent)
    y += 1
    np.testing.assert_array_equal(x.numpy(), np.arange(1, 6))


def test_more_shared_memory_than_there_is(device):
    with gt.Device(device):
        with pytest.raises(gt.OutOfMemoryError, match="^out of memory on .* for several processes"):
            gt.sharing.empty_shared(1 << 45, "uint8")
        assert gt.sharing.empty_shared(3).shape == (3,)


def test_shared_memory_takes_what_the_cache_keeps():
    number = registry.open_host(capacity=64 << 20)
    try:
        with gt.Device(number):
            x = gt.zeros(40 << 20, dtype="uint8")
            del x
            shared = gt.sharing.empty_shared(40 << 20, "uint8")
            shared[:] = 3
            assert int(shared[-1].item()) == 3
            del shared
    finally:
        registry.close_host(number)


def test_a_failed_export_leaves_the_event_as_it_was():
    event = gt.Event(interprocess=True)
    with gt.Device("host"), pytest.raises(gt.DriverError, match="event_export failed"):
        event.ipc_handle()
    assert event.device is None and event.cuda_event == 0
    event.record(gt.Stream("host"))
    assert event.query()


def wait_in_child(handle, name, x, pipe):
    event = gt.Event.from_ipc_handle(name, handle)
    pipe.send("ready")
    pipe.recv()
    stream = gt.Stream(name)
    event.wait(stream)
    with gt.ordering("manual"), gt.stream(stream):
        y = x * 2
        pipe.send(y.numpy())
    event.synchronize()
    pipe.send(event.query())


def test_a_process_waits_for_an_event_of_another(device):
    if device < 0:
        pytest.skip("host devices share no events; run this where there is a GPU")
    event = gt.Event(interprocess=True)
    here, there = PROCESSES.Pipe()
    with gt.Device(device):
        x = gt.sharing.share(gt.zeros(1 << 24))
        handle = event.ipc_handle()
        child = PROCESSES.Process(target=wait_in_child, args=(handle, name_of(device), x, there))
        child.start()
        assert here.recv() == "ready"
        for _ in range(200):
            x += 1
        event.record()
        here.send("recorded")
        assert (here.recv() == 400).all()
        assert here.recv() is True
        child.join(120)
    assert child.exitcode == 0
