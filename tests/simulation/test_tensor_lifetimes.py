"""Lifetimes of tensors and of the objects they refer to, on deferred devices; for the sanitizers.

Views, exports and imports keep memory alive, queued work keeps its arguments, and devices close
under tensors. No object may be used after its end, and none may stay behind.
"""

import gc
import random
import sys
import weakref

import numpy as np

import gputensor as gt
from gputensor._driver import registry
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Stream
from tests.simulation.test_ordering import fresh_seeds


class Opened:
    """A deferred device, current in the block, and a few of its streams."""

    def __init__(self, seed):
        self.number = registry.open_host(capacity=64 << 20, seed=seed)
        self.random = random.Random(seed)
        self.streams = [Stream(self.number) for _ in range(3)]

    def __enter__(self):
        self.block = Device(self.number)
        self.block.__enter__()
        return self

    def __exit__(self, *error):
        self.block.__exit__(*error)
        registry.close_host(self.number)

    def stream(self):
        return self.random.choice(self.streams)


class Owned(np.ndarray):
    """An array that can be referenced weakly, so that its end is visible."""


def owned(values):
    return np.asarray(values, np.float32).view(Owned)


def release_unused():
    """Wait for the current device, and scan the imported memory that is kept for its work.

    Each import releases the unused owners, which may themselves be imports of imported memory.
    """
    for _ in range(100):
        gt.synchronize()
        gt.from_dlpack(owned([1]), device=gt.current_stream().device)
        if gt.memory.memory_allocated() == 0:
            break
    gc.collect()


def test_random_ends_leave_right_values_and_no_object_behind():
    for seed in fresh_seeds(15):
        with Opened(seed) as opened:
            held = []
            for _ in range(150):
                draw, stream = opened.random.random(), opened.stream()
                with stream:
                    if draw < 0.2 or not held:
                        start = float(opened.random.randrange(100))
                        held.append((gt.asarray(np.arange(start, start + 50)), start, 1.0))
                        continue
                    tensor, start, step = opened.random.choice(held)
                    if draw < 0.35:
                        held.append((tensor + 1, start + 1, step))
                    elif draw < 0.5 and tensor.shape[0] > 4:
                        held.append((tensor[1::2], start + step, 2 * step))
                    elif draw < 0.6:
                        held.append((gt.from_dlpack(tensor), start, step))
                    elif draw < 0.7:
                        found = np.from_dlpack(tensor)
                        assert (found == start + step * np.arange(found.shape[0])).all()
                    else:
                        held.pop(opened.random.randrange(len(held)))
            for tensor, start, step in held:
                found = np.asarray(tensor)
                assert (found == start + step * np.arange(found.shape[0])).all(), seed
            del tensor, held, found
            release_unused()
            assert gt.memory.memory_allocated() == 0


def test_owner_of_imported_memory_outlives_the_work_that_reads_it():
    for seed in fresh_seeds(20):
        with Opened(seed) as opened:
            array = owned(np.full(64, 3))
            end = weakref.ref(array)
            imported = gt.from_dlpack(array, device=opened.number)
            with opened.stream():
                twice = imported * 2
            del array, imported
            assert (np.asarray(twice) == 6).all()
            release_unused()
            assert end() is None


def test_owner_of_imported_memory_outlives_the_replays_that_read_it():
    """Replays leave the capture's stream idle until the tensor is dropped."""
    waited = 0
    for seed in fresh_seeds(20):
        with Opened(seed) as opened:
            array = owned(np.full(5000, 3))
            end = weakref.ref(array)
            x, y, captured = gt.from_dlpack(array), gt.zeros(5000), CUDAGraph()
            with graph(captured):
                y[...] = x
            with opened.streams[0]:
                captured.replay()
            del x, array
            if not opened.streams[0].query():
                waited += 1
                assert end() is not None, seed
            assert (y.numpy() == 3).all()
            release_unused()
            assert end() is None
            del y, captured
    assert waited


def test_dropping_imported_memory_does_not_break_a_capture_of_a_stream_that_used_it():
    for seed in fresh_seeds(20):
        with Opened(seed) as opened:
            capturing, other = opened.streams[:2]
            array = owned(np.full(64, 3))
            end = weakref.ref(array)
            imported = gt.from_dlpack(array, device=opened.number)
            with capturing:
                twice = imported * 2
            gt.synchronize()
            captured = CUDAGraph()
            with capturing:
                captured.capture_begin()
                twice += 1
            with other:
                del array, imported
            with capturing:
                twice += 1
                captured.capture_end()
                captured.replay()
            assert (np.asarray(twice) == 8).all()
            del twice, captured
            release_unused()
            assert end() is None


def test_closing_a_device_releases_the_owners_of_imported_memory():
    """Later imports, which look for owners to release, also find the device closed."""
    for seed in fresh_seeds(20):
        ends = []
        with Opened(seed) as opened:
            for _ in range(5):
                array = owned(np.full(64, 3))
                ends.append(weakref.ref(array))
                imported = gt.from_dlpack(array, device=opened.number)
                with opened.stream():
                    twice = imported * 2
                del array, imported
            del twice
        release_unused()
        assert [end() for end in ends] == [None] * 5


def test_tensor_that_outlives_its_device_takes_nothing_from_the_next_one():
    """The numbers of closed devices are reused, and so are the records of blocks."""
    for seed in fresh_seeds(20):
        with Opened(seed) as opened:
            number = opened.number
            left = [gt.ones(opened.random.randrange(1, 300)) for _ in range(20)]
        with Opened(seed + 1) as opened:
            assert opened.number == number
            made = [(gt.full(200, value), value) for value in range(20)]
            del left
            made += [(gt.full(200, value), value) for value in range(20, 40)]
            for tensor, value in made:
                assert (np.asarray(tensor) == value).all()
            del tensor, made
            assert gt.memory.memory_allocated() == 0


def test_captured_work_keeps_its_arguments_as_long_as_the_graph():
    for seed in fresh_seeds(15):
        with Opened(seed) as opened:
            x = gt.asarray(np.arange(40, dtype=np.float32))
            y = gt.zeros(40)
            captured = CUDAGraph()
            with graph(captured):
                part = x[::2] * 3
                gt.add(part, 1, out=y[::2])
            del part
            gc.collect()
            for value in range(3):
                with opened.stream():
                    x[...] = value
                with opened.stream():
                    captured.replay()
                assert (np.asarray(y)[::2] == 3 * value + 1).all()
            del captured, x, y
            release_unused()
            assert gt.memory.memory_allocated() == 0


def references():
    gc.collect()
    small = [sys.getrefcount(number) for number in range(-5, 257)]
    return len(gc.get_objects()), sum(small), sys.getrefcount(None)


def test_references_do_not_drift():
    """A reference released once too often shows as a count that falls with every round."""
    test_captured_work_keeps_its_arguments_as_long_as_the_graph()
    test_random_ends_leave_right_values_and_no_object_behind()
    before = references()
    for _ in range(4):
        test_captured_work_keeps_its_arguments_as_long_as_the_graph()
        test_random_ends_leave_right_values_and_no_object_behind()
    drift = [after - former for after, former in zip(references(), before, strict=True)]
    assert max(map(abs, drift)) < 150, drift
