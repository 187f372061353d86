"""Captures that threads begin at the same time, or while other threads work."""

import threading
import time

import numpy as np
import pytest

import gputensor as gt
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Stream
from tests.support.alloc_probe import held_up, opened


@pytest.fixture
def device(device):
    """The device, current during the test."""
    with Device(device):
        yield device


def in_thread(function):
    """Start a thread; return it with a list that receives its exception."""
    errors = []

    def guarded():
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread, errors


def test_a_capture_does_not_begin_while_another_thread_waits_for_the_device_before_its_own():
    with opened("") as probe, Device(probe.device):
        is_held = threading.Event()

        def hold():
            is_held.set()
            time.sleep(0.02)

        def capture():
            with Device(probe.device), graph(CUDAGraph(), capture_error_mode="thread_local"):
                time.sleep(0.03)

        probe.free(probe.malloc(512))
        with held_up(probe, "synchronize", hold):
            first, failed = in_thread(capture)
            assert is_held.wait(20)
            second, failed_too = in_thread(capture)
            first.join(timeout=20)
            second.join(timeout=20)
        assert failed == failed_too == []
        assert not first.is_alive() and not second.is_alive()


def test_a_capture_elsewhere_does_not_take_the_handle_that_wrote_a_tensor(device):
    for _ in range(3):
        with Stream():
            x = gt.ones(100)
        captured = CUDAGraph()
        with graph(captured):
            thread, errors = in_thread(lambda x=x: np.testing.assert_array_equal(x.numpy(), 1))
            thread.join(timeout=20)
        assert errors == [] and not thread.is_alive()
